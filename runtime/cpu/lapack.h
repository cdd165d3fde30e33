/* runtime/cpu/lapack.h: the functions of LAPACKE, opened when the first of them is needed.

   Each is an array: [0] takes floats, [1] doubles. Matrices lie in rows. */
#ifndef LT_CPU_LAPACK_H
#define LT_CPU_LAPACK_H

#include "base/ctx.h"

enum { LT_LAPACK_ROWS = 101 }; /* LAPACK_ROW_MAJOR */

typedef struct lt_lapack {
  int (*gesv[2])(int layout, int n, int columns, void *a, int lda, int *pivots, void *b, int ldb);
  int (*getrf[2])(int layout, int m, int n, void *a, int lda, int *pivots);
  int (*potrf[2])(int layout, char triangle, int n, void *a, int lda);
  int (*geqrf[2])(int layout, int m, int n, void *a, int lda, void *tau);
  int (*orgqr[2])(int layout, int m, int n, int k, void *a, int lda, const void *tau);
  int (*syevd[2])(int layout, char vectors, char triangle, int n, void *a, int lda, void *w);
  int (*gesdd[2])(int layout, char vectors, int m, int n, void *a, int lda, void *s, void *u,
                  int ldu, void *vt, int ldvt);
} lt_lapack;

/* NULL with a failure that says what to install. */
const lt_lapack *lt_lapack_open(lt_ctx *c);

#endif
