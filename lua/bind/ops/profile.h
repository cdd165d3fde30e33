/* lua/bind/ops/profile.h: how long operations take. */
#ifndef LT_BIND_OPS_PROFILE_H
#define LT_BIND_OPS_PROFILE_H

#include "bind/core/state.h"

/* Add runtime.profile. */
void lt_bind_profile(lua_State *L, lt_bind *b);

#endif
