/* runtime/cpu/linalg.c: linear algebra of batches of matrices [.., M, N], by LAPACK.

   Each matrix is one call, in threads where there are several. Which of a batch LAPACK refuses is
   said by its number.

   The algorithms are LAPACK's (E. Anderson and others, LAPACK Users' Guide, 3rd edition, 1999):
   LU with partial pivoting (getrf, gesv), Cholesky (potrf), QR by Householder reflections
   (geqrf, orgqr), divide and conquer for symmetric eigenvalues (syevd) and singular values
   (gesdd). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "cpu/lapack.h"
#include "cpu/scratch.h"

typedef struct job job;
struct job {
  const lt_lapack *lapack;
  int (*one)(const job *j, int64_t b); /* what LAPACK says of matrix b: 0 or why not */
  bool wide, flag, unit;               /* f64; options of the op */
  int64_t count;
  int m, n, k;        /* of the first input [m, n] and the second [n, k] */
  char *a, *b;        /* inputs, which are not written */
  char *out[3];
  lt_tensor *made[3]; /* where results are computed */
  int64_t per_matrix; /* values of a matrix in `work` */
  char *work;
  int32_t *pivots, *info;
};

/* Empty matrices have no memory. */
static void copy_bytes(void *to, const void *from, size_t n) {
  if (n > 0) memcpy(to, from, n);
}

static void clear_bytes(void *to, size_t n) {
  if (n > 0) memset(to, 0, n);
}

static int smaller(int a, int b) { return a < b ? a : b; }
static size_t bytes(const job *j, int64_t n) { return (size_t)n * (j->wide ? 8 : 4); }

/* Matrix number `b` of a batch of them, and row `i` of a matrix. */
static char *matrix(const job *j, char *batch, int64_t b, int rows, int columns) {
  return batch + bytes(j, b * rows * columns);
}
static char *row(const job *j, char *a, int64_t i, int columns) {
  return a + bytes(j, i * columns);
}

/* Elements of either type as double, where a few are read one by one. */
static double get(const job *j, const char *p, int64_t i) {
  if (j->wide) return ((const double *)(const void *)p)[i];
  return (double)((const float *)(const void *)p)[i];
}
static void put(const job *j, char *p, int64_t i, double v) {
  if (j->wide)
    ((double *)(void *)p)[i] = v;
  else
    ((float *)(void *)p)[i] = (float)v;
}

static void identity(const job *j, char *a, int n) {
  clear_bytes(a, bytes(j, (int64_t)n * n));
  for (int i = 0; i < n; i++) put(j, row(j, a, i, n), i, 1);
}

/* ---- a batch ---- */

static void run_one(void *ud, int64_t b) {
  const job *j = ud;
  j->info[b] = j->one(j, b);
}

static bool compute(lt_ctx *c, const lt_call *call, job *j) {
  lt_dtype dtype = j->wide ? LT_F64 : LT_F32;
  lt_tensor *a = lt_cpu_contiguous(c, call->in[0], dtype);
  lt_tensor *b = call->n_in > 1 ? lt_cpu_contiguous(c, call->in[1], dtype) : NULL;
  for (int k = 0; k < call->n_out; k++) {
    j->made[k] = lt_cpu_result(c, call->out[k], dtype, NULL);
    j->out[k] = j->made[k] != NULL ? lt_data(j->made[k]) : NULL;
  }
  j->work = j->per_matrix > 0 ? lt_cpu_scratch(c, dtype, j->count * j->per_matrix) : NULL;
  j->pivots = lt_cpu_scratch(c, LT_I32, j->count * j->n);
  j->info = lt_cpu_scratch(c, LT_I32, j->count);
  if (!lt_ok(c)) return false;
  j->a = lt_data(a), j->b = b != NULL ? lt_data(b) : NULL;
  /* A rough count of multiplications: what it decides is only whether threads are worth waking. */
  int64_t work = j->count * j->m * j->n * smaller(j->m, j->n); /* small ones share a thread */
  if (work >= LT_PARALLEL_WORK) {
    lt_parallel(c, j->count, run_one, j);
  } else {
    for (int64_t k = 0; k < j->count; k++) run_one(j, k);
  }
  for (int k = 0; k < call->n_out; k++)
    if (j->made[k] != call->out[k] && !lt_cpu_move(c, call->out[k], j->made[k])) return false;
  return true;
}

