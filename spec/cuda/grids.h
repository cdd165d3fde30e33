/* spec/cuda/grids.h: how wide the fake runtime's launches were for what their operations touched. */
#ifndef LT_SPEC_GRIDS_H
#define LT_SPEC_GRIDS_H

#include "cuda/fakert.h"

/* The operation, since the last time that this was asked for, whose widest grid had the most bytes
   a thread: of what its launch was declared to read and write. */
typedef struct fakert_grid {
  char what[64];
  int64_t threads, bytes;
} fakert_grid;
extern "C" FAKERT_API fakert_grid fakert_take_narrowest(void);

#endif
