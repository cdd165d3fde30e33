/* runtime/ops/node.c: recording calls on the tape.

   A node is made after its call has succeeded; it takes several allocations, so that nothing is
   recorded unless an input asks for it. The tape is not a list: nodes point at what they came from,
   and are freed as the results that need them are (as in PyTorch). */
#include "ops/node.h"

#include <string.h>

#include "base/script_lines.h"
#include "ops/inplace.h"
#include "ops/recompute.h"

bool lt_recording(const lt_ctx *c, int n_in, lt_tensor *const *in) {
  if (!c->modes.grad) return false;
  for (int k = 0; k < n_in; k++)
    if (in[k] != NULL && lt_requires_grad(in[k])) return true;
  return false;
}

/* After a backward without retain_graph: the memory of activations goes back while the graph's
   shape stays for messages. */
void lt_node_forget(lt_ctx *c, lt_node *n) {
  n->used = true;
  for (int k = 0; k < n->n_saved; k++) lt_saved_free(c, &n->saved[k]);
}

/* What can be computed again is dropped after a backward with retain_graph: a second one runs the
   segment again. */
void lt_node_park(lt_ctx *c, lt_node *n) {
  for (int k = 0; k < n->n_saved; k++) {
    if (n->saved[k].again == NULL) continue;
    lt_storage_release(c, n->saved[k].storage);
    n->saved[k].storage = NULL;
  }
}

/* Inputs' nodes may die with this one: lt_release queues their drops (base/object.c), so that a
   chain of a million nodes does not recurse. */
static void drop(lt_ctx *c, lt_object *object) {
  lt_node *n = (lt_node *)object;
  lt_node_forget(c, n);
  for (int k = 0; n->edges != NULL && k < n->n_in; k++) lt_release(c, n->edges[k].target);
  if (n->grads != NULL)
    for (int k = 0; k < n->n_out; k++) lt_release(c, n->grads[k]);
  lt_hooks_drop(c, n->hooks);
  if (n->custom.drop != NULL) n->custom.drop(c, n->custom.ud);
  lt_free(c, n->edges, (size_t)n->n_in * sizeof *n->edges);
  if (n->saved != NULL) lt_free(c, n->saved, (size_t)n->capacity * sizeof *n->saved);
  lt_free(c, n->out, (size_t)n->n_out * sizeof *n->out);
  if (n->args != NULL) lt_free(c, n->args, lt_kinds[lt_ops[n->op].kind].args_size);
  lt_free(c, n->grads, (size_t)n->n_out * sizeof *n->grads);
  lt_free(c, n, sizeof *n);
}

/* In the open frame, so that a failure on the way frees it. `seq` orders the walk of backward: an
   input's node is always older, so nodes sorted by falling seq are in topological order. */
static lt_node *node_new(lt_ctx *c, lt_op op, int n_in, lt_tensor *const *in, int n_out,
                         lt_tensor *const *out) {
  lt_node *n = lt_alloc(c, sizeof *n);
  if (n == NULL) return NULL;
  n->object = (lt_object){.refs = 1, .drop = drop};
  if (!lt_frame_add(c, n)) return NULL;
  n->op = op;
  n->line = lt_ctx_line(c);
  n->seq = ++c->node_seq;
  n->n_in = n_in; /* before the parts: the drop frees each with its size */
  n->n_out = n_out;
  n->edges = lt_alloc(c, (size_t)n_in * sizeof *n->edges);
  n->out = lt_alloc(c, (size_t)n_out * sizeof *n->out);
  n->grads = lt_alloc(c, (size_t)n_out * sizeof(lt_tensor *));
  if (n->edges == NULL || n->out == NULL || n->grads == NULL) return NULL;
  for (int k = 0; k < n_in; k++)
    if (in[k] != NULL) n->edges[k] = lt_edge_to(in[k]);
  for (int k = 0; k < n_in; k++) /* no reference cycles: a leaf must not keep its own node alive */
    if (n->edges[k].leaf && in[k]->base != NULL) {
      lt_release(c, in[k]->base);
      in[k]->base = NULL;
    }
  for (int k = 0; k < n_out; k++)
    if (out[k] != NULL) lt_meta_of(&n->out[k], out[k]);
  n->device = n_out > 0 && out[0] != NULL ? out[0]->storage->device : LT_CPU_DEVICE;
  return n;
}

