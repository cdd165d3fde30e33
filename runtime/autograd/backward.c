/* runtime/autograd/backward.c: the backward pass: nodes in reverse order of their recording,
   gradients accumulated where paths meet.

   Nodes wait in a heap by age, newest first: an input is always older than its users, so when a
   node is taken all gradients of its outputs have arrived. Nothing recurses, and between two nodes
   all that a walk has is in its struct and in `grads` of the nodes: it can be left there.

   Reverse accumulation (A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, 2008,
   chapter 3) over a graph that was recorded while it ran.

   The order of age is a topological order that costs no search: `seq` counts the nodes as they are
   recorded, and an operation can only use what exists. PyTorch's engine counts dependencies
   as well, because it runs the nodes of each device on a thread of their own.

   A gradient is owned by the slot it waits in (`grads` of a node, `grad` of a leaf, `out` of
   lt_grad); everything else that a vjp makes belongs to the frame of its node and is gone after
   it. */
#include "autograd/backward.h"

#include "autograd/deferred_gradients.h"
#include "autograd/needed_nodes.h"
#include "autograd/node_list.h"
#include "autograd/post_accumulate.h"
#include "base/script_lines.h"
#include "device/graph.h"
#include "ops/anomaly.h"
#include "ops/inplace.h"

struct lt_walk {
  lt_node_list heap;
  uint64_t id;
  bool keep, create_graph;
  lt_needed_nodes *wanted; /* NULL: all leaves below, into their `grad` */
  lt_deferred *later;      /* NULL: gradients of parameters are computed with the others */
  bool is_later;           /* now those that waited are */
  lt_post_accumulate incomplete;
  lt_needed_nodes own;
};

/* a + b. Adds into `a`'s own memory when no other owner can see it (one reference: its slot's).
   While a backward is recorded (create_graph) the nodes it makes may have saved `a`, so a write
   would change what they read: there a new tensor is made. */
