/* lua/bind/core/state.h: what one lua_State has of us: a context, the modes of its threads, its
   lines.

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

/* When to collect (collect.c). */
typedef struct lt_collect {
  int64_t fresh;   /* bytes of results since the last collection outside of loops */
  int64_t tensors; /* bytes of tensors after the last full collection */
  int64_t held;    /* Lua's own bytes, and those of structs, after it */
  int64_t heap;    /* Lua's own bytes at the last boundary */
  bool incremental; /* the script's choice, for after the runs */
  bool aged;       /* a collection inside a batch made what was alive older */
  int depth;       /* runs whose loop runs the collector itself */
  int calls;       /* results since Lua's own heap was looked at */
  int look;        /* after how many it is */
} lt_collect;

/* math.random of an owned state (random.c). */
typedef struct lt_script_random {
  bool reseeded; /* math.randomseed was called: `seed` instead of the ctx's */
  uint64_t seed, position, drawn;
} lt_script_random;

/* The random numbers of a run that its host has paused in the middle of a batch (random.c). */
typedef struct lt_held_draws {
  bool held;
  lt_rng rng;
  lt_script_random script; /* the run's while it waits, the host's calls' while it runs */
} lt_held_draws;

typedef struct lt_script_hook lt_script_hook; /* grad.c */

/* A thread that has resumed another one, and waits for it (running.c). */
typedef struct lt_resumed {
  lua_State *thread;
  const struct lt_resumed *outer;
} lt_resumed;

/* Where the debugger stops (stops.c). */
enum { LT_STOP_WORDS = 4 };
typedef struct lt_stops {
  bool active;     /* lines are watched: threads are hooked */
  bool every;      /* for the next one, too */
  bool catches;    /* errors that end the script are looked at where they are raised */
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
  lua_State *running; /* the thread that runs now (running.c), NULL in states that are not ours */
  const lt_resumed *resumed; /* who has resumed it; of coroutines that our functions resume */
  lt_stops stops;
  bool pausable; /* its host may pause the call: each thread that it has resumed can yield */
  bool pausing;  /* the threads yield to the host, one after the other */
  volatile sig_atomic_t waking; /* a verdict ends the script (waking.c) */
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
  uint64_t parameters_made;
  lt_collect collect;
  lt_script_random random;
  bool seed_unreported;  /* the seed was chosen at random, and not printed yet */
  lt_rng outside;        /* position of random numbers outside of loops, while in one */
  atomic_int interrupts; /* Ctrl-C pressed and not acted on */
  atomic_int signal;     /* the number of the signal that asked for it last, 0: none */
  lt_script_hook *live_hooks, *dead_hooks;
} lt_bind;

typedef struct lt_bind_options {
  bool owned;
  bool owns_process; /* ranks that fail may end it when the script does not */
  int threads; /* 0: one */
  lt_bind_limits limits;
  lt_policy policy;
  const lt_allocator *allocator; /* NULL: malloc */
} lt_bind_options;

/* The state's binding, made at the first call; pushes the table of all C functions. */
lt_bind *lt_bind_open(lua_State *L, const lt_bind_options *options);

/* The binding if the state has one, else NULL. */
lt_bind *lt_bind_get(lua_State *L);

/* Push what gives a part of the library by its name ("ltrain.cli"), whatever has become of the
   script's `require`. Who installs the library has set it. */
void lt_push_require(lua_State *L);
void lt_set_require(lua_State *L, lua_CFunction require);

/* The Lua thread that runs now, for signal handlers: no call of Lua's. */
lua_State *lt_bind_running(const lt_bind *b);

/* Note that `thread` is about to run; returns the one before, to be put back in the same way. */
lua_State *lt_bind_enter_thread(lt_bind *b, lua_State *thread);

/* A run that was paused, wherever it was, leaves random numbers to what its host calls, and takes
   up its own again. */
void lt_bind_leave_draws(lt_bind *b, lt_held_draws *d);
void lt_bind_return_draws(lt_bind *b, lt_held_draws *d);

