/* runtime/cpu/onednn_guard.c: signals and address space around calls of oneDNN. */
#include "cpu/onednn_guard.h"

#include <omp.h>
#include <sys/mman.h>

#include "base/threads.h"

void lt_onednn_block_signals(sigset_t *before) {
  if (omp_get_max_threads() == 1 || omp_in_parallel()) {
    lt_signals_block(before);
    return;
  }
#pragma omp parallel
  {
    sigset_t own;
    lt_signals_block(omp_get_thread_num() == 0 ? before : &own);
  }
}

/* Asks the kernel for address space and gives it back: oneDNN does not survive a failed mmap of the
   code that it generates, so it is tried before. */
bool lt_onednn_has_address_space(size_t bytes) {
  void *probe = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe != MAP_FAILED) munmap(probe, bytes);
  return probe != MAP_FAILED;
}
