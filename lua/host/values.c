/* lua/host/values.c: values between a host and a state. */
#include "host/values.h"

#include <string.h>

#include <lauxlib.h>

#include "bind/tensor.h"

static void push_tensor(lua_State *L, lt_bind *b, lt_tensor *t) {
  if (t == NULL) luaL_error(L, "a tensor argument is NULL");
  lt_push_unique(L, b, t);
}

void lt_push_argument(lua_State *L, lt_bind *b, char letter, lt_variadic *from) {
  luaL_checkstack(L, 2, "too many arguments");
  switch (letter) {
  case 'i':
    lua_pushinteger(L, va_arg(from->list, int64_t));
    break;
  case 'd':
    lua_pushnumber(L, va_arg(from->list, double));
    break;
  case 'b':
    lua_pushboolean(L, va_arg(from->list, int));
    break;
  case 's':
    lua_pushstring(L, va_arg(from->list, const char *));
    break;
  case 'T':
    push_tensor(L, b, va_arg(from->list, lt_tensor *));
    break;
  default:
    luaL_error(L, "unknown letter '%c' in a format (i d b s T)", letter);
  }
}

static void mismatch(lua_State *L, int index, const char *who, const char *wanted) {
  luaL_error(L, "%s: %s wanted, got %s", who, wanted, luaL_typename(L, index));
}

static void take_integer(lua_State *L, int index, const char *who, int64_t *to) {
  int fits = 0;
  lua_Integer value = lua_type(L, index) == LUA_TNUMBER ? lua_tointegerx(L, index, &fits) : 0;
  if (!fits) mismatch(L, index, who, "an integer");
  if (to != NULL) *to = value;
}

static void take_string(lua_State *L, int index, const char *who, const char **to) {
  if (lua_type(L, index) != LUA_TSTRING && !lua_isnil(L, index))
    mismatch(L, index, who, "a string or nil");
  if (to != NULL) *to = lua_tostring(L, index);
}

static void take_tensor(lua_State *L, lt_bind *b, int index, const char *who, lt_tensor **to) {
  lt_tensor *t = lt_to_tensor(L, b, index);
  if (t == NULL) mismatch(L, index, who, "a tensor");
  if (to != NULL) *to = lt_retain(t);
}

void lt_take_result(lua_State *L, lt_bind *b, int index, char letter, lt_variadic *to,
                    const char *who) {
  switch (letter) {
  case 'i':
    take_integer(L, index, who, va_arg(to->list, int64_t *));
    break;
  case 'd': {
    double *number = va_arg(to->list, double *);
    if (lua_type(L, index) != LUA_TNUMBER) mismatch(L, index, who, "a number");
    if (number != NULL) *number = lua_tonumber(L, index);
    break;
  }
  case 'b': {
    int *truth = va_arg(to->list, int *);
    if (truth != NULL) *truth = lua_toboolean(L, index);
    break;
  }
  case 's':
    take_string(L, index, who, va_arg(to->list, const char **));
    break;
  case 'T':
    take_tensor(L, b, index, who, va_arg(to->list, lt_tensor **));
    break;
  default:
    luaL_error(L, "unknown letter '%c' in a format (i d b s T)", letter);
  }
}

/* Push the key that a part of a name stands for: a position when it is digits only. */
static void push_key(lua_State *L, const char *part, size_t length) {
  lua_pushlstring(L, part, length);
  if (length == 0 || strspn(part, "0123456789") < length) return;
  if (lua_stringtonumber(L, lua_tostring(L, -1)) != 0) lua_remove(L, -2);
}

/* Replace the table on top by its field. */
static void step_into(lua_State *L, const char *name, const char *part, size_t length) {
  if (lua_type(L, -1) != LUA_TTABLE) {
    if (luaL_getmetafield(L, -1, "__index") == LUA_TNIL) {
      lua_pushlstring(L, part, length);
      luaL_error(L, "%s: cannot index a %s with '%s'", name, luaL_typename(L, -2),
                 lua_tostring(L, -1));
    }
    lua_pop(L, 1);
  }
  push_key(L, part, length);
  lua_gettable(L, -2);
  lua_remove(L, -2);
}

/* Push what the name up to `end` stands for. */
static void push_up_to(lua_State *L, const char *name, const char *end) {
  lua_pushglobaltable(L);
  for (const char *part = name; part < end;) {
    size_t length = strcspn(part, ".:");
    step_into(L, name, part, length);
    part += length + 1;
  }
}

int lt_push_named(lua_State *L, const char *name) {
  luaL_checkstack(L, 6, "ltrain");
  const char *colon = strchr(name, ':');
  if (colon == NULL) {
    push_up_to(L, name, name + strlen(name));
    return 1;
  }
  push_up_to(L, name, colon);
  lua_pushvalue(L, -1);
  step_into(L, name, colon + 1, strlen(colon + 1));
  lua_insert(L, -2); /* the method, then its object */
  return 2;
}

void lt_store_named(lua_State *L, const char *name) {
  luaL_checkstack(L, 6, "ltrain");
  const char *dot = strrchr(name, '.');
  push_up_to(L, name, dot == NULL ? name : dot);
  const char *last = dot == NULL ? name : dot + 1;
  if (lua_type(L, -1) != LUA_TTABLE) luaL_error(L, "%s: no table to store into", name);
  push_key(L, last, strlen(last));
  lua_pushvalue(L, -3);
  lua_settable(L, -3);
  lua_pop(L, 2);
}
