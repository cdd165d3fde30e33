/* lua/bind/core/openers.h: declares the function that registers each part of the binding; open.c
   calls them. */
#ifndef LT_BIND_CORE_OPENERS_H
#define LT_BIND_CORE_OPENERS_H

#include "bind/core/state.h"

/* Parts of the binding; each finds the table of C functions at index 1 and that of the tensor's
   methods at index 2, and adds to them. */
void lt_bind_reports(lua_State *L, lt_bind *b);
void lt_bind_tensor(lua_State *L, lt_bind *b);
void lt_bind_marks(lua_State *L, lt_bind *b);
void lt_bind_readback(lua_State *L, lt_bind *b);
void lt_bind_ops(lua_State *L, lt_bind *b);
void lt_bind_dtypes(lua_State *L, lt_bind *b);
void lt_bind_create(lua_State *L, lt_bind *b);
void lt_bind_convert(lua_State *L, lt_bind *b);
void lt_bind_in_place(lua_State *L, lt_bind *b);
void lt_bind_views(lua_State *L, lt_bind *b);
void lt_bind_compare(lua_State *L, lt_bind *b);
void lt_bind_index(lua_State *L, lt_bind *b);
void lt_bind_grad(lua_State *L, lt_bind *b);
void lt_bind_gradients(lua_State *L, lt_bind *b);
void lt_bind_walk(lua_State *L, lt_bind *b);
void lt_bind_custom(lua_State *L, lt_bind *b);
void lt_bind_trace(lua_State *L, lt_bind *b);
void lt_bind_modes(lua_State *L, lt_bind *b);
void lt_bind_print(lua_State *L, lt_bind *b);
void lt_bind_collect(lua_State *L, lt_bind *b);
void lt_bind_devices(lua_State *L, lt_bind *b);
void lt_bind_streams(lua_State *L, lt_bind *b);
void lt_bind_graphs(lua_State *L, lt_bind *b);
void lt_bind_system(lua_State *L, lt_bind *b);
void lt_bind_overlay(lua_State *L, lt_bind *b);
void lt_bind_random(lua_State *L, lt_bind *b);
void lt_bind_apps(lua_State *L, lt_bind *b); /* lua/apps */
void lt_bind_io(lua_State *L, lt_bind *b);
void lt_bind_net(lua_State *L, lt_bind *b);
void lt_bind_inbox(lua_State *L, lt_bind *b);
void lt_bind_data(lua_State *L, lt_bind *b);
void lt_bind_dist(lua_State *L, lt_bind *b);
void lt_bind_hash(lua_State *L, lt_bind *b);
void lt_bind_coroutines(lua_State *L, lt_bind *b);
void lt_bind_stops(lua_State *L, lt_bind *b);
void lt_bind_loading(lua_State *L, lt_bind *b);
void lt_bind_warnings(lua_State *L, lt_bind *b);

#endif
