/* runtime/cpu/recurrent.c: one layer of an LSTM, a GRU or an RNN in one direction, forward.

   The product with the inputs is one for all steps. h and c are kept in f32 (f64) between steps,
   those of halves too.

   LSTM: S. Hochreiter and J. Schmidhuber, 1997, with the forget gate of F. Gers and others
   (2000); GRU: K. Cho and others, 2014, in the form of cuDNN and PyTorch, where the reset gate
   multiplies the product with h. */
#include "cpu/recurrent.h"

#define TANH NAME(lt_tanh)
#define TYPE_FILE "cpu/recurrent_type.h"
#include "cpu/float_types.h"

static void units(void *ud, int64_t block) {
  const lt_recurrent_job *j = ud;
  (j->wide ? units_f64 : units_f32)(j, block);
}

static void project(void *ud, int64_t block) {
  const lt_recurrent_job *j = ud;
  (j->wide ? project_f64 : project_f32)(j, block);
}

static bool check_lengths(lt_ctx *c, const lt_recurrent_job *j, int op) {
  for (int64_t n = 0; n < j->r.n && j->lengths != NULL; n++)
    if (j->lengths[n] < 0 || j->lengths[n] > j->r.t)
      return lt_fail_value(c, j->lengths[n], j->r.t,
                           "%s: length %lld of sequence %lld is out of 0..%lld", lt_ops[op].name,
                           (long long)j->lengths[n], (long long)n, (long long)j->r.t);
  return true;
}

bool LT_CPU(lt_recurrent_begin)(lt_ctx *c, const lt_call *call, const lt_tensor *x,
                                const lt_tensor *weight_hh, lt_tensor *weight_hr,
                                lt_tensor *lengths, lt_recurrent_job *j) {
  const lt_args_recurrent *a = call->args; /* backward's are the same */
  *j = (lt_recurrent_job){.r = lt_recurrent_of(call->op, x->size, weight_hh->size,
                                               weight_hr != NULL),
                          .reverse = a->reverse,
                          .relu = a->nonlinearity == LT_NONLINEARITY_relu};
  lengths = lt_cpu_contiguous(c, lengths, LT_I64);
  if (lengths != NULL) j->lengths = lt_data(lengths);
  return lt_ok(c) && check_lengths(c, j, call->op);
}

/* The sum of the biases of x and h, or the one that is there. */
static lt_tensor *joined_bias(lt_ctx *c, lt_tensor *a, lt_tensor *b, lt_dtype dtype) {
  a = lt_cpu_contiguous(c, a, dtype), b = lt_cpu_contiguous(c, b, dtype);
  if (a == NULL || b == NULL) return a != NULL ? a : b;
  lt_tensor *sum = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, 1, a->size);
  for (int64_t k = 0; sum != NULL && k < a->numel; k++)
    if (dtype == LT_F64)
      ((double *)lt_data(sum))[k] = ((double *)lt_data(a))[k] + ((double *)lt_data(b))[k];
    else
      ((float *)lt_data(sum))[k] = ((float *)lt_data(a))[k] + ((float *)lt_data(b))[k];
  return sum;
}

/* gates = x weight_ih^T + bias, where an LSTM will save its gates, if it does. */
static bool multiply_inputs(lt_ctx *c, const lt_call *call, lt_recurrent_job *j, lt_dtype dtype) {
  const lt_recurrent *r = &j->r;
  int64_t width = r->gates * r->h, size[3] = {r->t, r->n, width};
  bool gru = r->cell == LT_CELL_GRU;
  lt_tensor *bias = lt_rec_input(call, LT_REC_B_IH), *to, view;
  if (!gru) bias = joined_bias(c, bias, lt_rec_input(call, LT_REC_B_HH), dtype);
  if (r->cell == LT_CELL_LSTM && j->acts != NULL) {
    view = *call->out[LT_REC_SAVED];
    lt_tensor_set_shape(&view, 3, size, (int64_t[]){r->n * width, width, 1});
    to = &view;
  } else {
    to = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, 3, size);
  }
  if (to == NULL || !lt_ok(c)) return false;
  lt_tensor *in[3] = {lt_rec_input(call, LT_REC_X), lt_rec_input(call, LT_REC_W_IH), bias};
  const lt_call product = {.op = LT_OP_linear, .n_in = 3, .n_out = 1, .in = in, .out = &to};
  j->gates = lt_data(to);
  return LT_CPU(lt_cpu_linear)(c, &product);
}

/* Weights are packed once for all steps: each step reads them in full, and panels are read in
   order. */
