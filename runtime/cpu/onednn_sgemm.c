/* runtime/cpu/onednn_sgemm.c: oneDNN's sgemm, and the number of its threads.

   Other than the primitives of onednn.c it needs no plan for a shape, and so no table: the
   blocks of attention, whose sizes vary, do not fill one. */
#include "cpu/onednn_sgemm.h"

#include <dnnl.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/threads.h"
#include "cpu/onednn.h"
#include "cpu/onednn_guard.h"

int lt_onednn_set_threads(int n) {
  int before = omp_get_max_threads();
  if (before != n) omp_set_num_threads(n);
  return before;
}

/* oneDNN generates all kernels of sgemm at its first call, tens of milliseconds. The first thread
   generates them, other threads wait. */
static pthread_mutex_t sgemm_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool sgemm_made;

bool lt_onednn_make_sgemm(void) {
  enum { N = 64 }; /* smaller products may be served without them */
  static const float zeros[N * N];
  static float out[N * N];
  pthread_mutex_lock(&sgemm_lock);
  if (!sgemm_made && lt_onednn_has_address_space(LT_CODE_OF_SGEMM)) {
    int before = lt_onednn_set_threads(1);
    dnnl_sgemm('T', 'N', N, N, N, 1, zeros, N, zeros, N, 0, out, N);
    lt_onednn_set_threads(before);
    sgemm_made = true;
  }
  pthread_mutex_unlock(&sgemm_lock);
  return sgemm_made;
}

bool lt_onednn_sgemm_here(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha,
                          const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                          float *out, int64_t ldc) {
  sigset_t signals;
  lt_onednn_block_signals(&signals);
  bool ok = (sgemm_made || lt_onednn_make_sgemm()) &&
            dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta,
                       out, ldc) == dnnl_success;
  lt_signals_restore(&signals);
  return ok;
}

/* On one thread: the caller divides its own work. */
bool lt_onednn_sgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                     int64_t lda, const float *b, int64_t ldb, float beta, float *out,
                     int64_t ldc) {
  int before = lt_onednn_set_threads(1);
  bool ok = lt_onednn_sgemm_here(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, out, ldc);
  lt_onednn_set_threads(before);
  return ok;
}
