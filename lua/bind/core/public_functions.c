/* lua/bind/core/public_functions.c: public functions check the number of their arguments: surplus
   ones are an error. */
#include "bind/core/public_functions.h"

#include <string.h>

#include "bind/core/raise.h"
#include "bind/core/values.h"

/* Lua itself drops surplus arguments without an error, and with them options that a script meant to
   set. A nil is none: functions that pass on what they got often have one at the end. */
void lt_check_count(lua_State *L, lt_bind *b, const char *who, int most) {
  int top = lua_gettop(L);
  for (int k = most + 1; k <= top; k++)
    if (!lua_isnil(L, k))
      lt_raise(L, b, LT_EARG, "%s: one argument too many: %s", who, lt_shown(L, k));
  if (top > most) lua_settop(L, most);
}

/* Upvalues: the binding, the row. What is called finds the binding in the same place. */
static int call_public(lua_State *L) {
  const lt_function *f = lua_touserdata(L, lua_upvalueindex(2));
  if (f->most >= 0 && lua_gettop(L) > f->most) lt_check_count(L, lt_enter(L), f->name, f->most);
  return f->call(L);
}

void lt_add_public(lua_State *L, lt_bind *b, const lt_function *functions) {
  for (const lt_function *f = functions; f->name != NULL; f++) {
    lua_pushlightuserdata(L, b);
    lua_pushlightuserdata(L, (void *)f);
    lua_pushcclosure(L, call_public, 2);
    lua_setfield(L, -2, f->name);
  }
}

/* Forms. */

typedef struct form_name {
  const char *text;
  size_t length;
  int place;
  bool is_option;
} form_name;

/* The next name of a form, {0} at first; false at the end. */
static bool next_name(const char **form, form_name *n) {
  *form += strspn(*form, " ");
  if (**form == '|') n->is_option = true, *form += 1 + strspn(*form + 1, " ");
  n->text = *form;
  n->length = strcspn(*form, " ");
  n->place++;
  *form += n->length;
  return n->length > 0;
}

static bool is_called(const form_name *n, const char *name) {
  return strlen(name) == n->length && memcmp(n->text, name, n->length) == 0;
}

const char *lt_other_name(const char *name) {
  if (strcmp(name, "dim") == 0) return "dims";
  return strcmp(name, "dims") == 0 ? "dim" : "";
}

/* 0: no argument is called so. */
static int place_of(const char *form, const char *name) {
  int other = 0;
  for (form_name n = {0}; next_name(&form, &n);) {
    if (is_called(&n, name)) return n.place;
    if (is_called(&n, lt_other_name(name))) other = n.place;
  }
  return other;
}

/* How many names there are, or how many before the bar. */
static int count_names(const char *form, bool own) {
  int count = 0;
  for (form_name n = {0}; next_name(&form, &n);)
    if (!own || !n.is_option) count = n.place;
  return count;
}

/* Whether the last value is a table of names: neither a list nor an object, and in the place of an
   argument that is not an option with a name of the form. */
static bool is_named(lua_State *L, const char *form) {
  int at = lua_gettop(L);
  if (at == 0 || !lua_istable(L, at)) return false;
  if (lua_getmetatable(L, at) != 0) {
    lua_settop(L, at);
    return false;
  }
  bool is_option = at > count_names(form, true), known = false;
  lua_pushnil(L);
  if (lt_raw_next(L, at) == 0) return is_option;
  for (bool more = true; more && lua_type(L, at + 1) == LUA_TSTRING && !known;
       more = !known && lt_raw_next(L, at) != 0) {
    known = is_option || place_of(form, lua_tostring(L, at + 1)) > 0;
    lua_settop(L, at + 1);
  }
  lua_settop(L, at);
  return known;
}

static void push_names(lua_State *L, const char *form) {
  lua_newtable(L);
  for (form_name n = {0}; next_name(&form, &n);) {
    lua_pushlstring(L, n.text, n.length);
    lua_rawseti(L, -2, n.place);
  }
}

_Noreturn static void unknown_option(lua_State *L, lt_bind *b, const char *who, const char *form,
                                     const char *name) {
  push_names(L, form);
  const char *hint = lt_push_hint(L, "did_you_mean", name, NULL);
  if (hint[0] != 0) lt_raise(L, b, LT_EARG, "%s: unknown option '%s'%s", who, name, hint);
  lua_pushliteral(L, "");
  for (form_name n = {0}; next_name(&form, &n);) {
    if (!n.is_option) continue;
    lua_pushlstring(L, n.text, n.length);
    lua_pushfstring(L, "%s%s%s", lua_tostring(L, -2), *lua_tostring(L, -2) != 0 ? ", " : "",
                    lua_tostring(L, -1));
  }
  lt_raise(L, b, LT_EARG, "%s: unknown option '%s' (there are %s)", who, name,
           lua_tostring(L, -1));
}

/* Move the values of the last table to the places of their names. */
static void place_named(lua_State *L, lt_bind *b, const char *who, const char *form) {
  int at = lua_gettop(L), n = count_names(form, false);
  luaL_checkstack(L, 3 * n + 12, "ltrain");
  if (at > n + 1) return; /* one argument too many */
  lua_insert(L, 1);       /* the table first: places are one up */
  lua_settop(L, n + 1);
  for (lua_pushnil(L); lt_raw_next(L, 1) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      lt_raise(L, b, LT_EARG, "%s: the table of options contains a value without a name", who);
    const char *name = lua_tostring(L, -2);
    int place = place_of(form, name);
    if (place == 0) unknown_option(L, b, who, form, name);
    if (!lua_isnil(L, place + 1))
      lt_raise(L, b, LT_EARG, "%s: argument '%s' is given twice", who, name);
    lua_pushvalue(L, -1);
    lua_replace(L, place + 1);
  }
  lua_remove(L, 1);
}

/* Upvalues: the binding, the row. */
static int call_formed(lua_State *L) {
  const lt_formed *f = lua_touserdata(L, lua_upvalueindex(2));
  while (lua_gettop(L) > 0 && lua_isnil(L, -1)) lua_settop(L, -2);
  if (f->function.most >= 0 && is_named(L, f->form))
    place_named(L, lt_enter(L), f->function.name, f->form);
  return call_public(L);
}

void lt_add_formed(lua_State *L, lt_bind *b, const lt_formed *functions) {
  for (const lt_formed *f = functions; f->function.name != NULL; f++) {
    lua_pushlightuserdata(L, b);
    lua_pushlightuserdata(L, (void *)f);
    lua_pushcclosure(L, call_formed, 2);
    lua_setfield(L, -2, f->function.name);
  }
}

void lt_push_form(lua_State *L, int index) {
  const char *form = "";
  if (lua_tocfunction(L, index) == call_formed && lua_getupvalue(L, index, 2) != NULL) {
    form = ((const lt_formed *)lua_touserdata(L, -1))->form;
    lua_pop(L, 1);
  }
  push_names(L, form);
}
