/* runtime/data/paths.h: file names packed into one block of memory. */
#ifndef LT_DATA_PATHS_H
#define LT_DATA_PATHS_H

#include "base/ctx.h"

typedef struct lt_paths {
  lt_object object;
  int64_t n;
  size_t *at; /* where each begins in `text`; n + 1 entries */
  char *text; /* each ends with a zero */
} lt_paths;

/* Room for n names of `bytes` in all, zeros counted; lt_paths_add puts them in, in order. */
lt_paths *lt_paths_new(lt_ctx *c, int64_t n, size_t bytes);
void lt_paths_add(lt_paths *p, int64_t index, const char *path, size_t length);

static inline const char *lt_path_at(const lt_paths *p, int64_t i) { return p->text + p->at[i]; }

#endif
