/* runtime/autograd/post_accumulate.h: post-accumulate hooks of leaves: they run when a gradient is
   complete, as PyTorch's register_post_accumulate_grad_hook. */
#ifndef LT_AUTOGRAD_POST_ACCUMULATE_H
#define LT_AUTOGRAD_POST_ACCUMULATE_H

#include "autograd/node_list.h"

/* The leaves with such hooks below the roots of a walk, each retained. */
typedef struct lt_post_accumulate {
  lt_tensor **leaf;
  int64_t count, capacity;
  uint64_t walk; /* what `due` of their hooks belongs to */
} lt_post_accumulate;

/* Count the edges that lead to such leaves from the nodes of `heap`, from the roots, and from all
   nodes below. Costs a look at each node, and nothing while no leaf has such a hook. */
bool lt_post_accumulate_begin(lt_ctx *c, lt_post_accumulate *all, const lt_node_list *heap,
                              int n_root, lt_tensor *const *root);

/* One edge has brought what it brings; `any`: a gradient. After the last the hooks run. */
bool lt_post_accumulate_edge(lt_ctx *c, const lt_post_accumulate *all, lt_tensor *leaf, bool any);

/* The walk that has counted the edges to the leaf last; 0: none has. */
uint64_t lt_post_accumulate_walk(const lt_tensor *leaf);

/* The walk has ended: hooks of leaves that got a gradient along some edges, while others were
   never reached. Frees the list; without `run` that alone. */
bool lt_post_accumulate_end(lt_ctx *c, lt_post_accumulate *all, bool run);

#endif
