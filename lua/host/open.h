/* lua/host/open.h: what a host's state consists of; ltrain.h is its face. */
#ifndef LT_HOST_OPEN_H
#define LT_HOST_OPEN_H

#include <lua.h>
#include <stdatomic.h>

#include "bind/state.h"
#include "host/ltrain.h"

struct ltrain {
  ltrain_config config;
  lt_allocator allocator;
  lua_State *L;
  lt_bind *b;
  atomic_size_t used; /* bytes asked for and not given back */
  atomic_bool cancelled;
  int64_t instructions;     /* run since the host's call began, in steps of the hook's count */
  int hold_ref, thread_ref; /* registry: strings of results; the thread that is stepped */
  lua_State *stepped;       /* NULL: none */
  int step_arguments;
  char warning[512]; /* pieces of one that is not complete */
  char where[64];
  char message[LT_FAILURE_TEXT];
};

/* A call from the host begins: a new budget of instructions. */
void lt_host_arm(ltrain *l);

/* Give the state a `print` that tells the host; before the library captures it. */
void lt_host_give_print(lua_State *L, ltrain *l);

/* Take away what the host did not allow; after the library's own chunks have theirs. */
void lt_host_restrict(lua_State *L, const ltrain_config *config);

/* Whether the Trainer's loops of this state yield before batches and hooks. Raises. */
void lt_host_set_stepped(lua_State *L, bool on);

#endif
