/* lua/host/isolate/isolate.h: the host's side of an isolated state.

   The host has an ordinary state, in which no script runs: its tensors are the host's copies, and
   its calls ask the worker process. What that answers is checked; whatever it does, the host's
   call ends with an error at worst. */
#ifndef LT_HOST_ISOLATE_ISOLATE_H
#define LT_HOST_ISOLATE_ISOLATE_H

#include "host/protected_calls.h"

typedef struct lt_isolate lt_isolate;

/* The memory_cap of isolated states that have none: what a worker may make the host allocate is
   always limited. */
enum { LT_ISOLATE_MEMORY = 1 << 30 };

/* What is wrong with a config that has `isolate`, NULL if nothing is. */
const char *lt_isolate_fault(const ltrain_config *config);

/* Start the worker of a state that is open. False: `text` says why not. */
bool lt_isolate_start(ltrain *l, char *text, size_t size);
void lt_isolate_end(ltrain *l);

/* End the worker's process; from any thread and from signal handlers. */
void lt_isolate_kill(const lt_isolate *w);

/* For lt_request_run, in place of what ltrain.c runs in a state that is not isolated. */
int lt_isolate_run_file(lua_State *L);
int lt_isolate_run_string(lua_State *L);
int lt_isolate_call(lua_State *L);
int lt_isolate_get(lua_State *L);
int lt_isolate_set(lua_State *L);

/* The functions of ltrain.h on files in memory. A file that was read becomes one of the host's
   state. */
bool lt_isolate_put_file(ltrain *l, const char *path, const void *data, size_t size);
bool lt_isolate_read_file(ltrain *l, const char *path);
bool lt_isolate_remove_file(ltrain *l, const char *path);

/* Whether the state is not isolated; else the message says that `who` does not work there. */
bool lt_isolate_permits(ltrain *l, const char *who);

#endif
