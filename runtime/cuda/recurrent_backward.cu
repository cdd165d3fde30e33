/* runtime/cuda/recurrent_backward.cu: gradients of the gates of a recurrent layer, step by step
   from the last; the products with the weights and the inputs are made of them afterwards.

   Backpropagation through time: `carry` is the gradient of h of the step before, from the products
   with the gates of the step after (lt_cuda_recurrent_product) and what passes beside the gates.
   Weights' gradients are products over all steps at once, T N rows, and are made by ordinary ops
   from the gates' gradients that are stored here. */
#include "cuda/recurrent.h"

typedef struct job {
  lt_cuda_recurrent s;
  const void *g_y;           /* [T, N, P] or nullptr */
  const void *state;         /* [N, H], before the first step, or nullptr */
  void *gates, *g_h, *g_p;   /* [T, N, G H] of x and of h, [T, N, P] */
  void *carry, *g_c, *dm;    /* [N, P], [N, H], [N, H] before the projection */
} job;

/* The state of a unit before this step. */
template <class T>
static __device__ inline T state_before(const job &j, int64_t n, int64_t u) {
  const lt_recurrent &r = j.s.r;
  bool is_gru = r.cell == LT_CELL_GRU;
  bool first = j.s.before < 0 || (is_gru && j.s.reverse && j.s.lengths != nullptr &&
                                  j.s.at == j.s.lengths[n] - 1); /* y there is 0 */
  if (first) return j.state == nullptr ? T(0) : static_cast<const T *>(j.state)[n * r.h + u];
  return lt_offset<T>(is_gru ? j.s.y : j.s.cells, (j.s.before * r.n + n) * r.h + u)[0];
}

/* dc = dc + dh o (1 - tanh(c)^2); then each gate by the derivative of its sigmoid, s (1 - s), or
   tanh, 1 - t^2, from the saved values: no exponential is computed again but tanh(c). */
template <class T>
static __device__ inline void lstm(const job &j, int64_t at, int64_t n, int64_t u, T dh) {
  int64_t h = j.s.r.h;
  const T *acts = lt_offset<T>(j.s.acts, at * 4 * h + u);
  T i = acts[0], f = acts[h], g = acts[2 * h], o = acts[3 * h];
  T tc = row::tanh(*lt_offset<T>(j.s.cells, at * h + u)), *dc = lt_offset<T>(j.g_c, n * h + u);
  T d = *dc + dh * o * (1 - tc * tc), *to = lt_offset<T>(j.gates, at * 4 * h + u);
  to[0] = d * g * i * (1 - i);
  to[h] = d * state_before<T>(j, n, u) * f * (1 - f);
  to[2 * h] = d * i * (1 - g * g);
  to[3 * h] = dh * tc * o * (1 - o);
  *dc = d * f;
}

/* Gives what is carried on to the step before past the gates. */
template <class T>
static __device__ inline T gru(const job &j, int64_t at, int64_t n, int64_t u, T dh) {
  int64_t h = j.s.r.h;
  const T *acts = lt_offset<T>(j.s.acts, at * 4 * h + u);
  T r = acts[0], z = acts[h], k = acts[2 * h], q = acts[3 * h];
  T dn = dh * (1 - z) * (1 - k * k), dr = dn * q * r * (1 - r);
  T dz = dh * (state_before<T>(j, n, u) - k) * z * (1 - z);
  T *of_x = lt_offset<T>(j.gates, at * 3 * h + u), *of_h = lt_offset<T>(j.g_h, at * 3 * h + u);
  of_x[0] = dr, of_x[h] = dz, of_x[2 * h] = dn;
  of_h[0] = dr, of_h[h] = dz, of_h[2 * h] = dn * r;
  return dh * z;
}

/* From y alone: tanh' = 1 - y^2, relu' = 1 where y > 0. */
template <class T>
static __device__ inline void rnn(const job &j, int64_t at, int64_t u, T dh) {
  T y = *lt_offset<T>(j.s.y, at * j.s.r.h + u);
  *lt_offset<T>(j.gates, at * j.s.r.h + u) = !j.s.relu ? dh * (1 - y * y) : y > 0 ? dh : T(0);
}

