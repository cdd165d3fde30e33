/* runtime/cpu/cross_entropy.c: softmax and negative log likelihood in one, and the derivative.

   N rows of C classes; dims after the class dim count as rows, which are brought together first.
   The forward pass keeps the largest logit m of each row and the sum of exp(x - m), so the backward
   pass reads x once.

   Label smoothing: C. Szegedy and others, Rethinking the Inception Architecture, 2016. The
   gradient needs softmax and targets only, so that probabilities are never stored.

   One op instead of log_softmax and nll_loss: it reads the logits once in each direction, and for a
   language model they are the largest tensor of all, [B T, V]. */
#include <math.h>
#include <string.h>

#include "cpu/lanes.h"
#include "ops/math/f32.h"
#include "ops/math/f64.h"
#include "cpu/scratch.h"

typedef struct job {
  bool wide; /* f64 */
  int64_t n, classes, rows /* a chunk */;
  const void *x, *weight; /* weight may be NULL */
  const int64_t *ids;     /* either ids */
  const void *shares;     /* or probabilities [N, C] */
  int64_t ignore_index;
  double smoothing;
  double spread; /* smoothing / C times the sum of the weights */
  void *stats;    /* [2, n]: the largest of each row, then the sums of exp(x - largest) */
  double *loss;       /* forward: of each row */
  const double *grad; /* backward: of each row or of the one loss */
  bool each_row;
  double scale; /* what grad is multiplied with */
  void *out;
} job;

static bool ignored(const job *j, int64_t r) {
  return j->ids != NULL && j->ids[r] == j->ignore_index;
}

#define TYPE_FILE "cpu/cross_entropy_type.h"
#include "cpu/float_types.h"

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * j->rows, to = from + j->rows < j->n ? from + j->rows : j->n;
  if (j->out == NULL)
    (j->wide ? forward_f64 : forward_f32)(j, from, to);
  else
    (j->wide ? backward_f64 : backward_f32)(j, from, to);
}

/* A view of [N, C, ...] as [N, ..., C]; lives on the caller's stack. */
static lt_tensor classes_last(const lt_tensor *t) {
  lt_tensor v = *t;
  int64_t size[LT_MAX_DIMS], stride[LT_MAX_DIMS];
  int at = 0;
  for (int k = 0; k < t->ndim; k++)
    if (k != 1) size[at] = t->size[k], stride[at++] = t->stride[k];
  if (t->ndim > 1) size[at] = t->size[1], stride[at] = t->stride[1];
  lt_tensor_set_shape(&v, t->ndim, size, stride);
  return v;
}

/* Values of a tensor, in the compute type, classes last; NULL on failure. */
static const void *rows_of(lt_ctx *c, lt_tensor *t, lt_dtype dtype) {
  lt_tensor *v = lt_cpu_contiguous(c, t, dtype);
  return v != NULL ? lt_data(v) : NULL;
}

static bool check_ids(lt_ctx *c, const job *j) {
  for (int64_t r = 0; r < j->n; r++)
    if (!ignored(j, r) && (j->ids[r] < 0 || j->ids[r] >= j->classes))
      return lt_fail_value(
          c, j->ids[r], j->classes,
          "cross_entropy: targets are ids 0..%lld; got %lld with C = %lld (row %lld)",
          (long long)j->classes - 1, (long long)j->ids[r], (long long)j->classes, (long long)r + 1);
  return true;
}

/* What forward and backward share. The views must outlive the job. Losses of images have the class
   dim second, [N, C, H, W]; loops want it last. A copy is made only where it is not. */
