/* runtime/base/random.c: keys of the counter-based random number generator. */
#include "base/random.h"

lt_rng_key lt_rng_draw(lt_rng *rng) {
  uint64_t ordinal = rng->ordinal++;
  uint64_t rng_key = ((uint64_t)rng->batch << 16) | (ordinal & 0xffff);
  return (lt_rng_key){
      .seed = rng->seed,
      .position = (rng_key << 16) | rng->stream,
      .base = (ordinal >> 16) << 48,
      .drawn = true,
  };
}
