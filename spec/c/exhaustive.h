/* spec/c/exhaustive.h: whether a run has all cases, or some of each kind. */
#ifndef LT_SPEC_C_EXHAUSTIVE_H
#define LT_SPEC_C_EXHAUSTIVE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool is_exhaustive(void) {
  const char *s = getenv("LT_EXHAUSTIVE");
  return s && strcmp(s, "1") == 0;
}

/* Which of n kinds an everyday run has, others for another LT_TEST_SEED. */
static inline int everyday_of(int n) {
  const char *seed = getenv("LT_TEST_SEED");
  return (seed != NULL ? atoi(seed) : 1) % n;
}

/* The same of tests that are about orders of threads: sanitized runs look for rare ones. */
static inline bool has_all_orders(void) {
  const char *s = getenv("LT_SANITIZE");
  return is_exhaustive() || (s && *s);
}

#endif