static bool prepare(lt_ctx *c, job *j, lt_tensor *x, lt_tensor *target, lt_tensor *weight,
                    lt_tensor views[2], const lt_args_cross_entropy *a) {
  lt_dtype dtype = x->dtype == LT_F64 ? LT_F64 : LT_F32;
  bool shares = lt_dtype_is_float((lt_dtype)target->dtype);
  j->wide = dtype == LT_F64;
  j->classes = x->size[x->ndim > 1 ? 1 : 0];
  if (j->classes == 0)
    return lt_fail(c, LT_ESHAPE, "cross_entropy: there are no classes: logits of %s",
                   LT_TENSOR_STR(x));
  j->n = x->numel / j->classes;
  j->rows = j->classes < LT_CHUNK / 4 ? LT_CHUNK / 4 / j->classes : 1;
  j->ignore_index = a->ignore_index;
  j->smoothing = a->label_smoothing;
  views[0] = classes_last(x);
  views[1] = shares ? classes_last(target) : *target;
  j->x = rows_of(c, &views[0], dtype);
  if (shares)
    j->shares = rows_of(c, &views[1], dtype);
  else
    j->ids = rows_of(c, &views[1], LT_I64);
  if (weight != NULL) j->weight = rows_of(c, weight, dtype);
  if (!lt_ok(c) || (!shares && !check_ids(c, j))) return false;
  double sum = weight == NULL ? (double)j->classes : 0;
  for (int64_t i = 0; i < j->classes && weight != NULL; i++)
    sum += j->wide ? ((const double *)j->weight)[i] : (double)((const float *)j->weight)[i];
  j->spread = j->smoothing * sum / (double)j->classes;
  return true;
}

/* What a mean divides by: the weights of the targets; with probabilities the number of rows. */
static double total_weight(const job *j) {
  if (j->ids == NULL) return (double)j->n;
  double total = 0;
  for (int64_t r = 0; r < j->n; r++) {
    if (ignored(j, r)) continue;
    double w = 1;
    if (j->weight != NULL)
      w = j->wide ? ((const double *)j->weight)[j->ids[r]]
                  : (double)((const float *)j->weight)[j->ids[r]];
    total += w;
  }
  return total;
}

/* A frame-owned f64 tensor over scratch, moved into `out`. */
static bool put(lt_ctx *c, lt_tensor *out, const double *values) {
  lt_tensor *t = lt_cpu_result(c, out, LT_F64, NULL);
  if (t == NULL) return false;
  memcpy(lt_data(t), values, (size_t)t->numel * sizeof *values);
  return t == out || lt_cpu_move(c, out, t);
}

/* (x, target, weight) to (loss, stats, total). */
LT_KERNEL(cross_entropy) {
  const lt_args_cross_entropy *a = call->args;
  lt_frame frame = lt_frame_open(c);
  lt_tensor views[2];
  job j = {.stats = lt_data(call->out[1])};
  bool ok = prepare(c, &j, call->in[0], call->in[1], call->n_in > 2 ? call->in[2] : NULL, views, a);
  ok = ok && (j.loss = lt_cpu_scratch(c, LT_F64, j.n + 1)) != NULL;
  if (ok) {
    lt_parallel(c, (j.n + j.rows - 1) / j.rows, run_chunk, &j);
    /* Losses are added after the parallel part, in the order of the rows: one result on any number
       of threads. */
    double total = a->reduction == LT_REDUCTION_mean ? total_weight(&j) : 1, sum = 0;
    for (int64_t r = 0; r < j.n; r++) sum += j.loss[r];
    sum /= total;
    ok = put(c, call->out[2], &total) &&
         put(c, call->out[0], a->reduction == LT_REDUCTION_none ? j.loss : &sum);
  }
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

/* (gradient of the loss, x, target, stats, total, weight) to the gradient of x. */
LT_KERNEL(cross_entropy_backward) {
  lt_args_cross_entropy a;
  memcpy(&a, call->args, sizeof a); /* the kinds have the same arguments */
  lt_tensor *y = call->out[0];
  if (y->numel == 0) return true;
  lt_frame frame = lt_frame_open(c);
  lt_tensor views[2], out = classes_last(y);
  job j = {0};
  bool ok =
      prepare(c, &j, call->in[1], call->in[2], call->n_in > 5 ? call->in[5] : NULL, views, &a);
  lt_tensor *to = lt_cpu_result(c, &out, j.wide ? LT_F64 : LT_F32, NULL);
  lt_tensor *total = lt_cpu_contiguous(c, call->in[4], LT_F64);
  j.grad = rows_of(c, call->in[0], LT_F64);
  if (ok && to != NULL && total != NULL && j.grad != NULL) {
    j.stats = lt_data(call->in[3]);
    j.each_row = a.reduction == LT_REDUCTION_none;
    j.scale = 1 / *(const double *)lt_data(total);
    j.out = lt_data(to);
    lt_parallel(c, (j.n + j.rows - 1) / j.rows, run_chunk, &j);
    ok = to == &out || lt_cpu_move(c, &out, to);
  }
  lt_frame_close(c, frame, 0, NULL);
  return ok && lt_ok(c);
}
