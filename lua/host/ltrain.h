/* ltrain.h: the C API for embedding ltrain in another program.

   A state contains a Lua interpreter with all of ltrain. The host runs scripts and functions in it,
   passes tensors in and out without a copy, can run the training loop step by step, and can cancel
   from another thread. Nothing is printed, no signal is handled, no process is ended, no file is
   accessed unless the host allows it.

     ltrain *l = ltrain_open(NULL);
     double loss;
     if (!ltrain_dofile(l, "model.lua") || !ltrain_call(l, "train", "i>d", (int64_t)5, &loss))
       fprintf(stderr, "%s\n", ltrain_errmsg(l));
     ltrain_close(l);

   A state belongs to one thread at a time; two states may run in two threads. Functions return
   false (or NULL) on failure, and ltrain_errmsg says why; so they do for a NULL state, name, path
   or tensor. Numbers of dims and sizes count from 0 here, as everywhere in C. */
#ifndef LT_HOST_LTRAIN_H
#define LT_HOST_LTRAIN_H

#include <ltrain/tensor.h>
#include <ltrain/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ltrain ltrain;

/* Permissions of scripts; none by default. */
enum {
  LTRAIN_READ_FILES = 1,     /* data sets, checkpoints, require of files */
  LTRAIN_WRITE_FILES = 2,    /* checkpoints, logs */
  LTRAIN_FORK = 4,           /* processes */
  LTRAIN_LOAD_LIBRARIES = 8, /* shared objects: C modules of Lua, device backends */
  LTRAIN_NETWORK = 16,
  LTRAIN_LUA_LIBRARIES = 32, /* Lua's io, os and debug (os.exit raises an error all the same) */
  LTRAIN_ENVIRONMENT = 64,   /* environment variables, the machine's name */
  LTRAIN_EVERYTHING = 127
};

/* Level of a message for `log`. */
enum { LTRAIN_DEBUG, LTRAIN_INFO, LTRAIN_WARNING };

/* Initialise with LTRAIN_CONFIG_INIT; 0 or NULL selects the default, in brackets. */
typedef struct ltrain_config {
  size_t size; /* sizeof(ltrain_config), so that later versions can add fields */
  /* The allocator of Lua and of all structures, with lua_Alloc's arguments; also called from
     helper threads [malloc]. Data of tensors is allocated by the device instead. */
  void *(*alloc)(void *ud, void *ptr, size_t old_size, size_t new_size);
  /* Limit in bytes of memory for Lua and structures, and separately for tensor data [none]. */
  size_t memory_cap;
  /* Limit of Lua instructions in one call from the host; slows Lua down by about half [none].
     Steps of pattern matching and of loops in Lua's table functions count as well, allocating 256
     bytes counts as one, creating a coroutine as 1000. Functions of utf8, next and comparisons of
     strings count as one whatever their input's length, which memory_cap limits. Of views that
     are larger than their memory 64 elements that an operation reads count as one. */
  int64_t max_instructions;
  int threads;    /* threads that an operation may use [1] */
  unsigned allow; /* LTRAIN_READ_FILES | ... [nothing] */
  void (*log)(void *ud, int level, const char *text);       /* receives messages [dropped] */
  void (*print)(void *ud, const char *text, size_t length); /* receives print() [dropped] */
  /* Called before each batch of a Trainer's loop with the stage ("train", "validation", ...), the
     epoch, the batch and the number of batches in the epoch (-1: not known) [none]. */
  void (*progress)(void *ud, const char *stage, int64_t epoch, int64_t batch, int64_t batches);
  void *ud; /* passed to all of these functions */
  /* Not 0: scripts run in a process of their own, the worker, which can compute and nothing else:
     the boundary for scripts that are not trusted. They have no permissions (`allow` is 0), one
     thread, and a memory_cap [1 GiB]. Tensors are copied from one process to the other. Of these
     functions ltrain_register, ltrain_start and ltrain_lua do not work there; `alloc` serves the
     host's side alone [0]. */
  int isolate;
  double max_seconds; /* isolated: of one call, after which the worker is killed [no limit] */
  const char *worker; /* isolated: path of the program ltrain-worker [beside the library] */
} ltrain_config;

/* clang-format off */
#define LTRAIN_CONFIG_INIT \
  {sizeof(ltrain_config), NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0, 0, NULL}
/* clang-format on */

/* Creates a state; with NULL for config, all defaults. Returns NULL if memory runs out or the
   config is wrong: ltrain_errmsg(NULL) says why. */
