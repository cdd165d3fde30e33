/* runtime/data/paths.c: file names packed into one block of memory. */
#include "data/paths.h"

#include <string.h>

static void drop(lt_ctx *c, lt_object *object) {
  lt_paths *p = (lt_paths *)object;
  if (p->text != NULL) lt_free(c, p->text, p->at[p->n] + 1);
  if (p->at != NULL) lt_free(c, p->at, (size_t)(p->n + 1) * sizeof *p->at);
  lt_free(c, p, sizeof *p);
}

lt_paths *lt_paths_new(lt_ctx *c, int64_t n, size_t bytes) {
  lt_paths *p = lt_alloc(c, sizeof *p);
  if (p == NULL) return NULL;
  p->object = (lt_object){.refs = 1, .drop = drop};
  p->n = n;
  p->at = lt_alloc(c, (size_t)(n + 1) * sizeof *p->at);
  p->text = p->at != NULL ? lt_alloc(c, bytes + 1) : NULL;
  if (p->text != NULL) {
    p->at[n] = bytes;
    return p;
  }
  lt_release(c, p);
  return NULL;
}

void lt_paths_add(lt_paths *p, int64_t index, const char *path, size_t length) {
  size_t at = index == 0 ? 0 : p->at[index - 1] + strlen(lt_path_at(p, index - 1)) + 1;
  p->at[index] = at;
  memcpy(p->text + at, path, length + 1);
}
