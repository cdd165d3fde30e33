/* lua/bind/core/garbage_collection.h: steps Lua's garbage collector by the bytes of tensors. */
#ifndef LT_BIND_CORE_GARBAGE_COLLECTION_H
#define LT_BIND_CORE_GARBAGE_COLLECTION_H

#include "bind/core/state.h"

/* Between the arguments and the results of a call that makes tensors: collect when it is due. */
enum { LT_COLLECT_AFTER = 64 << 20, LT_COLLECT_LOOK = 4096, LT_COLLECT_LOOK_CAPPED = 16 };
void lt_collect_now(lua_State *L, lt_bind *b);
/* Between two batches; devices that record work run it then. */
void lt_collect_boundary(lua_State *L, lt_bind *b);
void lt_collect_inside(lua_State *L, lt_bind *b);   /* within a batch, of what a part of it made */
void lt_collect_soon(lt_bind *b); /* memory was refused: before the next result */
static inline void lt_collect_if_due(lua_State *L, lt_bind *b) {
  if (b->collect.fresh > LT_COLLECT_AFTER || ++b->collect.calls > b->collect.look)
    lt_collect_now(L, b);
}

#endif
