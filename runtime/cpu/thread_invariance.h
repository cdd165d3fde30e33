/* runtime/cpu/thread_invariance.h: whether a matrix product has the same bits with one thread and
   with several.

   oneDNN splits long sums by the number of threads, and does not say of which products. */
#ifndef LT_CPU_THREAD_INVARIANCE_H
#define LT_CPU_THREAD_INVARIANCE_H

#include "cpu/onednn.h"

typedef bool (*lt_product_fn)(lt_ctx *c, const lt_product *p, int threads);

/* True when `run`, on random operands that lie as those of `p`, did the same on c->threads as on 1.
   False too for what is too large to be tried. */
bool lt_product_trial(lt_ctx *c, const lt_product *p, lt_product_fn run);

#endif
