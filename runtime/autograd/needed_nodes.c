/* runtime/autograd/needed_nodes.c: marks the nodes on paths from the roots to the inputs of
   lt_grad, without recursion.

   A pass over the tape from the roots lists the candidates, newest first; a second one over the
   list from its oldest end sets the mark, so that a node is decided after all nodes it reads from.
   lt_grad then visits only marked nodes: of a large tape, often a small part. */
#include "autograd/needed_nodes.h"

int lt_needed_nodes_find(const lt_needed_nodes *w, int from, const lt_object *target, int output) {
  int k = from;
  for (; k < w->n; k++) {
    const lt_tensor *t = w->in[k];
    bool is = t->node != NULL ? t->node == target && t->output == output : &t->object == target;
    if (is) break;
  }
  return k;
}

/* The test that backward.c makes for each edge: for a node its mark, set by lt_needed_nodes_mark;
   for a leaf a search in the list, which is short. */
bool lt_needed_nodes_edge(const lt_needed_nodes *w, const lt_edge *e) {
  if (w == NULL || e->target == NULL) return e->target != NULL;
  if (e->leaf) return lt_needed_nodes_find(w, 0, e->target, 0) < w->n;
  return ((const lt_node *)e->target)->leads == w->mark;
}

/* No node below the oldest wanted one can lead to it. */
static uint64_t oldest(const lt_needed_nodes *w) {
  uint64_t seq = UINT64_MAX;
  for (int k = 0; k < w->n; k++) {
    const lt_node *n = (const lt_node *)w->in[k]->node;
    uint64_t own = n != NULL ? n->seq : 0;
    if (own < seq) seq = own;
  }
  return seq;
}

/* All nodes that may lead to an input, newest first. */
static bool collect(lt_ctx *c, lt_needed_nodes *w, int n_root, lt_tensor *const *root,
                    lt_node_list *order) {
  lt_node_list heap = {0};
  uint64_t least = oldest(w), seen = w->mark - 1;
  bool ok = true;
  for (int k = 0; k < n_root && ok; k++)
    ok = lt_node_heap_note(c, &heap, root[k]->node, seen, least);
  while (heap.count > 0) {
    lt_node *n = lt_node_heap_pop(&heap);
    ok = ok && lt_node_list_add(c, order, n);
    for (int k = 0; k < n->n_in && ok; k++)
      if (!n->edges[k].leaf) ok = lt_node_heap_note(c, &heap, n->edges[k].target, seen, least);
    lt_release(c, n);
  }
  lt_node_list_free(c, &heap);
  return ok;
}

bool lt_needed_nodes_mark(lt_ctx *c, lt_needed_nodes *w, int n_root, lt_tensor *const *root) {
  lt_node_list order = {0};
  w->mark = c->walks += 2; /* the one before it: seen on the way */
  bool ok = collect(c, w, n_root, root, &order);
  for (int64_t j = order.count - 1; j >= 0; j--) { /* inputs before their users */
    lt_node *n = order.node[j];
    for (int k = 0; k < n->n_in && n->leads != w->mark; k++)
      if (lt_needed_nodes_edge(w, &n->edges[k])) n->leads = w->mark;
    for (int k = 0; k < w->n && n->leads != w->mark; k++)
      if (w->in[k]->node == &n->object) n->leads = w->mark;
  }
  for (int64_t j = 0; j < order.count; j++) lt_release(c, order.node[j]);
  lt_node_list_free(c, &order);
  return ok;
}

static bool is_other_leaf(const lt_edge *e, int n_own, lt_tensor *const *own) {
  if (!e->leaf || e->target == NULL) return false;
  for (int k = 0; k < n_own; k++)
    if (&own[k]->object == e->target) return false;
  return true;
}

bool lt_needed_nodes_others(lt_ctx *c, int n_root, lt_tensor *const *root, int n_own,
                            lt_tensor *const *own) {
  lt_node_list heap = {0};
  uint64_t seen = (c->walks += 2) - 1;
  bool ok = true, found = false;
  for (int k = 0; k < n_root && ok; k++) {
    bool leaf = root[k]->node == NULL && lt_requires_grad(root[k]);
    const lt_edge self = {.target = leaf ? &root[k]->object : NULL, .leaf = leaf};
    found = found || is_other_leaf(&self, n_own, own);
    ok = lt_node_heap_note(c, &heap, root[k]->node, seen, 0);
  }
  while (heap.count > 0) {
    lt_node *n = lt_node_heap_pop(&heap);
    for (int k = 0; k < n->n_in && ok && !found; k++) {
      found = is_other_leaf(&n->edges[k], n_own, own);
      if (!n->edges[k].leaf) ok = lt_node_heap_note(c, &heap, n->edges[k].target, seen, 0);
    }
    lt_release(c, n);
  }
  lt_node_list_free(c, &heap);
  return found;
}
