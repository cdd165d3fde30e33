/* runtime/autograd/post_accumulate.c: post-accumulate hooks: they run once in each backward, after
   the last contribution to the gradient of their leaf.

   The edges to the leaf are counted before the walk, and counted down as nodes are visited; a node
   that no gradient reaches is not visited, and its edges are what remains at the end. Nothing
   recurses. */
#include "autograd/post_accumulate.h"

#include <string.h>

static lt_hook *first_after(lt_hook *h) {
  while (h != NULL && !h->after) h = h->next;
  return h;
}

/* Remember a leaf whose hooks wait, once; the list is what lt_post_accumulate_end has to look
   through. */
static bool list(lt_ctx *c, lt_post_accumulate *all, lt_tensor *leaf) {
  if (all->count == all->capacity) {
    int64_t more = all->capacity > 0 ? 2 * all->capacity : 16;
    lt_tensor **grown = lt_alloc(c, (size_t)more * sizeof(lt_tensor *));
    if (grown == NULL) return false;
    if (all->count > 0) memcpy(grown, all->leaf, (size_t)all->count * sizeof(lt_tensor *));
    lt_free(c, all->leaf, (size_t)all->capacity * sizeof(lt_tensor *));
    all->leaf = grown;
    all->capacity = more;
  }
  all->leaf[all->count++] = lt_retain(leaf);
  return true;
}

/* The count stands in the first of the leaf's hooks, for all of them. */
static bool count(lt_ctx *c, lt_post_accumulate *all, const lt_edge *e) {
  lt_hook *h = e->leaf && e->target != NULL ? first_after(((lt_tensor *)e->target)->hooks) : NULL;
  if (h == NULL) return true;
  bool is_new = h->walk != all->walk;
  if (is_new) h->due = 0, h->reached = false;
  h->walk = all->walk;
  h->due++;
  return !is_new || list(c, all, (lt_tensor *)e->target);
}

bool lt_post_accumulate_begin(lt_ctx *c, lt_post_accumulate *all, const lt_node_list *heap,
                              int n_root, lt_tensor *const *root) {
  if (c->hooks_after == 0) return true;
  lt_node_list below = {0};
  uint64_t seen = (c->walks += 2) - 1;
  bool ok = true;
  all->walk = c->walks;
  for (int64_t k = 0; k < heap->count && ok; k++)
    ok = lt_node_heap_note(c, &below, &heap->node[k]->object, seen, 0);
  for (int k = 0; k < n_root && ok; k++) {
    bool leaf = root[k]->node == NULL;
    const lt_edge self = {.target = &root[k]->object, .leaf = leaf};
    ok = leaf ? count(c, all, &self) : lt_node_heap_note(c, &below, root[k]->node, seen, 0);
  }
  while (below.count > 0) {
    lt_node *n = lt_node_heap_pop(&below);
    for (int k = 0; k < n->n_in && ok; k++)
      ok = n->edges[k].leaf ? count(c, all, &n->edges[k])
                            : lt_node_heap_note(c, &below, n->edges[k].target, seen, 0);
    lt_release(c, n);
  }
  lt_node_list_free(c, &below);
  return ok;
}

static bool run(lt_ctx *c, lt_tensor *leaf) {
  for (lt_hook *h = first_after(leaf->hooks); h != NULL; h = first_after(h->next)) {
    lt_tensor *ignored = NULL;
    if (!h->fn(c, h->ud, leaf, &ignored)) return false;
  }
  return true;
}

uint64_t lt_post_accumulate_walk(const lt_tensor *leaf) {
  const lt_hook *h = first_after(leaf->hooks);
  return h != NULL ? h->walk : 0;
}

/* `due` reaches 0 when every edge has been visited, with a gradient or without; only if one of them
   had one (`reached`) is there something for the hooks to see. */
bool lt_post_accumulate_edge(lt_ctx *c, const lt_post_accumulate *all, lt_tensor *leaf, bool any) {
  lt_hook *h = all->walk != 0 ? first_after(leaf->hooks) : NULL;
  if (h == NULL || h->walk != all->walk) return true;
  h->reached = h->reached || any;
  return --h->due > 0 || !h->reached || run(c, leaf);
}

/* Leaves that a gradient has reached along some edges, while the nodes of the others were not
   visited: nothing more can come, so their hooks run now. */
bool lt_post_accumulate_end(lt_ctx *c, lt_post_accumulate *all, bool run_all) {
  bool ok = run_all;
  for (int64_t k = 0; k < all->count; k++) {
    const lt_hook *h = first_after(all->leaf[k]->hooks);
    bool waits = h != NULL && h->walk == all->walk && h->due > 0 && h->reached;
    if (ok && waits) {
      lt_frame frame = lt_frame_open(c);
      ok = run(c, all->leaf[k]);
      lt_frame_close(c, frame, 0, NULL);
    }
    lt_release(c, all->leaf[k]);
  }
  lt_free(c, all->leaf, (size_t)all->capacity * sizeof(lt_tensor *));
  *all = (lt_post_accumulate){0};
  return ok;
}
