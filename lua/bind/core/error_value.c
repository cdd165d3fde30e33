/* lua/bind/core/error_value.c: texts of error values: those that are not strings are printed as
   `lua` prints them, and of plain tables what they hold; and what to do about an error. */
#include <string.h>

#include "bind/core/raise.h"
#include "bind/core/values.h"

enum { MOST_FIELDS = 8, LONGEST_TEXT = 60, CUT_TEXT = 57 };

/* A key of a table; without a name it is a position. */
typedef struct field {
  const char *name;
  lua_Integer position;
} field;

static bool comes_before(const field *a, const field *b) {
  if (a->name != NULL && b->name != NULL) return strcmp(a->name, b->name) < 0;
  if (a->name == NULL && b->name == NULL) return a->position < b->position;
  return a->name == NULL;
}

/* Insert among `n` that are in order; one more than are printed is kept. */
static int insert(field *list, int n, field new) {
  int at = n <= MOST_FIELDS ? n : MOST_FIELDS;
  if (n > MOST_FIELDS && !comes_before(&new, &list[at])) return n;
  for (; at > 0 && comes_before(&new, &list[at - 1]); at--) list[at] = list[at - 1];
  list[at] = new;
  return n <= MOST_FIELDS ? n + 1 : n;
}

/* The first fields of the table at `index`, in an order that does not depend on its memory. */
static int first_fields(lua_State *L, int index, field *list) {
  int n = 0;
  for (lua_pushnil(L); lt_raw_next(L, index) != 0; lua_pop(L, 1)) {
    if (lua_isinteger(L, -2))
      n = insert(list, n, (field){.position = lua_tointeger(L, -2)});
    else if (lua_type(L, -2) == LUA_TSTRING)
      n = insert(list, n, (field){.name = lua_tostring(L, -2)});
  }
  return n;
}

/* Replace the value on top by what is shown of it. */
static void show(lua_State *L) {
  size_t length = 0;
  if (lua_type(L, -1) == LUA_TSTRING) {
    const char *text = lua_tolstring(L, -1, &length);
    bool fits = length <= LONGEST_TEXT;
    lua_pushlstring(L, text, fits ? length : CUT_TEXT);
    lua_pushfstring(L, fits ? "'%s'" : "'%s...'", lua_tostring(L, -1));
    lua_remove(L, -2);
  } else if (lua_type(L, -1) == LUA_TNUMBER || lua_type(L, -1) == LUA_TBOOLEAN) {
    luaL_tolstring(L, -1, NULL);
  } else {
    const char *name = lt_shown(L, -1);
    lua_pushfstring(L, strncmp(name, "a ", 2) == 0 ? "%s" : "a %s", name);
  }
  lua_remove(L, -2);
}

/* Push "{'x', code = 3}" for the table at `index`. */
static void push_fields(lua_State *L, int index, const field *list, int n) {
  lua_pushliteral(L, "{");
  for (int k = 0; k < n && k < MOST_FIELDS; k++) {
    if (k > 0) lua_pushliteral(L, ", ");
    if (list[k].name != NULL)
      lua_pushfstring(L, "%s = ", list[k].name);
    else if (list[k].position != k + 1)
      lua_pushfstring(L, "[%I] = ", list[k].position);
    else
      lua_pushliteral(L, "");
    if (list[k].name != NULL)
      lua_pushstring(L, list[k].name);
    else
      lua_pushinteger(L, list[k].position);
    lt_raw_get(L, index);
    show(L);
    lua_concat(L, k > 0 ? 4 : 3);
  }
  lua_pushstring(L, n > MOST_FIELDS ? ", ...}" : "}");
  lua_concat(L, 2);
}

const char *lt_push_error_text(lua_State *L, int index) {
  index = lua_absindex(L, index);
  luaL_checkstack(L, 10, "ltrain");
  if (lua_type(L, index) == LUA_TSTRING || lua_type(L, index) == LUA_TNUMBER) {
    lua_pushvalue(L, index);
    return lua_tostring(L, -1);
  }
  if (luaL_callmeta(L, index, "__tostring")) {
    if (lua_isstring(L, -1)) return lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  const char *type = luaL_typename(L, index);
  field list[MOST_FIELDS + 1];
  bool plain = lua_type(L, index) == LUA_TTABLE && lua_getmetatable(L, index) == 0;
  int n = plain ? first_fields(L, index, list) : 0;
  if (n == 0) return lua_pushfstring(L, "(error object is a %s value)", type);
  push_fields(L, index, list, n);
  lua_pushfstring(L, "(error object is a %s value: %s)", type, lua_tostring(L, -1));
  lua_remove(L, -2);
  return lua_tostring(L, -1);
}

/* Push the library's module; false: an error is on top. */
static bool push_remedies(lua_State *L) {
  lt_push_require(L);
  lua_pushliteral(L, "ltrain.core.remedies");
  return lua_pcall(L, 1, 1, 0) == LUA_OK;
}

void lt_add_remedy(lua_State *L, const char *script) {
  int top = lua_gettop(L);
  if (push_remedies(L)) {
    lua_pushvalue(L, top);
    lua_pushstring(L, script);
    if (lua_pcall(L, 2, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING) lua_replace(L, top);
  }
  lua_settop(L, top);
}
