/* ltrain.h: embedding ltrain in another program.

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

/* Initialise with LTRAIN_CONFIG_INIT; 0 or NULL mean the default in brackets. */
typedef struct ltrain_config {
  size_t size; /* of this struct, for later versions */
  /* As lua_Alloc, for Lua and all structures, also from helper threads [malloc]. The data of
     tensors is aligned memory of the device's own. */
  void *(*alloc)(void *ud, void *ptr, size_t old_size, size_t new_size);
  size_t memory_cap;        /* bytes of Lua and structures, and as many of tensor data; scripts
                               may lower it [none] */
  /* Of Lua in one call from the host; slows Lua by half [none]. Steps of patterns and of loops in
     Lua's table functions count as well, 256 bytes of memory count as one, a coroutine as 1000.
     Functions of utf8, next and comparisons of strings are one each, however long what they read:
     memory_cap bounds that. */
  int64_t max_instructions;
  int threads;              /* an operation may use; scripts may take fewer [1] */
  unsigned allow;           /* LTRAIN_READ_FILES | ... [nothing] */
  void (*log)(void *ud, int level, const char *text);       /* messages [dropped] */
  void (*print)(void *ud, const char *text, size_t length); /* print() [dropped] */
  /* Before each batch of a Trainer's loop: its stage ("train", "validation", ...), the epoch, the
     batch, the batches of the epoch (-1: not known) [none]. */
  void (*progress)(void *ud, const char *stage, int64_t epoch, int64_t batch, int64_t batches);
  void *ud; /* passed to all of them */
} ltrain_config;

/* clang-format off */
#define LTRAIN_CONFIG_INIT {sizeof(ltrain_config), NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL}
/* clang-format on */

/* Creates a state; NULL config: all defaults. NULL if there is not enough memory. */
LT_API ltrain *ltrain_open(const ltrain_config *config);

/* Frees the state. Tensors that the host holds must be released before. */
LT_API void ltrain_close(ltrain *l);

/* Why the last call failed, with the script's line; "" if it did not. Valid until the next call. */
LT_API const char *ltrain_errmsg(const ltrain *l);

/* Runs a file, or a text that is called `name` in error messages. */
LT_API bool ltrain_dofile(ltrain *l, const char *path);
LT_API bool ltrain_dostring(ltrain *l, const char *code, const char *name);

/* Calls the function with a dotted name: "train", "model.forward", "net:predict" (a method).
   `format` has a letter for each argument, '>', and one for each result:
     i  int64_t      d  double      b  int (truth)      s  const char *      T  lt_tensor *
   Arguments come as values, results as pointers to such values; a NULL pointer drops one. A string
   result lives until the next call; a tensor result belongs to the caller (ltrain_release). */
LT_API bool ltrain_call(ltrain *l, const char *name, const char *format, ...);

/* Reads or writes the value with a dotted name, as one letter of that format says. Numbers in names
   are positions of sequences: "losses.1", "model.net.1.weight". */
LT_API bool ltrain_get(ltrain *l, const char *name, const char *format, ...);
LT_API bool ltrain_set(ltrain *l, const char *name, const char *format, ...);

/* A tensor on the host's own memory, without a copy: contiguous, aligned to an element, and alive
   until `drop(ud)` is called, which may be at any time after the release (drop NULL: it lives
   longer than the state). The caller owns the result. After a failure `drop` is not called. */
LT_API lt_tensor *ltrain_wrap(ltrain *l, void *data, lt_dtype dtype, int ndim, const int64_t *shape,
                              void (*drop)(void *ud), void *ud);

/* Address of a tensor's first element, for reading (write 0) or writing; strides are those of
   lt_tensor_stride. Valid until the tensor is released. NULL on failure. */
LT_API void *ltrain_data(ltrain *l, lt_tensor *t, int write);
LT_API void ltrain_release(ltrain *l, lt_tensor *t);

/* A call that the host takes step by step. ltrain_start begins it as ltrain_call does, without
   results; each ltrain_step runs up to the next batch or hook of a Trainer's loop. `where`
   (optional) gets its name. */
typedef enum ltrain_state { LTRAIN_FAILED, LTRAIN_PAUSED, LTRAIN_FINISHED } ltrain_state;
LT_API bool ltrain_start(ltrain *l, const char *name, const char *format, ...);
LT_API ltrain_state ltrain_step(ltrain *l, const char **where);

/* Cancels the current call of the state, or the next one: it fails with "cancelled", whatever the
   script catches. May be called from any thread. Lua code that neither calls an operation nor runs
   a loop of a Trainer is reached only if max_instructions is set. */
LT_API void ltrain_cancel(ltrain *l);

/* The state's context, for the functions of ltrain/tensor.h; its lua_State, for the Lua API. */
LT_API lt_ctx *ltrain_context(ltrain *l);
LT_API struct lua_State *ltrain_lua(ltrain *l);

#ifdef __cplusplus
}
#endif
#endif
