/* runtime/base/random.c: tickets for draws. */
#include "base/random.h"

lt_ticket lt_rng_draw(lt_rng *rng) {
  uint64_t ordinal = rng->ordinal++;
  uint64_t ticket = ((uint64_t)rng->batch << 16) | (ordinal & 0xffff);
  return (lt_ticket){
      .seed = rng->seed,
      .position = (ticket << 16) | rng->stream,
      .base = (ordinal >> 16) << 48,
      .drawn = true,
  };
}