/* The gradient of an output at this step; what is carried on past it is left of it. */
template <class T>
static __device__ inline T gather(const job &j, int64_t k, bool active) {
  T *carry = lt_offset<T>(j.carry, k), dh = *carry;
  if (!active) return 0;
  if (j.g_y != nullptr) dh += static_cast<const T *>(j.g_y)[j.s.at * j.s.r.n * j.s.r.p + k];
  *carry = 0;
  return dh;
}

/* A thread a unit of a sequence: bound by bytes. Each unit reads and writes only what is its own,
   so no thread waits for another within a step. */
template <class T> static __global__ void cells(LT_CONSTANT job j) {
  int64_t h = j.s.r.h, k = lt_thread(), n = k / h, u = k - n * h, at = j.s.at * j.s.r.n + n;
  if (n >= j.s.r.n) return;
  bool active = lt_is_active(j.s, n);
  T dh = j.s.r.projected ? *lt_offset<T>(j.dm, k) : gather<T>(j, k, active);
  if (!active) {
    for (int64_t g = 0; g < j.s.r.gates; g++) {
      int64_t to = at * j.s.r.gates * h + g * h + u;
      *lt_offset<T>(j.gates, to) = 0;
      if (j.g_h != nullptr) *lt_offset<T>(j.g_h, to) = 0;
    }
  } else if (j.s.r.cell == LT_CELL_LSTM) {
    lstm<T>(j, at, n, u, dh);
  } else if (j.s.r.cell == LT_CELL_GRU) {
    *lt_offset<T>(j.carry, k) = gru<T>(j, at, n, u, dh);
  } else {
    rnn<T>(j, at, u, dh);
  }
}

/* A thread an output of the projection: bound by bytes. */
template <class T> static __global__ void outputs(LT_CONSTANT job j) {
  int64_t p = j.s.r.p, k = lt_thread(), n = k / p;
  if (n >= j.s.r.n) return;
  *lt_offset<T>(j.g_p, j.s.at * j.s.r.n * p + k) = gather<T>(j, k, lt_is_active(j.s, n));
}

/* float serves f16 and bf16, whose values were widened before the first step. */
static bool grid(lt_ctx *c, const job *j, int64_t n, void (*narrow)(job), void (*wide)(job)) {
  return lt_cuda_grid(c, j->s.wide == LT_F64 ? wide : narrow, lt_cuda_blocks(n), LT_CUDA_THREADS, 0,
                      *j);
}

static bool data_of(lt_ctx *c, lt_tensor *t, void **data) {
  lt_view v;
  if (!lt_cuda_view(c, t, &v)) return false;
  *data = v.data;
  return true;
}

/* What was saved and what came from after the last step. */
static bool take_values(lt_ctx *c, const lt_call *call, job *j) {
  const lt_recurrent *r = &j->s.r;
  void *lengths, *g_y, *state;
  int wide = j->s.wide;
  if (!lt_cuda_recurrent_values(c, call, LT_RECB_Y, wide, &j->s.y) ||
      !lt_cuda_recurrent_values(c, call, LT_RECB_SAVED, wide, &j->s.acts) ||
      !lt_cuda_recurrent_values(c, call, LT_RECB_W_HH, wide, &j->s.w_hh) ||
      !lt_cuda_recurrent_values(c, call, LT_RECB_G_Y, wide, &g_y) ||
      !lt_cuda_recurrent_values(c, call, LT_RECB_STATE, wide, &state) ||
      !lt_cuda_recurrent_values(c, call, LT_RECB_W_HR, wide, &j->s.w_hr) ||
      !lt_cuda_recurrent_values(c, call, LT_RECB_LENGTHS, LT_I64, &lengths) ||
      !lt_cuda_recurrent_copy(c, call, LT_RECB_G_H, wide, r->n, r->p, &j->carry))
    return false;
  j->g_y = g_y, j->state = state;
  j->s.lengths = static_cast<const int64_t *>(lengths);
  j->s.cells = lt_cuda_recurrent_part(&j->s, j->s.acts, lt_recurrent_cells(r));
  return r->cell != LT_CELL_LSTM ||
         lt_cuda_recurrent_copy(c, call, LT_RECB_G_C, wide, r->n, r->h, &j->g_c);
}