LT_API ltrain *ltrain_open(const ltrain_config *config);

/* Frees the state, and the tensors of it that the host has not released. Finalizers of scripts and
   to-be-closed variables of a paused call are stopped after max_instructions, or ten million. In
   these finalizers each function of the library raises "the state is closing", which `log`
   receives. */
LT_API void ltrain_close(ltrain *l);

/* Returns why the last call failed, with the script's line and, where that is known, what to do
   about it, or "" if it succeeded: "model.lua:3: attempt to call a nil value (global 'pint'); did
   you mean 'print'?". For that the script's text is read: that of ltrain_dostring during its call,
   or the file of this name if the state may read it. The text is valid until the next call. */
LT_API const char *ltrain_errmsg(const ltrain *l);

/* Runs a file, or a string of Lua code; `name` is its name in error messages. */
LT_API bool ltrain_dofile(ltrain *l, const char *path);
LT_API bool ltrain_dostring(ltrain *l, const char *code, const char *name);

/* Calls the function with a dotted name: "train", "model.forward", "net:predict" (a method).
   `format` has a letter for each argument, '>', and a letter for each result:
     i  int64_t      d  double      b  int, 0 or 1      s  const char *      T  lt_tensor *
   A result of 'b' needs a variable of type int: a bool is too small for it.
   Arguments are passed as values, results as pointers to variables of these types; a result whose
   pointer is NULL is discarded. A string result is valid until the next call; a tensor result is
   owned by the caller, who releases it with ltrain_release. A call that fails stores none. */
LT_API bool ltrain_call(ltrain *l, const char *name, const char *format, ...);

/* Reads or writes the value with a dotted name; `format` is one of the letters above. Numbers in
   names are positions in sequences: "losses.1", "model.net.1.weight". */
LT_API bool ltrain_get(ltrain *l, const char *name, const char *format, ...);
LT_API bool ltrain_set(ltrain *l, const char *name, const char *format, ...);

/* Creates a tensor that shares the host's memory, which must be contiguous and aligned to an
   element, and must stay valid until `drop(ud)` is called, at any time after the release (if drop
   is NULL: until after ltrain_close). The caller owns the result. After a failure `drop` is not
   called. */
LT_API lt_tensor *ltrain_wrap(ltrain *l, void *data, lt_dtype dtype, int ndim, const int64_t *shape,
                              void (*drop)(void *ud), void *ud);

/* Returns the address of a tensor's first element, for reading (write 0) or writing (write 1), or
   NULL on failure; lt_tensor_stride returns the strides. It is valid until the tensor is
   released. */
LT_API void *ltrain_data(ltrain *l, lt_tensor *t, int write);

/* Releases a tensor that the host owns. One that it does not own (of another state, a
   function's argument) is not released: ltrain_errmsg says so, and `log` receives a warning. */
LT_API void ltrain_release(ltrain *l, lt_tensor *t);

/* DLPack: tensors that share their memory with NumPy, PyTorch and others. The structs are declared
   by dlpack.h, or by ltrain/dlpack.h where that is missing; versioned ones since DLPack 1. */
struct DLManagedTensorVersioned;
struct DLManagedTensor;

/* Exports a tensor on the CPU or a CUDA device (kDLCUDA, with its index): for reading (write 0;
   flagged in the versioned struct) or writing (write 1). Whoever receives it calls its `deleter`
   once, from any thread. The memory stays valid until then, also after ltrain_close, and is freed
   by the state's next call; the functions and `ud` of the config must stay valid as long. On a GPU,
   the host waits until the tensor's values are computed, so that any stream may read them, and
   synchronizes the device before the memory is reused. Returns NULL on failure. */
LT_API struct DLManagedTensorVersioned *ltrain_to_dlpack(ltrain *l, lt_tensor *t, int write);
LT_API struct DLManagedTensor *ltrain_to_dlpack_unversioned(ltrain *l, lt_tensor *t, int write);

/* Creates a tensor that shares the memory of an imported one, on the CPU (kDLCPU, kDLCUDAHost) or a
   CUDA device (kDLCUDA: the config must allow LTRAIN_LOAD_LIBRARIES), with any strides that are not
   negative. The caller owns the result; the imported one's `deleter` is called when neither a
   tensor nor issued work uses its memory any more, usually from the state's thread. If it is marked
   read-only, in-place operations are errors. On a GPU, the host synchronizes the device first; work
   that either library issues on shared memory later must be waited for (cudaDeviceSynchronize)
   before the other uses it. After a failure `deleter` is not called. */
