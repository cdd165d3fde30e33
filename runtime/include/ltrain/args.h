/* ltrain/args.h: arguments of operations, as structs that kernels receive.

   runtime/ops/args.h has their names and types; their C types are:
     INT, DIM, POS, CHOICE      int64_t; dims and positions from 0, a choice by its index
     NUMBER                     double
     FLAG                       bool
     SCALAR, DIMS, SIZES, PAIR  the structs below
     DTYPE, DEVICE              lt_dtype, lt_device */
#ifndef LT_INCLUDE_ARGS_H
#define LT_INCLUDE_ARGS_H

#include "ltrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A Lua number or boolean: its category takes part in type promotion, its width does not. */
typedef enum lt_scalar_kind {
  LT_NO_SCALAR, /* absent */
  LT_SCALAR_BOOL,
  LT_SCALAR_INT,
  LT_SCALAR_FLOAT
} lt_scalar_kind;
typedef struct lt_scalar {
  lt_scalar_kind kind;
  double f; /* always set */
  int64_t i; /* set for bool and int */
} lt_scalar;

typedef struct lt_dims {
  int n;
  int64_t dim[LT_MAX_DIMS];
} lt_dims;
typedef struct lt_sizes {
  int n;
  int64_t size[LT_MAX_DIMS];
} lt_sizes;
typedef struct lt_pair {
  int64_t h, w;
} lt_pair;

#ifdef __cplusplus
}
#endif
#endif
