/* runtime/base/hash.h: 64-bit hashes to distinguish values, quickly. Not for adversaries:
   base/sha256.h. */
#ifndef LT_BASE_HASH_H
#define LT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* A hash of `h` and one word: the finaliser of splitmix64, chained. For a fixed h different words
   give different results. */
static inline uint64_t lt_hash_mix(uint64_t h, uint64_t word) {
  uint64_t x = (h ^ word) + 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/* A hash of n bytes, the same on every little-endian machine; at the speed of memory. */
uint64_t lt_hash_bytes(const void *data, size_t n, uint64_t seed);

#endif
