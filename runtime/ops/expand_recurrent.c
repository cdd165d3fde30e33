/* runtime/ops/expand_recurrent.c: recurrent layers written as other ops, step by step.

   A step is one product of [N, P] with [P, G H] and a few elementwise ops; the products of x with
   its weights are one for all steps. The formulas are those of torch.nn.LSTM, GRU and RNN: S.
   Hochreiter and J. Schmidhuber, Long Short-Term Memory, 1997 (with F. Gers' forget gate, 2000); K.
   Cho and others, 2014. */
#include "ops/expand.h"
#include "ops/recurrent.h"

typedef struct layer {
  lt_recurrent r;
  int64_t nonlinearity;
  lt_tensor *gates, *w_hh, *b_hh, *w_hr, *lengths; /* gates: of x, for all steps */
} layer;

static lt_tensor *wide_input(lt_ctx *c, const lt_call *call, int k) {
  return lt_wide(c, k < call->n_in ? call->in[k] : NULL);
}

static lt_tensor *linear(lt_ctx *c, lt_tensor *x, lt_tensor *weight, lt_tensor *bias) {
  return lt_apply1(c, LT_OP_linear, LT_IN(x, weight, bias), NULL);
}

/* Gate `k` of [N, G H]. */
static lt_tensor *gate(lt_ctx *c, const layer *l, lt_tensor *all, int k) {
  return lt_slice(c, all, 1, k * l->r.h, l->r.h, 1);
}

static lt_tensor *sigmoid(lt_ctx *c, lt_tensor *x) { return lt_unary(c, LT_OP_sigmoid, x); }
static lt_tensor *tanh_of(lt_ctx *c, lt_tensor *x) { return lt_unary(c, LT_OP_tanh, x); }

/* c' = f c + i g, h' = o tanh(c'), projected if w_hr is there (H. Sak and others, 2014). */
static lt_tensor *lstm_step(lt_ctx *c, const layer *l, lt_tensor *x, lt_tensor *z,
                            lt_tensor **cell) {
  lt_tensor *a = lt_add(c, x, z);
  lt_tensor *i = sigmoid(c, gate(c, l, a, 0)), *f = sigmoid(c, gate(c, l, a, 1));
  lt_tensor *g = tanh_of(c, gate(c, l, a, 2)), *o = sigmoid(c, gate(c, l, a, 3));
  *cell = lt_add(c, lt_mul(c, f, *cell), lt_mul(c, i, g));
  lt_tensor *h = lt_mul(c, o, tanh_of(c, *cell));
  return l->w_hr != NULL ? linear(c, h, l->w_hr, NULL) : h;
}

/* h' = n + u (h - n), that is (1 - u) n + u h. The reset gate multiplies what the weights made of
   h, bias included (PyTorch's and cuDNN's variant; Cho's multiplies h before). */
static lt_tensor *gru_step(lt_ctx *c, const layer *l, lt_tensor *x, lt_tensor *z, lt_tensor *h) {
  lt_tensor *r = sigmoid(c, lt_add(c, gate(c, l, x, 0), gate(c, l, z, 0)));
  lt_tensor *u = sigmoid(c, lt_add(c, gate(c, l, x, 1), gate(c, l, z, 1)));
  lt_tensor *n = tanh_of(c, lt_add(c, gate(c, l, x, 2), lt_mul(c, r, gate(c, l, z, 2))));
  return lt_add(c, n, lt_mul(c, u, lt_sub(c, h, n)));
}

/* One step: *h and *cell become those after it; gives y. Sequences that have ended (t >= length)
   keep their states, and y is 0 there, as after PyTorch's pad_packed_sequence. */
static lt_tensor *step(lt_ctx *c, const layer *l, int64_t t, lt_tensor **h, lt_tensor **cell) {
  lt_tensor *x = lt_select(c, l->gates, 0, t), *z = linear(c, *h, l->w_hh, l->b_hh);
  lt_tensor *next, *next_cell = *cell;
  if (l->r.cell == LT_CELL_LSTM)
    next = lstm_step(c, l, x, z, &next_cell);
  else if (l->r.cell == LT_CELL_GRU)
    next = gru_step(c, l, x, z, *h);
  else
    next = lt_unary(c, l->nonlinearity == LT_NONLINEARITY_tanh ? LT_OP_tanh : LT_OP_relu,
                    lt_add(c, x, z));
  if (l->lengths == NULL) {
    *h = next, *cell = next_cell;
    return next;
  }
  lt_tensor *active = lt_binary_scalar(c, LT_OP_gt, l->lengths, lt_scalar_int(t));
  *h = lt_chosen(c, active, next, *h);
  if (l->r.cell == LT_CELL_LSTM) *cell = lt_chosen(c, active, next_cell, *cell);
  if (!lt_ok(c)) return NULL;
  return lt_filled(c, next, lt_unary(c, LT_OP_logical_not, active), 0);
}

