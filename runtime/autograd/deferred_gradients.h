/* runtime/autograd/deferred_gradients.h: gradients of parameters that a backward leaves for later.

   A pipeline sends the gradients of a stage's inputs on before it computes those of its weights
   (zero bubble: Qi et al., 2023). Such a backward keeps the nodes that have parameters among their
   inputs, with the gradients of their outputs, until lt_deferred_run. */
#ifndef LT_AUTOGRAD_DEFERRED_GRADIENTS_H
#define LT_AUTOGRAD_DEFERRED_GRADIENTS_H

#include "autograd/backward.h"

/* A node whose parameters wait; `grads`: those of its outputs, n_out, each retained or NULL. */
typedef struct lt_deferred_node {
  lt_node *node;
  lt_tensor **grads;
} lt_deferred_node;

struct lt_deferred {
  lt_deferred_node *list;
  int64_t count, capacity;
};

/* Whether the gradient along this input of a node is left for later: a parameter, or a view or cast
   of one. A script's own function computes all of its gradients at once. */
bool lt_deferred_input(const lt_node *n, int k);

/* Keep a node that is visited now, with the gradients that it has. */
bool lt_deferred_add(lt_ctx *c, lt_deferred *d, lt_node *n);

/* Let go of one that is done. */
void lt_deferred_node_drop(lt_ctx *c, lt_deferred_node *one);

#endif
