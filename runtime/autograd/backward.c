/* runtime/autograd/backward.c: the backward walk.

   Nodes wait in a heap by age, newest first: an input is always older than its users, so when a
   node is taken all gradients of its outputs have arrived. Nothing recurses. */
#include "autograd/backward.h"

#include "autograd/node_list.h"
#include "base/lines.h"

typedef lt_node_list heap;

static bool heap_push(lt_ctx *c, heap *h, lt_node *n) {
  if (!lt_node_list_add(c, h, n)) return false;
  int64_t i = h->count - 1;
  for (; i > 0 && h->node[(i - 1) / 2]->seq < n->seq; i = (i - 1) / 2)
    h->node[i] = h->node[(i - 1) / 2];
  h->node[i] = n;
  return true;
}

static lt_node *heap_pop(heap *h) {
  lt_node *top = h->node[0], *last = h->node[--h->count];
  int64_t i = 0;
  for (int64_t child = 1; child < h->count; child = 2 * i + 1) {
    if (child + 1 < h->count && h->node[child + 1]->seq > h->node[child]->seq) child++;
    if (h->node[child]->seq <= last->seq) break;
    h->node[i] = h->node[child];
    i = child;
  }
  if (h->count > 0) h->node[i] = last;
  return top;
}

/* a + b. Adds into `a`'s own memory when nobody else can see it (one reference: its slot's). */
static lt_tensor *sum(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  bool ours = !c->modes.grad && a->object.refs == 1 && a->contiguous && a->dtype == b->dtype &&
              atomic_load(&a->storage->refs) == 1 && (a->flags & LT_IS_VIEW) == 0;
  if (!ours) return lt_binary(c, LT_OP_add, a, b);
  lt_tensor *out = a;
  return lt_apply(c, LT_OP_add, LT_IN(a, b), NULL, 1, &out) ? a : NULL;
}

/* Store `value` (NULL on failure) in a slot that owns a reference, in place of `old`. */
static bool put(lt_ctx *c, lt_tensor **slot, lt_tensor *value) {
  if (value == NULL) return false;
  lt_retain(value);
  lt_release(c, *slot);
  *slot = value;
  return true;
}

bool lt_accumulate_grad(lt_ctx *c, lt_tensor *leaf, lt_tensor *grad) {
  if (leaf->grad != NULL) return put(c, &leaf->grad, sum(c, leaf->grad, grad));
  /* A gradient that something else may still see or that has strides of its own is copied. */
  bool shared = grad->object.refs > 1 || atomic_load(&grad->storage->refs) > 1;
  if (!c->modes.grad && (shared || !grad->contiguous))
    grad = lt_apply1(c, LT_OP_clone, 1, &grad, &(lt_args_clone){.contiguous = true});
  return put(c, &leaf->grad, grad);
}

static lt_tensor *run_hooks(lt_ctx *c, lt_hook *hooks, int output, lt_tensor *grad) {
  for (lt_hook *h = hooks; h != NULL && grad != NULL; h = h->next) {
    if (h->output != output) continue;
    lt_tensor *replacement = NULL;
    if (!h->fn(c, h->ud, grad, &replacement)) return NULL;
    if (replacement == NULL) continue;
    if (!lt_shape_equal(lt_tensor_shape(replacement), lt_tensor_shape(grad))) {
      lt_fail(c, LT_ESHAPE, "hook: returned a gradient of %s for a tensor of %s",
              LT_TENSOR_STR(replacement), LT_TENSOR_STR(grad));
      return NULL;
    }
    grad = replacement;
  }
  return grad;
}

/* Hand the gradient of one input on: to a leaf, or to the node that made it. */
static bool deliver(lt_ctx *c, heap *h, uint64_t walk, const lt_edge *e, lt_tensor *grad) {
  if (!lt_shape_equal(lt_tensor_shape(grad), e->shape))
    return lt_fail(c, LT_EINTERNAL, "backward: a gradient of %s for an input of %s",
                   LT_TENSOR_STR(grad), LT_SHAPE_STR(e->shape));
  grad = lt_cast(c, grad, e->dtype);
  if (grad == NULL) return false;
  if (e->leaf) {
    lt_tensor *leaf = (lt_tensor *)e->target;
    grad = run_hooks(c, leaf->hooks, 0, grad);
    return grad != NULL && lt_accumulate_grad(c, leaf, grad);
  }
  lt_node *n = (lt_node *)e->target;
  if (n->walk != walk) {
    for (int k = 0; k < n->n_out; k++)
      if (n->grads[k] != NULL)
        return lt_fail(c, LT_EARG, "backward: called within a backward that is still at work on %s",
                       lt_node_name(n));
    n->walk = walk;
    if (!heap_push(c, h, n)) return false;
  }
  lt_tensor **slot = &n->grads[e->output];
  return put(c, slot, *slot == NULL ? grad : sum(c, *slot, grad));
}

enum { FEW = 8 };