/* Fails for the first matrix that was refused, saying `what` it is: "matrix 3 of [4, 2, 2]". */
static bool check(lt_ctx *c, const lt_call *call, const job *j, const char *what) {
  /* In order of the batch, so that the message does not depend on which thread came first. */
  for (int64_t b = 0; b < j->count; b++) {
    if (j->info[b] == 0) continue;
    char which[32] = "the matrix";
    if (j->count > 1) snprintf(which, sizeof which, "matrix %lld of", (long long)b + 1);
    return lt_fail(c, LT_EVALUE, "%s: %s %s %s", lt_ops[call->op].name, which,
                   LT_TENSOR_STR(call->in[0]), what);
  }
  return true;
}

/* `j` has the function and per_matrix. */
static bool run(lt_ctx *c, const lt_call *call, job *j, const char *refused) {
  lt_frame frame = lt_frame_open(c);
  bool ok = compute(c, call, j) && check(c, call, j, refused);
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

/* Dims before the last two are a batch of `count` matrices. */
static job job_of(const lt_call *call) {
  const lt_tensor *x = call->in[0], *b = call->n_in > 1 ? call->in[1] : NULL;
  job j = {.wide = x->dtype == LT_F64, .count = 1};
  j.m = (int)x->size[x->ndim - 2], j.n = (int)x->size[x->ndim - 1];
  j.k = b != NULL ? (int)b->size[b->ndim - 1] : 0;
  for (int k = 0; k < x->ndim - 2; k++) j.count *= x->size[k];
  return j;
}

/* ---- determinants ---- */

typedef struct determinant {
  double sign, log, product;
} determinant;

/* Of the factors on the diagonal of U; each swap of rows turns the sign. The logarithm is a sum of
   its own: the product of many factors overflows long before it does. */
static determinant determinant_of(const job *j, int64_t b) {
  int n = j->n;
  char *a = matrix(j, j->work, b, n, n);
  int32_t *pivots = j->pivots + b * n;
  determinant d = {1, 0, 1};
  copy_bytes(a, matrix(j, j->a, b, n, n), bytes(j, (int64_t)n * n));
  if (n > 0) j->lapack->getrf[j->wide](LT_LAPACK_ROWS, n, n, a, n, pivots);
  for (int i = 0; i < n; i++) {
    double u = get(j, row(j, a, i, n), i);
    if (pivots[i] != i + 1) u = -u;
    d.sign *= u > 0 ? 1 : u < 0 ? -1 : u; /* 0 and NaN stay */
    d.log += log(fabs(u));
    d.product *= u;
  }
  return d;
}

static int det_one(const job *j, int64_t b) {
  put(j, j->out[0], b, determinant_of(j, b).product);
  return 0; /* a singular matrix has one */
}
static int slogdet_one(const job *j, int64_t b) {
  determinant d = determinant_of(j, b);
  put(j, j->out[0], b, d.sign);
  put(j, j->out[1], b, d.log);
  return 0;
}

/* det and slogdet factorize once and use what they need. */
static bool run_determinant(lt_ctx *c, const lt_call *call, int (*one)(const job *, int64_t)) {
  job j = job_of(call);
  j.one = one;
  j.per_matrix = (int64_t)j.n * j.n;
  return (j.lapack = lt_lapack_open(c)) != NULL && run(c, call, &j, "has no determinant");
}

LT_KERNEL(linalg_det) { return run_determinant(c, call, det_one); }
LT_KERNEL(linalg_slogdet) { return run_determinant(c, call, slogdet_one); }

/* ---- factors ---- */

/* The upper half is cleared before, as LAPACK leaves there what it found; it reads the lower half
   only, so that an input which is not quite symmetric counts by it. */
static int cholesky_one(const job *j, int64_t b) {
  int n = j->n;
  char *l = matrix(j, j->out[0], b, n, n);
  copy_bytes(l, matrix(j, j->a, b, n, n), bytes(j, (int64_t)n * n));
  for (int i = 0; i < n; i++) clear_bytes(row(j, l, i, n) + bytes(j, i + 1), bytes(j, n - 1 - i));
  return n > 0 ? j->lapack->potrf[j->wide](LT_LAPACK_ROWS, 'L', n, l, n) : 0;
}

LT_KERNEL(linalg_cholesky) {
  job j = job_of(call);
  j.one = cholesky_one;
  return (j.lapack = lt_lapack_open(c)) != NULL && run(c, call, &j, "is not positive-definite");
}

static int eigh_one(const job *j, int64_t b) {
  int n = j->n;
  char *v = matrix(j, j->out[1], b, n, n), *w = matrix(j, j->out[0], b, n, 1);
  copy_bytes(v, matrix(j, j->a, b, n, n), bytes(j, (int64_t)n * n));
  /* 'L': only the lower triangle is read, as PyTorch does with UPLO = "L". */
  int info = n > 0 ? j->lapack->syevd[j->wide](LT_LAPACK_ROWS, 'V', 'L', n, v, n, w) : 0;
  for (int i = 0; i < n; i++) info |= !isfinite(get(j, w, i)); /* LAPACK may pass over NaN */
  return info;
}

static const char diverges[] = "has NaN or infinity, or the algorithm does not converge";

LT_KERNEL(linalg_eigh) {
  job j = job_of(call);
  j.one = eigh_one;
  return (j.lapack = lt_lapack_open(c)) != NULL && run(c, call, &j, diverges);
}

/* LAPACK makes R and what Q is made of in one m x n matrix, Q in the m x m or m x k of itself. The
   reflections stand below the diagonal of that matrix and in tau: R is copied out from above it,
   then orgqr multiplies the reflections out into Q in place. */
static int qr_one(const job *j, int64_t b) {
  int m = j->m, n = j->n, least = smaller(m, n), k = j->flag ? m : least;
  char *q = matrix(j, j->out[0], b, m, k), *r = matrix(j, j->out[1], b, k, n);
  char *a = j->work + bytes(j, b * j->per_matrix), *tau = row(j, a, m, n);
  if (least == 0) { /* R has no elements, or Q no columns but the unit vectors */
    if (k > 0) identity(j, q, m);
    return 0;
  }
  copy_bytes(a, matrix(j, j->a, b, m, n), bytes(j, (int64_t)m * n));
  int info = j->lapack->geqrf[j->wide](LT_LAPACK_ROWS, m, n, a, n, tau);
  for (int i = 0; i < k; i++) {
    size_t below = bytes(j, smaller(i, n));
    clear_bytes(row(j, r, i, n), below);
    copy_bytes(row(j, r, i, n) + below, row(j, a, i, n) + below, bytes(j, n) - below);
  }
  clear_bytes(q, bytes(j, (int64_t)m * k));
  for (int i = 0; i < m; i++) copy_bytes(row(j, q, i, k), row(j, a, i, n), bytes(j, least));
  return info != 0 ? info : j->lapack->orgqr[j->wide](LT_LAPACK_ROWS, m, k, least, q, k, tau);
}

LT_KERNEL(linalg_qr) {
  job j = job_of(call);
  j.one = qr_one;
  j.flag = ((const lt_args_linalg_qr *)call->args)->complete;
  j.per_matrix = (int64_t)j.m * j.n + smaller(j.m, j.n);
  return (j.lapack = lt_lapack_open(c)) != NULL && run(c, call, &j, diverges);
}

/* full_matrices: U and Vh are square ('A'), else they have k columns and rows ('S'). */
static int svd_one(const job *j, int64_t b) {
  int m = j->m, n = j->n, k = smaller(m, n), columns = j->flag ? m : k, rows = j->flag ? n : k;
  char *u = matrix(j, j->out[0], b, m, columns), *s = matrix(j, j->out[1], b, k, 1);
  char *vh = matrix(j, j->out[2], b, rows, n), *a = matrix(j, j->work, b, m, n);
  if (k == 0) {
    if (columns > 0) identity(j, u, m);
    if (rows > 0) identity(j, vh, n);
    return 0;
  }
  copy_bytes(a, matrix(j, j->a, b, m, n), bytes(j, (int64_t)m * n));
  /* Divide and conquer: several times faster than gesvd on large matrices, for more memory; a is
     destroyed. */
  return j->lapack->gesdd[j->wide](LT_LAPACK_ROWS, j->flag ? 'A' : 'S', m, n, a, n, s, u, columns,
                                   vh, n);
}

LT_KERNEL(linalg_svd) {
  job j = job_of(call);
  j.one = svd_one;
  j.flag = ((const lt_args_linalg_svd *)call->args)->full_matrices;
  j.per_matrix = (int64_t)j.m * j.n;
  return (j.lapack = lt_lapack_open(c)) != NULL && run(c, call, &j, diverges);
}

/* ---- equations ---- */

/* By LU with partial pivoting (gesv), in place: a becomes its factors, x the solution. */
static int solve_one(const job *j, int64_t b) {
  int n = j->n, k = j->k;
  char *a = matrix(j, j->work, b, n, n), *x = matrix(j, j->out[0], b, n, k);
  copy_bytes(a, matrix(j, j->a, b, n, n), bytes(j, (int64_t)n * n));
  copy_bytes(x, matrix(j, j->b, b, n, k), bytes(j, (int64_t)n * k));
  if (n == 0 || k == 0) return 0;
  return j->lapack->gesv[j->wide](LT_LAPACK_ROWS, n, k, a, n, j->pivots + b * n, x, k);
}

LT_KERNEL(linalg_solve) {
  job j = job_of(call);
  j.one = solve_one;
  j.per_matrix = (int64_t)j.n * j.n;
  return (j.lapack = lt_lapack_open(c)) != NULL && run(c, call, &j, "is singular");
}

/* Substitution, row by row of x; a zero on the diagonal gives infinity or NaN. No LAPACK. */
#define SUBSTITUTE(T)                                                                       \
  static void substitute_##T(const T *a, T *x, int n, int k, bool upper, bool unit) {       \
    for (int step = 0; step < n; step++) {                                                  \
      int i = upper ? n - 1 - step : step, from = upper ? i + 1 : 0, to = upper ? n : i;    \
      T *own = x + (int64_t)i * k;                                                          \
      for (int r = from; r < to; r++) {                                                     \
        const T by = a[(int64_t)i * n + r], *other = x + (int64_t)r * k;                    \
        for (int e = 0; e < k; e++) own[e] -= by * other[e];                                \
      }                                                                                     \
      for (int e = 0; e < k && !unit; e++) own[e] /= a[(int64_t)i * n + i];                 \
    }                                                                                       \
  }
SUBSTITUTE(float)
SUBSTITUTE(double)

static int triangular_one(const job *j, int64_t b) {
  int n = j->n, k = j->k;
  char *a = matrix(j, j->a, b, n, n), *x = matrix(j, j->out[0], b, n, k);
  copy_bytes(x, matrix(j, j->b, b, n, k), bytes(j, (int64_t)n * k));
  if (j->wide)
    substitute_double((const double *)(const void *)a, (double *)(void *)x, n, k, j->flag, j->unit);
  else
    substitute_float((const float *)(const void *)a, (float *)(void *)x, n, k, j->flag, j->unit);
  return 0;
}

LT_KERNEL(linalg_solve_triangular) {
  const lt_args_linalg_solve_triangular *a = call->args;
  job j = job_of(call);
  j.one = triangular_one;
  j.flag = a->upper, j.unit = a->unitriangular;
  return run(c, call, &j, "");
}
