/* runtime/autograd/backward.h: reverse-mode differentiation: the backward pass over the tape, from
   results to leaves, and lt_grad. */
#ifndef LT_AUTOGRAD_BACKWARD_H
#define LT_AUTOGRAD_BACKWARD_H

#include "ops/node.h"

/* Gradients of parameters that are left for later (autograd/deferred_gradients.h). */
typedef struct lt_deferred lt_deferred;

typedef struct lt_backward_options {
  lt_tensor *seed;     /* gradient of the root; NULL: ones, and the root has one element */
  bool retain_graph;   /* keep saved values for another backward */
  bool create_graph;   /* record the backward itself */
  lt_deferred *later;  /* of lt_backward: where those of parameters wait; NULL: they do not */
} lt_backward_options;

/* Add d root / d leaf to the `grad` of every leaf below. Nodes are visited newest first, each once,
   in one frame each; runs with autocast off. Without a root only the nodes of the step that are
   always visited (below) are, with zeros. */
bool lt_backward(lt_ctx *c, lt_tensor *root, const lt_backward_options *options);

/* A list for `later`; adds what waits in it to the `grad` of the parameters, and empties it. A list
   may be freed before. */
lt_deferred *lt_deferred_new(lt_ctx *c);
bool lt_deferred_run(lt_ctx *c, lt_deferred *d);
void lt_deferred_free(lt_ctx *c, lt_deferred *d);

/* The gradients of several roots (each with its `seed`, NULL as above), added up, by `in` alone:
   out[k] is NULL where no path leads from a root to in[k]. No leaf gets anything in its `grad`, and
   only nodes on the way are visited. `options->seed` is not read. */
bool lt_grad(lt_ctx *c, int n_root, lt_tensor *const *root, lt_tensor *const *seed, int n_in,
             lt_tensor *const *in, const lt_backward_options *options, lt_tensor **out);

/* The same in parts. A walk begins without a visit; it and lt_walk_end fail in the ctx. What it
   was given must live until its end: `in` and `out` themselves, too. NULL: no memory. */
typedef struct lt_walk lt_walk;
lt_walk *lt_walk_backward(lt_ctx *c, lt_tensor *root, const lt_backward_options *options);
lt_walk *lt_walk_grad(lt_ctx *c, int n_root, lt_tensor *const *root, lt_tensor *const *seed,
                      int n_in, lt_tensor *const *in, const lt_backward_options *options,
                      lt_tensor **out);

/* Visit nodes until none is left, or `due` (optional), asked after each, says so; returns whether
   some are left. In between the ctx may do other work, also other walks. */
bool lt_walk_on(lt_ctx *c, lt_walk *w, bool (*due)(void *ud), void *ud);

/* Ends and frees it, wherever it is; gradients by `in` belong to the innermost frame. False after a
   failure. */
bool lt_walk_end(lt_ctx *c, lt_walk *w);

/* Nodes noted between begin and end are visited by the next backward, newest first among all
   others, with zeros where no gradient reaches them. end forgets those that no backward took. */
bool lt_required_nodes_begin(lt_ctx *c);
void lt_required_nodes_end(lt_ctx *c);
/* Make part number `part`, from 0, of the step current: nodes are noted and visited there. A step
   begins with part 0. */
bool lt_required_nodes_use(lt_ctx *c, int64_t part);
int64_t lt_required_nodes_part(const lt_ctx *c); /* the number of the current one */
bool lt_required_nodes_note(lt_ctx *c, lt_node *n); /* outside of a step it does nothing */
int64_t lt_required_nodes_count(const lt_ctx *c);
lt_node *
lt_required_nodes_take(lt_ctx *c); /* one of them, with its reference; count must not be 0 */
bool lt_required_nodes_fill(lt_ctx *c, lt_node *n);

/* Give `leaf` a gradient of its own shape, or add to the one it has (in place unless recording). */
bool lt_accumulate_grad(lt_ctx *c, lt_tensor *leaf, lt_tensor *grad);

/* What a vjp gets. `grad[k]`: gradient of output k, NULL when nothing used it. `need[k]`: whether
   input k wants one. It fills in[k]; leaving NULL means zero. Gradients may have any dtype: the
   walk casts them to the forward input's. Everything it makes belongs to the node's frame. */
typedef struct lt_vjp_call {
  lt_node *node;
  const void *args;
  lt_tensor *const *grad;
  const bool *need;
  lt_tensor **in;
} lt_vjp_call;
typedef bool (*lt_vjp)(lt_ctx *c, lt_vjp_call *v);

/* Readers for vjps. */
static inline lt_tensor *lt_saved_in(lt_ctx *c, lt_vjp_call *v, int k) {
  return lt_saved_value(c, v->node, k);
}
static inline lt_tensor *lt_saved_out(lt_ctx *c, lt_vjp_call *v, int k) {
  return lt_saved_value(c, v->node, LT_SLOT_OUT + k);
}
static inline lt_shape lt_in_shape(const lt_vjp_call *v, int k) { return v->node->edges[k].shape; }

extern const lt_vjp lt_vjps[LT_OP_COUNT];

/* The vjp of an op that has an `expand`, by differentiating that: for a backward that is recorded
   where the op's own has no derivative. Needs each input saved that a derivative depends on. */
bool lt_vjp_by_expand(lt_ctx *c, lt_vjp_call *v);

#endif
