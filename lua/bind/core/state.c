/* lua/bind/core/state.c: the binding of a state, and the modes of its threads. */
#include "bind/core/state.h"

#include "ops/trace.h"

/* Address used as the registry key of a state's binding. */
static const char bind_key;

enum { CORE_SLOT = 1 }; /* user value of the binding: the table of C functions */

void lt_bind_keep(lua_State *L, int functions) {
  lua_pushvalue(L, functions);
  lua_setiuservalue(L, -2, CORE_SLOT);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &bind_key);
}

void lt_push_functions(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &bind_key);
  lua_getiuservalue(L, -1, CORE_SLOT);
  lua_remove(L, -2);
}

lt_bind *lt_bind_get(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &bind_key);
  lt_bind *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return b;
}

static const char require_key;

void lt_set_require(lua_State *L, lua_CFunction require) {
  lua_pushcfunction(L, require);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &require_key);
}

void lt_push_require(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &require_key); }

/* The record of modes of the thread on top of the stack, which it pops. A new thread starts with
   the main thread's; it may outlive a part that is computed again, which it does not belong to. */
static lt_modes *record_of(lua_State *L, lt_bind *b) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->threads_ref);
  lua_pushvalue(L, -2);
  if (lt_raw_get(L, -2) != LUA_TUSERDATA) {
    lua_pop(L, 1);
    lua_pushvalue(L, -2);
    lt_modes *fresh = lua_newuserdatauv(L, sizeof *fresh, 0);
    *fresh = b->main_modes;
    fresh->dropping = fresh->filling = NULL;
    lua_rawset(L, -3);
    lua_pushvalue(L, -2);
    lt_raw_get(L, -2);
  }
  lt_modes *record = lua_touserdata(L, -1);
  lua_rawseti(L, LUA_REGISTRYINDEX, b->record_ref);
  lua_pop(L, 2);
  return record;
}

static void leave(lt_modes *m, const lt_trace *t) {
  if (m->trace == t) m->trace = t->outer;
}

void lt_trace_open(lua_State *L, lt_bind *b, lt_trace *t) {
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, t);
  t->outer = b->c->modes.trace;
  if (t->outer != NULL) t->outer->inner++;
  t->open = true;
  b->c->modes.trace = t;
}

void lt_trace_close(lua_State *L, lt_bind *b, lt_trace *t) {
  if (!t->open || t->inner > 0 || b->c->modes.trace != t) return;
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->threads_ref);
  for (lua_pushnil(L); lt_raw_next(L, -2) != 0; lua_pop(L, 1)) leave(lua_touserdata(L, -1), t);
  leave(&b->main_modes, t);
  leave(&b->c->modes, t);
  if (t->outer != NULL) t->outer->inner--;
  t->open = false;
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, t);
}

void lt_bind_switch(lt_bind *b, lua_State *L) {
  if (b->c == NULL || b->closing) luaL_error(L, "ltrain: the state is closing");
  luaL_checkstack(L, 8, "ltrain");
  *b->modes = b->c->modes;
  if (lua_pushthread(L) != 0) {
    lua_pop(L, 1);
    b->modes = &b->main_modes;
  } else {
    b->modes = record_of(L, b);
  }
  b->c->modes = *b->modes;
  lua_pushthread(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, b->thread_ref);
  b->L = L;
}

/* Finalizers of a host's state run in threads of their own: each of their calls is a switch. */
void lt_bind_close(lt_bind *b, lua_State *L) {
  *b->modes = b->c->modes;
  b->modes = &b->main_modes;
  b->c->modes = b->main_modes;
  b->L = L;
  b->closing = true;
}
