/* runtime/cuda/recurrent.cu: one layer of an LSTM, a GRU or an RNN in one direction, forward.

   The product with the inputs is one for all steps; an LSTM's and an RNN's products with h are
   added to it where it lies.

   LSTM: S. Hochreiter and J. Schmidhuber, 1997, with the forget gate of F. Gers and others (2000);
   GRU: K. Cho and others, 2014, in the form of cuDNN and PyTorch, where the reset gate multiplies
   the product with h.

   Cost: a launch or two and a product a step, T steps one after the other; for small layers the
   latency of launches decides, which cuDNN's persistent kernels avoid. */
#include "cuda/recurrent.h"

typedef struct job {
  lt_cuda_recurrent s;
  void *gates;      /* [T, N, G H] of x */
  void *z;          /* [N, G H] of h, a GRU's */
  const void *bias; /* of h, a GRU's */
  void *h, *c, *m;  /* [N, P], [N, H], [N, H] before the projection */
} job;

/* 1 / (1 + exp(-x)): exp overflows to infinity for x far below 0, which gives the right 0. */
template <class T> static __device__ inline T sigmoid(T x) { return 1 / (1 + row::exp(-x)); }

/* Gates i f g o, whose products with h are in x already. */
template <class T>
static __device__ inline T lstm(const job &j, int64_t at, int64_t n, int64_t u) {
  int64_t h = j.s.r.h;
  const T *x = lt_offset<T>(j.gates, at * 4 * h + u);
  T i = sigmoid(x[0]), f = sigmoid(x[h]), g = row::tanh(x[2 * h]), o = sigmoid(x[3 * h]);
  T *cell = lt_offset<T>(j.c, n * h + u), *acts = lt_offset<T>(j.s.acts, at * 4 * h + u);
  T value = f * *cell + i * g;
  *cell = value;
  if (acts != nullptr) {
    acts[0] = i, acts[h] = f, acts[2 * h] = g, acts[3 * h] = o;
    *lt_offset<T>(j.s.cells, at * h + u) = value;
  }
  return o * row::tanh(value);
}

/* h' = n + z (h - n); r multiplies q, the product of h with the weights of n, its bias included,
   which is saved for backward. */
template <class T>
static __device__ inline T gru(const job &j, int64_t at, int64_t n, int64_t u) {
  int64_t h = j.s.r.h;
  const T *x = lt_offset<T>(j.gates, at * 3 * h + u), *z = lt_offset<T>(j.z, n * 3 * h + u);
  const T *b = j.bias == nullptr ? nullptr : static_cast<const T *>(j.bias) + u;
  T r = sigmoid(x[0] + (z[0] + (b == nullptr ? 0 : b[0])));
  T v = sigmoid(x[h] + (z[h] + (b == nullptr ? 0 : b[h])));
  T q = z[2 * h] + (b == nullptr ? 0 : b[2 * h]), k = row::tanh(x[2 * h] + r * q);
  T *acts = lt_offset<T>(j.s.acts, at * 4 * h + u);
  if (acts != nullptr) acts[0] = r, acts[h] = v, acts[2 * h] = k, acts[3 * h] = q;
  return k + v * (*lt_offset<T>(j.h, n * h + u) - k);
}

/* x != x keeps a NaN, which a comparison would make 0. */
template <class T> static __device__ inline T rnn(const job &j, int64_t at, int64_t u) {
  T x = *lt_offset<T>(j.gates, at * j.s.r.h + u);
  return !j.s.relu ? row::tanh(x) : x > 0 ? x : x != x ? x : T(0);
}

/* What a sequence is after its last step: its state as before, and y of zeros. */
template <class T>
static __device__ inline void pass_over(const job &j, int64_t at, int64_t n, int64_t u) {
  int64_t h = j.s.r.h;
  if (j.s.cells != nullptr)
    *lt_offset<T>(j.s.cells, at * h + u) = *lt_offset<T>(j.c, n * h + u);
  if (j.s.hidden != nullptr) *lt_offset<T>(j.s.hidden, at * h + u) = 0;
  if (!j.s.r.projected) *lt_offset<T>(j.s.y, at * h + u) = 0;
}

/* A thread a unit of a sequence: bound by bytes. */
template <class T> static __global__ void cells(LT_CONSTANT job j) {
  int64_t h = j.s.r.h, k = lt_thread(), n = k / h, u = k - n * h, at = j.s.at * j.s.r.n + n;
  if (n >= j.s.r.n) return;
  if (!lt_is_active(j.s, n)) {
    pass_over<T>(j, at, n, u);
    return;
  }
  T value = j.s.r.cell == LT_CELL_LSTM  ? lstm<T>(j, at, n, u)
            : j.s.r.cell == LT_CELL_GRU ? gru<T>(j, at, n, u)
                                        : rnn<T>(j, at, u);
  if (j.s.r.projected) {
    *lt_offset<T>(j.m, n * h + u) = value;
    if (j.s.hidden != nullptr) *lt_offset<T>(j.s.hidden, at * h + u) = value;
  } else {
    *lt_offset<T>(j.h, n * h + u) = value;
    *lt_offset<T>(j.s.y, at * h + u) = value;
  }
}

