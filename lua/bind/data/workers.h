/* lua/bind/data/workers.h: processes that read samples. */
#ifndef LT_BIND_DATA_WORKERS_H
#define LT_BIND_DATA_WORKERS_H

#include "bind/core/state.h"

/* Add what belongs to runtime.data to the table on top. */
void lt_bind_workers(lua_State *L, lt_bind *b);

#endif
