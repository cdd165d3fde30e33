/* runtime/cpu/onednn_sgemm.h: what onednn.c needs of onednn_sgemm.c; others call
   lt_onednn_sgemm. */
#ifndef LT_CPU_ONEDNN_SGEMM_H
#define LT_CPU_ONEDNN_SGEMM_H

#include <stdbool.h>
#include <stdint.h>

/* oneDNN splits work by the number of OpenMP threads. Returns the number before, which the caller
   sets again. */
int lt_onednn_set_threads(int n);

/* Generates the kernels of sgemm, once a process; false: no memory for them. */
bool lt_onednn_make_sgemm(void);

/* As lt_onednn_sgemm, on as many threads as are set. */
bool lt_onednn_sgemm_here(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha,
                          const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                          float *out, int64_t ldc);

#endif
