/* runtime/autograd/vjp_recurrent.c: the derivative of recurrent layers.

   The backward op walks the steps and gives the gradients of the gates; those of the weights and of
   x are one product each over all steps. */
#include "autograd/vjp.h"
#include "ops/expand.h"
#include "ops/recurrent.h"

static lt_tensor *product(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return a == NULL || b == NULL ? NULL : lt_apply1(c, LT_OP_matmul, LT_IN(a, b), NULL);
}

/* Steps from..from+n-1 of [T, N, C] as a matrix. */
static lt_tensor *rows(lt_ctx *c, lt_tensor *x, int64_t from, int64_t n) {
  if (x == NULL) return NULL;
  if (n < x->size[0]) x = lt_slice(c, x, 0, from, n, 1);
  if (x == NULL) return NULL;
  return lt_reshape(c, x, lt_shape_of(2, (int64_t[]){n * x->size[1], x->size[2]}));
}

/* a^T b. */
static lt_tensor *turned(lt_ctx *c, lt_tensor *a, lt_tensor *b) {
  return a == NULL ? NULL : product(c, lt_transpose(c, a, 0, 1), b);
}

/* Gradients of the gates [T, N, G H] at the first step of each sequence, [N, G H]. */
static lt_tensor *at_start(lt_ctx *c, lt_tensor *gates, bool reverse, lt_tensor *lengths) {
  int64_t t = gates->size[0], n = gates->size[1];
  if (!reverse || lengths == NULL) return lt_select(c, gates, 0, reverse ? t - 1 : 0);
  /* The last step, number length - 1; of an empty sequence any, whose gradient is 0. */
  const lt_args_clamp from_0 = {.min = lt_scalar_int(0)};
  lt_tensor *last = lt_binary_scalar(c, LT_OP_sub, lengths, lt_scalar_int(1));
  last = last != NULL ? lt_apply1(c, LT_OP_clamp, 1, &last, &from_0) : NULL;
  last = last != NULL ? lt_reshape(c, last, lt_shape_of(3, (int64_t[]){1, n, 1})) : NULL;
  if (last == NULL) return NULL;
  last = lt_expand_to(c, last, lt_shape_of(3, (int64_t[]){1, n, gates->size[2]}));
  gates = last != NULL ? lt_gather_along(c, gates, 0, last) : NULL;
  return gates != NULL ? lt_select(c, gates, 0, 0) : NULL;
}

/* Each step but the first meets the output of the step before, the first meets h0. One product over
   all steps instead of T small ones: gates and outputs are stored step by step, so the shift by one
   step is a slice, not a copy. */
static lt_tensor *weight_hh(lt_ctx *c, lt_tensor *gates, lt_tensor *y, lt_tensor *h0, bool reverse,
                            lt_tensor *lengths) {
  int64_t t = y->size[0];
  lt_tensor *sum = NULL;
  if (t > 1)
    sum = turned(c, rows(c, gates, reverse ? 0 : 1, t - 1), rows(c, y, reverse ? 1 : 0, t - 1));
  if (h0 != NULL && lt_ok(c)) {
    lt_tensor *first = turned(c, at_start(c, gates, reverse, lengths), h0);
    sum = sum == NULL ? first : lt_binary(c, LT_OP_add, sum, first);
  }
  if (sum != NULL || !lt_ok(c)) return sum;
  return lt_full(c, lt_shape_of(2, (int64_t[]){gates->size[2], y->size[2]}), lt_scalar_of(0),
                 (lt_dtype)gates->dtype, gates->storage->device);
}

/* The outputs before the projection, [T N, H], in what forward saved. */
static lt_tensor *hidden(lt_ctx *c, lt_tensor *saved, const lt_recurrent *r) {
  int64_t n = r->t * r->n * r->h;
  return lt_reshape(c, lt_slice(c, saved, 0, lt_recurrent_hidden(r), n, 1),
                    lt_shape_of(2, (int64_t[]){r->t * r->n, r->h}));
}

static lt_op backward_of(lt_op op) {
  if (op == LT_OP_lstm_layer) return LT_OP_lstm_layer_backward;
  return op == LT_OP_gru_layer ? LT_OP_gru_layer_backward : LT_OP_rnn_layer_backward;
}

