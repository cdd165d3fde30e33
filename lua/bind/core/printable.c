/* lua/bind/core/printable.c: `runtime.printable` (base/printable.h). */
#include "base/printable.h"

#include "bind/core/values.h"

void lt_push_printable(lua_State *L, const char *text, size_t n, int keep) {
  if (lt_is_printable(text, n, (lt_printable_keep)keep)) {
    lua_pushlstring(L, text, n);
    return;
  }
  size_t size = lt_make_printable(NULL, 0, text, n, (lt_printable_keep)keep);
  luaL_Buffer buffer;
  char *out = luaL_buffinitsize(L, &buffer, size + 1);
  lt_make_printable(out, size + 1, text, n, (lt_printable_keep)keep);
  luaL_pushresultsize(&buffer, size);
}

/* runtime.printable(text [, "lines" | "colours"]) -> text; what is kept besides */
int lt_printable(lua_State *L) {
  static const char *const kept[] = {"nothing", "lines", "colours", NULL};
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n);
  lt_push_printable(L, text, n, luaL_checkoption(L, 2, "nothing", kept));
  return 1;
}