/* Exactly as many places as can be saved; lt_free needs the size again. */
static bool reserve(lt_ctx *c, lt_node *n, int count) {
  n->capacity = count;
  n->saved = lt_alloc(c, (size_t)count * sizeof *n->saved);
  return n->saved != NULL;
}

/* A leaf is never dropped: it is there all the same, and its version is watched. */
static bool save(lt_ctx *c, lt_node *n, int slot, const lt_tensor *t, bool requires_grad) {
  lt_saved *s = &n->saved[n->n_saved++];
  s->slot = slot;
  s->requires_grad = requires_grad;
  lt_saved_keep(s, t);
  if (c->modes.dropping == NULL && c->modes.filling == NULL) return true;
  return (requires_grad && n->edges[slot].leaf) || lt_recompute_note(c, s);
}

static bool wants_gradient(int k, lt_tensor *const *in) {
  return k >= 0 && in[k] != NULL && lt_requires_grad(in[k]);
}

/* Rows of two operands save by side: x * 3 needs neither operand for x's gradient, x * y needs y
   only if x wants one. Of a product with a constant that halves what is saved. */
uint32_t lt_saved_slots(const lt_op_info *op, lt_tensor *const *in, const void *args) {
  if (op->kind != LT_KIND_binary) return op->saves;
  const lt_args_binary *numbers = args;
  int a_is = numbers->a.kind != LT_NO_SCALAR ? -1 : 0; /* input index of a; -1: a number */
  int b_is = numbers->b.kind != LT_NO_SCALAR ? -1 : numbers->a.kind != LT_NO_SCALAR ? 0 : 1;
  uint32_t sides = 0, slots = 0;
  if (wants_gradient(a_is, in)) sides |= op->saves_side[0];
  if (wants_gradient(b_is, in)) sides |= op->saves_side[1];
  if ((sides & LT_SAVES_A) != 0 && a_is >= 0) slots |= 1u << a_is;
  if ((sides & LT_SAVES_B) != 0 && b_is >= 0) slots |= 1u << b_is;
  if ((sides & LT_SAVES_Y) != 0) slots |= 1u << 16;
  return slots;
}

/* The outputs take this node as their history, that of before an in-place write included: it has
   become the node's input. Integers have none. */
static void attach(lt_node *n, int n_out, lt_tensor *const *out, lt_ctx *c) {
  for (int k = 0; k < n_out; k++) {
    if (out[k] == NULL || !lt_dtype_is_float((lt_dtype)out[k]->dtype)) continue;
    lt_release(c, out[k]->node);
    out[k]->node = lt_retain(n);
    out[k]->output = k;
    out[k]->view_version = out[k]->storage->version;
  }
}

/* `values` are copies for inputs that the call overwrote. Where an input is saved as it was and
   shares memory with a result, its version is taken back by one: backward then fails, naming the
   writer, instead of using the new value. `recorded` is the version up to which the storage's
   contents have history; views are excepted, as they write nothing. */
bool lt_record(lt_ctx *c, const lt_call *call, const lt_op_info *op, lt_tensor *const *values) {
  lt_node *n = node_new(c, (lt_op)call->op, call->n_in, call->in, call->n_out, call->out);
  if (n == NULL) return false;
  if (call->args_size > 0) {
    n->args = lt_alloc(c, call->args_size);
    if (n->args == NULL) return false;
    memcpy(n->args, call->args, call->args_size);
  }
  uint32_t slots = lt_saved_slots(op, call->in, call->args);
  if (values == NULL) values = call->in;
  if (slots != 0) {
    if (!reserve(c, n, call->n_in + call->n_out)) return false;
    for (int k = 0; k < call->n_in && k < 16; k++)
      if ((slots >> k & 1) != 0 && call->in[k] != NULL &&
          !save(c, n, k, values[k], lt_requires_grad(call->in[k])))
        return false;
    for (int k = 0; k < call->n_out; k++)
      if ((slots >> (16 + k) & 1) != 0 && !save(c, n, LT_SLOT_OUT + k, call->out[k], false))
        return false;
    for (int j = 0; j < n->n_saved; j++) /* an input overwritten by this very call is gone */
      for (int k = 0; k < call->n_out && n->saved[j].slot < LT_SLOT_OUT; k++)
        if (call->out[k]->storage == n->saved[j].storage) n->saved[j].version--;
  }
  attach(n, call->n_out, call->out, c);
  if ((lt_kinds[op->kind].flags & LT_KIND_VIEW) == 0)
    for (int k = 0; k < call->n_out; k++)
      call->out[k]->storage->recorded = call->out[k]->storage->version;
  return true;
}

