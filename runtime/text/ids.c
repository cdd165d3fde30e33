/* runtime/text/ids.c: growing lists of ids of tokens. */
#include "text/ids.h"

enum { FIRST_IDS = 4 };

bool lt_ids_grow(lt_ctx *c, lt_ids *l) {
  int64_t room = l->room == 0 ? FIRST_IDS : 2 * l->room;
  int32_t *id = lt_realloc(c, l->id, (size_t)l->room * sizeof *id, (size_t)room * sizeof *id);
  if (id == NULL) return false;
  l->id = id;
  l->room = room;
  return true;
}

void lt_ids_free(lt_ctx *c, lt_ids *l) {
  lt_free(c, l->id, (size_t)l->room * sizeof *l->id);
  *l = (lt_ids){0};
}
