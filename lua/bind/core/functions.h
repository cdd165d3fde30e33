/* lua/bind/core/functions.h: introspection of Lua functions: where they are defined, their
   bytecode, their parameters. */
#ifndef LT_BIND_CORE_FUNCTIONS_H
#define LT_BIND_CORE_FUNCTIONS_H

#include "bind/core/state.h"

/* Parameters of Lua functions: how many the library's have, their names, and what those of a
   running function hold: runtime.parameters, parameter_names and arguments (current_line.c). */
int lt_parameters(lua_State *L);
int lt_parameter_names(lua_State *L);
int lt_arguments(lua_State *L);

/* runtime.origin(fn), runtime.code(fn): where a function stands, and what it says (functions.c). */
int lt_function_origin(lua_State *L);
int lt_function_code(lua_State *L);

#endif
