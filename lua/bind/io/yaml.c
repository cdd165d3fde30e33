/* lua/bind/io/yaml.c: the events of a text of YAML, of which stdlib/files/yaml.lua makes values.

   libyaml parses (YAML 1.1 by its events), Lua decides what a scalar means: so `no`, 1e3 and dates
   are handled in one place, with the rules that the documentation states. */
#include "bind/core/raise.h"
#include "bind/core/raw.h"
#include "bind/io/io.h"
#include "io/libyaml.h"

typedef struct reader {
  const lt_libyaml *library;
  lt_yaml_parser parser;
  lt_yaml_event event;
} reader;

static void set_text(lua_State *L, const char *key, const char *text) {
  if (text == NULL) return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

/* {kind =, line =, anchor =, tag =, text =, plain =} */
static void push_event(lua_State *L, const lt_yaml_event *e) {
  static const char *const kinds[] = {
      [LT_YAML_DOCUMENT_START] = "document", [LT_YAML_ALIAS] = "alias",
      [LT_YAML_SCALAR] = "scalar",           [LT_YAML_SEQUENCE] = "sequence",
      [LT_YAML_SEQUENCE_END] = "end",        [LT_YAML_MAPPING] = "mapping",
      [LT_YAML_MAPPING_END] = "end"};
  lua_createtable(L, 0, 5);
  set_text(L, "kind", kinds[e->type]);
  lua_pushinteger(L, (lua_Integer)e->start.line + 1);
  lua_setfield(L, -2, "line");
  if (e->type == LT_YAML_DOCUMENT_START) return;
  if (e->type <= LT_YAML_SEQUENCE || e->type == LT_YAML_MAPPING)
    set_text(L, "anchor", e->data.anchor);
  if (e->type == LT_YAML_SCALAR || e->type == LT_YAML_SEQUENCE || e->type == LT_YAML_MAPPING)
    set_text(L, "tag", e->data.tag);
  if (e->type != LT_YAML_SCALAR) return;
  lua_pushlstring(L, e->data.value, e->data.length);
  lua_setfield(L, -2, "text");
  lua_pushboolean(L, e->data.style == LT_YAML_PLAIN);
  lua_setfield(L, -2, "plain");
}

static bool is_shown(int type) {
  return type == LT_YAML_DOCUMENT_START ||
         (type >= LT_YAML_ALIAS && type <= LT_YAML_MAPPING_END);
}

/* (reader, text) -> a list of events; nil and what is wrong. Called protected: it may run out of
   memory while libyaml holds some. */
static int read_all(lua_State *L) {
  reader *r = lua_touserdata(L, 1);
  size_t n = 0;
  const char *text = lua_tolstring(L, 2, &n);
  r->library->set_input(&r->parser, (const unsigned char *)text, n);
  lua_newtable(L);
  for (lua_Integer count = 0;;) {
    if (r->library->parse(&r->parser, &r->event) == 0) {
      lua_pushnil(L);
      const lt_yaml_parser *p = &r->parser;
      lua_pushfstring(L, "line %I: %s", (lua_Integer)p->problem_mark.line + 1,
                      p->problem != NULL ? p->problem : "no memory");
      if (p->context == NULL) return 2;
      lua_pushfstring(L, "%s, %s of line %I", lua_tostring(L, -1), p->context,
                      (lua_Integer)p->context_mark.line + 1);
      lua_remove(L, -2);
      return 2;
    }
    int type = r->event.type;
    if (is_shown(type)) {
      push_event(L, &r->event);
      lt_raw_seti(L, 3, ++count);
    }
    r->library->event_delete(&r->event);
    r->event.type = 0;
    if (type == LT_YAML_STREAM_END) return 1;
  }
}

/* libyaml has memory of its own and knows no longjmp: everything that may raise is inside the
   pcall, and both deletes come after it on every path. */
int lt_yaml_events(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checkstring(L, 1);
  lua_settop(L, 1);
  reader r = {.library = lt_libyaml_open(b->c, "yaml")};
  if (r.library == NULL) {
    lt_failure f;
    lt_take_failure(b->c, &f);
    lua_pushnil(L);
    lua_pushstring(L, f.text);
    return 2;
  }
  if (r.library->initialize(&r.parser) == 0) return luaL_error(L, "yaml: no memory");
  lua_pushcfunction(L, read_all);
  lua_pushlightuserdata(L, &r);
  lua_pushvalue(L, 1);
  int status = lua_pcall(L, 2, LUA_MULTRET, 0);
  if (r.event.type != 0) r.library->event_delete(&r.event);
  r.library->parser_delete(&r.parser);
  if (status != LUA_OK) return lua_error(L);
  return lua_gettop(L) - 1;
}
