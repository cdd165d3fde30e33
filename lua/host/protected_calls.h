/* lua/host/protected_calls.h: runs an entry point of ltrain.h under lua_pcall. */
#ifndef LT_HOST_PROTECTED_CALLS_H
#define LT_HOST_PROTECTED_CALLS_H

#include "host/state.h"
#include "host/values.h"

typedef struct lt_request {
  ltrain *l;
  lua_CFunction run; /* (request) -> the values that the host takes */
  const char *name;
  const char *format;
  const char *code; /* (optional) the script that runs, whose chunk has the name */
  lt_variadic values;
} lt_request;

/* Run run(request) protected; after a failure the message says why. */
bool lt_request_run(ltrain *l, lua_CFunction run, lt_request *r);

/* What is common to all entries: the last message goes, the budget of instructions is new, and
   the host's locale is put aside. Returns it, for lt_host_leave. */
void *lt_host_enter(ltrain *l);
void lt_host_leave(ltrain *l, void *locale);

/* Whether scripts can run on the stack of the calling thread; else `text` says why not. */
bool lt_host_stack_fits(char *text, size_t size);

/* Whether the calling thread can run the state; else the message says why not. */
bool lt_host_fits(ltrain *l);

/* Push a part of the library ("ltrain.runtime"). */
void lt_host_push_part(lua_State *L, const char *name);

/* Loops do not yield any more once no call is stepped. Without memory the next call tries again. */
void lt_host_end_steps(ltrain *l);

/* Whether the Trainer's loops of this state yield before batches and hooks. Raises. */
void lt_host_set_stepped(lua_State *L, bool on);

/* The stack's top is an error value of the request (`r`; NULL: of what is stepped): keep its text,
   with what to do about it, and drop it. */
bool lt_host_fail(ltrain *l, lua_State *L, const lt_request *r);
void lt_host_keep_message(ltrain *l, const char *text);

/* Whether a state and what its call cannot do without are there. */
bool lt_host_check_pointer(ltrain *l, const char *who, const char *what, const void *one);
bool lt_host_check_tensor(ltrain *l, const char *who, const lt_tensor *t);
bool lt_host_named(ltrain *l, const char *who, const char *name, const char *format);

/* The failure of the ctx, if there is one, becomes the message. */
bool lt_host_take_failure(ltrain *l);

/* The host gets a new tensor (NULL: the ctx holds why not), which it was to expect; after a failure
   NULL. */
bool lt_host_expect_tensor(ltrain *l, const char *who);
lt_tensor *lt_host_give_tensor(ltrain *l, lt_tensor *t);

/* Push the chunk of a file in memory, or raise why it cannot be loaded. */
void lt_host_load_memory(lua_State *L, lt_ctx *c, const char *path);

/* Push the named function, and the object if it is a method; returns how many arguments that is. */
int lt_push_function(lua_State *L, const char *name);

/* Push the named function and the arguments; returns how many arguments. `format` moves to the
   letters of the results. */
int lt_push_call(lua_State *L, lt_request *r);

#endif
