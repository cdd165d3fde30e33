/* runtime/cpu/philox_words.h: the words of lt_philox, many at a time, in loops that
   vectorise. */
#ifndef LT_CPU_PHILOX_WORDS_H
#define LT_CPU_PHILOX_WORDS_H

#include "cpu/tile.h"

enum { LT_WORDS = 4 * LT_TILE }; /* most words of one call */

/* Blocks first..first+n-1 of a key (n <= LT_TILE): word k of block b goes to
   out[4 * (b - first) + k]. */
static inline void lt_philox_fill(lt_rng_key t, uint64_t first, int64_t n, uint32_t *out) {
  uint32_t x0[LT_TILE], x1[LT_TILE], x2[LT_TILE], x3[LT_TILE];
  uint32_t k0 = (uint32_t)t.seed, k1 = (uint32_t)(t.seed >> 32);
  for (int64_t i = 0; i < n; i++) {
    uint64_t block = first + (uint64_t)i + t.base;
    x0[i] = (uint32_t)block, x1[i] = (uint32_t)(block >> 32);
    x2[i] = (uint32_t)t.position, x3[i] = (uint32_t)(t.position >> 32);
  }
  for (int round = 0; round < 10; round++) {
    for (int64_t i = 0; i < n; i++) {
      uint64_t p0 = (uint64_t)0xD2511F53u * x0[i], p1 = (uint64_t)0xCD9E8D57u * x2[i];
      x0[i] = (uint32_t)(p1 >> 32) ^ x1[i] ^ k0, x2[i] = (uint32_t)(p0 >> 32) ^ x3[i] ^ k1;
      x1[i] = (uint32_t)p1, x3[i] = (uint32_t)p0;
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  for (int64_t i = 0; i < n; i++) {
    out[4 * i] = x0[i], out[4 * i + 1] = x1[i];
    out[4 * i + 2] = x2[i], out[4 * i + 3] = x3[i];
  }
}

#endif
