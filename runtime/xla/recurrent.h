/* runtime/xla/recurrent.h: loops over the steps of recurrent layers, for forward and backward. */
#ifndef LT_XLA_RECURRENT_H
#define LT_XLA_RECURRENT_H

#include "xla/lowerings.h"

/* A loop over steps 0..steps-1 with n states, the first of which counts them (i64). Between begin
   and end are the lines of a step; `out` are the states after the last. */
void lt_loop_begin(lt_hlo_text *h, int64_t steps, int n, const lt_hlo *first, lt_hlo *state,
                   lt_hlo *out);
void lt_loop_end(lt_hlo_text *h, int n, const lt_hlo *next);

/* Step `at` of x [T, N, ..] as [N, ..]; x with it replaced. */
lt_hlo lt_step_of(lt_hlo_text *h, lt_hlo x, lt_hlo at);
lt_hlo lt_step_put(lt_hlo_text *h, lt_hlo x, lt_hlo at, lt_hlo part);
/* Where the loop's step is in time (argument `reverse`), and which sequences have it: bools [N, 1],
   none without lengths. */
lt_hlo lt_step_at(lt_lowering *l, int64_t t, lt_hlo step);
lt_hlo lt_step_active(lt_lowering *l, int lengths, lt_hlo at);
/* Columns of gate k. */
lt_hlo lt_gate_of(lt_hlo_text *h, lt_hlo gates, int64_t units, int64_t k);

#endif
