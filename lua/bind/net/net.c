/* lua/bind/net/net.c: `c.net`: connections over TCP and HTTP, for the stores of stdlib/elastic.

   Thin on purpose: protocols are Lua. What the network may spoil gives nil and the reason. */
#include "bind/net/net.h"

#include <stdint.h>
#include <string.h>

#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/io/io.h"
#include "net/base64.h"
#include "net/line_client.h"
#include "net/line_server.h"

#define SERVER_NAME "ltrain.LineServer"
#define CLIENT_NAME "ltrain.LineClient"

/* ---- servers ---- */

typedef struct server {
  lt_ctx *c;
  lt_line_server *lines; /* NULL: closed */
} server;

static server *check_server(lua_State *L) {
  server *s = luaL_checkudata(L, 1, SERVER_NAME);
  luaL_argcheck(L, s->lines != NULL, 1, "a closed server");
  return s;
}

static int server_close(lua_State *L) {
  server *s = luaL_checkudata(L, 1, SERVER_NAME);
  if (s->lines != NULL) lt_line_server_close(s->c, s->lines);
  s->lines = NULL;
  return 0;
}

static int check_port(lua_State *L, int index) {
  lua_Integer port = luaL_checkinteger(L, index);
  luaL_argcheck(L, port >= 0 && port <= 65535, index, "a port: 0 to 65535");
  return (int)port;
}

/* net.serve(host, port, line_bytes, unread_bytes) -> server; false when the host is another one, or
   another process has the port; nil and a reason. The limits are those of line_server.h. */
static int serve(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *host = luaL_checkstring(L, 1);
  int port = check_port(L, 2);
  lua_Integer line = luaL_checkinteger(L, 3), unread = luaL_checkinteger(L, 4);
  luaL_argcheck(L, line > 0 && line <= INT32_MAX, 3, "a number of bytes");
  luaL_argcheck(L, unread > 0 && unread <= INT32_MAX, 4, "a number of bytes");
  if (!b->c->policy.network) return lt_refuse_network(L, "serve");
  server *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (server){.c = b->c};
  luaL_setmetatable(L, SERVER_NAME);
  lt_line_limits limits = {.line_bytes = (size_t)line, .unread_bytes = (size_t)unread};
  s->lines = lt_line_server_open(b->c, "serve", host, port, limits);
  if (!lt_ok(b->c)) return lt_refused(L, b);
  if (s->lines == NULL) lua_pushboolean(L, false);
  return 1;
}

static int server_port(lua_State *L) {
  lua_pushinteger(L, lt_line_server_port(check_server(L)->lines));
  return 1;
}

/* server:wait(seconds) -> client, line; client alone: it has gone; nothing after so many seconds,
   or at a signal */
static int server_wait(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_line_event event;
  bool some = lt_line_server_wait(b->c, check_server(L)->lines, luaL_checknumber(L, 2), &event);
  if (!lt_ok(b->c)) return lt_refused(L, b);
  if (!some) return 0;
  lua_pushinteger(L, event.client);
  if (event.line == NULL) return 1;
  lua_pushlstring(L, event.line, event.size);
  return 2;
}

/* The line at `index`. */
static const char *check_line(lua_State *L, int index, size_t *n) {
  const char *line = luaL_checklstring(L, index, n);
  luaL_argcheck(L, memchr(line, '\n', *n) == NULL, index, "one line");
  return line;
}

/* server:send(client, line) -> false when the client has gone, or reads too slowly */
static int server_send(lua_State *L) {
  lt_bind *b = lt_enter(L);
  server *s = check_server(L);
  size_t n;
  const char *line = check_line(L, 3, &n);
  bool sent = lt_line_server_send(b->c, s->lines, luaL_checkinteger(L, 2), line, n);
  if (!lt_ok(b->c)) return lt_refused(L, b);
  lua_pushboolean(L, sent);
  return 1;
}

/* ---- clients ---- */

