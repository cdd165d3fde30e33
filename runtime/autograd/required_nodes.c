/* runtime/autograd/required_nodes.c: nodes that a backward pass visits even if no gradient reaches
   them. Collectives are such: a rank whose loss does not use one must take part in its backward all
   the same, with zeros, or the others wait for it. */
#include "autograd/backward.h"

#include "autograd/node_list.h"

typedef struct required {
  lt_node_list list;
  bool on; /* a step is under way */
} required;

static void forget(lt_ctx *c, required *a) {
  for (int64_t k = 0; k < a->list.count; k++) lt_release(c, a->list.node[k]);
  a->list.count = 0;
}

static void drop(lt_ctx *c, void *slot) {
  required *a = slot;
  forget(c, a);
  lt_node_list_free(c, &a->list);
  lt_free(c, a, sizeof *a);
}

bool lt_required_nodes_begin(lt_ctx *c) {
  required *a = c->slot[LT_SLOT_AUTOGRAD];
  if (a == NULL) {
    a = lt_alloc(c, sizeof *a);
    if (a == NULL) return false;
    c->slot[LT_SLOT_AUTOGRAD] = a;
    c->slot_drop[LT_SLOT_AUTOGRAD] = drop;
  }
  forget(c, a);
  a->on = true;
  return true;
}

void lt_required_nodes_end(lt_ctx *c) {
  required *a = c->slot[LT_SLOT_AUTOGRAD];
  if (a == NULL) return;
  forget(c, a);
  a->on = false;
}

bool lt_required_nodes_note(lt_ctx *c, lt_node *n) {
  required *a = c->slot[LT_SLOT_AUTOGRAD];
  if (a == NULL || !a->on) return true;
  if (!lt_node_list_add(c, &a->list, n)) return false;
  n->always = true;
  return true;
}

int64_t lt_required_nodes_count(const lt_ctx *c) {
  const required *a = c->slot[LT_SLOT_AUTOGRAD];
  return a != NULL ? a->list.count : 0;
}

/* The last one first: the caller pushes them into a heap, so the order does not matter. */
lt_node *lt_required_nodes_take(lt_ctx *c) {
  required *a = c->slot[LT_SLOT_AUTOGRAD];
  return a->list.node[--a->list.count];
}

/* Zeros for the first output of a node that no gradient reached; its vjp then runs as usual, and
   takes part in the collective. The other outputs stay NULL, which means zero to a vjp. */
bool lt_required_nodes_fill(lt_ctx *c, lt_node *n) {
  for (int k = 0; k < n->n_out; k++)
    if (n->grads[k] != NULL) return true;
  const lt_meta *m = &n->out[0];
  lt_tensor *zeros = lt_full(c, m->shape, lt_scalar_of(0), m->dtype, n->device);
  n->grads[0] = lt_retain(zeros);
  return zeros != NULL;
}
