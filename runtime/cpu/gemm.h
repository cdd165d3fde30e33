/* runtime/cpu/gemm.h: matrix products in types that oneDNN lacks.

   A plain register-tiled loop that the compiler vectorises: about half of the machine's peak. */
#ifndef LT_CPU_GEMM_H
#define LT_CPU_GEMM_H

#include "cpu/simd_level.h"

/* out = alpha a b, or out += alpha a b; any strides, in elements. a [m, k], b [k, n], out [m, n].
 */
typedef struct lt_gemm {
  int64_t m, n, k;
  const void *a, *b;
  void *out;
  int64_t a_row, a_col, b_row, b_col, out_row, out_col;
  double alpha; /* of floating types; integers take 1 */
  bool add;
} lt_gemm;

void LT_CPU(lt_gemm_f64)(const lt_gemm *g);
void LT_CPU(lt_gemm_i64)(const lt_gemm *g); /* wraps */

#endif
