/* lua/bind/core/types.h: functions and kinds of userdata. */
#ifndef LT_BIND_CORE_TYPES_H
#define LT_BIND_CORE_TYPES_H

#include "bind/core/state.h"

/* Add functions to the table on top of the stack. */
void lt_add_functions(lua_State *L, lt_bind *b, const luaL_Reg *functions);

/* Make a kind of userdata: its metamethods, each of which checks its arguments, and what scripts
   find in it by name (methods NULL: nothing). types.c */
void lt_new_type(lua_State *L, lt_bind *b, const char *name, const luaL_Reg *meta,
                 const luaL_Reg *methods);

#endif
