/* ltrain/args.h: arguments of operations, as structs that kernels receive.

   runtime/ops/args.h has their names and types; their C types are:
     INT, DIM, POS, CHOICE      int64_t; dims and positions from 0, a choice by its index
     NUMBER                     double
     FLAG                       bool
     SCALAR, DIMS, PAIR         the structs below
     SIZES, EACH, PADDING       lt_sizes
     DTYPE, DEVICE              lt_dtype, lt_device
     RNG_KEY                    lt_rng_key */
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

/* What one draw of random numbers needs, the key and most of the counter of Philox4x32-10
   (runtime/base/random.h). From call to call `position` changes, and `seed` where the script sets
   it. */
typedef struct lt_rng_key {
  uint64_t seed;
  uint64_t position; /* of the batch and the draw (48 bits) << 16 | stream */
  uint64_t base;     /* added to the block index */
  bool drawn;        /* false: no key yet */
} lt_rng_key;

/* An argument of an op. */
typedef enum lt_arg_type {
  LT_ARG_INT,
  LT_ARG_NUMBER,
  LT_ARG_FLAG,
  LT_ARG_DIM,
  LT_ARG_DIMS,
  LT_ARG_POS,
  LT_ARG_SIZES,
  LT_ARG_PAIR,
  LT_ARG_EACH,
  LT_ARG_PADDING,
  LT_ARG_SCALAR,
  LT_ARG_DTYPE,
  LT_ARG_DEVICE,
  LT_ARG_CHOICE,
  LT_ARG_RNG_KEY
} lt_arg_type;

typedef struct lt_arg {
  const char *name;
  lt_arg_type type;
  bool required;
  const char *default_text; /* as written in runtime/ops/args.h */
  const char *choices;      /* CHOICE: its names, "none|mean|sum"; else NULL */
  size_t offset;            /* in the op's struct */
} lt_arg;

#ifdef __cplusplus
}
#endif
#endif
