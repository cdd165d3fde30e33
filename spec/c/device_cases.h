/* spec/c/device_cases.h: part of device_conformance: calls to try, by kind of op. */
#ifndef LT_C_DEVICE_CASES_H
#define LT_C_DEVICE_CASES_H

#include <string.h>

#include "ops/op.h"

enum { TRIAL_IN = 10 };

typedef struct trial {
  lt_op op;
  lt_dtype dtype; /* of its first input */
  int number;     /* which case of its kind */
  double slack;   /* tolerance, times that of the dtype */
  int n;
  lt_tensor *in[TRIAL_IN]; /* on the CPU */
  unsigned saved;          /* by bits: inputs that lie as the forward call left them */
  _Alignas(16) char args[512];
} trial;

#define SHAPE(...)                                                       \
  lt_shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
              (int64_t[]){__VA_ARGS__})

enum { SHAPES = 6 };
lt_shape shape_of(int number); /* of elementwise calls: number < SHAPES */

/* Values in [lo, hi), whole for integers. */
lt_tensor *values(lt_ctx *c, lt_dtype dtype, lt_shape s, uint64_t seed, double lo, double hi);

/* Input k of a trial: between -2 and 2, of the trial's dtype; indices in 0..below-1. */
void put(lt_ctx *c, trial *t, int k, lt_shape s);
void put_ids(lt_ctx *c, trial *t, int k, lt_shape s, int64_t below);

/* The kinds' own functions; each returns false when it has no case of that number. */
bool as_strided_backward_trial(lt_ctx *c, trial *t);
bool as_strided_trial(lt_ctx *c, trial *t);
bool attention_backward_trial(lt_ctx *c, trial *t);
bool attention_trial(lt_ctx *c, trial *t);
bool batch_norm_backward_trial(lt_ctx *c, trial *t);
bool batch_norm_trial(lt_ctx *c, trial *t);
bool conv_backward_trial(lt_ctx *c, trial *t);
bool conv_trial(lt_ctx *c, trial *t);
bool cross_entropy_backward_trial(lt_ctx *c, trial *t);
bool cross_entropy_trial(lt_ctx *c, trial *t);
bool ctc_backward_trial(lt_ctx *c, trial *t);
bool ctc_trial(lt_ctx *c, trial *t);
bool embedding_bag_trial(lt_ctx *c, trial *t);
bool embedding_trial(lt_ctx *c, trial *t);
bool extremum_backward_trial(lt_ctx *c, trial *t);
bool fft_real_inverse_trial(lt_ctx *c, trial *t);
bool fft_real_trial(lt_ctx *c, trial *t);
bool fft_trial(lt_ctx *c, trial *t);
bool gather_trial(lt_ctx *c, trial *t);
bool group_norm_trial(lt_ctx *c, trial *t);
bool index_flatten_trial(lt_ctx *c, trial *t);
bool index_select_backward_trial(lt_ctx *c, trial *t);
bool index_select_trial(lt_ctx *c, trial *t);
bool join_trial(lt_ctx *c, trial *t);
bool layer_norm_trial(lt_ctx *c, trial *t);
bool linalg_trial(lt_ctx *c, trial *t);
bool linear_trial(lt_ctx *c, trial *t);
bool mask_positions_trial(lt_ctx *c, trial *t);
bool masked_fill_trial(lt_ctx *c, trial *t);
bool matmul_trial(lt_ctx *c, trial *t);
bool one_hot_trial(lt_ctx *c, trial *t);
bool pool_backward_trial(lt_ctx *c, trial *t);
bool pool_trial(lt_ctx *c, trial *t);
bool recurrent_backward_trial(lt_ctx *c, trial *t);
bool recurrent_trial(lt_ctx *c, trial *t);
bool rms_norm_trial(lt_ctx *c, trial *t);
bool rows_put_trial(lt_ctx *c, trial *t);
bool scatter_add_trial(lt_ctx *c, trial *t);
bool topk_trial(lt_ctx *c, trial *t);
bool triangle_trial(lt_ctx *c, trial *t);
bool where_trial(lt_ctx *c, trial *t);

/* Fills in inputs and arguments for `op`, `dtype`, `number`; false: its kind has no such case. */
bool make_trial(lt_ctx *c, trial *t);

#endif