LT_API lt_tensor *ltrain_from_dlpack(ltrain *l, struct DLManagedTensorVersioned *managed);
LT_API lt_tensor *ltrain_from_dlpack_unversioned(ltrain *l, struct DLManagedTensor *managed);

/* Files in memory. Paths that begin with "memory:" are stored in the state itself; scripts read and
   write them as other files, without a permission: trainer:save_checkpoint "memory:run.ckpt", fit
   {ckpt_path = "memory:run.ckpt"}, lt.save and lt.load, ltrain_dofile. The bytes are those of such
   a file on disk; they count towards memory_cap. ltrain_put_file writes a copy of `data`;
   ltrain_get_file returns the bytes, or NULL if there is no such file, and stores their number in
   `size`: they are valid until the file is written again or removed. */
LT_API bool ltrain_put_file(ltrain *l, const char *path, const void *data, size_t size);
LT_API const void *ltrain_get_file(ltrain *l, const char *path, size_t *size);
LT_API bool ltrain_remove_file(ltrain *l, const char *path);

/* A C function of the host that scripts call. `in` are the arguments, valid until it returns, `out`
   the results, each in the member of its letter; a string argument may be nil (NULL). Ownership of
   a tensor result passes to the state, which releases it, unless it is one of `in`; NULL is nil. It
   has no grad_fn: no gradient flows through the function. A string result is copied. The function
   returns true, or false with ltrain_fail(l, "why"), which raises "name: why" in the script. It may
   call the state (such calls are part of the running call, and of its limits), but not start, step
   or close it, and must return: no longjmp, no exception. */
typedef union ltrain_value {
  int64_t i;
  double d;
  int b;
  const char *s;
  lt_tensor *T;
} ltrain_value;
typedef bool ltrain_function(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out);

/* Stores the function under a dotted name: "render", "game.reward" (`game` is a table). `format`
   has the letters of its arguments, '>', and those of its results, at most 16 each. */
LT_API bool ltrain_register(ltrain *l, const char *name, const char *format,
                            ltrain_function *function, void *ud);

/* Sets the message of ltrain_errmsg; returns false. */
LT_API bool ltrain_fail(ltrain *l, const char *message);

/* A call that the host runs step by step. ltrain_start starts it with the arguments of
   ltrain_call, without results; each ltrain_step runs to the next batch or hook of a Trainer's
   loop and stores its name in `where`, unless that is NULL. */
typedef enum ltrain_state { LTRAIN_FAILED, LTRAIN_PAUSED, LTRAIN_FINISHED } ltrain_state;
LT_API bool ltrain_start(ltrain *l, const char *name, const char *format, ...);
LT_API ltrain_state ltrain_step(ltrain *l, const char **where);

/* The same with a time limit: runs across batches and hooks, and pauses between two operations once
   `seconds` have passed; `where` is then "", or the name of the batch or hook before which it
   paused. It returns after at most that time and one operation: backward pauses between the
   operations of its graph, a step of an optimizer counts as one. Functions that Lua or ltrain call
   from C (hooks of backward, comparisons of table.sort) and finalizers cannot be paused: the step
   pauses after them, and reports the line once to `log`. Between two steps the host may call the
   state, and reads the results of the operations so far: save checkpoints where `where` is not "".
   The result does not depend on where the call was paused, unless both draw random numbers outside
   of the Trainer's loops: they then share one sequence. */
LT_API ltrain_state ltrain_step_for(ltrain *l, double seconds, const char **where);

/* Cancels the current call of the state, or the next one if none is running: it fails with
   "cancelled", which the script's pcall does not catch. May be called from any thread. It ends
   within 1000 instructions of Lua and one operation; where scripts have debug.sethook
   (LTRAIN_LUA_LIBRARIES without max_instructions) and set a hook of their own, with the next
   operation. The worker of an isolated state is killed at once: the state can only be closed. */
LT_API void ltrain_cancel(ltrain *l);

/* Return the state's context, for the functions of ltrain/tensor.h, and its lua_State, for the Lua
   API. Of an isolated state the context is that of the host's tensors; its lua_State is NULL. */
LT_API lt_ctx *ltrain_context(ltrain *l);
LT_API struct lua_State *ltrain_lua(ltrain *l);

#ifdef __cplusplus
}
#endif
#endif
