/* lua/bind/core/public_functions.h: public functions check the number of their arguments. */
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

/* A function whose arguments go by place, or by name in a last table: `form` has their names, a bar
   before those of options, "x chunks | dim". One that reads all that come only says what it
   reads. */
typedef struct lt_formed {
  lt_function function;
  const char *form;
} lt_formed;

/* Add these to the table on top; the last has no name. */
void lt_add_public(lua_State *L, lt_bind *b, const lt_function *functions);
void lt_add_formed(lua_State *L, lt_bind *b, const lt_formed *functions);

/* Push a list of the names in the form of the function at `index`; empty: it has none. */
void lt_push_form(lua_State *L, int index);

/* "dims" for "dim", "dim" for "dims": one dim may be called `dims`, and several `dim`. */
const char *lt_other_name(const char *name);

/* Raise when there is an argument beyond `most`; nils are none and go. */
void lt_check_count(lua_State *L, lt_bind *b, const char *who, int most);

#endif
