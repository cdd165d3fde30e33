/* spec/c/math_arguments.h: which arguments the math tests try, and on which levels. */
#ifndef LT_SPEC_MATH_ARGUMENTS_H
#define LT_SPEC_MATH_ARGUMENTS_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "exhaustive.h"
#include "math_levels.h"

/* Edges of f32 and of our own functions' ranges; each is tried with both signs and neighbours. */
static const float math_special[] = {
    0.0f,          FLT_MIN,    FLT_MAX,    0x1p-148f,  0x1p-127f,  INFINITY,   NAN,
    0.5f,          1.0f,       1.5f,       2.0f,       2.5f,       3.0f,       4.0f,
    10.0f,         0.5625f,    0.9275f,    0.6931472f, 1.4142135f, 2.0f / 3,   4.0f / 3,
    1.5707964f,    3.1415927f, 6.2831855f, 9.0109f,    17.32868f,  87.33655f,  88.72284f,
    89.0f,         103.97208f, 104.0f,     0x1p-25f,   0x1p-24f,   0x1p-12f,   0x1p22f,
    0x1p23f,       0x1p24f,    0x1p31f,    0x1p62f,    0x1p81f,    0x1p104f,   0x1.47d0fep34f,
    0x1.f9cbe2p7f, 65504.0f,   65520.0f,   0x1p-14f,   0x1p-24f,   0x1.8p-25f,
};

enum {
  math_special_count = (int)(sizeof math_special / sizeof math_special[0]) * 6,
  math_block = 4096,
};

/* Special value i, 0 <= i < math_special_count. */
static inline float math_special_at(int i) {
  float x = math_special[i / 6];
  x = i % 3 == 0 ? x : nextafterf(x, i % 3 == 1 ? INFINITY : -INFINITY);
  return i % 6 < 3 ? x : -x;
}

/* Argument i of block b: block 0 has the special values, the others each stride-th float by its
 * bits. */
static inline float math_argument(int64_t b, int i, uint64_t stride) {
  if (b == 0) return math_special_at(i % math_special_count);
  uint32_t bits = (uint32_t)(((uint64_t)(b - 1) * math_block + (uint64_t)i) * stride);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* A well-mixed 64-bit number for each i. */
static inline uint64_t math_hash(uint64_t i) {
  i = (i + 1) * 0x9e3779b97f4a7c15u;
  i = (i ^ i >> 31) * 0xbf58476d1ce4e5b9u;
  return (i ^ i >> 29) * 0x94d049bb133111ebu ^ i >> 32;
}

/* The levels of this build that this machine can run; returns their count. */
static inline int math_levels_here(const math_level **levels) {
  int count = 0;
  static const math_level *const all[] = {
#define LT_CPU_LEVEL(level) &math_level_##level,
#include "cpu/levels.def"
#undef LT_CPU_LEVEL
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (lt_cpu_runs(all[i]->name)) levels[count++] = all[i];
  }
  return count;
}

#endif