/* End the script because its world has failed: `ud` is the binding; for lt_launch_options.wake.
   lt_bind_calm ends that, in the frame that started the ranks. */
void lt_bind_wake(void *ud);
void lt_bind_calm(lua_State *L, lt_bind *b);

/* Note the script's line for the watchdog: `ud` is the binding; for lt_launch_options.locate. */
void lt_bind_locate(void *ud);
void lt_bind_hook_verdict(lua_State *L); /* in a thread that is about to run */

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

/* The script's line is that of the call that begins now. */
uint32_t lt_find_line(void *ud); /* the ctx finds it so; ud: the binding */
static inline void lt_note_line(lt_bind *b) {
  lt_ctx_set_line(b->c, b->c->line_watch != NULL ? lt_find_line(b) : LT_LINE_LATER);
}

/* The id of the script's line that is running, 0: none. */
uint32_t lt_script_line(lua_State *L, lt_bind *b);

/* The same for a hook, whose level 0 is the function that is running. */
uint32_t lt_hooked_line(lua_State *L, lt_bind *b);

/* The script's innermost line, its short name into `file`; 0 and "" when no script is running. */
int lt_script_place(lua_State *L, lt_bind *b, char *file, size_t size);

/* Whether a chunk's source name is one of the library's. */
bool lt_source_is_ours(const char *source);

/* Parameters of Lua functions: how many the library's have, their names, and what those of a
   running function hold: runtime.parameters, parameter_names and arguments (where.c). */
int lt_parameters(lua_State *L);
int lt_parameter_names(lua_State *L);
int lt_arguments(lua_State *L);

/* runtime.path_of(file) -> the whole path of a file that messages name (where.c). */
int lt_path_of(lua_State *L);

/* runtime.origin(fn), runtime.code(fn): where a function stands, and what it says (functions.c). */
int lt_function_origin(lua_State *L);
int lt_function_code(lua_State *L);

/* Push "model.lua:14: " of the script's innermost line. Where none of its frames is on the stack,
   of the function in runtime.places whose work this is, or "". */
void lt_push_where(lua_State *L);

/* Add runtime.places to the table on top: functions of the script. `hook` is the one that runs, and
   may have gone in a tail call; `source` gave what is being read; `script` is the main chunk;
   `lines` are the lines of functions, as far as return_line(fn, ...) was asked. */
void lt_add_places(lua_State *L);

/* The function at `index` is the script's main chunk. */
void lt_set_script(lua_State *L, int index);

/* The file and the line of the first of `names` (NULL ends them) that is a function of the script;
   `ask`: Lua may be run to find its line. */
bool lt_find_place(lua_State *L, const char *const *names, lua_Debug *ar, bool ask);

/* Push the path of the innermost Module on the stack ("Net.head"), or nil. */
void lt_push_module_path(lua_State *L);

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

/* Put what to do about it behind the text of an error on top (core/remedies.lua), where that is
   known; whatever fails of that leaves it as it is. `script`: the text in which it was raised, or
   NULL: that of the file that the error names. */
void lt_add_remedy(lua_State *L, const char *script);

/* Whether the error at `index` is what a Trainer that saved and stopped raises. */
bool lt_is_interrupt(lua_State *L, int index);

/* runtime.note_error(message) -> "model.lua:14: ", the path of the Module or nil: for errors that
   our own Lua raises: what lt.last_error() gives from now on, and the script's line */
int lt_note_error(lua_State *L);

/* Push `n` empty results, note the line, open a frame. */
lt_frame lt_begin(lua_State *L, lt_bind *b, int n);

/* Move the results in (the last n values of the stack), close the frame, raise if anything failed.
   A result that is one of the arguments gives back that argument. Returns n. */
int lt_end(lua_State *L, lt_bind *b, lt_frame frame, int n, lt_tensor *const *out);

/* The same without tensors as results: close the frame, raise if anything failed. */
void lt_end_call(lua_State *L, lt_bind *b, lt_frame frame);

