/* lua/bind/core/call.h: calls from Lua into the core, and back. */
#ifndef LT_BIND_CORE_CALL_H
#define LT_BIND_CORE_CALL_H

#include "bind/core/state.h"

/* Push `n` empty results, note the line, open a frame. */
lt_frame lt_begin(lua_State *L, lt_bind *b, int n);

/* Move the results in (the last n values of the stack), close the frame, raise if anything failed.
   A result that is one of the arguments gives back that argument. Returns n. */
int lt_end(lua_State *L, lt_bind *b, lt_frame frame, int n, lt_tensor *const *out);

/* The same without tensors as results: close the frame, raise if anything failed. */
void lt_end_call(lua_State *L, lt_bind *b, lt_frame frame);

/* "xla:0 has no f64: use f32 or bf16, or ...": of a tensor whose device lacks its dtype. */
enum { LT_LACKING = 160 };
void lt_lacking_text(const lt_bind *b, const lt_tensor *t, char text[LT_LACKING]);

/* Core to Lua: call the function below `n_args` values on the stack of the current thread, under
   lua_pcall. On an error frames are closed down to where they were, the error value is kept, and
   the ctx fails with LT_ECALLBACK; whoever raises that failure raises the same value. */
bool lt_callback(lt_bind *b, const char *who, int n_args, int n_results);

#endif
