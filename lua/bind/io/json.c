/* lua/bind/io/json.c: Lua tables as JSON.

   Object keys are sorted by their bytes, so that equal tables give equal texts (files
   that can be compared and hashed), whatever order Lua's hash has. Unless `plain`, doubles keep
   each bit and strings that are not UTF-8 each byte, in spellings that decoding takes back
   (io/json.h); plain JSON is for other programs. */
#include "bind/io/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"

#define TEXT_NAME "ltrain.JsonText"

static int text_gc(lua_State *L) {
  lt_json_free(luaL_checkudata(L, 1, TEXT_NAME));
  return 0;
}

void lt_bind_json(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", text_gc}, {NULL, NULL}};
  lt_new_type(L, b, TEXT_NAME, meta, NULL);
}

/* The userdata is the owner of C memory while Lua may raise: its __gc frees what an error leaves,
   and the normal way frees earlier. */
lt_json *lt_push_text(lua_State *L, lt_bind *b) {
  lt_json *text = lua_newuserdatauv(L, sizeof *text, 0);
  *text = (lt_json){.c = b->c};
  luaL_setmetatable(L, TEXT_NAME);
  return text;
}

bool lt_json_is_plain(lua_State *L, int index) {
  if (!lua_istable(L, index)) return false;
  lua_getfield(L, index, "plain");
  bool plain = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return plain;
}

/* Where in the value the writer is. A list through the C stack, one node a level: it costs nothing
   until there is an error, whose text has the path. */
typedef struct place {
  const struct place *up;
  const char *key; /* NULL: `position` */
  lua_Integer position;
  int depth;
} place;

typedef struct writer {
  lua_State *L;
  lt_bind *b;
  lt_json *text;
  bool plain;
} writer;

static void push_path(lua_State *L, const place *at) {
  if (at->up == NULL) {
    lua_pushliteral(L, "value");
    return;
  }
  luaL_checkstack(L, 4, "json");
  push_path(L, at->up);
  if (at->key != NULL)
    lua_pushfstring(L, ".%s", at->key);
  else
    lua_pushfstring(L, "[%I]", at->position);
  lua_concat(L, 2);
}

/* The path is left out below 20 levels: a cycle would fill the message. */
_Noreturn static void refuse(writer *w, const place *at, const char *reason) {
  if (at->depth > 20)
    lua_pushliteral(w->L, "value");
  else
    push_path(w->L, at);
  lt_raise(w->L, w->b, LT_EARG, "json: %s %s", lua_tostring(w->L, -1), reason);
}

static void write_value(writer *w, const place *at);

typedef struct name {
  const char *text;
  size_t length;
} name;

/* memcmp and not strcoll: the order must not depend on the locale. */
static int by_bytes(const void *a, const void *b) {
  const name *x = a, *y = b;
  int r = memcmp(x->text, y->text, x->length < y->length ? x->length : y->length);
  return r != 0 ? r : x->length < y->length ? -1 : x->length > y->length;
}

/* The keys of the table on top of the stack: how many are names, how many positions 1..#t. #t alone
   would not do: with holes its value is any border (manual, section 3.4.7). */
static lua_Integer count_keys(writer *w, const place *at, lua_Integer *n_names) {
  lua_State *L = w->L;
  lua_Integer length = (lua_Integer)lua_rawlen(L, -1), positions = 0;
  *n_names = 0;
  lua_pushnil(L);
  while (lt_raw_next(L, -2) != 0) {
    lua_pop(L, 1);
    if (lua_type(L, -1) == LUA_TSTRING) {
      ++*n_names;
    } else if (lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 1 &&
               lua_tointeger(L, -1) <= length) {
      positions++;
    } else {
      refuse(w, at, "has a key that is neither a name nor one of 1, 2, ...");
    }
  }
  if (positions != length) refuse(w, at, "is a list with holes");
  if (positions > 0 && *n_names > 0) refuse(w, at, "has both positions and names");
  return positions;
}

