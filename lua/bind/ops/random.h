/* lua/bind/ops/random.h: random numbers of a run that its host pauses. */
#ifndef LT_BIND_OPS_RANDOM_H
#define LT_BIND_OPS_RANDOM_H

#include "bind/core/state.h"

/* A run that was paused, wherever it was, leaves random numbers to what its host calls, and takes
   up its own again. */
void lt_bind_leave_draws(lt_bind *b, lt_saved_draws *d);
void lt_bind_return_draws(lt_bind *b, lt_saved_draws *d);

#endif
