/* lua/bind/modes.c: lt.no_grad, enable_grad, allow_update, autocast: <close> scopes, and forms with
   a function.

   A scope belongs to the Lua thread that opened it; functions called in one may yield. */
#include <string.h>

#include "bind/tensor.h"
#include "bind/values.h"

#define SCOPE_NAME "ltrain.Scope"

typedef struct scope {
  lt_modes saved;
  bool open;
} scope;

static int scope_close(lua_State *L) {
  lt_bind *b = lt_enter(L);
  scope *s = luaL_checkudata(L, 1, SCOPE_NAME);
  if (s->open) b->c->modes = s->saved;
  s->open = false;
  return 0;
}

static int finish(lua_State *L, int status, lua_KContext base) {
  (void)status;
  return lua_gettop(L) - (int)base;
}

/* Open a scope with `modes`; with a function at index `fn` call it inside and return its results,
   else return the scope. */
static int open_scope(lua_State *L, lt_bind *b, lt_modes modes, int fn) {
  int top = lua_gettop(L);
  bool call = !lua_isnoneornil(L, fn);
  if (call && luaL_getmetafield(L, fn, "__call") == LUA_TNIL && !lua_isfunction(L, fn))
    lt_raise(L, b, LT_EARG, "scope: needs a function, got %s", luaL_typename(L, fn));
  lua_settop(L, top);
  if (!call) lt_check_count(L, b, "scope", fn);
  scope *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (scope){.saved = b->c->modes, .open = true};
  luaL_setmetatable(L, SCOPE_NAME);
  if (!call) {
    b->c->modes = modes;
    return 1;
  }
  lua_insert(L, fn);
  lua_toclose(L, fn);
  b->c->modes = modes;
  lua_callk(L, top - fn, LUA_MULTRET, fn, finish);
  return finish(L, LUA_OK, fn);
}

static int no_grad(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.grad = false;
  return open_scope(L, b, modes, 1);
}

static int enable_grad(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.grad = true;
  return open_scope(L, b, modes, 1);
}

/* As no_grad; and what is written into parameters of an optimizer is meant: nobody reports it. */
static int allow_update(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.grad = false;
  modes.update = true;
  return open_scope(L, b, modes, 1);
}

/* lt.set_grad_enabled(on [, fn]) */
static int set_grad_enabled(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.grad = lt_check_flag(L, b, 1, "set_grad_enabled", "on");
  return open_scope(L, b, modes, 2);
}

/* lt.autocast("bf16" | "f16" | false [, fn]) */
static int autocast(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  if (lua_isboolean(L, 1)) {
    modes.autocast = lua_toboolean(L, 1);
  } else {
    modes.autocast_dtype = lt_check_dtype(L, b, 1, "autocast");
    modes.autocast = true;
    if (modes.autocast_dtype != LT_BF16 && modes.autocast_dtype != LT_F16)
      lt_raise(L, b, LT_EDTYPE, "autocast: must be \"bf16\", \"f16\" or false, got %s",
               lt_dtype_name(modes.autocast_dtype));
  }
  return open_scope(L, b, modes, 2);
}

static int is_grad_enabled(lua_State *L) {
  lua_pushboolean(L, lt_enter(L)->c->modes.grad);
  return 1;
}

/* lt.is_autocast_enabled() -> "bf16" or false */
static int is_autocast_enabled(lua_State *L) {
  const lt_modes *m = &lt_enter(L)->c->modes;
  if (m->autocast)
    lua_pushstring(L, lt_dtype_name(m->autocast_dtype));
  else
    lua_pushboolean(L, false);
  return 1;
}

void lt_bind_modes(lua_State *L, lt_bind *b) {
  static const lt_function functions[] = {{"no_grad", no_grad, -1},
                                          {"enable_grad", enable_grad, -1},
                                          {"allow_update", allow_update, -1},
                                          {"set_grad_enabled", set_grad_enabled, -1},
                                          {"autocast", autocast, -1},
                                          {"is_grad_enabled", is_grad_enabled, 0},
                                          {"is_autocast_enabled", is_autocast_enabled, 0},
                                          {NULL, NULL, 0}};
  static const luaL_Reg meta[] = {{"__close", scope_close}, {NULL, NULL}};
  luaL_newmetatable(L, SCOPE_NAME);
  lt_add_functions(L, b, meta);
  lua_pushliteral(L, SCOPE_NAME);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
  lua_pushvalue(L, 1);
  lt_add_public(L, b, functions);
  lua_pop(L, 1);
}