static bool prepare(lt_ctx *c, const lt_call *call, job *j) {
  const lt_args_recurrent_backward *a = lt_cuda_args<lt_args_recurrent_backward>(call);
  lt_view y, w, out;
  void *more;
  bool projected = call->n_in > LT_RECB_W_HR && call->in[LT_RECB_W_HR] != nullptr;
  if (!lt_cuda_view(c, call->in[LT_RECB_Y], &y) || !lt_cuda_view(c, call->in[LT_RECB_W_HH], &w) ||
      !lt_cuda_view(c, call->out[LT_RECB_GATES], &out) ||
      !data_of(c, call->out[LT_RECB_MORE], &more))
    return false;
  j->s.r = lt_recurrent_of(call->op, y.size, w.size, projected);
  j->s.wide = out.dtype;
  j->s.reverse = a->reverse, j->s.relu = a->nonlinearity == LT_NONLINEARITY_relu;
  j->gates = out.data;
  if (j->s.r.cell == LT_CELL_GRU) j->g_h = more;
  if (projected) j->g_p = more;
  return take_values(c, call, j) &&
         (!projected || lt_cuda_recurrent_copy(c, call, LT_REC_INPUTS, j->s.wide, j->s.r.n,
                                               j->s.r.h, &j->dm));
}

/* Adds to what is carried the part that comes through the gates of the step after. */
static bool multiply(lt_ctx *c, job *j) {
  const lt_recurrent *r = &j->s.r;
  int64_t width = r->gates * r->h;
  void *gates = r->cell == LT_CELL_GRU ? j->g_h : j->gates;
  return j->s.after < 0 ||
         lt_cuda_recurrent_product(c, &j->s, lt_cuda_recurrent_part(&j->s, gates,
                                                                    j->s.after * r->n * width),
                                   j->s.w_hh, false, r->n, r->p, width, true, j->carry);
}

/* Two or three launches a step. Steps depend on each other: the stream's order is all that holds
   them together, no kernel waits for another. */
static bool step(lt_ctx *c, job *j) {
  const lt_recurrent *r = &j->s.r;
  if (!multiply(c, j)) return false;
  if (r->projected &&
      (!grid(c, j, r->n * r->p, outputs<float>, outputs<double>) ||
       !lt_cuda_recurrent_product(c, &j->s,
                                  lt_cuda_recurrent_part(&j->s, j->g_p, j->s.at * r->n * r->p),
                                  j->s.w_hr, false, r->n, r->h, r->p, false, j->dm)))
    return false;
  return grid(c, j, r->n * r->h, cells<float>, cells<double>);
}

static bool put_state(lt_ctx *c, lt_tensor *out, void *state) {
  lt_view to, from;
  if (!lt_cuda_view(c, out, &to)) return false;
  from = to;
  from.data = state;
  return lt_cuda_move(c, &to, &from);
}

static bool backward(lt_ctx *c, const lt_call *call) {
  job j = {};
  if (!prepare(c, call, &j)) return false;
  for (int64_t k = j.s.r.t - 1; k >= 0; k--) {
    lt_cuda_recurrent_at(&j.s, k);
    if (!step(c, &j)) return false;
  }
  j.s.after = j.s.at;
  return multiply(c, &j) && put_state(c, call->out[LT_RECB_H0], j.carry) &&
         (j.s.r.cell != LT_CELL_LSTM || put_state(c, call->out[LT_RECB_C0], j.g_c));
}

LT_CUDA_KERNEL(lstm_layer_backward) { return backward(c, call); }
LT_CUDA_KERNEL(gru_layer_backward) { return backward(c, call); }
LT_CUDA_KERNEL(rnn_layer_backward) { return backward(c, call); }
