/* lua/bind/core/public_functions.h: functions that scripts call. */
#ifndef LT_BIND_CORE_PUBLIC_FUNCTIONS_H
#define LT_BIND_CORE_PUBLIC_FUNCTIONS_H

#include "bind/core/state.h"

/* A function that scripts call: an argument beyond `most`, a method's tensor counted, is an error.
   -1: the function reads all that come. */
typedef struct lt_function {
  const char *name;
  lua_CFunction call;
  int most;
} lt_function;

/* The same for these; the last has no name. */
void lt_add_public(lua_State *L, lt_bind *b, const lt_function *functions);

/* Raise when there is an argument beyond `most`; nils are none and go. */
void lt_check_count(lua_State *L, lt_bind *b, const char *who, int most);

#endif