typedef struct client {
  lt_ctx *c;
  lt_line_client *lines; /* NULL: closed */
} client;

static client *check_client(lua_State *L) {
  client *k = luaL_checkudata(L, 1, CLIENT_NAME);
  luaL_argcheck(L, k->lines != NULL, 1, "a closed connection");
  return k;
}

static int client_close(lua_State *L) {
  client *k = luaL_checkudata(L, 1, CLIENT_NAME);
  lt_line_client_close(k->c, k->lines);
  k->lines = NULL;
  return 0;
}

/* net.connect(host, port, seconds) -> connection; nil and a reason */
static int connect_to(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *host = luaL_checkstring(L, 1);
  int port = check_port(L, 2);
  double seconds = luaL_checknumber(L, 3);
  if (!b->c->policy.network) return lt_refuse_network(L, "connect");
  client *k = lua_newuserdatauv(L, sizeof *k, 0);
  *k = (client){.c = b->c};
  luaL_setmetatable(L, CLIENT_NAME);
  k->lines = lt_line_client_open(b->c, "connect", host, port, seconds);
  return k->lines != NULL ? 1 : lt_refused(L, b);
}

/* connection:send(line, seconds) -> true; nil and a reason */
static int client_send(lua_State *L) {
  lt_bind *b = lt_enter(L);
  client *k = check_client(L);
  size_t n;
  const char *line = check_line(L, 2, &n);
  lt_line_client_send(b->c, k->lines, line, n, luaL_checknumber(L, 3));
  return lt_done(L, b);
}

/* connection:receive(seconds) -> the next line; false after so many seconds, or at a signal; nil
   and a reason when the connection has ended */
static int client_receive(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t n = 0;
  const char *line =
      lt_line_client_receive(b->c, check_client(L)->lines, luaL_checknumber(L, 2), &n);
  return lt_net_line(L, b, line, n);
}

/* ---- base64 ---- */

/* net.base64(text) -> text */
static int encode_base64(lua_State *L) {
  size_t n;
  luaL_Buffer buffer;
  const char *bytes = luaL_checklstring(L, 1, &n);
  lt_base64_encode(bytes, n, luaL_buffinitsize(L, &buffer, lt_base64_size(n) + 1));
  luaL_pushresultsize(&buffer, lt_base64_size(n));
  return 1;
}

/* net.unbase64(text) -> text; nil of what is not base64 */
static int decode_base64(lua_State *L) {
  size_t n;
  luaL_Buffer buffer;
  const char *text = luaL_checklstring(L, 1, &n);
  size_t size = lt_base64_decode(text, n, luaL_buffinitsize(L, &buffer, n / 4 * 3 + 1));
  if (size == SIZE_MAX) return 0;
  luaL_pushresultsize(&buffer, size);
  return 1;
}

void lt_bind_net(lua_State *L, lt_bind *b) {
  static const luaL_Reg of_server[] = {
      {"__gc", server_close}, {"__close", server_close}, {NULL, NULL}};
  static const luaL_Reg server_methods[] = {{"port", server_port},
                                            {"wait", server_wait},
                                            {"send", server_send},
                                            {"close", server_close},
                                            {NULL, NULL}};
  static const luaL_Reg of_client[] = {
      {"__gc", client_close}, {"__close", client_close}, {NULL, NULL}};
  static const luaL_Reg client_methods[] = {
      {"send", client_send}, {"receive", client_receive}, {"close", client_close}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"serve", serve},
                                       {"connect", connect_to},
                                       {"http", lt_net_http},
                                       {"base64", encode_base64},
                                       {"unbase64", decode_base64},
                                       {NULL, NULL}};
  lt_new_type(L, b, SERVER_NAME, of_server, server_methods);
  lt_new_type(L, b, CLIENT_NAME, of_client, client_methods);
  lt_bind_net_http(L, b);
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lua_setfield(L, 1, "net");
}
