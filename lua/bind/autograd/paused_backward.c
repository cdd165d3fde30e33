/* lua/bind/autograd/paused_backward.c: a backward pass that can be paused between two nodes
   (ltrain_step_for).

   While it is paused its walk is a userdata on the stack of the function that waits, and nothing
   else of it is in the ctx: no frame, no mode, no line. A thread that never runs again gives the
   walk back when it is collected. */
#include "bind/autograd/paused_backward.h"

#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/types.h"

#define WALKING_NAME "ltrain.Walk"

void lt_end_walking(lt_walking *w) {
  lt_walk_end(w->b->c, w->walk);
  w->walk = NULL;
}

static int walking_gc(lua_State *L) {
  lt_walking *w = luaL_checkudata(L, 1, WALKING_NAME);
  if (w->walk == NULL || w->b->c == NULL) return 0;
  lt_frame frame = lt_frame_open(w->b->c);
  lt_end_walking(w);
  lt_frame_close(w->b->c, frame, 0, NULL);
  return 0;
}

lt_walking *lt_push_walking(lua_State *L, lt_bind *b, int kept) {
  if (!b->pausable || b->guard == NULL || !lua_isyieldable(L)) return NULL;
  lt_walking *w = lua_newuserdatauv(L, sizeof *w, 1);
  *w = (lt_walking){.b = b};
  luaL_setmetatable(L, WALKING_NAME);
  if (kept != 0) {
    lua_pushvalue(L, kept);
    lua_setiuservalue(L, -2, 1);
  }
  return w;
}

static bool is_due(void *ud) {
  const lt_bind *b = ud;
  return b->guard->is_due(b->L);
}

bool lt_walk_or_pause(lua_State *L, lt_walking *w) {
  lt_bind *b = w->b;
  lt_frame frame = lt_begin(L, b, 0);
  bool left = w->walk != NULL && lt_walk_on(b->c, w->walk, is_due, b);
  lt_frame_close(b->c, frame, 0, NULL);
  b->pausing = left && lt_ok(b->c);
  return !b->pausing;
}

void lt_bind_walk(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", walking_gc}, {NULL, NULL}};
  lt_new_type(L, b, WALKING_NAME, meta, NULL);
}
