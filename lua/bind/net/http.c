/* lua/bind/net/http.c: `c.net.http`: a client of HTTP and HTTPS. */
#include <string.h>

#include "base/printable.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/io/io.h"
#include "bind/net/net.h"
#include "net/http_client.h"

#define HTTP_NAME "ltrain.HttpClient"
#define READER_NAME "ltrain.HttpReader"

enum { MOST_FIELDS = 16 };

typedef struct http {
  lt_ctx *c;
  lt_http_client *client;
} http;

/* Its user value is the client, which must not go before it. */
typedef struct reader {
  lt_ctx *c;
  lt_http_reader *lines; /* NULL: closed */
} reader;

/* Nil and the reason, also where the library is not installed. */
static int failed(lua_State *L, lt_bind *b) {
  if (b->c->failure.code != LT_EDEVICE) return lt_refused(L, b);
  lt_failure f;
  lt_take_failure(b->c, &f);
  lua_pushnil(L);
  lt_push_printable(L, f.text, strlen(f.text), LT_KEEP_NOTHING);
  return 2;
}

static const char *option(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  return luaL_optstring(L, -1, ""); /* stays on the stack */
}

int lt_net_http(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lt_http_settings settings = {
      .ca = option(L, "ca"), .cert = option(L, "cert"), .key = option(L, "key")};
  lua_getfield(L, 1, "connect_seconds");
  settings.connect_seconds = luaL_checknumber(L, -1);
  if (!b->c->policy.network) return lt_refuse_network(L, "http");
  http *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (http){.c = b->c};
  luaL_setmetatable(L, HTTP_NAME);
  h->client = lt_http_client_open(b->c, "http", &settings);
  return h->client != NULL ? 1 : failed(L, b);
}

static int http_gc(lua_State *L) {
  http *h = luaL_checkudata(L, 1, HTTP_NAME);
  lt_http_client_close(h->c, h->client);
  h->client = NULL;
  return 0;
}

/* The request of (client, url, body, {field, ...}); what it points to is kept by the arguments. */
static lt_http_post check_post(lua_State *L, const char *fields[MOST_FIELDS + 1]) {
  lt_http_post post = {.url = luaL_checkstring(L, 2), .fields = fields};
  post.body = luaL_checklstring(L, 3, &post.size);
  luaL_checktype(L, 4, LUA_TTABLE);
  lua_Integer n = lt_raw_length(L, 4);
  luaL_argcheck(L, n <= MOST_FIELDS, 4, "too many");
  for (lua_Integer i = 0; i < n; i++) {
    lt_raw_geti(L, 4, i + 1);
    luaL_argcheck(L, lua_type(L, -1) == LUA_TSTRING, 4, "a list of strings");
    fields[i] = lua_tostring(L, -1);
    luaL_argcheck(L, strpbrk(fields[i], "\r\n") == NULL, 4, "a line has a line break");
    lua_pop(L, 1);
  }
  fields[n] = NULL;
  return post;
}

/* http:post(url, body, {field, ...}, seconds) -> status, text; nil, a reason and libcurl's number
   of it */
static int http_post(lua_State *L) {
  lt_bind *b = lt_enter(L);
  http *h = luaL_checkudata(L, 1, HTTP_NAME);
  const char *fields[MOST_FIELDS + 1], *text;
  lt_http_post post = check_post(L, fields);
  size_t n;
  int status = lt_http_client_post(b->c, h->client, &post, luaL_checknumber(L, 5), &text, &n);
  if (!lt_ok(b->c)) {
    int results = lt_refused(L, b);
    lua_pushinteger(L, -status);
    return results + 1;
  }
  lua_pushinteger(L, status);
  lua_pushlstring(L, text, n);
  return 2;
}

/* http:read(url, body, {field, ...}) -> a reader of the answer's lines; nil and a reason */
static int http_read(lua_State *L) {
  lt_bind *b = lt_enter(L);
  http *h = luaL_checkudata(L, 1, HTTP_NAME);
  const char *fields[MOST_FIELDS + 1];
  lt_http_post post = check_post(L, fields);
  reader *r = lua_newuserdatauv(L, sizeof *r, 1);
  *r = (reader){.c = b->c};
  luaL_setmetatable(L, READER_NAME);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  r->lines = lt_http_reader_open(b->c, h->client, &post);
  return r->lines != NULL ? 1 : lt_refused(L, b);
}

static int reader_close(lua_State *L) {
  reader *r = luaL_checkudata(L, 1, READER_NAME);
  lt_http_reader_close(r->c, r->lines);
  r->lines = NULL;
  return 0;
}

int lt_net_line(lua_State *L, lt_bind *b, const char *line, size_t n) {
  if (!lt_ok(b->c)) return lt_refused(L, b);
  if (line != NULL)
    lua_pushlstring(L, line, n);
  else
    lua_pushboolean(L, false);
  return 1;
}

/* reader:line(seconds) -> the next line; false after so many seconds; nil and a reason when the
   answer has ended */
static int reader_line(lua_State *L) {
  lt_bind *b = lt_enter(L);
  reader *r = luaL_checkudata(L, 1, READER_NAME);
  luaL_argcheck(L, r->lines != NULL, 1, "a closed reader");
  size_t n = 0;
  const char *line = lt_http_reader_read(b->c, r->lines, luaL_checknumber(L, 2), &n);
  return lt_net_line(L, b, line, n);
}

void lt_bind_net_http(lua_State *L, lt_bind *b) {
  static const luaL_Reg of_http[] = {{"__gc", http_gc}, {NULL, NULL}};
  static const luaL_Reg http_methods[] = {{"post", http_post}, {"read", http_read}, {NULL, NULL}};
  static const luaL_Reg of_reader[] = {
      {"__gc", reader_close}, {"__close", reader_close}, {NULL, NULL}};
  static const luaL_Reg reader_methods[] = {
      {"line", reader_line}, {"close", reader_close}, {NULL, NULL}};
  lt_new_type(L, b, HTTP_NAME, of_http, http_methods);
  lt_new_type(L, b, READER_NAME, of_reader, reader_methods);
}