/* Core to Lua: call the function below `n_args` values on the stack of the current thread, under
   lua_pcall. On an error frames are closed down to where they were, the error value is kept, and
   the ctx fails with LT_ECALLBACK; whoever raises that failure raises the same value. */
bool lt_callback(lt_bind *b, const char *who, int n_args, int n_results);

/* Between the arguments and the results of a call that makes tensors: collect when it is due. */
enum { LT_COLLECT_AFTER = 64 << 20, LT_COLLECT_LOOK = 4096, LT_COLLECT_LOOK_CAPPED = 16 };
void lt_collect_now(lua_State *L, lt_bind *b);
void lt_collect_boundary(lua_State *L, lt_bind *b); /* between two batches */
void lt_collect_inside(lua_State *L, lt_bind *b);   /* within a batch, of what a part of it made */
void lt_collect_soon(lt_bind *b); /* memory was refused: before the next result */
static inline void lt_collect_if_due(lua_State *L, lt_bind *b) {
  if (b->collect.fresh > LT_COLLECT_AFTER || ++b->collect.calls > b->collect.look)
    lt_collect_now(L, b);
}

/* Free hooks of nodes that are gone, as the state closes (grad.c). */
void lt_forget_dead_hooks(lt_bind *b);

/* Add functions to the table on top of the stack. */
void lt_add_functions(lua_State *L, lt_bind *b, const luaL_Reg *functions);

/* Make a kind of userdata: its metamethods, each of which checks its arguments, and what scripts
   find in it by name (methods NULL: nothing). types.c */
void lt_new_type(lua_State *L, lt_bind *b, const char *name, const luaL_Reg *meta,
                 const luaL_Reg *methods);

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

/* Parts of the binding; each finds the table of C functions at index 1 and that of the tensor's
   methods at index 2, and adds to them. */
void lt_bind_state_functions(lua_State *L, lt_bind *b);
void lt_bind_tensor(lua_State *L, lt_bind *b);
void lt_bind_marks(lua_State *L, lt_bind *b);
void lt_bind_flag(lua_State *L, lt_bind *b);
void lt_bind_ops(lua_State *L, lt_bind *b);
void lt_bind_dtypes(lua_State *L, lt_bind *b);
void lt_bind_create(lua_State *L, lt_bind *b);
void lt_bind_convert(lua_State *L, lt_bind *b);
void lt_bind_in_place(lua_State *L, lt_bind *b);
void lt_bind_views(lua_State *L, lt_bind *b);
void lt_bind_compare(lua_State *L, lt_bind *b);
void lt_bind_index(lua_State *L, lt_bind *b);
void lt_bind_grad(lua_State *L, lt_bind *b);
void lt_bind_gradients(lua_State *L, lt_bind *b);
void lt_bind_walk(lua_State *L, lt_bind *b);
void lt_bind_custom(lua_State *L, lt_bind *b);
void lt_bind_trace(lua_State *L, lt_bind *b);
void lt_bind_modes(lua_State *L, lt_bind *b);
void lt_bind_print(lua_State *L, lt_bind *b);
void lt_bind_collect(lua_State *L, lt_bind *b);
void lt_bind_devices(lua_State *L, lt_bind *b);
void lt_bind_streams(lua_State *L, lt_bind *b);
void lt_bind_system(lua_State *L, lt_bind *b);
void lt_bind_shadow(lua_State *L, lt_bind *b);
void lt_bind_random(lua_State *L, lt_bind *b);
void lt_bind_io(lua_State *L, lt_bind *b);
void lt_bind_data(lua_State *L, lt_bind *b);
void lt_bind_dist(lua_State *L, lt_bind *b);
void lt_bind_hash(lua_State *L, lt_bind *b);
void lt_bind_coroutines(lua_State *L, lt_bind *b);
void lt_bind_stops(lua_State *L, lt_bind *b);
void lt_bind_loading(lua_State *L, lt_bind *b);
void lt_bind_warnings(lua_State *L, lt_bind *b);

#endif