static bool pack(lt_ctx *c, const lt_call *call, lt_recurrent_job *j, lt_dtype dtype) {
  const lt_recurrent *r = &j->r;
  lt_rec_packing hh = {.n = lt_rec_blocks(j, r->h) * r->gates, .terms = r->p,
                       .run = j->wide ? pack_hh_f64 : pack_hh_f32};
  lt_rec_packing hr = {.n = lt_rec_blocks(j, r->p), .terms = r->h,
                       .run = j->wide ? pack_hr_f64 : pack_hr_f32};
  return lt_rec_pack(c, j, lt_rec_input(call, LT_REC_W_HH), dtype, &j->panels, &hh) &&
         (!r->projected ||
          lt_rec_pack(c, j, lt_rec_input(call, LT_REC_W_HR), dtype, &j->panels_hr, &hr));
}

/* Where what backward reads is saved. */
static void save_in(lt_recurrent_job *j, lt_tensor *saved) {
  const lt_recurrent *r = &j->r;
  if (saved->numel == 0) return;
  char *data = lt_data(saved);
  size_t size = lt_item_size(saved);
  j->acts = data;
  if (r->cell == LT_CELL_LSTM) j->cells = data + (size_t)lt_recurrent_cells(r) * size;
  if (r->projected) j->hidden = data + (size_t)lt_recurrent_hidden(r) * size;
}

/* Two buffers of h take turns: a step reads one and writes the other, as units of a step must not
   see each other's results. */
static bool prepare(lt_ctx *c, const lt_call *call, lt_recurrent_job *j, lt_dtype dtype) {
  const lt_recurrent *r = &j->r;
  save_in(j, call->out[LT_REC_SAVED]);
  if (r->cell == LT_CELL_GRU) j->bias = lt_rec_values(c, lt_rec_input(call, LT_REC_B_HH), dtype);
  j->h[0] = lt_rec_copy(c, lt_rec_input(call, LT_REC_H0), r->n * r->p, dtype);
  j->h[1] = lt_cpu_scratch(c, dtype, r->n * r->p);
  if (r->cell == LT_CELL_LSTM)
    j->c = lt_rec_copy(c, lt_rec_input(call, LT_REC_C0), r->n * r->h, dtype);
  if (r->projected) j->m = lt_rec_copy(c, NULL, r->n * r->h, dtype);
  return lt_ok(c) && multiply_inputs(c, call, j, dtype) && pack(c, call, j, dtype);
}

/* Steps depend on each other, so threads share a step: each has blocks of units, and all meet at
   its end. The product with x was made before for all steps at once, which is most of the work for
   wide inputs. */
static void run_steps(lt_ctx *c, lt_recurrent_job *j) {
  const lt_recurrent *r = &j->r;
  int64_t blocks = lt_rec_blocks(j, r->h), outputs = lt_rec_blocks(j, r->p);
  for (int64_t k = 0; k < r->t; k++) {
    lt_recurrent_at(j, k);
    lt_parallel_work(c, r->n * r->h * r->gates * r->p / LT_TERMS, blocks, units, j);
    if (r->projected)
      lt_parallel_work(c, r->n * r->h * r->p / LT_TERMS, outputs, project, j);
  }
}

/* A state that is a result: of the last step. */
static bool put_state(lt_ctx *c, lt_tensor *out, const void *from, lt_dtype dtype) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, out->ndim, out->size);
  if (t == NULL) return false;
  memcpy(lt_data(t), from, (size_t)t->numel * lt_dtype_size(dtype));
  return lt_cpu_move(c, out, t);
}

static bool forward(lt_ctx *c, const lt_call *call) {
  lt_recurrent_job j;
  lt_tensor *const *out = call->out;
  lt_dtype dtype = (lt_dtype)out[LT_REC_SAVED]->dtype;
  if (!LT_CPU(lt_recurrent_begin)(c, call, lt_rec_input(call, LT_REC_X),
                                  lt_rec_input(call, LT_REC_W_HH), lt_rec_input(call, LT_REC_W_HR),
                                  lt_rec_input(call, LT_REC_LENGTHS), &j))
    return false;
  lt_tensor *y = lt_cpu_result(c, out[LT_REC_Y], dtype, NULL);
  j.wide = dtype == LT_F64, j.panel = j.wide ? PANEL_f64 : PANEL_f32;
  if (y == NULL || !prepare(c, call, &j, dtype)) return false;
  j.y = (lt_steps){.data = lt_data(y), .step = j.r.n * j.r.p, .row = j.r.p};
  run_steps(c, &j);
  return (y == out[LT_REC_Y] || lt_cpu_move(c, out[LT_REC_Y], y)) &&
         put_state(c, out[LT_REC_H], j.h[j.r.t % 2], dtype) &&
         (j.c == NULL || put_state(c, out[LT_REC_C], j.c, dtype));
}

LT_KERNEL(lstm_layer) { return lt_cpu_in_frame(c, call, forward); }
LT_KERNEL(gru_layer) { return lt_cpu_in_frame(c, call, forward); }
LT_KERNEL(rnn_layer) { return lt_cpu_in_frame(c, call, forward); }
