/* lua/bind/autograd/paused_backward.h: a backward pass that can be paused between two nodes
   (ltrain_step_for). */
#ifndef LT_BIND_AUTOGRAD_PAUSED_BACKWARD_H
#define LT_BIND_AUTOGRAD_PAUSED_BACKWARD_H

#include "autograd/backward.h"
#include "bind/core/state.h"

/* A walk that belongs to the C function that runs; it is on its stack. */
typedef struct lt_walking {
  lt_bind *b;
  lt_walk *walk; /* NULL: not begun, or ended */
} lt_walking;

/* Push one for a call that the host may pause, and return it; else push nothing: NULL. What is at
   `kept` (0: nothing) lives as long. */
lt_walking *lt_push_walking(lua_State *L, lt_bind *b, int kept);

/* Walk on to the end. False: pause first: `return lua_yieldk(L, 0, context, continuation)` of the
   function that runs, which calls this again. Nothing else may be open then. */
bool lt_walk_or_pause(lua_State *L, lt_walking *w);

/* Its end, wherever it is: what lt_walk_end does. */
void lt_end_walking(lt_walking *w);

#endif
