/* runtime/cpu/onednn_guard.h: protects a host process from oneDNN: signals and limits of address
   space. */
#ifndef LT_CPU_ONEDNN_GUARD_H
#define LT_CPU_ONEDNN_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Its kernels of gemm keep their stack pointer in memory of the heap: the handler of a signal would
   run there, over what is before it. So no signal comes to the threads that run them, until
   lt_signals_restore(before). Those of the team, which are nobody's to take signals, never take any
   again. */
void lt_onednn_block_signals(sigset_t *before);

/* Whether there is address space for the code that it is about to make: it does not look whether it
   has got any, and writes all the same. */
enum { LT_CODE_OF_PRIMITIVE = 16 << 20, LT_CODE_OF_SGEMM = 64 << 20 };
bool lt_onednn_has_address_space(size_t bytes);

#endif
