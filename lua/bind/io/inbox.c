/* lua/bind/io/inbox.c: `c.runtime.inbox`: messages of other processes of the same user, by a socket
   in a folder. */
#include "bind/core/openers.h"
#include "bind/core/types.h"
#include "bind/io/io.h"
#include "io/inbox.h"

#define INBOX_NAME "ltrain.Inbox"

static const char SOCKET[] = "control.sock";

typedef struct inbox {
  int fd; /* -1: closed */
} inbox;

static int inbox_close(lua_State *L) {
  inbox *i = luaL_checkudata(L, 1, INBOX_NAME);
  if (i->fd < 0) return 0;
  lua_getiuservalue(L, 1, 1);
  lt_inbox_close(i->fd, lua_tostring(L, -1), SOCKET);
  i->fd = -1;
  return 0;
}

/* inbox.open(folder) -> inbox; nil and a reason, also where another process has one there */
static int open_inbox(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *folder = lt_check_path(L, b, "control");
  if (!b->c->policy.network) return lt_refuse_network(L, "control");
  inbox *i = lua_newuserdatauv(L, sizeof *i, 1);
  i->fd = -1;
  luaL_setmetatable(L, INBOX_NAME);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  i->fd = lt_inbox_open(b->c, "control", folder, SOCKET);
  return i->fd >= 0 ? 1 : lt_refused(L, b);
}

/* inbox:take() -> the next word, or nil */
static int inbox_take(lua_State *L) {
  inbox *i = luaL_checkudata(L, 1, INBOX_NAME);
  char word[LT_INBOX_WORD];
  if (i->fd < 0 || !lt_inbox_take(i->fd, word)) return 0;
  lua_pushstring(L, word);
  return 1;
}

/* inbox.send(root, path, word) -> true: to the inbox of the folder `path` below `root`; without a
   word only whether somebody listens. nil and a reason */
static int send_word(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *root = lt_check_path(L, b, "control"), *path = luaL_checkstring(L, 2);
  const char *word = luaL_optstring(L, 3, NULL);
  if (!b->c->policy.network) return lt_refuse_network(L, "control");
  lt_inbox_send(b->c, "control", root, path, SOCKET, word);
  return lt_done(L, b);
}

void lt_bind_inbox(lua_State *L, lt_bind *b) {
  static const luaL_Reg of_inbox[] = {
      {"__gc", inbox_close}, {"__close", inbox_close}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"take", inbox_take}, {"close", inbox_close}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"open", open_inbox}, {"send", send_word}, {NULL, NULL}};
  lt_new_type(L, b, INBOX_NAME, of_inbox, methods);
  lua_getfield(L, 1, "runtime");
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lua_setfield(L, -2, "inbox");
  lua_pop(L, 1);
}
