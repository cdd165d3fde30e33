/* runtime/xla/cache.h: executables of programs in a folder, for later runs. */
#ifndef LT_XLA_CACHE_H
#define LT_XLA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an executable is of: the plugin and its device, which `identity` names, and the program. */
typedef struct lt_cache_key {
  const char *identity, *text;
  size_t identity_size, text_size;
} lt_cache_key;

/* An executable that an earlier run has written; `memory` is the caller's to free. */
typedef struct lt_cached {
  char *memory;
  const char *executable;
  size_t size;
} lt_cached;

/* False: there is none, or it is damaged or of another program. */
bool lt_cache_read(const lt_cache_key *key, lt_cached *out);
/* Does nothing where the folder cannot be written to: lt_cache_problem says why. */
void lt_cache_write(const lt_cache_key *key, const void *executable, size_t size);
/* The executable cannot be loaded: it is removed. */
void lt_cache_remove(const lt_cache_key *key);

/* "": there is none (LTRAIN_XLA_CACHE is empty, or no home). */
const char *lt_cache_folder(void);
/* Why nothing was written; "": no failure. */
const char *lt_cache_problem(void);

#endif