static lt_tensor *sum(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  bool ours = !c->modes.grad && a->object.refs == 1 && a->contiguous && a->dtype == b->dtype &&
              atomic_load(&a->storage->refs) == 1 && (a->flags & LT_IS_VIEW) == 0 &&
              !a->storage->read_only;
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

/* The first contribution to a leaf is moved in, the others are added. Copies are made only where
   they must be: two leaves of one sum receive the same tensor, and an expanded one of stride 0
   would be written through by the optimizer's in-place update. */
static bool accumulate(lt_ctx *c, lt_tensor **slot, lt_tensor *grad) {
  if (*slot != NULL) return put(c, slot, sum(c, *slot, grad));
  /* A gradient that something else may still see or that has strides of its own is copied. */
  bool shared = grad->object.refs > 1 || atomic_load(&grad->storage->refs) > 1;
  if (!c->modes.grad && (shared || !grad->contiguous))
    grad = lt_apply1(c, LT_OP_clone, 1, &grad, &(lt_args_clone){.contiguous = true});
  return put(c, slot, grad);
}

bool lt_accumulate_grad(lt_ctx *c, lt_tensor *leaf, lt_tensor *grad) {
  lt_graph *captures = lt_graph_captures(c);
  if (captures != NULL && !lt_graph_note_leaf(c, captures, leaf, false)) return false;
  if (!accumulate(c, &leaf->grad, grad)) return false;
  lt_tensor_note_grad(c, leaf);
  return true;
}

/* Hooks see the gradient in the order of their registration, each what the one before returned.
   Those marked `after` run elsewhere (post_accumulate.c): they want the sum, not a contribution. */
static lt_tensor *run_hooks(lt_ctx *c, lt_hook *hooks, int output, lt_tensor *grad) {
  for (lt_hook *h = hooks; h != NULL && grad != NULL; h = h->next) {
    if (h->output != output || h->after) continue;
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

/* The gradient of a wanted leaf, or of a wanted output of a node. */
static bool capture(lt_ctx *c, lt_needed_nodes *w, const lt_object *target, int output,
                    lt_tensor *grad) {
  bool ok = true;
  for (int k = lt_needed_nodes_find(w, 0, target, output); k < w->n && ok;
       k = lt_needed_nodes_find(w, k + 1, target, output))
    ok = accumulate(c, &w->out[k], grad);
  return ok;
}

/* Hand the gradient of one input on: to a leaf, or to the node that made it. */
static bool deliver(lt_ctx *c, lt_walk *w, const lt_edge *e, lt_tensor *grad) {
  if (!lt_shape_equal(lt_tensor_shape(grad), e->shape))
    return lt_fail(c, LT_EINTERNAL, "backward: a gradient of %s for an input of %s",
                   LT_TENSOR_STR(grad), LT_SHAPE_STR(e->shape));
  grad = lt_cast(c, grad, e->dtype);
  if (grad == NULL) return false;
  if (e->leaf) {
    lt_tensor *leaf = (lt_tensor *)e->target;
    grad = run_hooks(c, leaf->hooks, 0, grad);
    if (grad == NULL) return false;
    if (w->wanted != NULL) return capture(c, w->wanted, e->target, 0, grad);
    return lt_accumulate_grad(c, leaf, grad) &&
           lt_post_accumulate_edge(c, &w->incomplete, leaf, true);
  }
  lt_node *n = (lt_node *)e->target;
  /* The number of the walk marks what it has met: nothing has to be cleared for the next one. */
  if (n->walk != w->id) {
    for (int k = 0; k < n->n_out; k++)
      if (n->grads[k] != NULL)
        return lt_fail(c, LT_EARG, "backward: called within a backward that is still running on %s",
                       lt_node_name(n));
    n->walk = w->id;
    if (!lt_node_heap_push(c, &w->heap, n)) return false;
  }
  lt_tensor **slot = &n->grads[e->output];
  return put(c, slot, *slot == NULL ? grad : sum(c, *slot, grad));
}

enum { FEW = 8 };

/* Whether the gradient of an input of a node is computed when the walk visits it. */
static bool wants(const lt_walk *w, const lt_node *n, int k) {
  if (w->is_later) return lt_deferred_input(n, k);
  return lt_needed_nodes_edge(w->wanted, &n->edges[k]) &&
         (w->later == NULL || !lt_deferred_input(n, k));
}

/* Run one node's vjp, unless nothing below it is wanted. Derivatives of inputs that nobody wants
   are not computed: of a first layer half its work. */
static bool run_vjp(lt_ctx *c, const lt_walk *w, lt_node *n, lt_tensor **in) {
  bool few[FEW], *need = n->n_in <= FEW ? few : lt_alloc(c, (size_t)n->n_in * sizeof *need);
  if (need == NULL) return false;
  bool ok = w->wanted != NULL || w->later != NULL;
  for (int k = 0; k < n->n_in; k++) {
    need[k] = wants(w, n, k);
    ok = ok && !need[k];
  }
  if (ok) {
    /* a wanted result itself and nothing before it, or parameters alone, which wait */
  } else if (n->op == LT_OP_COUNT) {
    ok = n->custom.fn(c, n->custom.ud, n->grads, in);
  } else {
    lt_vjp_call call = {.node = n, .args = n->args, .grad = n->grads, .need = need, .in = in};
    bool expand = c->modes.grad && lt_ops[n->op].expand != NULL; /* its derivative has one too */
    ok = (expand ? lt_vjp_by_expand : lt_vjps[n->op])(c, &call) && lt_ok(c);
  }
  if (need != few) lt_free(c, need, (size_t)n->n_in * sizeof *need);
  return ok;
}

/* The same; while anomalies are looked for, the operations inside are not a script's own. */
static bool differentiate(lt_ctx *c, const lt_walk *w, lt_node *n, lt_tensor **in) {
  if (c->modes.anomaly == LT_ANOMALY_OFF) return run_vjp(c, w, n, in);
  const char *outer = c->op;
  c->op = lt_node_name(n);
  bool ok = run_vjp(c, w, n, in);
  c->op = outer;
  return ok && lt_anomaly_backward(c, lt_node_name(n), n->line, n->n_out, n->grads, n->n_in, in);
}

/* Whether parameters of a node wait. */
static bool has_later(const lt_walk *w, const lt_node *n) {
  for (int k = 0; w->later != NULL && k < n->n_in; k++)
    if (lt_deferred_input(n, k)) return true;
  return false;
}

/* One node: hooks on what arrived, vjp, hand on. The frame frees everything it made. */
static bool visit(lt_ctx *c, lt_walk *w, lt_node *n) {
  lt_tensor *few[FEW] = {NULL};
  lt_tensor **in = n->n_in <= FEW ? few : lt_alloc(c, (size_t)n->n_in * sizeof *in);
  bool ok = in != NULL && (!n->always || lt_required_nodes_fill(c, n)), any = false;
  for (int k = 0; k < n->n_out && ok; k++) {
    if (n->grads[k] == NULL) continue;
    any = true;
    lt_tensor *g = run_hooks(c, n->hooks, k, n->grads[k]);
    ok = g == n->grads[k] || put(c, &n->grads[k], g);
    if (ok && w->wanted != NULL) ok = capture(c, w->wanted, &n->object, k, n->grads[k]);
  }
  ok = ok && (!any || differentiate(c, w, n, in));
  if (ok && any && has_later(w, n)) ok = lt_deferred_add(c, w->later, n);
  for (int k = 0; k < n->n_in && ok; k++) {
    const lt_edge *e = &n->edges[k];
    if (in[k] != NULL && lt_needed_nodes_edge(w->wanted, e))
      ok = deliver(c, w, e, in[k]);
    else if (e->leaf && e->target != NULL)
      ok = lt_post_accumulate_edge(c, &w->incomplete, (lt_tensor *)e->target, false);
  }
  if (in != few && in != NULL) lt_free(c, in, (size_t)n->n_in * sizeof *in);
  return ok;
}

static void clear_grads(lt_ctx *c, lt_node *n) {
  for (int k = 0; k < n->n_out; k++) {
    lt_release(c, n->grads[k]);
    n->grads[k] = NULL;
  }
}

static bool take(lt_ctx *c, lt_walk *w) {
  lt_node *n = lt_node_heap_pop(&w->heap);
  lt_frame frame = lt_frame_open(c);
  c->line = n->line;
  bool ok = visit(c, w, n);
  lt_frame_close(c, frame, 0, NULL);
  /* What forward had kept goes node by node, while the walk is under way: the peak of memory is
     that of forward's end. */
  if (ok && !has_later(w, n)) (w->keep ? lt_node_park : lt_node_forget)(c, n);
  clear_grads(c, n);
  lt_release(c, n);
  return ok;
}

/* The modes of a backward; returns those that were. */
static lt_modes set_modes(lt_ctx *c, const lt_walk *w) {
  lt_modes before = c->modes;
  c->modes.autocast = false;
  c->modes.grad = w->create_graph;
  return before;
}

bool lt_walk_on(lt_ctx *c, lt_walk *w, bool (*due)(void *ud), void *ud) {
  lt_modes before = set_modes(c, w);
  uint32_t line = c->line;
  bool ok = lt_ok(c);
  while (ok && w->heap.count > 0) {
    ok = take(c, w);
    if (due != NULL && due(ud)) break;
  }
  if (ok && w->heap.count == 0) ok = lt_post_accumulate_end(c, &w->incomplete, true);
  c->line = line;
  lt_modes_restore(&c->modes, before); /* hooks of the script have run */
  return ok && w->heap.count > 0;
}

/* What was not visited has no gradient of this walk. */
static bool finish(lt_ctx *c, lt_walk *w) {
  while (w->heap.count > 0) {
    lt_node *n = lt_node_heap_pop(&w->heap);
    clear_grads(c, n);
    lt_release(c, n);
  }
  lt_node_list_free(c, &w->heap);
  lt_post_accumulate_end(c, &w->incomplete, false);
  for (int k = 0; w->wanted != NULL && k < w->own.n; k++) /* now the caller's frame holds them */
    if (w->own.out[k] != NULL && !lt_frame_add(c, w->own.out[k])) w->own.out[k] = NULL;
  return lt_ok(c);
}

/* The nodes that this walk visits in any case. */
static bool push_always(lt_ctx *c, lt_walk *w) {
  bool ok = true;
  while (lt_required_nodes_count(c) > 0) {
    lt_node *n = lt_required_nodes_take(c);
    if (ok && !n->used && n->walk != w->id) {
      n->walk = w->id;
      ok = lt_node_heap_push(c, &w->heap, n);
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

/* The gradient of a root goes where the root came from. */
static bool start(lt_ctx *c, lt_walk *w, lt_tensor *root, lt_tensor *gradient) {
  lt_tensor *seed = seed_of(c, root, gradient);
  lt_edge e = lt_edge_to(root);
  bool ok = seed != NULL && (!lt_needed_nodes_edge(w->wanted, &e) || deliver(c, w, &e, seed));
  lt_release(c, e.target);
  return ok;
}

/* A root that is a view takes the history of its base as it is now. */
static bool check_root(lt_ctx *c, lt_tensor *root) {
  const char *op = c->op;
  bool grad = c->modes.grad;
  c->op = "backward", c->modes.grad = true;
  bool fresh = lt_check_view(c, root);
  c->op = op, c->modes.grad = grad;
  if (!fresh) return false;
  if (lt_requires_grad(root)) return true;
  if (!grad)
    return lt_fail(c, LT_EARG,
                   "backward: this tensor has no history: gradients are off here; after `local _ "
                   "<close> = lt.no_grad()` they are until the block ends");
  return lt_fail(c, LT_EARG,
                 "backward: this tensor has no history (made under no_grad, detached, or from "
                 "tensors that do not require grad)");
}

/* Note where the walk goes first. Check the options, give the walk its number, and queue the nodes
   of the roots. The number comes from a counter of 64 bits in the ctx, shared with the searches of
   needed_nodes.c and post_accumulate.c: it never repeats, so marks of earlier walks are stale by
   themselves. */
static bool begin(lt_ctx *c, lt_walk *w, int n_root, lt_tensor *const *root, lt_tensor *const *seed,
                  const lt_backward_options *options) {
  w->create_graph = options->create_graph;
  w->later = options->later;
  w->keep = options->retain_graph || options->create_graph;
  w->id = ++c->walks;
  lt_modes before = set_modes(c, w);
  lt_frame frame = lt_frame_open(c);
  bool ok =
      w->wanted != NULL ||
      (push_always(c, w) && lt_post_accumulate_begin(c, &w->incomplete, &w->heap, n_root, root));
  for (int k = 0; k < n_root && ok; k++) ok = start(c, w, root[k], seed[k]);
  lt_frame_close(c, frame, 0, NULL);
  c->modes = before;
  return ok;
}

static bool begin_backward(lt_ctx *c, lt_walk *w, lt_tensor *root,
                           const lt_backward_options *options) {
  if (!lt_ok(c) || (root != NULL && !check_root(c, root))) return false;
  return begin(c, w, root != NULL, &root, &options->seed, options);
}

static bool begin_grad(lt_ctx *c, lt_walk *w, int n_root, lt_tensor *const *root,
                       lt_tensor *const *seed, int n_in, lt_tensor *const *in,
                       const lt_backward_options *options, lt_tensor **out) {
  for (int k = 0; k < n_in; k++) out[k] = NULL;
  bool ok = lt_ok(c);
  for (int k = 0; k < n_root && ok; k++) ok = check_root(c, root[k]);
  if (!ok) return false;
  w->own = (lt_needed_nodes){.n = n_in, .in = in, .out = out};
  w->wanted = &w->own;
  return lt_needed_nodes_mark(c, w->wanted, n_root, root) &&
         begin(c, w, n_root, root, seed, options);
}

bool lt_backward(lt_ctx *c, lt_tensor *root, const lt_backward_options *options) {
  lt_walk w = {0};
  if (begin_backward(c, &w, root, options)) lt_walk_on(c, &w, NULL, NULL);
  return finish(c, &w);
}

/* The gradients of a node's parameters, which waited. */
static bool take_later(lt_ctx *c, lt_walk *w, lt_deferred_node *one) {
  lt_node *n = lt_retain(one->node);
  for (int k = 0; k < n->n_out; k++)
    n->grads[k] = one->grads[k] != NULL ? lt_retain(one->grads[k]) : NULL;
  lt_deferred_node_drop(c, one);
  lt_frame frame = lt_frame_open(c);
  c->line = n->line;
  lt_tensor *few[FEW] = {NULL};
  lt_tensor **in = n->n_in <= FEW ? few : lt_alloc(c, (size_t)n->n_in * sizeof *in);
  bool ok = in != NULL && differentiate(c, w, n, in);
  for (int k = 0; k < n->n_in && ok; k++)
    if (in[k] != NULL && wants(w, n, k)) ok = deliver(c, w, &n->edges[k], in[k]);
  if (in != few && in != NULL) lt_free(c, in, (size_t)n->n_in * sizeof *in);
  lt_frame_close(c, frame, 0, NULL);
  if (ok) lt_node_forget(c, n);
  clear_grads(c, n);
  lt_release(c, n);
  return ok;
}

/* Nodes that only lead to parameters, views and casts of them, are visited after all others. */
bool lt_deferred_run(lt_ctx *c, lt_deferred *d) {
  lt_walk w = {.id = ++c->walks, .is_later = true};
  lt_modes before = set_modes(c, &w);
  uint32_t line = c->line;
  bool ok = lt_ok(c);
  for (int64_t k = 0; k < d->count && ok; k++) ok = take_later(c, &w, &d->list[k]);
  if (ok) d->count = 0;
  c->line = line;
  lt_modes_restore(&c->modes, before);
  w.is_later = false;
  if (ok) lt_walk_on(c, &w, NULL, NULL);
  return finish(c, &w);
}

bool lt_grad(lt_ctx *c, int n_root, lt_tensor *const *root, lt_tensor *const *seed, int n_in,
             lt_tensor *const *in, const lt_backward_options *options, lt_tensor **out) {
  lt_walk w = {0};
  if (begin_grad(c, &w, n_root, root, seed, n_in, in, options, out)) lt_walk_on(c, &w, NULL, NULL);
  return finish(c, &w);
}

static lt_walk *new_walk(lt_ctx *c) {
  lt_walk *w = lt_alloc(c, sizeof *w);
  if (w != NULL) *w = (lt_walk){0};
  return w;
}

lt_walk *lt_walk_backward(lt_ctx *c, lt_tensor *root, const lt_backward_options *options) {
  lt_walk *w = new_walk(c);
  if (w != NULL) begin_backward(c, w, root, options);
  return w;
}

lt_walk *lt_walk_grad(lt_ctx *c, int n_root, lt_tensor *const *root, lt_tensor *const *seed,
                      int n_in, lt_tensor *const *in, const lt_backward_options *options,
                      lt_tensor **out) {
  lt_walk *w = new_walk(c);
  if (w != NULL) begin_grad(c, w, n_root, root, seed, n_in, in, options, out);
  return w;
}

bool lt_walk_end(lt_ctx *c, lt_walk *w) {
  if (w == NULL) return false;
  bool ok = finish(c, w);
  lt_free(c, w, sizeof *w);
  return ok;
}
