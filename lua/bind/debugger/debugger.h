/* lua/bind/debugger/debugger.h: what the debugger (stdlib/apps/debugger) needs of C: frames, stops,
   sessions. */
#ifndef LT_BIND_DEBUGGER_DEBUGGER_H
#define LT_BIND_DEBUGGER_DEBUGGER_H

#include "bind/core/state.h"

/* The number of frames of a thread. */
int lt_frame_depth(lua_State *thread);

/* An error that ends the script was raised in `thread`, which is not unwound yet: call what was
   given to frames.on_error. The error is on top of the stack of `L`, and stays. */
void lt_stops_raised(lua_State *L, lt_bind *b, lua_State *thread);

/* A message handler that does that. */
int lt_stops_handler(lua_State *L);

/* Let the library's Lua look into frames: only where nothing is kept from scripts, which would find
   the library's own values there. Without it there is no debugger, and runtime.frames has nothing
   but `sessions`, `raised` and `ended`. */
void lt_offer_frames(lua_State *L);

/* The part of stops.c: to the table on top. */
void lt_offer_stops(lua_State *L, lt_bind *b);

#endif
