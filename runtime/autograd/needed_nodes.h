/* runtime/autograd/needed_nodes.h: the nodes that lt_grad needs: those on a path to an input that
   it differentiates by. */
#ifndef LT_AUTOGRAD_NEEDED_NODES_H
#define LT_AUTOGRAD_NEEDED_NODES_H

#include "autograd/node_list.h"

typedef struct lt_needed_nodes {
  int n;
  lt_tensor *const *in;
  lt_tensor **out; /* each owns a reference */
  uint64_t mark;   /* nodes that lead to an input have it */
} lt_needed_nodes;

/* Mark the nodes below the roots that lead to a wanted input. */
bool lt_needed_nodes_mark(lt_ctx *c, lt_needed_nodes *w, int n_root, lt_tensor *const *root);

/* Whether a gradient is wanted along this edge. `w` NULL: all are. */
bool lt_needed_nodes_edge(const lt_needed_nodes *w, const lt_edge *e);

/* The first input at or after `from` that is this leaf, or this output of a node; n: none. */
int lt_needed_nodes_find(const lt_needed_nodes *w, int from, const lt_object *target, int output);

/* Whether a leaf that wants a gradient, and is none of `own`, is below the roots. */
bool lt_needed_nodes_others(lt_ctx *c, int n_root, lt_tensor *const *root, int n_own,
                            lt_tensor *const *own);

#endif
