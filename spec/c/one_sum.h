/* spec/c/one_sum.h: the collective that tests of worlds use to see that all ranks are there. */
#ifndef LT_SPEC_C_ONE_SUM_H
#define LT_SPEC_C_ONE_SUM_H

#include "device/device.h"
#include "launch/launch.h"

/* The sum of a number over the ranks, asked for at model.lua:31; -1 with a failure. */
static inline double sum(lt_ctx *c, lt_world *w, double x) {
  double out = -1;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F64, 0, NULL);
  if (t != NULL) *(double *)lt_tensor_ptr(c, t, LT_WRITE) = x;
  lt_work *work = lt_comm_all_reduce(c, lt_world_group(w), t, t, LT_COMM_SUM,
                                     (lt_origin){.file = "model.lua", .line = 31});
  if (work != NULL && lt_work_wait(c, work)) out = *(double *)lt_tensor_ptr(c, t, LT_READ);
  if (work != NULL) lt_work_release(c, work);
  lt_frame_close(c, frame, 0, NULL);
  return out;
}

#endif
