/* runtime/cuda/scan.cu: running sums along a dim, forwards and (the gradient) backwards.

   Long lines are cut into segments: a first grid sums them, and each block of the second adds up
   those before its own. Floats are carried in double.

   The method is that of G. Blelloch's scans (Prefix Sums and Their Applications, 1990) with sums
   before writes: x is read twice where a line is cut, once elsewhere. Decoupled look-back (D.
   Merrill and M. Garland, 2016) would read it once, but needs blocks that wait for each other and
   sums in an order that depends on timing. */
#include "cuda/thread_groups.h"

enum { WANTED_BLOCKS = 1056, SEGMENTS = 512 };

/* Operands: x and y. */
typedef struct job {
  lt_cuda_lines x;
  bool back;
  int lanes;
  uint32_t segment, segments;
  void *partial; /* [segments][count], where there are several */
} job;

static __device__ inline double add(double a, double b) { return a + b; }
static __device__ inline int64_t add(int64_t a, int64_t b) { /* integers wrap */
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
/* add as a function object, for the joins of reduce.h. */
struct sum_of {
  template <class W> __device__ W operator()(W a, W b) const { return add(a, b); }
};

/* Element `i` in the order of the scan. */
static __device__ inline uint32_t place(const job &j, uint32_t i) {
  return j.back ? j.x.length - 1 - i : i;
}

/* Backwards the four are loaded one by one: they are in falling order of addresses. */
template <class W>
static __device__ inline void load4(const job &j, char *x, uint32_t i, uint32_t end, W *v) {
  if (!j.back) {
    lt_line_load4<W>(j.x, 0, x, i, end, W(0), v);
    return;
  }
#pragma unroll
  for (uint32_t e = 0; e < 4; e++)
    v[e] = i + e < end ? lt_line_load<W>(j.x, 0, x, place(j, i + e)) : W(0);
}
template <class W>
static __device__ inline void store4(const job &j, char *y, uint32_t i, uint32_t end,
                                     const W *v) {
  if (!j.back) {
    lt_line_store4<W>(j.x, 1, y, i, end, v);
    return;
  }
#pragma unroll
  for (uint32_t e = 0; e < 4; e++)
    if (i + e < end) lt_line_store<W>(j.x, 1, y, place(j, i + e), v[e]);
}

/* The block's segment: blockIdx.y counts segments, blockIdx.x lines. */
static __device__ inline uint32_t segment_of(const job &j, uint32_t *end) {
  uint32_t from = blockIdx.y * j.segment;
  *end = from + j.segment < j.x.length ? from + j.segment : j.x.length;
  return from;
}

/* The sum of a segment: bound by bytes. */
template <class W, bool COLUMNS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, 6) totals(LT_CONSTANT job j) {
  LT_SHARED(W, scratch, LT_CUDA_THREADS);
  lt_team t = lt_team_of<COLUMNS>(j.lanes);
  bool has = t.line < j.x.count;
  char *x = has ? lt_line(j.x, 0, t.line) : nullptr;
  uint32_t end, from = segment_of(j, &end);
  W sum = 0;
  for (uint32_t i = from + t.start; has && i < end; i += t.step) {
    W v[4] = {0, 0, 0, 0};
    if (!COLUMNS) load4(j, x, i, end, v);
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
      if (COLUMNS && i + e * t.stride < end)
        v[e] = lt_line_load<W>(j.x, 0, x, place(j, i + e * t.stride));
      sum = add(sum, v[e]);
    }
  }
  sum = lt_join<COLUMNS>(t, sum, W(0), sum_of(), scratch);
  if (has && t.leads)
    static_cast<W *>(j.partial)[static_cast<int64_t>(blockIdx.y) * j.x.count + t.line] = sum;
}

/* What the segments before this block's add up to, in order. Each block adds at most SEGMENTS
   values again: less than a third launch would cost. */
template <class W> static __device__ inline W before(const job &j, uint32_t line) {
  W sum = 0;
  for (uint32_t s = 0; j.segments > 1 && s < blockIdx.y; s++)
    sum = add(sum, static_cast<const W *>(j.partial)[static_cast<int64_t>(s) * j.x.count + line]);
  return sum;
}

/* Of the lanes below this one of its part of a warp, and of all of them. Hillis and Steele's
   doubling with shuffles: log2(lanes) steps without shared memory. */
template <class W>
static __device__ inline W lanes_before(W v, uint32_t lanes, W *all) {
  uint32_t lane = threadIdx.x % lanes;
  W sum = v;
  for (uint32_t d = 1; d < lanes; d *= 2) {
    W other = __shfl_up_sync(0xffffffffu, sum, d);
    if (lane >= d) sum = add(sum, other);
  }
  uint32_t last = threadIdx.x % 32 / lanes * lanes + lanes - 1;
  *all = __shfl_sync(0xffffffffu, sum, last);
  W previous = __shfl_up_sync(0xffffffffu, sum, 1);
  return lane > 0 ? previous : W(0);
}

/* The same of a team; `scratch`: LT_CUDA_SCRATCH values. Every thread adds up the few sums of the
   warps itself, in the same order. */
