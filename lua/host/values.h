/* lua/host/values.h: converts C arguments (numbers, texts, tensors) to Lua values, and results
   back.

   Formats are those of ltrain.h: i d b s T. Everything here runs below a lua_pcall and raises. */
#ifndef LT_HOST_VALUES_H
#define LT_HOST_VALUES_H

#include <lua.h>
#include <stdarg.h>

#include "bind/core/state.h"

/* va_list as something that has an address. */
typedef struct lt_variadic {
  va_list list;
} lt_variadic;

/* Push the argument that `letter` says. */
void lt_push_argument(lua_State *L, lt_bind *b, char letter, lt_variadic *from);

/* Raise where the value at `index` is not what `letter` says. `who` is for messages: the function
   or name it came from. */
void lt_check_result(lua_State *L, lt_bind *b, int index, char letter, const char *who);

/* Put the value at `index`, once all were checked and memory for its tensors is reserved
   (host_tensors.h), where the next of `to` points. Strings must be kept alive by the caller. */
void lt_give_result(lua_State *L, lt_bind *b, int index, char letter, lt_variadic *to);

/* Push the value with a dotted name. A name "a.b:c" is the field c of a.b; then a.b is pushed
   below it, as its first argument, and 2 values are pushed. Returns how many were pushed. */
int lt_push_named(lua_State *L, const char *name);

/* Pop a value and store it under a dotted name. */
void lt_store_named(lua_State *L, const char *name);

#endif
