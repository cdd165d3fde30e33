/* runtime/base/random.c: keys of the counter-based random number generator.

   Philox (J. Salmon and others, Parallel Random Numbers: As Easy as 1, 2, 3, 2011) has no state:
   a draw is a function of seed, stream, batch and its number in the batch. So a resumed run,
   another number of threads or ranks, and a recomputed forward pass have the same numbers
   without anything being saved. */
#include "base/random.h"

lt_rng_key lt_rng_draw(lt_rng *rng) {
  /* 16 bits of the number are in the key; what is more goes to the top of the counter, beyond any
     tensor's size. */
  uint64_t ordinal = rng->ordinal++;
  uint64_t rng_key = ((uint64_t)rng->batch << 16) | (ordinal & 0xffff);
  return (lt_rng_key){
      .seed = rng->seed,
      .position = (rng_key << 16) | rng->stream,
      .base = (ordinal >> 16) << 48,
      .drawn = true,
  };
}
