/* runtime/text/id_list.c: growing lists of ids of tokens. */
#include "text/id_list.h"

enum { FIRST_IDS = 4 };

bool lt_ids_grow(lt_ctx *c, lt_ids *l) {
  int64_t capacity = l->capacity == 0 ? FIRST_IDS : 2 * l->capacity;
  int32_t *id = lt_realloc(c, l->id, (size_t)l->capacity * sizeof *id,
                           (size_t)capacity * sizeof *id);
  if (id == NULL) return false;
  l->id = id;
  l->capacity = capacity;
  return true;
}

void lt_ids_free(lt_ctx *c, lt_ids *l) {
  lt_free(c, l->id, (size_t)l->capacity * sizeof *l->id);
  *l = (lt_ids){0};
}
