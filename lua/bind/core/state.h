/* lua/bind/core/state.h: the binding's data of one lua_State: a context, the modes of its threads,
   its script lines.

   The binding raises Lua errors, nothing else does, and in a fixed order: read the arguments; push
   the empty results; open a frame, call, move the results in, close the frame; take the failure
   and raise. lt_begin and lt_end are that order. Every C function of the binding carries the
   lt_bind as its first upvalue. */
#ifndef LT_BIND_CORE_STATE_H
#define LT_BIND_CORE_STATE_H

#include <signal.h>

#include <lauxlib.h>
#include <lua.h>

#include "base/ctx.h"
#include "bind/core/raw.h"
#include "ops/op.h"

enum { LT_LINE_CACHE = 64 };

/* A script line that was seen lately. */
typedef struct lt_seen_line {
  const char *source;
  int line;
  uint32_t id;
  char short_src[LUA_IDSIZE];
} lt_seen_line;

/* When to collect (garbage_collection.c). */
typedef struct lt_collect {
  int64_t fresh;   /* bytes of results since the last collection outside of loops */
  int64_t tensors; /* bytes of tensors after the last full collection */
  int64_t used;    /* Lua's own bytes, and those of structs, after it */
  int64_t heap;    /* Lua's own bytes at the last boundary */
  bool incremental; /* the script's choice, for after the runs */
  bool aged;       /* a collection inside a batch made what was alive older */
  int depth;       /* runs whose loop runs the collector itself */
  int calls;       /* results since Lua's own heap was checked */
  int look;        /* after how many it is */
} lt_collect;

/* math.random of an owned state (random.c). */
typedef struct lt_script_random {
  bool reseeded; /* math.randomseed was called: `seed` instead of the ctx's */
  uint64_t seed, position, drawn;
} lt_script_random;

/* The random numbers of a run that its host has paused in the middle of a batch (random.c). */
typedef struct lt_saved_draws {
  bool saved;
  lt_rng rng;
  lt_script_random script; /* the run's while it waits, the host's calls' while it runs */
} lt_saved_draws;

typedef struct lt_script_hook lt_script_hook; /* grad.c */

/* A thread that has resumed another one, and waits for it (coroutines.c). */
typedef struct lt_resumed {
  lua_State *thread;
  const struct lt_resumed *outer;
} lt_resumed;

/* Where the debugger stops (stops.c). */
enum { LT_STOP_WORDS = 4 };
typedef struct lt_stops {
  lua_Hook hook;   /* of threads while lines are watched, else NULL */
  bool every;      /* for the next one, too */
  lua_CFunction handler; /* of errors that end the script, where they are raised; or NULL */
  uint64_t lines[LT_STOP_WORDS]; /* a bit for each line, modulo their number */
  lua_State *of;   /* the next line of this thread, no deeper than `depth`; NULL: of any */
  int depth;
  int sessions;    /* that are open */
  int floor;       /* collect.depth of the code that the session has stopped */
  int64_t ns;      /* that sessions have taken */
} lt_stops;

/* Called for the threads of scripts that a host may end. */
typedef struct lt_bind_guard {
  void (*enter)(lua_State *thread);   /* it is about to run, or was refused an operation */
  bool (*is_lost)(lua_State *thread); /* it ended with an error: nothing of it may run any more */
  bool (*is_due)(lua_State *thread);  /* the host wants control, as soon as that can be */
} lt_bind_guard;

/* What the host of a state set, and its scripts can only lower; 0: no limit. */
typedef struct lt_bind_limits {
  int threads;
  int64_t memory; /* bytes of tensors, and as many of Lua and structs */
} lt_bind_limits;

typedef struct lt_bind {
  lt_ctx *c;       /* NULL once the state is closing */
  bool closing;    /* its host closes it: see lt_bind_close */
  bool owned;      /* the state is ours: collector and math.random too */
  bool owns_process; /* ranks that fail may end the process when the script does not end */
  bool takes_signals; /* the process's handlers of SIGINT and SIGTERM count in `interrupts` */
  lt_bind_limits limits;
  lua_State *L;    /* the thread whose modes are in c->modes; kept alive by a registry slot */
  lua_State *running; /* the thread that runs now (threads.c), NULL in states that are not ours */
  const lt_resumed *resumed; /* who has resumed it; of coroutines that our functions resume */
  lt_stops stops;
  bool pausable; /* its host may pause the call: each thread that it has resumed can yield */
  bool pausing;  /* the threads yield to the host, one after the other */
  volatile sig_atomic_t waking; /* an outcome ends the script (threads.c) */
  const lt_bind_guard *guard;   /* (optional) */
  lt_modes *modes; /* where they go when another thread comes; likewise kept alive */
  lt_modes main_modes;
  const void *metatable;
  /* Registry references. */
  int metatable_ref, unique_ref, hooks_ref, threads_ref, thread_ref, record_ref;
  int error_ref; /* the Lua value of a failed callback */
  int last_error_ref;
  uint32_t line_hint; /* line of the outermost call into a Module, for calls from our own chunks */
  lt_seen_line lines[LT_LINE_CACHE];
  int replaced_op; /* scripts' calls of it go to a Lua function (ops.c); LT_OP_COUNT: of none */
  uint64_t parameters_made;
  lt_collect collect;
  lt_script_random random;
  bool seed_unreported;  /* the seed was chosen at random, and not printed yet */
  lt_rng outside;        /* position of random numbers outside of loops, while in one */
  atomic_int interrupts; /* Ctrl-C pressed and not acted on */
  atomic_int signal;     /* the number of the signal that asked for it last, 0: none */
  lt_script_hook *live_hooks, *dead_hooks;
} lt_bind;

/* The binding if the state has one, else NULL. */
lt_bind *lt_bind_get(lua_State *L);

/* Push what gives a part of the library by its name ("ltrain.cli"), whatever has become of the
   script's `require`. Who installs the library has set it. */
void lt_push_require(lua_State *L);
void lt_set_require(lua_State *L, lua_CFunction require);

/* Make the userdata on top of the stack, a binding, that of the state; pops it. The table of all C
   functions is at `functions`. */
void lt_bind_keep(lua_State *L, int functions);

/* Push the table of all C functions of the state's binding. */
void lt_push_functions(lua_State *L);

/* Make `L` the thread whose modes count. */
void lt_bind_switch(lt_bind *b, lua_State *L);

/* Record calls to `t`, which the userdata on top of the stack contains: it stays while it is open.
   It is closed where it is what this thread's calls are recorded to, and no other is open that took
   its place: otherwise it stays open. Threads that were made meanwhile leave it, too. */
void lt_trace_open(lua_State *L, lt_bind *b, struct lt_trace *t);
void lt_trace_close(lua_State *L, lt_bind *b, struct lt_trace *t);

/* A host is about to close the state, whose main thread is `L`. What finalizers make then Lua
   finalizes no more: from here on every function raises that the state is closing. */
void lt_bind_close(lt_bind *b, lua_State *L);

/* First line of every C function: the binding, with this thread's modes in place. */
static inline lt_bind *lt_enter(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  if (b->L != L) lt_bind_switch(b, L);
  return b;
}

#endif
