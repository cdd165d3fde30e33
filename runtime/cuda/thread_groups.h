/* runtime/cuda/thread_groups.h: groups of threads that work on one line of elements together, along
   rows or down columns.

   ROWS: `lanes` neighbouring threads, or the block, each with 4 neighbours of the line at a time.
   COLUMNS: threads that are `lanes` apart, so that neighbouring threads have neighbouring lines. */
#ifndef LT_CUDA_THREAD_GROUPS_H
#define LT_CUDA_THREAD_GROUPS_H

#include "cuda/lines.h"
#include "cuda/reduce.h"

enum { LT_CUDA_THREADS = 256 }; /* of a block */

/* Launch bounds of kernels with much to keep: 80 registers in f32, 128 in f64. */
template <class T> constexpr int lt_team_blocks = sizeof(T) == 8 ? 2 : 3;

typedef struct lt_team {
  uint32_t line, start, stride, step; /* elements start, + stride, ... four; then + step */
  bool leads;                         /* is the one that stores */
  int lanes;
} lt_team;

template <bool COLUMNS> static __device__ inline lt_team lt_team_of(int lanes) {
  uint32_t side = static_cast<uint32_t>(lanes), rest = blockDim.x / side;
  uint32_t fast = threadIdx.x % side, slow = threadIdx.x / side;
  if (COLUMNS) return {blockIdx.x * side + fast, slow, rest, 4 * rest, slow == 0, lanes};
  return {blockIdx.x * rest + slow, 4 * fast, 1, 4 * side, fast == 0, lanes};
}

/* `scratch`: LT_CUDA_THREADS values. */
template <bool COLUMNS, class T, class F>
static __device__ inline T lt_join(const lt_team &t, T v, T none, F join, T *scratch) {
  return COLUMNS ? lt_column_all(v, static_cast<uint32_t>(t.lanes), join, scratch)
                 : lt_team_all(v, none, t.lanes, join, scratch);
}

/* Those of its elements from `i` on that are below `end`. */
template <bool COLUMNS, class T>
static __device__ inline void lt_team_load4(const lt_cuda_lines &x, int k, char *line,
                                            const lt_team &t, uint32_t i, uint32_t end, T none,
                                            T *v) {
  if constexpr (COLUMNS) {
#pragma unroll
    for (uint32_t e = 0; e < 4; e++)
      v[e] = i + e * t.stride < end ? lt_line_load<T>(x, k, line, i + e * t.stride) : none;
  } else {
    lt_line_load4<T>(x, k, line, i, end, none, v);
  }
}

/* Elements that a thread reads before it uses the first: what limits sums over lines is how much is
   under way. */
template <class T> constexpr int lt_team_many = 4 * lt_quads<T>;

/* As lt_team_load4, of lt_team_many<T> elements; element e is lt_team_index(t, i, e), and the next
   ones are lt_quads<T> * t.step further. */
template <bool COLUMNS, class T>
static __device__ inline void lt_team_load_many(const lt_cuda_lines &x, int k, char *line,
                                                const lt_team &t, uint32_t i, uint32_t end, T none,
                                                lt_quad<T> *q) {
  if constexpr (COLUMNS)
    lt_line_load_apart<T, lt_team_many<T>>(x, k, line, i, t.stride, end, none, q[0].v);
  else
    lt_line_load_quads<T>(x, k, line, i, t.step, end, none, q);
}

template <bool COLUMNS>
static __device__ inline uint32_t lt_team_index(const lt_team &t, uint32_t i, uint32_t e) {
  return COLUMNS ? i + e * t.stride : i + e / 4 * t.step + e % 4;
}

template <bool COLUMNS, class T>
static __device__ inline void lt_team_store4(const lt_cuda_lines &x, int k, char *line,
                                             const lt_team &t, uint32_t i, uint32_t end,
                                             const T *v) {
  if constexpr (COLUMNS) {
#pragma unroll
    for (uint32_t e = 0; e < 4; e++)
      if (i + e * t.stride < end) lt_line_store<T>(x, k, line, i + e * t.stride, v[e]);
  } else {
    lt_line_store4<T>(x, k, line, i, end, v);
  }
}

/* On the host: how many lanes, and how many lines a block has then. */
static inline int lt_cuda_team_lanes(const lt_cuda_lines *x, unsigned *lines) {
  unsigned side = 1;
  if (!x->columns) {
    int lanes = lt_cuda_team(x->count, x->length);
    *lines = LT_CUDA_THREADS / static_cast<unsigned>(lanes);
    return lanes;
  }
  while (side < 32 && side < x->count) side *= 2;
  *lines = side;
  return static_cast<int>(side);
}

#endif