/* Run one node's vjp. */
static bool differentiate(lt_ctx *c, lt_node *n, lt_tensor **in) {
  bool few[FEW], *need = n->n_in <= FEW ? few : lt_alloc(c, (size_t)n->n_in * sizeof *need);
  if (need == NULL) return false;
  for (int k = 0; k < n->n_in; k++) need[k] = n->edges[k].target != NULL;
  bool ok;
  if (n->op == LT_OP_COUNT) {
    ok = n->custom.fn(c, n->custom.ud, n->grads, in);
  } else {
    lt_vjp_call call = {.node = n, .args = n->args, .grad = n->grads, .need = need, .in = in};
    ok = lt_vjps[n->op](c, &call) && lt_ok(c);
  }
  if (need != few) lt_free(c, need, (size_t)n->n_in * sizeof *need);
  return ok;
}

/* One node: hooks on what arrived, vjp, hand on. The frame frees everything it made. */
static bool visit(lt_ctx *c, heap *h, uint64_t walk, lt_node *n) {
  lt_tensor *few[FEW] = {NULL};
  lt_tensor **in = n->n_in <= FEW ? few : lt_alloc(c, (size_t)n->n_in * sizeof *in);
  bool ok = in != NULL && (!n->always || lt_always_fill(c, n)), any = false;
  for (int k = 0; k < n->n_out && ok; k++) {
    if (n->grads[k] == NULL) continue;
    any = true;
    lt_tensor *g = run_hooks(c, n->hooks, k, n->grads[k]);
    ok = g == n->grads[k] || put(c, &n->grads[k], g);
  }
  ok = ok && (!any || differentiate(c, n, in));
  for (int k = 0; k < n->n_in && ok; k++)
    if (in[k] != NULL && n->edges[k].target != NULL) ok = deliver(c, h, walk, &n->edges[k], in[k]);
  if (in != few && in != NULL) lt_free(c, in, (size_t)n->n_in * sizeof *in);
  return ok;
}

static void clear_grads(lt_ctx *c, lt_node *n) {
  for (int k = 0; k < n->n_out; k++) {
    lt_release(c, n->grads[k]);
    n->grads[k] = NULL;
  }
}

static bool walk_down(lt_ctx *c, heap *h, uint64_t walk, bool keep) {
  bool ok = true;
  uint32_t line = c->line;
  while (h->count > 0) {
    lt_node *n = heap_pop(h);
    if (ok) {
      lt_frame frame = lt_frame_open(c);
      c->line = n->line;
      ok = visit(c, h, walk, n);
      lt_frame_close(c, frame, 0, NULL);
      if (ok && !keep) lt_node_forget(c, n);
    }
    clear_grads(c, n);
    lt_release(c, n);
  }
  c->line = line;
  return ok;
}

/* The nodes that this walk visits in any case. */
static bool push_always(lt_ctx *c, heap *h, uint64_t walk) {
  bool ok = true;
  while (lt_always_count(c) > 0) {
    lt_node *n = lt_always_take(c);
    if (ok && !n->used && n->walk != walk) {
      n->walk = walk;
      ok = heap_push(c, h, n);
    }
    lt_release(c, n);
  }
  return ok;
}

static lt_tensor *seed_of(lt_ctx *c, lt_tensor *root, lt_tensor *seed) {
  if (seed == NULL && root->numel != 1) {
    lt_fail(c, LT_ESHAPE,
            "backward: needs a tensor of one element, got %s; sum it or pass a gradient",
            LT_TENSOR_STR(root));
    return NULL;
  }
  if (seed == NULL)
    return lt_full(c, lt_tensor_shape(root), lt_scalar_of(1), (lt_dtype)root->dtype,
                   root->storage->device);
  if (lt_shape_equal(lt_tensor_shape(seed), lt_tensor_shape(root))) return seed;
  lt_fail(c, LT_ESHAPE, "backward: the gradient has shape %s, the tensor %s", LT_TENSOR_STR(seed),
          LT_TENSOR_STR(root));
  return NULL;
}

/* The gradient of the root goes where the root came from. */
static bool start(lt_ctx *c, heap *h, uint64_t walk, lt_tensor *root, lt_tensor *given) {
  lt_tensor *seed = seed_of(c, root, given);
  lt_edge e = lt_edge_to(root);
  bool ok = seed != NULL && deliver(c, h, walk, &e, seed);
  lt_release(c, e.target);
  return ok;
}

bool lt_backward(lt_ctx *c, lt_tensor *root, const lt_backward_options *options) {
  if (!lt_ok(c)) return false;
  if (root != NULL && !lt_requires_grad(root))
    return lt_fail(c, LT_EARG,
                   "backward: this tensor has no history (made under no_grad, detached, or from "
                   "tensors that do not require grad)");
  lt_modes modes = c->modes;
  lt_frame frame = lt_frame_open(c);
  c->modes.autocast = false;
  c->modes.grad = options->create_graph;
  heap h = {0};
  uint64_t walk = ++c->walks;
  bool ok = push_always(c, &h, walk) && (root == NULL || start(c, &h, walk, root, options->seed));
  ok = walk_down(c, &h, walk, options->retain_graph || options->create_graph) && ok;
  lt_node_list_free(c, &h);
  lt_frame_close(c, frame, 0, NULL);
  c->modes = modes;
  return ok && lt_ok(c);
}
