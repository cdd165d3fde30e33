/* runtime/base/random.h: Philox4x32-10 random numbers as a pure function of (seed, counter).

   J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Key = seed; counter =
   (block 64 bits, rng_key 48, stream 16). A key is (batch counter 32, ordinal of the draw 16);
   the ordinal's overflow goes into the top 16 bits of the block. Nothing has a state to save but
   the seed and the position. */
#ifndef LT_BASE_RANDOM_H
#define LT_BASE_RANDOM_H

#include "base/host_device.h"
#include "ltrain/args.h"

/* Purposes; the stream is purpose | (rank or slice) << 4. */
enum {
  LT_RNG_OUTSIDE,
  LT_RNG_TRAIN,
  LT_RNG_EVAL,
  LT_RNG_PREDICT,
  LT_RNG_ORDER = 8, /* shuffling; those between are for reading of each kind of loop */
  LT_RNG_SAMPLE,    /* within one sample of a data set */
  LT_RNG_DIGITS     /* drawn digits */
};

typedef struct lt_rng {
  uint64_t seed;
  uint16_t stream;
  uint32_t batch;   /* batches begun by this kind of loop */
  uint32_t ordinal; /* draws within the batch */
} lt_rng;

/* The key of one draw is plain data that an op copies into its arguments (dropout saves it). */
lt_rng_key lt_rng_draw(lt_rng *rng);

/* The four words of block `block` of a key. Element i of a tensor uses word i % 4
   of block i / 4. */
typedef struct lt_random4 {
  uint32_t word[4];
} lt_random4;

LT_FN lt_random4 lt_philox(lt_rng_key t, uint64_t block) {
  uint32_t k0 = (uint32_t)t.seed, k1 = (uint32_t)(t.seed >> 32);
  block += t.base;
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
  uint32_t c2 = (uint32_t)t.position, c3 = (uint32_t)(t.position >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c0 = n0, c1 = (uint32_t)p1, c2 = n2, c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  lt_random4 r = {{c0, c1, c2, c3}};
  return r;
}

/* 24 random bits as a float in [0, 1); 53 bits of two words as a double in [0, 1). */
LT_FN float lt_uniform_f32(uint32_t w) { return (float)(w >> 8) * 0x1p-24f; }
LT_FN double lt_uniform_f64(uint32_t hi, uint32_t lo) {
  return (double)(((uint64_t)hi << 21) | (lo >> 11)) * 0x1p-53;
}

#endif