static lt_tensor *saved_in(lt_ctx *c, lt_vjp_call *v, int k) {
  return k < v->node->n_in ? lt_saved_in(c, v, k) : NULL;
}

static bool needs(const lt_vjp_call *v, int k) { return k < v->node->n_in && v->need[k]; }

/* The gradient of each input that wants one, out of what the backward op made. In a GRU the part of
   h in the candidate gate is multiplied by r before it is added, so its gradients differ from those
   of x (LT_RECB_MORE); in the other cells both are the same, and the sum of the biases is
   shared. */
static void fill(lt_ctx *c, lt_vjp_call *v, const lt_recurrent *r, lt_tensor *const *made,
                 lt_tensor *y) {
  const lt_args_recurrent *a = v->args;
  int64_t t = r->t;
  lt_tensor *of_h = r->cell == LT_CELL_GRU ? made[LT_RECB_MORE] : made[LT_RECB_GATES];
  lt_tensor *all = rows(c, made[LT_RECB_GATES], 0, t);
  if (needs(v, LT_REC_X))
    v->in[LT_REC_X] = product(c, made[LT_RECB_GATES], saved_in(c, v, LT_REC_W_IH));
  if (needs(v, LT_REC_W_IH))
    v->in[LT_REC_W_IH] = turned(c, all, rows(c, saved_in(c, v, LT_REC_X), 0, t));
  if (needs(v, LT_REC_W_HH))
    v->in[LT_REC_W_HH] = weight_hh(c, of_h, y, saved_in(c, v, LT_REC_H0), a->reverse,
                                   saved_in(c, v, LT_REC_LENGTHS));
  if (needs(v, LT_REC_B_IH) && lt_ok(c)) v->in[LT_REC_B_IH] = lt_summed(c, all, 0, false);
  if (needs(v, LT_REC_B_HH) && lt_ok(c)) {
    bool same = of_h == made[LT_RECB_GATES] && v->in[LT_REC_B_IH] != NULL;
    v->in[LT_REC_B_HH] = same ? v->in[LT_REC_B_IH] : lt_summed(c, rows(c, of_h, 0, t), 0, false);
  }
  if (needs(v, LT_REC_H0)) v->in[LT_REC_H0] = made[LT_RECB_H0];
  if (needs(v, LT_REC_C0)) v->in[LT_REC_C0] = made[LT_RECB_C0];
  if (needs(v, LT_REC_W_HR) && lt_ok(c))
    v->in[LT_REC_W_HR] = turned(c, rows(c, made[LT_RECB_MORE], 0, t),
                                hidden(c, lt_saved_out(c, v, LT_REC_SAVED), r));
}

bool lt_vjp_recurrent(lt_ctx *c, lt_vjp_call *v) {
  const lt_args_recurrent *a = v->args;
  lt_op op = v->node->op;
  const lt_args_recurrent_backward args = {.reverse = a->reverse, .nonlinearity = a->nonlinearity};
  lt_tensor *y = lt_saved_out(c, v, LT_REC_Y), *saved = lt_saved_out(c, v, LT_REC_SAVED);
  lt_tensor *w_hh = lt_saved_in(c, v, LT_REC_W_HH), *w_hr = saved_in(c, v, LT_REC_W_HR);
  lt_tensor *state = saved_in(c, v, op == LT_OP_lstm_layer ? LT_REC_C0 : LT_REC_H0);
  lt_tensor *lengths = saved_in(c, v, LT_REC_LENGTHS), *made[LT_MAX_OUT] = {NULL};
  lt_tensor *in[LT_REC_INPUTS] = {y,     saved, w_hh, v->grad[LT_REC_Y], v->grad[LT_REC_H],
                                  v->grad[LT_REC_C], state, w_hr, lengths};
  if (!lt_ok(c) || !lt_apply(c, backward_of(op), LT_REC_INPUTS, in, &args, LT_MAX_OUT, made))
    return false;
  const lt_recurrent r = lt_recurrent_of((int)op, y->size, w_hh->size, w_hr != NULL);
  fill(c, v, &r, made, y);
  return lt_ok(c);
}