template <class W> static __device__ inline W team_before(W v, int lanes, W *scratch, W *all) {
  if (lanes <= 32) return lanes_before(v, static_cast<uint32_t>(lanes), all);
  W own = lanes_before(v, 32u, all);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = *all;
  __syncthreads();
  W lower = 0, sum = 0;
  for (uint32_t w = 0; w < LT_CUDA_THREADS / 32; w++) {
    if (w == threadIdx.x / 32) lower = sum;
    sum = add(sum, scratch[w]);
  }
  __syncthreads();
  *all = sum;
  return add(lower, own);
}

/* A team a segment of a line, a tile of 4 elements a thread at a time: bound by bytes. Rounding:
   each element is a double sum of the tile before it and a short chain within, rounded once to the
   result's dtype. */
template <class W>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, 2) rows(LT_CONSTANT job j) {
  LT_SHARED(W, scratch, LT_CUDA_SCRATCH);
  lt_team t = lt_team_of<false>(j.lanes);
  bool has = t.line < j.x.count;
  char *x = has ? lt_line(j.x, 0, t.line) : nullptr, *y = has ? lt_line(j.x, 1, t.line) : nullptr;
  uint32_t end, from = segment_of(j, &end);
  W carried = has ? before<W>(j, t.line) : W(0);
  for (uint32_t tile = from; tile < end; tile += t.step) { /* the same in all threads */
    uint32_t i = tile + t.start;
    W v[4] = {0, 0, 0, 0}, all;
    if (has && i < end) load4(j, x, i, end, v);
#pragma unroll
    for (int e = 1; e < 4; e++) v[e] = add(v[e - 1], v[e]);
    W lower = add(carried, team_before(v[3], j.lanes, scratch, &all));
#pragma unroll
    for (int e = 0; e < 4; e++) v[e] = add(lower, v[e]);
    if (has && i < end) store4(j, y, i, end, v);
    carried = add(carried, all);
  }
}

/* A thread a segment of a line; neighbouring threads have neighbouring lines. Strictly sequential
   in each segment: a load and a store an element, coalesced across the threads. */
template <class W>
static __global__ void __launch_bounds__(LT_CUDA_THREADS) columns(LT_CONSTANT job j) {
  uint32_t line = blockIdx.x * LT_CUDA_THREADS + threadIdx.x, end, from = segment_of(j, &end);
  if (line >= j.x.count) return;
  char *x = lt_line(j.x, 0, line), *y = lt_line(j.x, 1, line);
  W sum = before<W>(j, line);
  for (uint32_t i = from; i < end; i++) {
    sum = add(sum, lt_line_load<W>(j.x, 0, x, place(j, i)));
    lt_line_store<W>(j.x, 1, y, place(j, i), sum);
  }
}

template <class W> static bool issue(lt_ctx *c, job *j) {
  bool side = j->x.columns;
  unsigned lines;
  j->lanes = lt_cuda_team_lanes(&j->x, &lines);
  unsigned blocks = (j->x.count + lines - 1) / lines;
  unsigned segments = blocks < WANTED_BLOCKS ? WANTED_BLOCKS / blocks : 1;
  unsigned least = side ? 256 : 4096, most = j->x.length / least;
  if (segments > most) segments = most;
  if (segments > SEGMENTS) segments = SEGMENTS;
  if (segments < 1) segments = 1;
  j->segment = ((j->x.length + segments - 1) / segments + 3) / 4 * 4;
  j->segments = (j->x.length + j->segment - 1) / j->segment;
  if (j->segments > 1) {
    j->partial = lt_cuda_scratch<W>(c, static_cast<int64_t>(j->segments) * j->x.count);
    if (j->partial == nullptr ||
        !lt_cuda_grid(c, side ? totals<W, true> : totals<W, false>, dim3(blocks, j->segments),
                      LT_CUDA_THREADS, 0, *j))
      return false;
  }
  if (side) blocks = (j->x.count + LT_CUDA_THREADS - 1) / LT_CUDA_THREADS;
  return lt_cuda_grid(c, side ? columns<W> : rows<W>, dim3(blocks, j->segments), LT_CUDA_THREADS,
                      0, *j);
}

typedef struct state {
  lt_ctx *c;
  bool back;
} state;

static bool run_piece(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  job j = {};
  j.x = *x;
  j.back = s->back;
  return lt_cuda_compute(x->o[0].dtype) == LT_CUDA_I64 ? issue<int64_t>(s->c, &j)
                                                       : issue<double>(s->c, &j);
}

static bool scan(lt_ctx *c, const lt_call *call, int64_t dim, bool back) {
  lt_view v[2];
  lt_cuda_lines_plan p;
  state s = {c, back};
  if (!lt_cuda_view(c, call->in[0], &v[0]) || !lt_cuda_view(c, call->out[0], &v[1])) return false;
  if (lt_cuda_numel(&v[0]) == 0) return true;
  uint32_t all = (1u << v[0].ndim) - 1;
  lt_cuda_lines_make(&p, all & 1u << dim, LT_LINES_BY_MEMORY, false, 2, v);
  return lt_cuda_lines_pieces(c, &p, run_piece, &s);
}

LT_CUDA_KERNEL(cumsum) { return scan(c, call, lt_cuda_args<lt_args_scan>(call)->dim, false); }
LT_CUDA_KERNEL(cumsum_backward) {
  return scan(c, call, lt_cuda_args<lt_args_scan_backward>(call)->dim, true);
}