static void write_list(writer *w, const place *at, lua_Integer n) {
  lt_json_char(w->text, '[');
  for (lua_Integer i = 1; i <= n; i++) {
    if (i > 1) lt_json_char(w->text, ',');
    lt_raw_geti(w->L, -1, i);
    write_value(w, &(place){.up = at, .position = i, .depth = at->depth + 1});
    lua_pop(w->L, 1);
  }
  lt_json_char(w->text, ']');
}

static void write_string(writer *w, const char *text, size_t length) {
  if (w->plain)
    lt_json_string(w->text, text, length);
  else
    lt_json_exact_string(w->text, text, length);
}

/* Two passes: keys are collected in a userdata and sorted, then looked up again. The strings belong
   to the table, which stays on the stack. */
static void write_object(writer *w, const place *at, lua_Integer n) {
  lua_State *L = w->L;
  name *names = lua_newuserdatauv(L, (size_t)n * sizeof *names + 1, 0);
  lua_insert(L, -2);
  name *next = names;
  for (lua_pushnil(L); lt_raw_next(L, -2) != 0; next++) {
    lua_pop(L, 1);
    next->text = lua_tolstring(L, -1, &next->length);
  }
  if (n > 1) qsort(names, (size_t)n, sizeof *names, by_bytes);
  lt_json_char(w->text, '{');
  for (lua_Integer i = 0; i < n; i++) {
    if (i > 0) lt_json_char(w->text, ',');
    lt_json_string(w->text, names[i].text, names[i].length);
    lt_json_char(w->text, ':');
    lua_pushlstring(L, names[i].text, names[i].length);
    lt_raw_get(L, -2);
    write_value(w, &(place){.up = at, .key = names[i].text, .depth = at->depth + 1});
    lua_pop(L, 1);
  }
  lt_json_char(w->text, '}');
  lua_remove(L, -2);
}

/* An empty table is an object: nothing tells whether it was meant as a list. Cycles need no marks,
   they end at the depth limit. */
static void write_table(writer *w, const place *at) {
  if (lua_getmetatable(w->L, -1) != 0) refuse(w, at, "is an object, not a plain table");
  if (at->depth >= LT_JSON_DEPTH) refuse(w, at, "is nested too deep, or contains itself");
  luaL_checkstack(w->L, 8, "json");
  lua_Integer names, positions = count_keys(w, at, &names);
  if (positions > 0)
    write_list(w, at, positions);
  else
    write_object(w, at, names);
}

/* Writes the value on top of the stack. */
static void write_value(writer *w, const place *at) {
  lua_State *L = w->L;
  size_t length;
  switch (lua_type(L, -1)) {
  case LUA_TNIL:
    lt_json_raw(w->text, "null", 4);
    break;
  case LUA_TBOOLEAN:
    if (lua_toboolean(L, -1))
      lt_json_raw(w->text, "true", 4);
    else
      lt_json_raw(w->text, "false", 5);
    break;
  case LUA_TNUMBER:
    if (lua_isinteger(L, -1))
      lt_json_integer(w->text, lua_tointeger(L, -1));
    else
      lt_json_double(w->text, lua_tonumber(L, -1), !w->plain);
    break;
  case LUA_TSTRING: {
    const char *text = lua_tolstring(L, -1, &length);
    write_string(w, text, length);
    break;
  }
  case LUA_TTABLE:
    write_table(w, at);
    break;
  default:
    lua_pushfstring(L, "is a %s, for which JSON has no form", luaL_typename(L, -1));
    refuse(w, at, lua_tostring(L, -1));
  }
  if (!lt_ok(w->b->c)) lt_raise_failure(L, w->b);
}

int lt_json_encode(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checkany(L, 1);
  lua_settop(L, 2);
  writer w = {.L = L, .b = b, .plain = lt_json_is_plain(L, 2)};
  w.text = lt_push_text(L, b);
  lua_pushvalue(L, 1);
  write_value(&w, &(place){.up = NULL});
  lua_pushlstring(L, w.text->data, w.text->size);
  lt_json_free(w.text);
  return 1;
}
