/* spec/cuda/emu_mma.h: the instructions of runtime/cuda/mma.h on the CPU, as the PTX ISA has them.

   Fragments go from lane to lane as in shuffles. Copies are late: memory is read and written when
   the thread waits for them, so a wait that is missing leaves what was there before. */
#ifndef LT_SPEC_EMU_MMA_H
#define LT_SPEC_EMU_MMA_H

#include "cuda/emu.h"
#include "ops/math/half.h"

namespace emu {
struct Fragments {
  float a[8], b[4];
};
/* Of each warp, on two sides as in `exchange`. */
inline thread_local Fragments fragments[MAX_THREADS / WARP][2][WARP];

struct Copy {
  void *to;
  const void *from;
  bool there;
};
enum { COPIES = 16 }; /* under way, of a thread */
struct Copies {
  unsigned epoch, n;
  Copy list[COPIES];
};
inline thread_local Copies copies[SETS][MAX_THREADS];

inline bool in_shared(const void *p) {
  const char *at = static_cast<const char *>(p);
  return at >= EMU_ME->dynamic && at + 16 <= EMU_ME->dynamic + EMU_ME->shared;
}
inline bool on_border(const void *p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

/* The words of a dtype as floats. */
EMU_HIDDEN inline void widen(bool f16, const uint32_t *words, int n, float *v) {
  for (int k = 0; k < 2 * n; k++) {
    uint16_t bits = static_cast<uint16_t>(words[k / 2] >> (k % 2 * 16));
    v[k] = f16 ? lt_f16_to_f32(bits) : lt_bf16_to_f32(bits);
  }
}

/* read(k, rows): of matrix k, the addresses of its rows. */
template <class F> inline void load_matrices(const void *my_row, unsigned line, F read) {
  if (!in_shared(my_row)) die("ldmatrix outside of shared memory", line, 0);
  if (!on_border(my_row)) die("ldmatrix off the border of 16 bytes", line, 0);
  Warp &w = EMU_ME->w[EMU_ME->t / WARP];
  unsigned side = w.gate & 1;
  exchange(0xffffffffu, reinterpret_cast<uint64_t>(my_row), 0, line);
  for (int k = 0; k < 4; k++) read(k, w.slot[side] + k * 8);
}
} // namespace emu

template <int DTYPE>
EMU_HIDDEN inline void lt_mma(float *c, const uint32_t *a, const uint32_t *b,
                   unsigned line = __builtin_LINE()) {
  static const bool has = fakert_capability() >= 80;
  if (!has) emu::die("mma.m16n8k16 on a GPU without it", line, 0);
  emu::Warp &w = EMU_ME->w[EMU_ME->t / emu::WARP];
  emu::Fragments *all = emu::fragments[EMU_ME->t / emu::WARP][w.gate & 1];
  unsigned lane = EMU_ME->t % emu::WARP, row = lane / 4, pair = lane % 4 * 2;
  emu::widen(DTYPE == LT_F16, a, 4, all[lane].a);
  emu::widen(DTYPE == LT_F16, b, 2, all[lane].b);
  emu::wait(w.gate, w.arrived, w.line, emu::WARP, line);
  for (unsigned i = 0; i < 4; i++) {
    unsigned of_row = i / 2, col = pair + i % 2;
    float sum = c[i];
    for (unsigned k = 0; k < 16; k++) {
      /* Of A [row or row + 8][k]: the half k / 8, the lane k % 8 / 2, the neighbour k % 2. */
      float x = all[row * 4 + k % 8 / 2].a[(k / 8 * 2 + of_row) * 2 + k % 2];
      float y = all[col * 4 + k % 8 / 2].b[k / 8 * 2 + k % 2];
      sum += x * y;
    }
    c[i] = sum;
  }
}

inline void lt_load_matrices(uint32_t *w, const void *my_row, unsigned line = __builtin_LINE()) {
  unsigned lane = EMU_ME->t % emu::WARP;
  emu::load_matrices(my_row, line, [=](int k, const uint64_t *rows) {
    memcpy(&w[k], reinterpret_cast<const uint16_t *>(rows[lane / 4]) + lane % 4 * 2, sizeof w[k]);
  });
}

inline void lt_load_transposed(uint32_t *w, const void *my_row, unsigned line = __builtin_LINE()) {
  unsigned lane = EMU_ME->t % emu::WARP;
  emu::load_matrices(my_row, line, [=](int k, const uint64_t *rows) {
    const uint64_t *pair = rows + lane % 4 * 2;
    w[k] = reinterpret_cast<const uint16_t *>(pair[0])[lane / 4] |
           static_cast<uint32_t>(reinterpret_cast<const uint16_t *>(pair[1])[lane / 4]) << 16;
  });
}

inline void lt_copy_16(void *to, const void *from, bool there, unsigned line = __builtin_LINE()) {
  emu::Copies &mine = emu::copies[EMU_ME->set][EMU_ME->t];
  if (!emu::in_shared(to)) emu::die("cp.async outside of shared memory", line, 0);
  if (!emu::on_border(to) || !emu::on_border(from))
    emu::die("cp.async off the border of 16 bytes", line, 0);
  if (mine.n > 0 && mine.epoch != EMU_ME->epoch)
    emu::die("a block before ended without a wait for its copies", line, 0);
  if (mine.n == emu::COPIES) emu::die("more copies than the emulator keeps", line, mine.n);
  mine.epoch = EMU_ME->epoch;
  mine.list[mine.n++] = {to, from, there};
}

inline void lt_copies_wait() {
  emu::Copies &mine = emu::copies[EMU_ME->set][EMU_ME->t];
  for (unsigned k = 0; k < mine.n; k++) {
    const emu::Copy &one = mine.list[k];
    if (one.there)
      memcpy(one.to, one.from, 16);
    else
      memset(one.to, 0, 16);
  }
  mine.n = 0;
}

template <int DTYPE> inline uint32_t lt_pack(float low, float high) {
  uint32_t first = DTYPE == LT_F16 ? lt_f32_to_f16(low) : lt_f32_to_bf16(low);
  uint32_t second = DTYPE == LT_F16 ? lt_f32_to_f16(high) : lt_f32_to_bf16(high);
  return first | second << 16;
}

inline float lt_exp2(float x) { return exp2f(x); }

#endif