static lt_tensor *zeros(lt_ctx *c, int ndim, const int64_t *size, const lt_tensor *like) {
  return lt_full(c, lt_shape_of(ndim, size), lt_scalar_of(0), (lt_dtype)like->dtype,
                 like->storage->device);
}

/* y is stored at its own time step whatever the direction: the reverse layer of a bidirectional one
   needs no flip. The array is of pointers; the tensors belong to the frame. */
static bool run_steps(lt_ctx *c, const layer *l, bool reverse, lt_tensor *h, lt_tensor *cell,
                      lt_tensor **out) {
  int64_t n = l->r.t;
  lt_tensor **y = lt_alloc(c, (size_t)n * sizeof *y);
  if (y == NULL) return false;
  for (int64_t k = 0; k < n && lt_ok(c); k++) {
    int64_t t = reverse ? n - 1 - k : k;
    y[t] = step(c, l, t, &h, &cell);
  }
  if (lt_ok(c)) out[LT_REC_Y] = lt_apply1(c, LT_OP_stack, (int)n, y, NULL);
  lt_free(c, y, (size_t)n * sizeof *y);
  out[LT_REC_H] = h, out[LT_REC_C] = cell;
  return lt_ok(c);
}

/* Halves are computed in f32 through all steps: the state is rounded once, at the end. LT_REC_SAVED
   is what a kernel keeps for backward: nothing here, where the tape keeps the parts. */
static bool expand(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_recurrent *a = call->args;
  lt_dtype dtype = (lt_dtype)call->in[LT_REC_X]->dtype;
  lt_tensor *x = wide_input(c, call, LT_REC_X), *w_ih = wide_input(c, call, LT_REC_W_IH);
  layer l = {.nonlinearity = a->nonlinearity,
             .w_hh = wide_input(c, call, LT_REC_W_HH),
             .b_hh = wide_input(c, call, LT_REC_B_HH),
             .w_hr = wide_input(c, call, LT_REC_W_HR),
             .lengths = call->n_in > LT_REC_LENGTHS ? call->in[LT_REC_LENGTHS] : NULL};
  lt_tensor *h = wide_input(c, call, LT_REC_H0), *cell = wide_input(c, call, LT_REC_C0);
  if (!lt_ok(c)) return false;
  l.r = lt_recurrent_of(call->op, x->size, l.w_hh->size, l.w_hr != NULL);
  bool lstm = l.r.cell == LT_CELL_LSTM;
  if (h == NULL) h = zeros(c, 2, (int64_t[]){l.r.n, l.r.p}, x);
  if (cell == NULL && lstm) cell = zeros(c, 2, (int64_t[]){l.r.n, l.r.h}, x);
  if (l.lengths != NULL)
    l.lengths = lt_reshape(c, l.lengths, lt_shape_of(2, (int64_t[]){l.r.n, 1}));
  l.gates = linear(c, x, w_ih, wide_input(c, call, LT_REC_B_IH));
  if (!lt_ok(c) || !run_steps(c, &l, a->reverse, h, cell, out)) return false;
  if (!lstm) out[LT_REC_C] = zeros(c, 1, (int64_t[]){0}, x);
  out[LT_REC_SAVED] = zeros(c, 1, (int64_t[]){0}, x);
  for (int k = 0; k <= LT_REC_C; k++)
    if (lt_ok(c)) out[k] = lt_cast(c, out[k], dtype);
  return lt_ok(c);
}

bool lt_expand_lstm_layer(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return expand(c, call, out);
}
bool lt_expand_gru_layer(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return expand(c, call, out);
}
bool lt_expand_rnn_layer(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return expand(c, call, out);
}
