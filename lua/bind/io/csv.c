/* lua/bind/io/csv.c: tables in text files for the library's own Lua (`c.io`). */
#include "bind/core/call.h"
#include "bind/core/types.h"
#include "io/csv.h"

#include <string.h>

#include "bind/io/io.h"

#define TABLE_NAME "ltrain.CsvFile"

/* A file that is being read; freed also when Lua raises in the middle. */
typedef struct open_table {
  lt_csv *file; /* NULL: none */
  lt_ctx *c;
} open_table;

static void let_go(open_table *h) {
  if (h->file != NULL) lt_csv_free(h->c, h->file);
  h->file = NULL;
}

static int table_gc(lua_State *L) {
  let_go(luaL_checkudata(L, 1, TABLE_NAME));
  return 0;
}

static const char *const kinds[] = {
    [LT_CSV_INTEGER] = "integer", [LT_CSV_NUMBER] = "number", [LT_CSV_TEXT] = "text"};

/* The list `missing` of the options at index 2, in memory of Lua's that stays on the stack. */
static lt_csv_text *read_missing(lua_State *L, int *n) {
  lua_getfield(L, 2, "missing");
  luaL_checktype(L, -1, LUA_TTABLE);
  *n = (int)lua_rawlen(L, -1);
  lt_csv_text *list = lua_newuserdatauv(L, (size_t)(*n + 1) * sizeof *list, 0);
  for (int k = 0; k < *n; k++) {
    lt_raw_geti(L, -2, k + 1);
    list[k].text = luaL_checklstring(L, -1, &list[k].n);
    lua_pop(L, 1); /* the table holds it */
  }
  return list;
}

/* What `types` says of the columns, by name or (without names) by number. */
static void read_types(lua_State *L, lt_csv *t) {
  lua_getfield(L, 2, "types");
  for (int k = 0; k < lt_csv_columns(t); k++) {
    lt_csv_text name = lt_csv_name(t, k);
    if (name.n > 0)
      lua_pushlstring(L, name.text, name.n);
    else
      lua_pushinteger(L, k + 1);
    lua_gettable(L, -2);
    for (int kind = LT_CSV_INTEGER; kind <= LT_CSV_TEXT && lua_type(L, -1) == LUA_TSTRING; kind++)
      if (strcmp(lua_tostring(L, -1), kinds[kind]) == 0) lt_csv_set_kind(t, k, (lt_csv_kind)kind);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static void push_words(lua_State *L, const lt_csv *t, int column) {
  int64_t n = lt_csv_words(t, column);
  lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
  for (int64_t id = 0; id < n; id++) {
    lt_csv_text word = lt_csv_word(t, column, id);
    lua_pushlstring(L, word.text, word.n);
    lua_rawseti(L, -2, id + 1);
  }
}

/* {names, kinds, words}: what is known of the columns beside their values. */
static void push_columns(lua_State *L, const lt_csv *t) {
  static const char *const fields[] = {"names", "kinds", "words"};
  int n = lt_csv_columns(t);
  lua_createtable(L, 0, 4);
  for (int f = 0; f < 3; f++) {
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
      lt_csv_text name = lt_csv_name(t, k);
      if (f == 0) lua_pushlstring(L, name.text, name.n);
      if (f == 1) lua_pushstring(L, kinds[lt_csv_kind_of(t, k)]);
      if (f == 2) push_words(L, t, k);
      lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, fields[f]);
  }
}

/* The last n values of the stack, as a list in their place. */
static void gather(lua_State *L, int n) {
  lua_createtable(L, n, 0);
  lua_insert(L, -n - 1);
  for (int k = n; k >= 1; k--) lt_raw_seti(L, -k - 1, k);
}

/* The file stays open over calls of Lua that may raise, hence in a userdata. Texts come as ids with
   a list of words: a column of a few categories is an integer tensor at once. */
int lt_csv_to_lua(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = lt_check_path(L, b, "csv.read");
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_getfield(L, 2, "delimiter");
  lua_getfield(L, 2, "header");
  lt_csv_options o = {.delimiter = *luaL_checkstring(L, 3), .header = lua_toboolean(L, 4)};
  lua_getfield(L, 2, "bytes");
  o.most = luaL_optinteger(L, -1, 0);
  o.missing = read_missing(L, &o.n_missing);
  open_table *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (open_table){.c = b->c};
  luaL_setmetatable(L, TABLE_NAME);
  h->file = lt_csv_open(b->c, "csv.read", path, &o);
  if (h->file == NULL) return lt_refused(L, b);
  read_types(L, h->file);
  int n = lt_csv_columns(h->file);
  luaL_checkstack(L, n + 20, "csv.read: too many columns");
  lt_tensor **out = lua_newuserdatauv(L, (size_t)n * sizeof *out, 0);
  memset(out, 0, (size_t)n * sizeof *out);
  lt_frame frame = lt_begin(L, b, n);
  if (!lt_csv_read(b->c, h->file, out)) {
    lt_frame_close(b->c, frame, 0, NULL);
    let_go(h);
    return lt_refused(L, b);
  }
  lt_end(L, b, frame, n, out);
  gather(L, n);
  push_columns(L, h->file);
  lua_insert(L, -2);
  lua_setfield(L, -2, "values");
  lua_pushinteger(L, lt_csv_bytes(h->file));
  lua_setfield(L, -2, "bytes");
  lua_pushinteger(L, lt_csv_file_bytes(h->file));
  lua_setfield(L, -2, "file_bytes");
  let_go(h);
  return 1;
}

void lt_bind_csv(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", table_gc}, {NULL, NULL}};
  lt_new_type(L, b, TABLE_NAME, meta, NULL);
}
