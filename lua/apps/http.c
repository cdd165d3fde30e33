/* lua/apps/http.c: `c.runtime.http`: a server of HTTP for programs on this machine.

   Thin on purpose: routes, authentication and formats are Lua (stdlib/apps/dashboard); C has what
   Lua cannot, sockets and waiting. */
#include "apps/http.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/io/io.h"
#include "bind/system/process.h"

#define HTTP_NAME "ltrain.Http"

typedef struct server {
  lt_ctx *c;
  lt_http *http; /* NULL: closed */
} server;

/* A closed server is an error of the library, never of a script, which has no access to it: a plain
   Lua error is enough. */
static server *check_server(lua_State *L) {
  server *s = luaL_checkudata(L, 1, HTTP_NAME);
  luaL_argcheck(L, s->http != NULL, 1, "a closed server");
  return s;
}

static int server_close(lua_State *L) {
  server *s = luaL_checkudata(L, 1, HTTP_NAME);
  lt_http_close(s->c, s->http);
  s->http = NULL;
  return 0;
}

static lua_Number option(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  lua_Number value = luaL_checknumber(L, -1);
  lua_pop(L, 1);
  return value;
}

/* http.open{port =, connections =, ask_seconds =, read_seconds =, head_bytes =, stream_bytes =} ->
   server; nil and a reason. The limits are required, not defaulted: they belong to the one who
   knows what is served. */
static int open_http(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lt_http_options o = {.port = (int)option(L, "port"),
                       .connections = (int)option(L, "connections"),
                       .ask_seconds = option(L, "ask_seconds"),
                       .read_seconds = option(L, "read_seconds"),
                       .head_bytes = (size_t)option(L, "head_bytes"),
                       .stream_bytes = (size_t)option(L, "stream_bytes")};
  luaL_argcheck(L, o.port >= 0 && o.port <= 65535, 1, "port: 0 to 65535");
  if (!b->c->policy.network) return lt_refuse_network(L, "http");
  server *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (server){.c = b->c};
  luaL_setmetatable(L, HTTP_NAME);
  s->http = lt_http_open(b->c, "dashboard", &o);
  return s->http != NULL ? 1 : lt_refused(L, b);
}

static int server_port(lua_State *L) {
  lua_pushinteger(L, lt_http_port(check_server(L)->http));
  return 1;
}

static void set(lua_State *L, const char *name, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

/* server:wait(seconds) -> {id =, method =, target =, version =, {name, value}, ...} or nil Fields
   as a list and not a table by name: names of HTTP fields are case-insensitive and may repeat, and
   what to do about that is the reader's decision. */
static int server_wait(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_http_request *r = lt_http_wait(check_server(L)->http, luaL_checknumber(L, 2));
  if (!lt_ok(b->c)) return lt_refused(L, b);
  if (r == NULL) return 0;
  lua_createtable(L, r->n_fields, 4);
  lua_pushinteger(L, r->id);
  lua_setfield(L, -2, "id");
  set(L, "method", r->method);
  set(L, "target", r->target);
  set(L, "version", r->version);
  for (int i = 0; i < r->n_fields; i++) {
    lua_createtable(L, 2, 0);
    lua_pushstring(L, r->fields[i].name);
    lua_rawseti(L, -2, 1);
    lua_pushstring(L, r->fields[i].value);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* The list of {name, value} at index 4; what they point to is kept by its tables. */
static int read_fields(lua_State *L, lt_http_field *fields) {
  luaL_checktype(L, 4, LUA_TTABLE);
  lua_Integer n = lt_raw_length(L, 4);
  luaL_argcheck(L, n <= LT_HTTP_FIELDS, 4, "too many");
  for (lua_Integer i = 0; i < n; i++) {
    lt_raw_geti(L, 4, i + 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    lt_raw_geti(L, -1, 1);
    lt_raw_geti(L, -2, 2);
    luaL_argcheck(L, lua_type(L, -2) == LUA_TSTRING && lua_type(L, -1) == LUA_TSTRING, 4,
                  "names and values");
    fields[i] = (lt_http_field){lua_tostring(L, -2), lua_tostring(L, -1)};
    lua_pop(L, 3);
  }
  return (int)n;
}

/* server:answer(id, status, {{name, value}, ...}, data): false when the client has gone. Without
   data it is a stream. */
static int server_answer(lua_State *L) {
  lt_bind *b = lt_enter(L);
  server *s = check_server(L);
  lt_http_field fields[LT_HTTP_FIELDS];
  int64_t id = luaL_checkinteger(L, 2);
  int status = (int)luaL_checkinteger(L, 3), n = read_fields(L, fields);
  size_t size;
  bool done;
  if (lua_isnoneornil(L, 5)) {
    done = lt_http_stream(s->http, id, status, n, fields);
  } else {
    const char *data = luaL_checklstring(L, 5, &size);
    done = lt_http_answer(s->http, id, status, n, fields, data, size);
  }
  if (!lt_ok(b->c)) return lt_refused(L, b);
  lua_pushboolean(L, done);
  return 1;
}

/* server:send(id, text): false when the reader of the stream has gone, or is too slow */
static int server_send(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t size;
  server *s = check_server(L);
  const char *data = luaL_checklstring(L, 3, &size);
  bool done = lt_http_send(s->http, luaL_checkinteger(L, 2), data, size);
  if (!lt_ok(b->c)) return lt_refused(L, b);
  lua_pushboolean(L, done);
  return 1;
}

/* server:finish(id): the stream ends */
static int server_finish(lua_State *L) {
  lt_http_finish(check_server(L)->http, luaL_checkinteger(L, 2));
  return 0;
}

/* http.secret() -> 32 hexadecimal digits that nobody can guess From the kernel, not from Philox: a
   seed of training is known to whoever reads the script. 128 bits cannot be found by trying. */
static int secret(lua_State *L) {
  lt_bind *b = lt_enter(L);
  unsigned char bytes[16];
  char text[2 * sizeof bytes + 1];
  if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
    lt_raise(L, b, LT_EIO, "secret: no random numbers");
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
  lua_pushstring(L, text);
  return 1;
}

void lt_bind_apps(lua_State *L, lt_bind *b) {
  static const luaL_Reg of_server[] = {
      {"__gc", server_close}, {"__close", server_close}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"port", server_port}, {"wait", server_wait},     {"answer", server_answer},
      {"send", server_send}, {"finish", server_finish}, {"close", server_close},
      {NULL, NULL}};
  static const luaL_Reg functions[] = {{"open", open_http}, {"secret", secret}, {NULL, NULL}};
  lt_new_type(L, b, HTTP_NAME, of_server, methods);
  lua_getfield(L, 1, "runtime");
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lua_setfield(L, -2, "http");
  lua_pop(L, 1);
}
