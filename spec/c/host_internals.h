/* spec/c/host_internals.h: what C gives the library, for tests: scripts of a host do not find it. */
#ifndef LT_SPEC_HOST_INTERNALS_H
#define LT_SPEC_HOST_INTERNALS_H

#include <lua.h>

#include "bind/open.h"
#include "host_test.h"

/* A state whose scripts have it as `internals`. */
static inline ltrain *open_inside(const ltrain_config *config) {
  ltrain *l = open_with(config);
  lt_bind_open(ltrain_lua(l), NULL);
  lua_setglobal(ltrain_lua(l), "internals");
  return l;
}

#endif
