/* runtime/cpu/product_trial.h: whether one thread gives the bits of a product that several give.

   oneDNN splits long sums by the number of threads, and does not say of which products. */
#ifndef LT_CPU_PRODUCT_TRIAL_H
#define LT_CPU_PRODUCT_TRIAL_H

#include "cpu/onednn.h"

typedef bool (*lt_product_fn)(lt_ctx *c, const lt_product *p, int threads);

/* True when `run`, on random operands that lie as those of `p`, did the same on c->threads as on 1.
   False too for what is too large to be tried. */
bool lt_product_trial(lt_ctx *c, const lt_product *p, lt_product_fn run);

#endif
