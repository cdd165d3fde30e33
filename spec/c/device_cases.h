/* spec/c/device_cases.h: part of device_conformance: calls to try, by kind of op. */
#ifndef LT_C_DEVICE_CASES_H
#define LT_C_DEVICE_CASES_H

#include "ops/op.h"

enum { TRIAL_IN = 10 };

typedef struct trial {
  lt_op op;
  lt_dtype dtype; /* of its first input */
  int number;     /* which case of its kind */
  double slack;   /* tolerance, times that of the dtype */
  int n;
  lt_tensor *in[TRIAL_IN]; /* on the CPU */
  _Alignas(16) char args[512];
} trial;

/* Fills in inputs and arguments for `op`, `dtype`, `number`; false: its kind has no such case. */
bool make_trial(lt_ctx *c, trial *t);

#endif
