/* lua/host/values.c: converts C arguments to Lua values, and results back. */
#include "host/values.h"

#include <string.h>

#include <lauxlib.h>

#include "bind/core/tensor.h"
#include "host/state.h"

static void push_tensor(lua_State *L, lt_bind *b, lt_tensor *t) {
  const char *fault = lt_host_tensors_fault(lt_host_of(L), t);
  if (fault != NULL) luaL_error(L, "a tensor argument is %s", fault);
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
    break; /* lt_host_named has checked the format */
  }
}

/* A result is converted by no rule of Lua's (the text "3" is not a number): a host that asks for an
   integer gets one that the script returned as one. A float that is a whole number counts, as
   everywhere in Lua. */
void lt_check_result(lua_State *L, lt_bind *b, int index, char letter, const char *who) {
  int type = lua_type(L, index), fits = 0;
  const char *wanted = NULL;
  switch (letter) {
  case 'i':
    if (type == LUA_TNUMBER) lua_tointegerx(L, index, &fits);
    if (!fits) wanted = "an integer";
    break;
  case 'd':
    if (type != LUA_TNUMBER) wanted = "a number";
    break;
  case 'b':
    break;
  case 's':
    if (type != LUA_TSTRING && type != LUA_TNIL) wanted = "a string or nil";
    break;
  case 'T':
    if (lt_to_tensor(L, b, index) == NULL) wanted = "a tensor";
    break;
  default:
    break;
  }
  if (wanted != NULL) luaL_error(L, "%s: %s wanted, got %s", who, wanted, luaL_typename(L, index));
}

/* The host owns a reference, and the state knows of it: closing the state finds what a host has
   forgotten, and a handle that is used afterwards is named as released. */
static void give_tensor(lua_State *L, lt_tensor *t, lt_tensor **to) {
  if (to == NULL) return;
  *to = lt_retain(t);
  lt_host_tensors_add(lt_host_of(L), t, LT_OWNED);
}

static void give_integer(lua_Integer value, int64_t *to) {
  if (to != NULL) *to = value;
}

static void give_number(double value, double *to) {
  if (to != NULL) *to = value;
}

static void give_boolean(int value, int *to) {
  if (to != NULL) *to = value;
}

static void give_string(const char *value, const char **to) {
  if (to != NULL) *to = value;
}

void lt_give_result(lua_State *L, lt_bind *b, int index, char letter, lt_variadic *to) {
  switch (letter) {
  case 'i':
    give_integer(lua_tointeger(L, index), va_arg(to->list, int64_t *));
    break;
  case 'd':
    give_number(lua_tonumber(L, index), va_arg(to->list, double *));
    break;
  case 'b':
    give_boolean(lua_toboolean(L, index), va_arg(to->list, int *));
    break;
  case 's':
    give_string(lua_tostring(L, index), va_arg(to->list, const char **));
    break;
  default:
    give_tensor(L, lt_to_tensor(L, b, index), va_arg(to->list, lt_tensor **));
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

/* "a.b:c" is the method c of the object a.b, which becomes its first argument: a host calls
   net:forward as a script does, and "layers.1" is an element of a list. */
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
