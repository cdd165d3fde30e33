/* lua/bind/core/raise.h: Lua errors, raised by the binding alone. */
#ifndef LT_BIND_CORE_RAISE_H
#define LT_BIND_CORE_RAISE_H

#include "bind/core/state.h"

/* Fail with a message of our own and raise it. */
_Noreturn void lt_raise(lua_State *L, lt_bind *b, lt_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Take the failure out of the ctx and raise it. */
_Noreturn void lt_raise_failure(lua_State *L, lt_bind *b);

/* Raise what ranks fail with, as it is: it names its lines itself. `status`: the exit status of a
   program that ends of it. */
_Noreturn void lt_raise_ranks(lua_State *L, lt_bind *b, const char *text, int status);

/* The exit status that goes with the error at `index`: of what ranks failed with theirs, of what a
   signal ended 128 + n, else 1. */
int lt_status_of(lua_State *L, int index);

/* Push the text of the error value at `index`: a string as it is, the result of __tostring, else
   what `lua` prints and of a plain table the first fields. */
const char *lt_push_error_text(lua_State *L, int index);

/* Replace the list of words on top by what errors.did_you_mean(name, words), or in_place_of(name,
   owner, words), of stdlib/core/errors.lua says, "" for nothing. */
const char *lt_push_hint(lua_State *L, const char *function, const char *name, const char *owner);

/* Put what to do about it behind the text of an error on top (core/lua_error_hints.lua), where that
   is known; whatever fails of that leaves it as it is. `script`: the text in which it was raised,
   or NULL: that of the file that the error names. */
void lt_add_remedy(lua_State *L, const char *script);

/* Whether the error at `index` is what a Trainer that saved and stopped raises. */
bool lt_is_interrupt(lua_State *L, int index);

/* runtime.note_error(message) -> "model.lua:14: ", the path of the Module or nil: for errors that
   our own Lua raises: what lt.last_error() gives from now on, and the script's line */
int lt_note_error(lua_State *L);

#endif
