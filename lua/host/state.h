/* lua/host/state.h: the struct `ltrain` behind the public functions of ltrain.h. */
#ifndef LT_HOST_STATE_H
#define LT_HOST_STATE_H

#include <lua.h>
#include <pthread.h>
#include <stdatomic.h>

#include "bind/core/state.h"
#include "host/exports.h"
#include "host/host_tensors.h"
#include "host/ltrain.h"

/* What calls between Lua and C take that are as deep as Lua lets them be, 200 levels, and an
   operation within them: at most 440 KiB (spec/c/host_stack_test.c), most through string.gsub,
   each level of which has a buffer. */
enum { LT_HOST_LEAST_STACK = 640 << 10 };

struct ltrain {
  ltrain_config config;
  lt_allocator allocator;
  lua_State *L;
  lt_bind *b;
  atomic_size_t used;           /* bytes asked for and not given back */
  _Atomic(pthread_t) thread;    /* that entered the state last */
  bool starved;                 /* it was refused memory, and still holds much */
  _Atomic int64_t limit;        /* of instructions in the call that runs; 0: none */
  _Atomic int64_t instructions; /* or as much work, since that began */
  int64_t overrun;              /* instructions of the library after it had to end */
  atomic_bool cancelled;        /* by the host; what a budget ends sets the ctx's flag alone */
  int64_t calls;                /* outermost ones so far */
  int64_t inherited;            /* instructions that finalizers of earlier calls may still run */
  bool lending;                 /* they do */
  char why[LT_FAILURE_TEXT];    /* it had to, once that has been reported */
  int hold_ref, thread_ref;     /* registry: strings of results; the thread that is stepped */
  struct lt_isolate *worker;    /* where scripts run; NULL: here */
  lt_exports exports;
  lt_host_tensor_table host_tensors; /* tensors that the host has */
  int depth;                    /* calls of the host's that run, each within the one before */
  bool closing;                 /* the last of them is ltrain_close */
  lua_State *inside;            /* what runs has called the host: where its calls may run */
  lua_State *stepped;           /* NULL: none */
  bool loops_yield;             /* for it; also after it, where memory was refused */
  double deadline;              /* of the step, in seconds of lt_seconds_now; 0: none */
  lt_saved_draws draws;         /* of a step that paused between operations */
  char unpausable[LUA_IDSIZE + 16]; /* the line where the step could not pause; "": none */
  bool blamed;                      /* that was reported for this call */
  int step_arguments;
  char warning[512]; /* pieces of one that is not complete */
  char where[64];
  char message[LT_FAILURE_TEXT];
};

/* The state that a thread belongs to. */
static inline ltrain *lt_host_of(lua_State *L) { return *(ltrain **)lua_getextraspace(L); }

/* A function of the host's is called from `L`, in which what it calls runs; returns what was there
   before, to be put back in the same way. */
static inline lua_State *lt_host_call_out(ltrain *l, lua_State *L) {
  lua_State *before = l->inside;
  l->inside = L;
  return before;
}

/* As lua_Alloc; `ud` is the state. */
void *lt_host_allocate(void *ud, void *ptr, size_t old_size, size_t new_size);

/* Whether more than half of its cap is in use. */
bool lt_host_is_full(const ltrain *l);

/* Between calls, if one was refused memory: what it left behind goes, so that the next finds
   memory. */
void lt_host_recover(ltrain *l);

/* Give the state a `print` that calls the host; before the library captures it. */
void lt_host_give_print(lua_State *L, ltrain *l);

/* Take away what the host did not allow; after the library's own chunks have theirs. */
void lt_host_restrict(lua_State *L, const ltrain_config *config);

#endif
