/* runtime/autograd/deferred_gradients.c: the list of nodes whose parameters wait for their
   gradients. */
#include "autograd/deferred_gradients.h"

#include <string.h>

lt_deferred *lt_deferred_new(lt_ctx *c) {
  lt_deferred *d = lt_alloc(c, sizeof *d);
  if (d != NULL) *d = (lt_deferred){0};
  return d;
}

/* Hooks of a parameter belong to the backward that they were registered for. */
static bool is_parameter(const lt_edge *e) {
  const lt_tensor *t = e->leaf ? (const lt_tensor *)e->target : NULL;
  return t != NULL && (t->flags & LT_PARAMETER) != 0 && t->hooks == NULL;
}

bool lt_deferred_input(const lt_node *n, int k) {
  const lt_edge *e = &n->edges[k];
  if (n->op == LT_OP_COUNT || e->target == NULL) return false;
  if (e->leaf) return is_parameter(e);
  const lt_node *view = (const lt_node *)e->target;
  return view->op != LT_OP_COUNT && view->n_in == 1 && view->n_out == 1 && view->hooks == NULL &&
         is_parameter(&view->edges[0]);
}

static bool grow(lt_ctx *c, lt_deferred *d) {
  if (d->count < d->capacity) return true;
  int64_t more = d->capacity > 0 ? 2 * d->capacity : 16;
  lt_deferred_node *grown = lt_alloc(c, (size_t)more * sizeof *grown);
  if (grown == NULL) return false;
  if (d->count > 0) memcpy(grown, d->list, (size_t)d->count * sizeof *grown);
  lt_free(c, d->list, (size_t)d->capacity * sizeof *grown);
  d->list = grown;
  d->capacity = more;
  return true;
}

bool lt_deferred_add(lt_ctx *c, lt_deferred *d, lt_node *n) {
  if (!grow(c, d)) return false;
  lt_tensor **grads = lt_alloc(c, (size_t)n->n_out * sizeof *grads);
  if (grads == NULL) return false;
  for (int k = 0; k < n->n_out; k++) grads[k] = n->grads[k] != NULL ? lt_retain(n->grads[k]) : NULL;
  d->list[d->count++] = (lt_deferred_node){.node = lt_retain(n), .grads = grads};
  return true;
}

void lt_deferred_node_drop(lt_ctx *c, lt_deferred_node *one) {
  for (int k = 0; one->grads != NULL && k < one->node->n_out; k++) lt_release(c, one->grads[k]);
  lt_free(c, one->grads, (size_t)one->node->n_out * sizeof *one->grads);
  lt_release(c, one->node);
  *one = (lt_deferred_node){0};
}

void lt_deferred_free(lt_ctx *c, lt_deferred *d) {
  if (d == NULL) return;
  for (int64_t k = 0; k < d->count; k++)
    if (d->list[k].node != NULL) lt_deferred_node_drop(c, &d->list[k]);
  lt_free(c, d->list, (size_t)d->capacity * sizeof *d->list);
  lt_free(c, d, sizeof *d);
}