/* A thread an output of the projection, which is in z: bound by bytes. */
template <class T> static __global__ void outputs(LT_CONSTANT job j) {
  int64_t p = j.s.r.p, k = lt_thread(), n = k / p, at = j.s.at * j.s.r.n * p + k;
  if (n >= j.s.r.n) return;
  bool active = lt_is_active(j.s, n);
  T value = active ? *lt_offset<T>(j.z, k) : T(0);
  if (active) *lt_offset<T>(j.h, k) = value;
  *lt_offset<T>(j.s.y, at) = value;
}

/* A thread a gate: the sum of the biases that are there. An LSTM's and an RNN's biases always come
   as a sum: added once, they ride along the product with x. */
template <class T> static __global__ void add(int64_t n, const T *a, const T *b, T *to) {
  int64_t k = lt_thread();
  if (k < n) to[k] = (a == nullptr ? 0 : a[k]) + (b == nullptr ? 0 : b[k]);
}

/* A thread a sequence. */
static __global__ void check(int64_t n, const int64_t *lengths, int64_t most,
                             lt_cuda_blame blame) {
  int64_t k = lt_thread();
  if (k < n && (lengths[k] < 0 || lengths[k] > most)) lt_cuda_refuse(blame, lengths[k], most);
}

static bool grid(lt_ctx *c, const job *j, int64_t n, void (*narrow)(job), void (*wide)(job)) {
  return lt_cuda_grid(c, j->s.wide == LT_F64 ? wide : narrow, lt_cuda_blocks(n), LT_CUDA_THREADS, 0,
                      *j);
}

/* The biases of x and h as one, or x's alone for a GRU; nullptr: none. */
static bool take_bias(lt_ctx *c, const lt_call *call, job *j, void **bias) {
  void *of_x, *of_h;
  int64_t n = j->s.r.gates * j->s.r.h;
  if (!lt_cuda_recurrent_values(c, call, LT_REC_B_IH, j->s.wide, &of_x) ||
      !lt_cuda_recurrent_values(c, call, LT_REC_B_HH, j->s.wide, &of_h))
    return false;
  *bias = of_x != nullptr ? of_x : of_h;
  if (j->s.r.cell == LT_CELL_GRU) j->bias = of_h, *bias = of_x;
  if (j->s.r.cell == LT_CELL_GRU || of_x == nullptr || of_h == nullptr) return true;
  *bias = lt_cuda_scratch<char>(c, n * lt_cuda_item_size(j->s.wide));
  if (*bias == nullptr) return false;
  if (j->s.wide == LT_F64)
    return lt_cuda_grid(c, add<double>, lt_cuda_blocks(n), LT_CUDA_THREADS, 0, n,
                        static_cast<const double *>(of_x), static_cast<const double *>(of_h),
                        static_cast<double *>(*bias));
  return lt_cuda_grid(c, add<float>, lt_cuda_blocks(n), LT_CUDA_THREADS, 0, n,
                      static_cast<const float *>(of_x), static_cast<const float *>(of_h),
                      static_cast<float *>(*bias));
}

/* gates = x weight_ih^T + bias, where an LSTM will save its gates, if it does. T N rows in one
   product fill the GPU, where a step's N rows would not. */
static bool multiply_inputs(lt_ctx *c, const lt_call *call, job *j) {
  const lt_recurrent *r = &j->s.r;
  int64_t width = r->gates * r->h;
  lt_view x, w;
  void *bias;
  lt_cuda_product p = {};
  if (!lt_cuda_view(c, call->in[LT_REC_X], &x) || !lt_cuda_view(c, call->in[LT_REC_W_IH], &w) ||
      !lt_cuda_row_major(c, &x, x.dtype, &x) || !take_bias(c, call, j, &bias))
    return false;
  j->gates = r->cell == LT_CELL_LSTM ? j->s.acts : nullptr;
  if (j->gates == nullptr)
    j->gates = lt_cuda_scratch<char>(c, r->t * r->n * width * lt_cuda_item_size(j->s.wide));
  if (j->gates == nullptr) return false;
  p.m = r->t * r->n, p.n = width, p.k = x.size[2];
  p.a = lt_cuda_matrix_of(x.data, x.dtype, p.k, false);
  p.b.data = w.data, p.b.dtype = w.dtype, p.b.row = w.stride[1], p.b.col = w.stride[0];
  p.d = lt_cuda_matrix_of(j->gates, j->s.wide, width, false);
  p.alpha = 1;
  p.bias = bias;
  return lt_cuda_gemm(c, &p);
}

static bool take_saved(lt_ctx *c, const lt_call *call, job *j) {
  lt_view v;
  const lt_recurrent *r = &j->s.r;
  if (!lt_cuda_view(c, call->out[LT_REC_SAVED], &v)) return false;
  j->s.wide = v.dtype;
  if (lt_cuda_numel(&v) == 0) return true;
  j->s.acts = v.data;
  if (r->cell == LT_CELL_LSTM)
    j->s.cells = lt_cuda_recurrent_part(&j->s, v.data, lt_recurrent_cells(r));
  if (r->projected)
    j->s.hidden = lt_cuda_recurrent_part(&j->s, v.data, lt_recurrent_hidden(r));
  return true;
}

