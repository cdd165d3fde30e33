/* lua/bind/autograd/node_refs.h: references from nodes of the tape to Lua values: the functions of
   hooks, of lt.Function and of checkpointed segments.

   A value stays in the registry, under the address of its lt_script_hook, as long as its node may
   call it. A node may be freed where Lua must not be touched: its reference then waits on a list of
   the binding until the next sweep. */
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

/* A reference to the value at `index`, which ends with the saved values of the node or, without a
   node (NULL), when it is dropped; NULL when memory is out. */
lt_script_hook *lt_node_ref_new(lua_State *L, lt_bind *b, const lt_node *node, int index);

/* Push the value, or nil when it is gone. */
void lt_node_ref_push(lua_State *L, const lt_script_hook *h);

/* The `drop` of a hook or a custom node: it touches no Lua, only the lists. */
void lt_node_ref_drop(lt_ctx *c, void *h);

/* Free the references that wait for a sweep, as the state closes. */
void lt_node_refs_free(lt_bind *b);

/* Remove values from the registry whose node is gone or has been used: one that names its own
   tensor would keep both forever. */
void lt_node_refs_sweep(lua_State *L, lt_bind *b);

#endif
