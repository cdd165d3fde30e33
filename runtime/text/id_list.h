/* runtime/text/id_list.h: growing lists of ids of tokens. */
#ifndef LT_TEXT_ID_LIST_H
#define LT_TEXT_ID_LIST_H

#include "base/ctx.h"

/* Start from {0}; a failure sticks in the ctx, and what is added then is lost. */
typedef struct lt_ids {
  int32_t *id;
  int64_t n, capacity;
} lt_ids;

bool lt_ids_grow(lt_ctx *c, lt_ids *l);
static inline void lt_ids_add(lt_ctx *c, lt_ids *l, int32_t id) {
  if (l->n < l->capacity || lt_ids_grow(c, l)) l->id[l->n++] = id;
}
void lt_ids_free(lt_ctx *c, lt_ids *l);

#endif
