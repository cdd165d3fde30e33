/* runtime/base/parallel.c: parallel loops on OpenMP. */
#include "base/cpu_load.h"
#include "base/threads.h"

void lt_parallel(lt_ctx *c, int64_t n_chunks, void (*fn)(void *ud, int64_t chunk), void *ud) {
  int threads = n_chunks > 1 ? lt_load_threads(c) : 1;
  if (threads > n_chunks) threads = (int)n_chunks;
  if (threads <= 1) {
    for (int64_t i = 0; i < n_chunks && !lt_is_cancelled(c); i++) fn(ud, i);
  } else {
/* Static: which thread has a chunk changes nothing, as chunks share no sums; a dynamic schedule
   would pay an atomic for each. */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < n_chunks; i++)
      if (!lt_is_cancelled(c)) fn(ud, i);
  }
  if (lt_is_cancelled(c)) lt_fail(c, LT_ECANCEL, "%s%scancelled", lt_op_name(c), lt_op_colon(c));
}
