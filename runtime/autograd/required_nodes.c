/* runtime/autograd/required_nodes.c: nodes that a backward pass visits even if no gradient reaches
   them. Collectives are such: a rank whose loss does not use one must take part in its backward all
   the same, with zeros, or the others wait for it.

   A step may have parts of which each has a backward of its own, as the microbatches of a pipeline:
   one part's backward visits its nodes alone. */
#include "autograd/backward.h"

#include <string.h>

#include "autograd/node_list.h"

typedef struct required {
  lt_node_list *part; /* of each part of a step */
  int64_t count, now; /* how many parts, and which is current */
  bool on;            /* a step is under way */
} required;

static void forget(lt_ctx *c, required *a) {
  for (int64_t p = 0; p < a->count; p++) {
    lt_node_list *list = &a->part[p];
    for (int64_t k = 0; k < list->count; k++) lt_release(c, list->node[k]);
    list->count = 0;
  }
}

static void drop(lt_ctx *c, void *slot) {
  required *a = slot;
  forget(c, a);
  for (int64_t p = 0; p < a->count; p++) lt_node_list_free(c, &a->part[p]);
  lt_free(c, a->part, (size_t)a->count * sizeof *a->part);
  lt_free(c, a, sizeof *a);
}

static required *get(lt_ctx *c) {
  required *a = c->slot[LT_SLOT_AUTOGRAD];
  if (a != NULL) return a;
  a = lt_alloc(c, sizeof *a);
  if (a == NULL) return NULL;
  c->slot[LT_SLOT_AUTOGRAD] = a;
  c->slot_drop[LT_SLOT_AUTOGRAD] = drop;
  return a;
}

bool lt_required_nodes_begin(lt_ctx *c) {
  required *a = get(c);
  if (a == NULL || !lt_required_nodes_use(c, 0)) return false;
  forget(c, a);
  a->on = true;
  return true;
}

void lt_required_nodes_end(lt_ctx *c) {
  required *a = c->slot[LT_SLOT_AUTOGRAD];
  if (a == NULL) return;
  forget(c, a);
  a->now = 0;
  a->on = false;
}

bool lt_required_nodes_use(lt_ctx *c, int64_t part) {
  required *a = get(c);
  if (a == NULL) return false;
  if (part >= a->count) {
    size_t before = (size_t)a->count * sizeof *a->part;
    size_t after = (size_t)(part + 1) * sizeof *a->part;
    lt_node_list *grown = lt_alloc(c, after);
    if (grown == NULL) return false;
    if (before > 0) memcpy(grown, a->part, before);
    lt_free(c, a->part, before);
    a->part = grown;
    a->count = part + 1;
  }
  a->now = part;
  return true;
}

int64_t lt_required_nodes_part(const lt_ctx *c) {
  const required *a = c->slot[LT_SLOT_AUTOGRAD];
  return a != NULL ? a->now : 0;
}

bool lt_required_nodes_note(lt_ctx *c, lt_node *n) {
  required *a = c->slot[LT_SLOT_AUTOGRAD];
  if (a == NULL || !a->on) return true;
  if (!lt_node_list_add(c, &a->part[a->now], n)) return false;
  n->always = true;
  return true;
}

int64_t lt_required_nodes_count(const lt_ctx *c) {
  const required *a = c->slot[LT_SLOT_AUTOGRAD];
  return a != NULL && a->count > 0 ? a->part[a->now].count : 0;
}

/* The last one first: the caller pushes them into a heap, so the order does not matter. */
lt_node *lt_required_nodes_take(lt_ctx *c) {
  required *a = c->slot[LT_SLOT_AUTOGRAD];
  lt_node_list *list = &a->part[a->now];
  return list->node[--list->count];
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
