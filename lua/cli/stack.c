/* lua/cli/stack.c: tracebacks, joined from pieces of luaL_traceback, which shows the first ten
   frames and the last eleven. Between those of the script there may be many of the library. */
#include "cli/stack.h"

#include <string.h>

#include <lauxlib.h>

enum { PIECE = 10, MOST = 200 };

/* The levels of a stack from `level` on, at most MOST + 1: the deeper, the longer one takes to be
   found. */
static int count_levels(lua_State *from, int level) {
  lua_Debug frame;
  int n = 0;
  while (n <= MOST && lua_getstack(from, level + n, &frame)) n++;
  return n;
}

/* Where the text of `count` frames ends; a note on tail calls belongs to the frame before. */
static const char *skip_frames(const char *text, int count) {
  static const char note[] = "\n\t(...tail calls...)";
  while (*text != 0 && count-- > 0) {
    const char *next = strchr(text + 1, '\n');
    text = next != NULL ? next : text + strlen(text);
    if (strncmp(text, note, sizeof note - 1) == 0) text += sizeof note - 1;
  }
  return text;
}

/* Add the frames from `level` on, `count` of them, to the text on top. */
static void add_frames(lua_State *L, lua_State *from, int level, int count) {
  for (; count > 0; level += PIECE, count -= PIECE) {
    luaL_traceback(L, from, NULL, level);
    const char *text = strchr(lua_tostring(L, -1), '\n'); /* behind "stack traceback:" */
    if (text == NULL) text = "";
    const char *end = skip_frames(text, count < PIECE ? count : PIECE);
    lua_pushlstring(L, text, (size_t)(end - text));
    lua_remove(L, -2);
    lua_concat(L, 2);
  }
}

void lt_push_traceback(lua_State *L, lua_State *from, const char *message, int level) {
  int n = count_levels(from, level);
  if (n > MOST) {
    luaL_traceback(L, from, message, level);
    return;
  }
  luaL_checkstack(L, 8, NULL);
  lua_pushfstring(L, message != NULL ? "%s\nstack traceback:" : "%sstack traceback:",
                  message != NULL ? message : "");
  add_frames(L, from, level, n);
}
