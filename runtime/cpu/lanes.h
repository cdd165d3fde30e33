/* runtime/cpu/lanes.h: sums and maxima of contiguous values, in explicit lanes that vectorise.

   Floats are added in their own type over at most LT_TILE values, in double from there on. */
#ifndef LT_CPU_LANES_H
#define LT_CPU_LANES_H

#include <math.h>

#include "cpu/tile.h"

enum { LT_LANES = 32 };

/* Sum over i < n of `term`, an expression in i. n may be anything. Lanes are joined in a tree. 32
   lanes whatever the processor's width, joined in one order: a result has the same bits on every
   instruction level. */
#define LT_LANE_SUM(type, result, n, term)                                    \
  do {                                                                        \
    double sum_ = 0;                                                          \
    for (int64_t start_ = 0; start_ < (n); start_ += LT_TILE) {               \
      int64_t end_ = (n) - start_ < LT_TILE ? (n) : start_ + LT_TILE;         \
      type lane_[LT_LANES] = {0};                                             \
      int64_t at_ = start_;                                                   \
      for (; at_ + LT_LANES <= end_; at_ += LT_LANES)                         \
        for (int64_t l_ = 0; l_ < LT_LANES; l_++) {                           \
          int64_t i = at_ + l_;                                               \
          lane_[l_] += (term);                                                \
        }                                                                     \
      if (at_ > start_) {                                                     \
        for (int l_ = 0; l_ < 16; l_++) lane_[l_] += lane_[l_ + 16];          \
        for (int l_ = 0; l_ < 8; l_++) lane_[l_] += lane_[l_ + 8];            \
        for (int l_ = 0; l_ < 4; l_++) lane_[l_] += lane_[l_ + 4];            \
        sum_ += (double)((lane_[0] + lane_[2]) + (lane_[1] + lane_[3]));      \
      }                                                                       \
      type rest_[LT_LANES];                                                   \
      for (int64_t i = at_; i < end_; i++) rest_[i - at_] = (term);           \
      for (int64_t i = at_; i < end_; i++) sum_ += (double)rest_[i - at_];    \
    }                                                                         \
    (result) = sum_;                                                          \
  } while (0)

/* Largest of n values, -inf for none; NaN is passed over. */
#define LT_LANE_MAX(suffix, type)                                             \
  static inline type lt_lane_max_##suffix(const type *v, int64_t n) {         \
    type lane[LT_LANES], m = -INFINITY;                                       \
    int64_t at = 0;                                                           \
    if (n >= LT_LANES) {                                                      \
      for (int l = 0; l < LT_LANES; l++) lane[l] = v[l];                      \
      for (at = LT_LANES; at + LT_LANES <= n; at += LT_LANES)                 \
        for (int l = 0; l < LT_LANES; l++)                                    \
          lane[l] = v[at + l] > lane[l] ? v[at + l] : lane[l];                \
      for (int l = 0; l < LT_LANES; l++) m = lane[l] > m ? lane[l] : m;       \
    }                                                                         \
    for (; at < n; at++) m = v[at] > m ? v[at] : m;                           \
    return m;                                                                 \
  }
LT_LANE_MAX(f32, float)
LT_LANE_MAX(f64, double)
#undef LT_LANE_MAX

#endif
