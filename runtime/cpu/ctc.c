/* runtime/cpu/ctc.c: connectionist temporal classification (A. Graves and others, 2006), in
   logarithms and doubles. A sequence of states is a target with a blank before, between and behind
   its labels: L = 2 S + 1.

   alpha[t][s] is the log-probability of all alignments up to step t that end in state s, beta of
   those from t on that begin there. N sequences, T steps, C classes; a thread a sequence. */
#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "cpu/scratch.h"

typedef struct job {
  bool wide, zero_infinity;
  int64_t n, steps, classes, labels, blank; /* labels: S of the longest target */
  const void *x;                            /* [N, T, C] */
  const int64_t *targets, *step_counts, *label_counts; /* [N, S], [N], [N] */
  double *alpha;                            /* [N, T, 2 S + 1] */
  double *loss;                             /* forward: [N] */
  const double *grad;                       /* backward: [N] */
  double *scratch;                          /* backward: [N, 2 L + C] */
  void *out;                                /* backward: [N, T, C] */
} job;

static int64_t most_states(const job *j) { return 2 * j->labels + 1; }

static double x_at(const job *j, int64_t k, int64_t t, int64_t class) {
  int64_t i = (k * j->steps + t) * j->classes + class;
  return j->wide ? ((const double *)j->x)[i] : (double)((const float *)j->x)[i];
}

static int64_t label(const job *j, int64_t k, int64_t s) {
  return s % 2 == 0 ? j->blank : j->targets[k * j->labels + s / 2];
}

/* Whether an alignment may go from state s to s + 2, or from s + 2 back. Equal labels need a blank
   between them: without it they would be one. */
static bool skips(const job *j, int64_t k, int64_t s) {
  return s % 2 == 1 && label(j, k, s) != label(j, k, s + 2);
}

/* log(e^a + e^b). The larger one taken out: e^(least - most) cannot overflow, and log1p keeps what
   is small beside 1. Two -infinities would give NaN by their difference. */
static double join(double a, double b) {
  double most = a > b ? a : b, least = a > b ? b : a;
  return least == -INFINITY || most == INFINITY ? most : most + log1p(exp(least - most));
}

/* An alignment ends in the last label or in the blank behind it. */
static double loss_of(const job *j, int64_t k) {
  int64_t steps = j->step_counts[k], states = 2 * j->label_counts[k] + 1;
  if (steps == 0) return states == 1 ? 0 : INFINITY;
  const double *last = j->alpha + (k * j->steps + steps - 1) * most_states(j);
  return -(states > 1 ? join(last[states - 1], last[states - 2]) : last[0]);
}

/* alpha[t][s] = x[t][label s] + log of the sum of alpha[t - 1] of s, s - 1 and, where it may be
   skipped, s - 2 (Graves, equations 6 to 8). In logarithms, as products of T probabilities
   underflow. */
static void forward(void *ud, int64_t k) {
  const job *j = ud;
  int64_t states = 2 * j->label_counts[k] + 1, wide = most_states(j);
  double *a = j->alpha + k * j->steps * wide;
  for (int64_t i = 0; i < j->steps * wide; i++) a[i] = -INFINITY;
  for (int64_t t = 0; t < j->step_counts[k]; t++, a += wide)
    for (int64_t s = 0; s < states; s++) {
      double from = s < 2 ? 0 : -INFINITY;
      if (t > 0) {
        const double *before = a - wide;
        from = before[s];
        if (s > 0) from = join(from, before[s - 1]);
        if (s > 1 && skips(j, k, s - 2)) from = join(from, before[s - 2]);
      }
      a[s] = from + x_at(j, k, t, label(j, k, s));
    }
  j->loss[k] = loss_of(j, k);
}

/* beta of step t from that of the next one, NULL at the end. Backward keeps two rows of beta, as
   each needs only the next; alpha is all kept, by forward. */
static void step_back(const job *j, int64_t k, int64_t t, const double *next, double *beta) {
  int64_t states = 2 * j->label_counts[k] + 1;
  for (int64_t s = 0; s < states; s++) {
    double to = s >= states - 2 ? 0 : -INFINITY;
    if (next != NULL) {
      to = next[s];
      if (s + 1 < states) to = join(to, next[s + 1]);
      if (s + 2 < states && skips(j, k, s)) to = join(to, next[s + 2]);
    }
    beta[s] = to + x_at(j, k, t, label(j, k, s));
  }
}

/* e^x minus the share of the alignments that are in a state of the class: the derivative by what
   log_softmax was made of, as log_probs are. A class that no alignment goes through has -infinity:
   its derivative is e^x alone. */
static void put_row(const job *j, int64_t k, int64_t t, double loss, const double *share) {
  int64_t at = (k * j->steps + t) * j->classes;
  for (int64_t i = 0; i < j->classes; i++) {
    double x = x_at(j, k, t, i), g = exp(x);
    if (share[i] != -INFINITY || loss == INFINITY) g -= exp(share[i] + loss - x);
    g *= j->grad[k];
    if (j->wide)
      ((double *)j->out)[at + i] = g;
    else
      ((float *)j->out)[at + i] = (float)g;
  }
}

