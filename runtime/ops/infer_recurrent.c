/* runtime/ops/infer_recurrent.c: shapes of recurrent layers. */
#include "ops/infer.h"
#include "ops/node.h"
#include "ops/recurrent.h"

static const char *const names[] = {"x",  "weight_ih", "weight_hh", "bias_ih", "bias_hh",
                                    "h0", "c0",        "weight_hr", "lengths"};

static lt_tensor *input(const lt_infer *i, int k) { return k < i->n_in ? i->in[k] : NULL; }

/* The gates of one layer are the rows of one matrix: [G H, I], so that a step is one product. */
static bool check_weights(lt_ctx *c, const lt_infer *i, int64_t gates) {
  const lt_tensor *x = i->in[LT_REC_X], *w = i->in[LT_REC_W_IH], *v = i->in[LT_REC_W_HH];
  const char *op = i->op->name;
  if (x->ndim != 3 || x->size[0] == 0)
    return lt_fail(c, LT_ESHAPE, "%s: needs x [T, N, I] of at least one step, got %s", op,
                   LT_TENSOR_STR(x));
  if (w->ndim != 2 || v->ndim != 2 || w->size[0] != v->size[0] || w->size[0] % gates != 0 ||
      w->size[0] == 0 || v->size[1] == 0)
    return lt_fail(c, LT_ESHAPE, "%s: needs weight_ih [%lld H, I] and weight_hh [%lld H, P], got "
                   "%s and %s", op, (long long)gates, (long long)gates, LT_TENSOR_STR(w),
                   LT_TENSOR_STR(v));
  if (x->size[2] != w->size[1])
    return lt_fail(c, LT_ESHAPE, "%s: x %s has %lld features, weight_ih %s takes %lld", op,
                   LT_TENSOR_STR(x), (long long)x->size[2], LT_TENSOR_STR(w),
                   (long long)w->size[1]);
  return true;
}

/* An optional input has this shape, if it is there. */
static bool check_shape(lt_ctx *c, const lt_infer *i, int k, lt_shape want) {
  const lt_tensor *t = input(i, k);
  if (t == NULL || lt_shape_equal(lt_tensor_shape(t), want)) return true;
  return lt_fail(c, LT_ESHAPE, "%s: %s must be %s for x %s and weight_hh %s: got %s", i->op->name,
                 names[k], LT_SHAPE_STR(want), LT_TENSOR_STR(i->in[LT_REC_X]),
                 LT_TENSOR_STR(i->in[LT_REC_W_HH]), LT_TENSOR_STR(t));
}

static bool check_others(lt_ctx *c, const lt_infer *i, const lt_recurrent *r) {
  lt_shape bias = lt_shape_of(1, (int64_t[]){r->gates * r->h});
  const lt_tensor *lengths = input(i, LT_REC_LENGTHS);
  for (int k = LT_REC_C0; k <= LT_REC_W_HR; k++)
    if (r->cell != LT_CELL_LSTM && input(i, k) != NULL)
      return lt_fail(c, LT_EARG, "%s: takes no %s", i->op->name, names[k]);
  if (r->p != r->h && !r->projected)
    return lt_fail(c, LT_ESHAPE, "%s: weight_hh %s of %lld units needs a weight_hr to %lld outputs",
                   i->op->name, LT_TENSOR_STR(i->in[LT_REC_W_HH]), (long long)r->h,
                   (long long)r->p);
  if (lengths != NULL && lengths->dtype != LT_I64)
    return lt_fail(c, LT_EDTYPE, "%s: lengths must be i64: got %s", i->op->name,
                   lt_dtype_name((lt_dtype)lengths->dtype));
  return check_shape(c, i, LT_REC_B_IH, bias) && check_shape(c, i, LT_REC_B_HH, bias) &&
         check_shape(c, i, LT_REC_H0, lt_shape_of(2, (int64_t[]){r->n, r->p})) &&
         check_shape(c, i, LT_REC_C0, lt_shape_of(2, (int64_t[]){r->n, r->h})) &&
         check_shape(c, i, LT_REC_W_HR, lt_shape_of(2, (int64_t[]){r->p, r->h})) &&
         check_shape(c, i, LT_REC_LENGTHS, lt_shape_of(1, &r->n));
}

/* What backward reads is saved only where a backward can come. T N (4 H + H) numbers of an LSTM:
   several times y, and nothing under no_grad. */
bool lt_infer_recurrent(lt_ctx *c, lt_infer *i) {
  int op = (int)(i->op - lt_ops);
  lt_cell cell = lt_cell_of(op);
  if (!lt_infer_float(c, i, LT_REC_X) ||
      !check_weights(c, i, cell == LT_CELL_LSTM ? 4 : cell == LT_CELL_GRU ? 3 : 1))
    return false;
  const lt_tensor *x = i->in[LT_REC_X];
  lt_recurrent r = lt_recurrent_of(op, x->size, i->in[LT_REC_W_HH]->size,
                                   input(i, LT_REC_W_HR) != NULL);
  if (!check_others(c, i, &r)) return false;
  int64_t saved = lt_recording(c, i->n_in, i->in) ? lt_recurrent_saved(&r) : 0;
  lt_dtype dtype = (lt_dtype)x->dtype;
  lt_shape cells = lt_shape_of(2, (int64_t[]){r.n, r.h});
  i->out[LT_REC_Y] = (lt_meta){.shape = lt_shape_of(3, (int64_t[]){r.t, r.n, r.p}), .dtype = dtype};
  i->out[LT_REC_H] = (lt_meta){.shape = lt_shape_of(2, (int64_t[]){r.n, r.p}), .dtype = dtype};
  i->out[LT_REC_C] = (lt_meta){
      .shape = cell == LT_CELL_LSTM ? cells : lt_shape_of(1, (int64_t[]){0}), .dtype = dtype};
  i->out[LT_REC_SAVED] =
      (lt_meta){.shape = lt_shape_of(1, &saved), .dtype = dtype == LT_F64 ? LT_F64 : LT_F32};
  return true;
}

bool lt_infer_recurrent_backward(lt_ctx *c, lt_infer *i) {
  const lt_tensor *y = i->in[LT_RECB_Y];
  lt_recurrent r = lt_recurrent_of((int)(i->op - lt_ops), y->size, i->in[LT_RECB_W_HH]->size,
                                   input(i, LT_RECB_W_HR) != NULL);
  lt_dtype dtype = i->in[LT_RECB_SAVED]->dtype == LT_F64 ? LT_F64 : LT_F32;
  lt_shape none = lt_shape_of(1, (int64_t[]){0}), gates = lt_tensor_shape(y), more = none;
  gates.size[2] = r.gates * r.h;
  if (r.projected) more = lt_tensor_shape(y);
  if (r.cell == LT_CELL_GRU) more = gates;
  i->out[LT_RECB_GATES] = (lt_meta){.shape = gates, .dtype = dtype};
  i->out[LT_RECB_H0] = (lt_meta){.shape = lt_shape_of(2, &y->size[1]), .dtype = dtype};
  i->out[LT_RECB_C0] = (lt_meta){
      .shape = r.cell == LT_CELL_LSTM ? lt_shape_of(2, (int64_t[]){r.n, r.h}) : none,
      .dtype = dtype};
  i->out[LT_RECB_MORE] = (lt_meta){.shape = more, .dtype = dtype};
  return lt_ok(c);
}
