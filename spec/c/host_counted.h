/* spec/c/host_counted.h: a host's allocator that counts, and refuses when it is told to. */
#ifndef LT_SPEC_HOST_COUNTED_H
#define LT_SPEC_HOST_COUNTED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/* Bytes and requests so far; it fails from the n-th request on, or at the n-th alone. */
typedef struct counted {
  atomic_long live, asked;
  long fails_at; /* 0: never */
  bool once;
} counted;

static inline void *count_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
  counted *n = ud;
  if (new_size > old_size) {
    long k = atomic_fetch_add(&n->asked, 1) + 1;
    if (n->fails_at > 0 && (n->once ? k == n->fails_at : k >= n->fails_at)) return NULL;
  }
  void *block = NULL;
  if (new_size == 0)
    free(ptr);
  else
    block = realloc(ptr, new_size);
  if (new_size == 0 || block != NULL) atomic_fetch_add(&n->live, (long)new_size - (long)old_size);
  return block;
}

#endif
