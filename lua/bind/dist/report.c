/* lua/bind/dist/report.c: reports the error of a rank's script to all ranks. */
#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/debugger/debugger.h"
#include "bind/dist/dist.h"

void lt_dist_report(lua_State *L, lt_bind *b) {
  lt_stops_raised(L, b, L);
  lt_world *w = b->c != NULL ? lt_world_current(b->c) : NULL;
  if (w == NULL) return;
  lt_place p = lt_place_here(L, b);
  bool stops = lt_is_interrupt(L, -1);
  int status = lt_status_of(L, -1);
  bool has_place = stops || lua_type(L, -1) == LUA_TSTRING;
  if (has_place)
    lua_pushliteral(L, "");
  else
    lt_push_where(L);
  lt_push_error_text(L, -2);
  lua_concat(L, 2);
  if (!stops && lua_checkstack(L, 4) != 0) lt_add_remedy(L, NULL);
  const char *text = lua_tostring(L, -1);
  if (stops)
    lt_world_stop(w, text, status);
  else
    lt_world_raise(w, text, p.file, p.line);
  lua_pop(L, 1);
}

/* dist.report(error): this rank's script failed with it: call it where it was raised, before
   anything unwinds. Returns when it is decided which failure is named; nothing without a world */
static int report(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checkany(L, 1);
  lua_settop(L, 1);
  lt_dist_report(L, b);
  return 0;
}

/* dist.may_print() -> whether this rank is the one that prints the failure; true once, and always
   without a world */
static int may_print(lua_State *L) {
  lt_world *w = lt_world_current(lt_enter(L)->c);
  lua_pushboolean(L, w == NULL || lt_world_may_print(w));
  return 1;
}

void lt_bind_dist_report(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"report", report}, {"may_print", may_print}, {NULL, NULL}};
  lt_add_functions(L, b, functions);
}