/* Each state's share of all alignments, alpha beta / y, is joined by class, as several states have
   the same label. */
static void backward(void *ud, int64_t k) {
  const job *j = ud;
  int64_t wide = most_states(j), states = 2 * j->label_counts[k] + 1;
  size_t item = j->wide ? 8 : 4, line = (size_t)(j->steps * j->classes) * item;
  double *next = j->scratch + k * (2 * wide + j->classes), *beta = next + wide,
         *share = beta + wide;
  double loss = loss_of(j, k);
  memset((char *)j->out + (size_t)k * line, 0, line);
  if (j->zero_infinity && loss == INFINITY) return;
  for (int64_t t = j->step_counts[k] - 1; t >= 0; t--) {
    const double *alpha = j->alpha + (k * j->steps + t) * wide;
    step_back(j, k, t, t + 1 < j->step_counts[k] ? next : NULL, beta);
    for (int64_t i = 0; i < j->classes; i++) share[i] = -INFINITY;
    for (int64_t s = 0; s < states; s++) {
      double *of = share + label(j, k, s);
      *of = join(*of, alpha[s] + beta[s]);
    }
    put_row(j, k, t, loss, share);
    double *free = next;
    next = beta, beta = free;
  }
}

static bool check(lt_ctx *c, const char *what, const int64_t *v, int64_t n, int64_t most) {
  for (int64_t k = 0; k < n; k++)
    if (v[k] < 0 || v[k] > most)
      return lt_fail_value(c, v[k], most + 1, "ctc_loss: %s %lld is out of 0..%lld (sequence %lld)",
                           what, (long long)v[k], (long long)most, (long long)k + 1);
  return true;
}

static bool check_values(lt_ctx *c, const job *j) {
  if (!check(c, "an input length of", j->step_counts, j->n, j->steps) ||
      !check(c, "a target length of", j->label_counts, j->n, j->labels))
    return false;
  for (int64_t k = 0; k < j->n; k++)
    for (int64_t s = 0; s < j->label_counts[k]; s++) {
      int64_t id = j->targets[k * j->labels + s];
      if (id < 0 || id >= j->classes)
        return lt_fail_value(c, id, j->classes, "ctc_loss: target %lld is out of 0..%lld (sequence "
                                                "%lld)", (long long)id,
                             (long long)j->classes - 1, (long long)k + 1);
    }
  return true;
}

static const void *flat(lt_ctx *c, lt_tensor *t, lt_dtype dtype) {
  t = lt_cpu_contiguous(c, t, dtype);
  return t != NULL ? lt_data(t) : NULL;
}

/* log_probs, targets and lengths from in[0] on. */
static bool prepare(lt_ctx *c, job *j, lt_tensor *const *in) {
  const lt_tensor *x = in[0];
  j->wide = x->dtype == LT_F64;
  j->n = x->size[0], j->steps = x->size[1], j->classes = x->size[2], j->labels = in[1]->size[1];
  j->x = flat(c, in[0], j->wide ? LT_F64 : LT_F32);
  j->targets = flat(c, in[1], LT_I64);
  j->step_counts = flat(c, in[2], LT_I64);
  j->label_counts = flat(c, in[3], LT_I64);
  return lt_ok(c) && check_values(c, j);
}

static bool run_forward(lt_ctx *c, const lt_call *call) {
  const lt_args_ctc_paths *a = call->args;
  job j = {.blank = a->blank};
  lt_tensor *loss = lt_cpu_result(c, call->out[0], LT_F64, NULL);
  lt_tensor *alpha = lt_cpu_result(c, call->out[1], LT_F64, NULL);
  if (!lt_ok(c) || !prepare(c, &j, call->in)) return false;
  j.loss = lt_data(loss), j.alpha = lt_data(alpha);
  lt_parallel(c, j.n, forward, &j);
  return (loss == call->out[0] || lt_cpu_move(c, call->out[0], loss)) &&
         (alpha == call->out[1] || lt_cpu_move(c, call->out[1], alpha));
}

/* (gradient, log_probs, targets, input_lengths, target_lengths, alpha) */
static bool run_backward(lt_ctx *c, const lt_call *call) {
  const lt_args_ctc_paths_backward *a = call->args;
  job j = {.blank = a->blank, .zero_infinity = a->zero_infinity};
  if (!prepare(c, &j, call->in + 1)) return false;
  lt_tensor *out = lt_cpu_result(c, call->out[0], j.wide ? LT_F64 : LT_F32, NULL);
  lt_tensor *alpha = lt_cpu_contiguous(c, call->in[5], LT_F64);
  j.grad = flat(c, call->in[0], LT_F64);
  j.scratch = lt_cpu_scratch(c, LT_F64, j.n * (2 * most_states(&j) + j.classes));
  if (!lt_ok(c)) return false;
  j.alpha = lt_data(alpha), j.out = lt_data(out);
  lt_parallel(c, j.n, backward, &j);
  return out == call->out[0] || lt_cpu_move(c, call->out[0], out);
}

LT_KERNEL(ctc_paths) { return lt_cpu_in_frame(c, call, run_forward); }
LT_KERNEL(ctc_paths_backward) { return lt_cpu_in_frame(c, call, run_backward); }
