/* runtime/image/random_stream.h: the random numbers of one transform of one sample: a counter-based
   stream, a function of the key and of the number of draws before. */
#ifndef LT_IMAGE_RANDOM_STREAM_H
#define LT_IMAGE_RANDOM_STREAM_H

#include <math.h>

#include "base/random.h"

typedef struct lt_random_stream {
  lt_rng_key key;
  uint64_t block;
  lt_random4 words;
  int left;
} lt_random_stream;

static inline uint32_t lt_random_stream_next(lt_random_stream *d) {
  if (d->left == 0) {
    d->words = lt_philox(d->key, d->block++);
    d->left = 4;
  }
  return d->words.word[4 - d->left--];
}

static inline double lt_random_stream_uniform(lt_random_stream *d, double low, double high) {
  uint32_t upper = lt_random_stream_next(d), lower = lt_random_stream_next(d);
  return low + (high - low) * lt_uniform_f64(upper, lower);
}

/* 0..n-1, n at most 2^32. */
static inline int lt_random_stream_below(lt_random_stream *d, int n) {
  return (int)(((uint64_t)lt_random_stream_next(d) * (uint64_t)n) >> 32);
}

static inline bool lt_random_stream_chance(lt_random_stream *d, double p) {
  return lt_random_stream_uniform(d, 0, 1) < p;
}

static inline float lt_random_stream_normal(lt_random_stream *d) {
  double u = lt_random_stream_uniform(d, 0, 1), v = lt_random_stream_uniform(d, 0, 1);
  return (float)(sqrt(-2 * log1p(-u)) * cos(6.283185307179586 * v));
}

#endif