/* Lengths are checked on the device: reading them here would make the host wait for it. */
static bool take_lengths(lt_ctx *c, const lt_call *call, job *j) {
  void *lengths;
  lt_cuda_blame blame;
  if (!lt_cuda_recurrent_values(c, call, LT_REC_LENGTHS, LT_I64, &lengths)) return false;
  j->s.lengths = static_cast<const int64_t *>(lengths);
  return lengths == nullptr ||
         (lt_cuda_blame_of(c, call, &blame) &&
          lt_cuda_grid(c, check, lt_cuda_blocks(j->s.r.n), LT_CUDA_THREADS, 0, j->s.r.n,
                       j->s.lengths, j->s.r.t, blame));
}

/* States are copied, as they are updated in place; the script's h0 and c0 must not change. */
static bool prepare(lt_ctx *c, const lt_call *call, job *j) {
  const lt_args_recurrent *a = lt_cuda_args<lt_args_recurrent>(call);
  const lt_recurrent *r = &j->s.r;
  lt_view x, w;
  bool projected = call->n_in > LT_REC_W_HR && call->in[LT_REC_W_HR] != nullptr;
  if (!lt_cuda_view(c, call->in[LT_REC_X], &x) || !lt_cuda_view(c, call->in[LT_REC_W_HH], &w))
    return false;
  j->s.r = lt_recurrent_of(call->op, x.size, w.size, projected);
  j->s.reverse = a->reverse, j->s.relu = a->nonlinearity == LT_NONLINEARITY_relu;
  int64_t z = r->cell == LT_CELL_GRU ? r->gates * r->h : r->projected ? r->p : 0;
  if (!take_saved(c, call, j) || !take_lengths(c, call, j) || !multiply_inputs(c, call, j) ||
      !lt_cuda_recurrent_values(c, call, LT_REC_W_HH, j->s.wide, &j->s.w_hh) ||
      !lt_cuda_recurrent_values(c, call, LT_REC_W_HR, j->s.wide, &j->s.w_hr) ||
      !lt_cuda_recurrent_copy(c, call, LT_REC_H0, j->s.wide, r->n, r->p, &j->h) ||
      !lt_cuda_recurrent_copy(c, call, LT_REC_C0, j->s.wide, r->n, r->h, &j->c) ||
      (r->projected &&
       !lt_cuda_recurrent_copy(c, call, LT_REC_INPUTS, j->s.wide, r->n, r->h, &j->m)))
    return false;
  j->z = lt_cuda_scratch<char>(c, (r->n * z + 1) * lt_cuda_item_size(j->s.wide));
  return j->z != nullptr;
}

/* The product with h adds into the gates of x (beta = 1) but in a GRU, whose candidate needs it
   apart. A projection is a second product of the step. */
static bool step(lt_ctx *c, job *j) {
  const lt_recurrent *r = &j->s.r;
  int64_t width = r->gates * r->h;
  bool gru = r->cell == LT_CELL_GRU;
  void *to = gru ? j->z : lt_cuda_recurrent_part(&j->s, j->gates, j->s.at * r->n * width);
  if (!lt_cuda_recurrent_product(c, &j->s, j->h, j->s.w_hh, true, r->n, width, r->p, !gru, to) ||
      !grid(c, j, r->n * r->h, cells<float>, cells<double>))
    return false;
  return !r->projected ||
         (lt_cuda_recurrent_product(c, &j->s, j->m, j->s.w_hr, true, r->n, r->p, r->h, false,
                                    j->z) &&
          grid(c, j, r->n * r->p, outputs<float>, outputs<double>));
}

/* A state of the compute type as a result. */
static bool put_state(lt_ctx *c, const job *j, lt_tensor *out, void *state) {
  lt_view to, from;
  if (!lt_cuda_view(c, out, &to)) return false;
  from = to;
  from.data = state, from.dtype = static_cast<lt_dtype>(j->s.wide);
  from.stride[0] = to.size[1], from.stride[1] = 1;
  return lt_cuda_move(c, &to, &from);
}

static bool forward(lt_ctx *c, const lt_call *call) {
  job j = {};
  lt_view y, to;
  if (!prepare(c, call, &j) || !lt_cuda_view(c, call->out[LT_REC_Y], &y) ||
      !lt_cuda_result(c, &y, j.s.wide, &to))
    return false;
  j.s.y = to.data;
  for (int64_t k = 0; k < j.s.r.t; k++) {
    lt_cuda_recurrent_at(&j.s, k);
    if (!step(c, &j)) return false;
  }
  return lt_cuda_deliver(c, &y, &to) && put_state(c, &j, call->out[LT_REC_H], j.h) &&
         (j.s.r.cell != LT_CELL_LSTM || put_state(c, &j, call->out[LT_REC_C], j.c));
}

LT_CUDA_KERNEL(lstm_layer) { return forward(c, call); }
LT_CUDA_KERNEL(gru_layer) { return forward(c, call); }
LT_CUDA_KERNEL(rnn_layer) { return forward(c, call); }
