/* runtime/cpu/recurrent_backward.c: gradients of the gates of a recurrent layer, step by step from
   the last; the products with the weights and the inputs are made of them afterwards.

   weight_hh is packed by outputs here, by gates in forward: a product with the transposed matrix,
   in panels that are read in order as well. */
#include "cpu/recurrent.h"

#define TANH NAME(lt_tanh)
#define TYPE_FILE "cpu/recurrent_backward_type.h"
#include "cpu/float_types.h"

static void outputs(void *ud, int64_t block) {
  const lt_recurrent_job *j = ud;
  (j->wide ? outputs_f64 : outputs_f32)(j, block);
}

static void units(void *ud, int64_t block) {
  const lt_recurrent_job *j = ud;
  (j->wide ? units_f64 : units_f32)(j, block);
}

/* In place where the last dim lies side by side, as a transposed gradient does. */
static lt_steps steps_of(lt_ctx *c, lt_tensor *t, lt_dtype dtype) {
  bool fits = t != NULL && (lt_dtype)t->dtype == dtype && (t->stride[2] == 1 || t->size[2] == 1);
  if (!fits) t = lt_cpu_contiguous(c, t, dtype);
  if (t == NULL) return (lt_steps){.data = NULL};
  return (lt_steps){.data = lt_data(t), .step = t->stride[0], .row = t->stride[1]};
}

static bool pack(lt_ctx *c, const lt_call *call, lt_recurrent_job *j, lt_dtype dtype) {
  const lt_recurrent *r = &j->r;
  lt_rec_packing hh = {.n = lt_rec_blocks(j, r->p), .terms = r->gates * r->h,
                       .run = j->wide ? pack_hh_f64 : pack_hh_f32};
  lt_rec_packing hr = {.n = lt_rec_blocks(j, r->h), .terms = r->p,
                       .run = j->wide ? pack_hr_f64 : pack_hr_f32};
  return lt_rec_pack(c, j, lt_rec_input(call, LT_RECB_W_HH), dtype, &j->panels, &hh) &&
         (!r->projected ||
          lt_rec_pack(c, j, lt_rec_input(call, LT_RECB_W_HR), dtype, &j->panels_hr, &hr));
}

static bool prepare(lt_ctx *c, const lt_call *call, lt_recurrent_job *j, lt_dtype dtype) {
  const lt_recurrent *r = &j->r;
  char *saved = lt_rec_values(c, lt_rec_input(call, LT_RECB_SAVED), dtype);
  size_t size = lt_dtype_size(dtype);
  j->y = steps_of(c, lt_rec_input(call, LT_RECB_Y), dtype);
  j->g_y = steps_of(c, lt_rec_input(call, LT_RECB_G_Y), dtype);
  j->state = lt_rec_values(c, lt_rec_input(call, LT_RECB_STATE), dtype);
  j->carry = lt_rec_copy(c, lt_rec_input(call, LT_RECB_G_H), r->n * r->p, dtype);
  if (r->cell == LT_CELL_LSTM)
    j->g_c = lt_rec_copy(c, lt_rec_input(call, LT_RECB_G_C), r->n * r->h, dtype);
  if (!lt_ok(c)) return false;
  j->acts = saved;
  j->cells = saved + (size_t)lt_recurrent_cells(r) * size;
  j->g_gates = lt_data(call->out[LT_RECB_GATES]);
  if (r->cell == LT_CELL_GRU) j->g_h = lt_data(call->out[LT_RECB_MORE]);
  if (r->projected) j->g_p = lt_data(call->out[LT_RECB_MORE]);
  return pack(c, call, j, dtype);
}

/* From the last step to the first, and what reaches the state before that. dh of a step needs the
   gates' gradients of the step after, so steps are a chain here, too. A last round without a step
   (at = -1) makes the gradient of h0. */
static void run_steps(lt_ctx *c, lt_recurrent_job *j) {
  const lt_recurrent *r = &j->r;
  int64_t of_outputs = lt_rec_blocks(j, r->p), of_units = lt_rec_blocks(j, r->h);
  int64_t work = r->n * r->h * r->gates * r->p / LT_TERMS;
  for (int64_t k = r->t - 1; k >= 0; k--) {
    lt_recurrent_at(j, k);
    lt_parallel_work(c, work, of_outputs, outputs, j);
    if (r->projected) lt_parallel_work(c, r->n * r->h * r->p / LT_TERMS, of_units, units, j);
  }
  j->after = j->at, j->at = -1;
  lt_parallel_work(c, work, of_outputs, outputs, j);
}

static bool backward(lt_ctx *c, const lt_call *call) {
  lt_recurrent_job j;
  lt_tensor *const *out = call->out;
  lt_dtype dtype = (lt_dtype)out[LT_RECB_GATES]->dtype;
  if (!LT_CPU(lt_recurrent_begin)(c, call, lt_rec_input(call, LT_RECB_Y),
                                  lt_rec_input(call, LT_RECB_W_HH),
                                  lt_rec_input(call, LT_RECB_W_HR),
                                  lt_rec_input(call, LT_RECB_LENGTHS), &j))
    return false;
  j.wide = dtype == LT_F64, j.panel = j.wide ? PANEL_f64 : PANEL_f32;
  if (!prepare(c, call, &j, dtype)) return false;
  run_steps(c, &j);
  memcpy(lt_data(out[LT_RECB_H0]), j.carry, (size_t)(j.r.n * j.r.p) * lt_dtype_size(dtype));
  if (j.g_c != NULL)
    memcpy(lt_data(out[LT_RECB_C0]), j.g_c, (size_t)(j.r.n * j.r.h) * lt_dtype_size(dtype));
  return true;
}

LT_KERNEL(lstm_layer_backward) { return lt_cpu_in_frame(c, call, backward); }
LT_KERNEL(gru_layer_backward) { return lt_cpu_in_frame(c, call, backward); }
LT_KERNEL(rnn_layer_backward) { return lt_cpu_in_frame(c, call, backward); }