/* A node whose derivative is a function (collectives, lt.Function): `custom.ud` is owned from here
   on, also on failure. */
bool lt_record_custom(lt_ctx *c, int n_in, lt_tensor *const *in, int n_out, lt_tensor *const *out,
                      lt_custom custom) {
  lt_node *n = node_new(c, LT_OP_COUNT, n_in, in, n_out, out);
  if (n == NULL) {
    if (custom.drop != NULL) custom.drop(c, custom.ud);
    return false;
  }
  n->custom = custom;
  attach(n, n_out, out, c);
  return true;
}

bool lt_save_custom(lt_ctx *c, lt_node *n, int count, lt_tensor *const *value, const int *slot) {
  if (count == 0) return true;
  if (!reserve(c, n, count)) return false;
  for (int k = 0; k < count; k++) {
    bool input = slot[k] >= 0 && slot[k] < LT_SLOT_OUT;
    if (!save(c, n, slot[k], value[k], input && n->edges[slot[k]].target != NULL)) return false;
  }
  return true;
}

static lt_tensor *changed(lt_ctx *c, const lt_node *n, const lt_saved *s) {
  char made[128], wrote[128];
  lt_fail(c, LT_EVERSION,
          "backward of %s (%s): a value of shape %s that it saved was written in place since by %s "
          "at %s", lt_node_name(n), lt_line_text(c, n->line, made, sizeof made),
          LT_SHAPE_STR(lt_shape_of(s->ndim, s->size)),
          s->storage->writer != NULL ? s->storage->writer : "a writer",
          lt_line_text(c, s->storage->writer_line, wrote, sizeof wrote));
  return NULL;
}

/* What it was before: `t` is a new name for the memory. */
static lt_tensor *with_history(lt_ctx *c, lt_node *n, const lt_saved *s, lt_tensor *t) {
  if (s->slot >= LT_SLOT_OUT) {
    t->node = lt_retain(n);
    t->output = s->slot - LT_SLOT_OUT;
  } else if (s->requires_grad) {
    lt_edge *e = &n->edges[s->slot];
    if (e->leaf) {
      lt_tensor *leaf = (lt_tensor *)e->target;
      if (leaf->storage == s->storage) return lt_frame_add(c, lt_retain(leaf)) ? leaf : NULL;
    } else {
      t->node = lt_retain(e->target);
      t->output = e->output;
    }
  }
  t->view_version = t->storage->version;
  return t;
}

/* A saved value in the dtype of the input that it stands for. */
static lt_tensor *in_dtype_of_input(lt_ctx *c, const lt_node *n, const lt_saved *s, lt_tensor *t) {
  if (t == NULL || n->op == LT_OP_COUNT || s->slot < 0 || s->slot >= LT_SLOT_OUT) return t;
  bool grad = c->modes.grad;
  c->modes.grad = false;
  t = lt_cast(c, t, n->edges[s->slot].dtype);
  c->modes.grad = grad;
  return t;
}

/* Rebuilds a tensor for a saved value. Under create_graph it gets its history again, so that
   derivatives of derivatives see it; otherwise it is a bare view of the memory. */
lt_tensor *lt_saved_at(lt_ctx *c, lt_node *n, int k) {
  lt_saved *s = &n->saved[k];
  if (n->used) {
    lt_fail(c, LT_EVERSION, "backward of %s: its saved values were freed by an earlier backward; "
            "pass {retain_graph = true} to that one", lt_node_name(n));
    return NULL;
  }
  if (!lt_saved_load(c, s)) return NULL;
  if (s->version != s->storage->version) return changed(c, n, s);
  lt_tensor *t = lt_tensor_make(c, s->storage, s->dtype, s->ndim, s->size, s->stride, s->offset);
  t = in_dtype_of_input(c, n, s, t);
  return t == NULL || !c->modes.grad ? t : with_history(c, n, s, t);
}

lt_tensor *lt_saved_value(lt_ctx *c, lt_node *n, int slot) {
  for (int k = 0; k < n->n_saved; k++)
    if (n->saved[k].slot == slot) return lt_saved_at(c, n, k);
  return NULL;
}
