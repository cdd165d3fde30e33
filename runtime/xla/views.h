/* runtime/xla/views.h: tensors as parts of flat values, in StableHLO. */
#ifndef LT_XLA_VIEWS_H
#define LT_XLA_VIEWS_H

#include "xla/graph.h"
#include "xla/hlo.h"

/* The tensor that `v` shows of a flat value. `offset`: a scalar i64 instead of v's, if it has a
   name. */
lt_hlo lt_view_read(lt_hlo_text *h, lt_hlo flat, const lt_flat_view *v, lt_hlo offset);
/* The flat value of n elements after x was written to the tensor; `flat` has no name where nothing
   of the old value stays. */
lt_hlo lt_view_write(lt_hlo_text *h, lt_hlo flat, int64_t n, const lt_flat_view *v, lt_hlo offset,
                     lt_hlo x);

#endif
