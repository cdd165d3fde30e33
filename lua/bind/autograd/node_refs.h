/* lua/bind/autograd/node_refs.h: values of Lua's that nodes of the tape hold: functions of hooks, and
   what a backward calls. They are in the registry under the address of an lt_script_hook. */
#ifndef LT_BIND_AUTOGRAD_NODE_REFS_H
#define LT_BIND_AUTOGRAD_NODE_REFS_H

#include "bind/core/state.h"
#include "ops/node.h"

struct lt_script_hook {
  lt_bind *b;
  const lt_tensor *leaf; /* NULL: not a leaf's hook, the value is in the registry */
  const lt_node *node;   /* (optional) once its saved values are gone the value may go */
  lt_script_hook *next, **link;
};

/* Hold the value at `index` for a node, or (NULL) until it is dropped; NULL when memory is out. */
lt_script_hook *lt_hold_value(lua_State *L, lt_bind *b, const lt_node *node, int index);

/* Push it, or nil when it is gone. */
void lt_push_held(lua_State *L, const lt_script_hook *h);

/* For `drop` of what a node has: it may be called when Lua must not be touched. */
void lt_drop_held(lt_ctx *c, void *h);

/* Free hooks of nodes that are gone, as the state closes (grad.c). */
void lt_forget_dead_hooks(lt_bind *b);

/* Let go of values that nobody can ask for any more, if there are any. */
void lt_sweep_held(lua_State *L, lt_bind *b);

#endif
