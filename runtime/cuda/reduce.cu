/* runtime/cuda/reduce.cu: sum, mean, extrema and their kin over any dims.

   Where the memory runs along the reduced dims, a team of threads reduces a line (rows); where it
   runs along the kept ones, threads side by side each have a line of their own (columns). Few long
   lines are cut into segments, which a second grid joins in order. All of it depends on the shape
   and the strides alone. Floats are added up in their own type over at most 512 values, in double
   from there on; products are double throughout. */
#include "cuda/elementwise.h"
#include "cuda/lines.h"
#include "cuda/reduce.h"

enum { THREADS = 256, CARRY = 128, WANTED_BLOCKS = 1056, SEGMENTS = 1024 };

/* Blocks of a multiprocessor that kernels are compiled for: registers for several loads a
   thread. */
template <class T> static constexpr int RESIDENT = sizeof(T) == 8 ? 4 : 5;

typedef enum by { BY_SUM, BY_PROD, BY_MAX, BY_MIN } by;

/* Operand 0 is x, 1 the result. */
typedef struct job {
  lt_cuda_lines x;
  by how;
  bool mean, truth;  /* divide by the length; read x as x != 0 */
  int lanes;         /* rows: threads a line; columns: lines side by side */
  uint32_t segment, segments;
  int64_t total;     /* elements of a line */
  void *partial;     /* [segments][count], where there are several */
} job;

/* What sums of T are carried in. double for floats: consumer GPUs have few units for it, but it is
   used once in CARRY additions. */
template <class T> struct wide { typedef double type; };
template <> struct wide<int64_t> { typedef int64_t type; };

template <class T> static __device__ inline T lowest(T) { return -INFINITY; }
template <> __device__ inline int64_t lowest(int64_t) { return INT64_MIN; }
template <class T> static __device__ inline T highest(T) { return INFINITY; }
template <> __device__ inline int64_t highest(int64_t) { return INT64_MAX; }

/* What changes nothing. Truth values are 0 and 1. Neutral elements, which threads without a value
   bring to the tree. */
template <class T> static __device__ inline T nothing(by how, bool truth) {
  switch (how) {
    case BY_SUM: return 0;
    case BY_PROD: return 1;
    case BY_MAX: return truth ? T(0) : lowest(T());
    case BY_MIN: return truth ? T(1) : highest(T());
  }
  return 0;
}

static __device__ inline double add(double a, double b) { return a + b; }
static __device__ inline float add(float a, float b) { return a + b; }
static __device__ inline double multiply(double a, double b) { return a * b; }
static __device__ inline int64_t add(int64_t a, int64_t b) { /* integers wrap */
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
static __device__ inline int64_t multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

struct joined {
  by how;
  template <class W> __device__ W operator()(W a, W b) const {
    switch (how) {
      case BY_SUM: return add(a, b);
      case BY_PROD: return multiply(a, b);
      case BY_MAX: return lt_larger_or_nan()(a, b);
      case BY_MIN: return lt_smaller_or_nan()(a, b);
    }
    return a;
  }
};

/* Four more values of a thread. Products go to the wide sum at once: a product of 512 floats could
   leave the range of f32 where the result does not. */
template <class T, class W>
static __device__ inline void take4(const job &j, T *v, T *part, W *carried) {
  if (j.truth) {
#pragma unroll
    for (int e = 0; e < 4; e++) v[e] = v[e] != 0;
  }
  switch (j.how) {
    case BY_SUM: *part = add(*part, add(add(v[0], v[1]), add(v[2], v[3]))); return;
    case BY_PROD:
#pragma unroll
      for (int e = 0; e < 4; e++) *carried = multiply(*carried, static_cast<W>(v[e]));
      return;
    case BY_MAX:
#pragma unroll
      for (int e = 0; e < 4; e++) *part = lt_larger_or_nan()(*part, v[e]);
      return;
    case BY_MIN:
#pragma unroll
      for (int e = 0; e < 4; e++) *part = lt_smaller_or_nan()(*part, v[e]);
      return;
  }
}

/* The result of a line, rounded once to its dtype; a mean divides in double, by the length of the
   whole line also where it was cut. */
template <class W> static __device__ inline void put(const job &j, uint32_t line, W v) {
  char *y = lt_line(j.x, 1, line);
  if (j.mean)
    lt_store<double>(y, j.x.o[1].dtype, 0,
                     static_cast<double>(v) / static_cast<double>(j.total));
  else
    lt_store<W>(y, j.x.o[1].dtype, 0, v);
}

template <class W> static __device__ inline void put_segment(const job &j, uint32_t line, W v) {
  if (j.partial == nullptr)
    put(j, line, v);
  else
    static_cast<W *>(j.partial)[static_cast<int64_t>(blockIdx.y) * j.x.count + line] = v;
}

/* A team a line, 4 neighbours a thread: bound by bytes. Each thread adds a fixed set of elements in
   a fixed order, then a tree of fixed shape: the same bits in each run, and on each GPU. */
template <class T>
static __global__ void __launch_bounds__(THREADS, RESIDENT<T>) rows(LT_CONSTANT job j) {
  typedef typename wide<T>::type W;
  LT_SHARED(W, scratch, LT_CUDA_SCRATCH);
  uint32_t lanes = static_cast<uint32_t>(j.lanes), lane = threadIdx.x % lanes;
  uint32_t line = blockIdx.x * (THREADS / lanes) + threadIdx.x / lanes;
  uint32_t start = blockIdx.y * j.segment, end = start + j.segment;
  if (end > j.x.length) end = j.x.length;
  char *x = line < j.x.count ? lt_line(j.x, 0, line) : nullptr;
  T none = nothing<T>(j.how, j.truth), part = none;
  W carried = static_cast<W>(none);
  lt_quad<T> q[lt_quads<T>];
  uint32_t step = 4 * lanes;
  int carry = 0;
  for (uint32_t i = start + 4 * lane; x != nullptr && i < end; i += lt_quads<T> * step) {
    lt_line_load_quads<T>(j.x, 0, x, i, step, end, none, q);
#pragma unroll
    for (int a = 0; a < lt_quads<T>; a++) take4(j, q[a].v, &part, &carried);
    if ((carry += lt_quads<T>) < CARRY) continue;
    carried = joined{j.how}(carried, static_cast<W>(part));
    part = none, carry = 0;
  }
  carried = joined{j.how}(carried, static_cast<W>(part));
  carried = lt_team_all(carried, static_cast<W>(none), j.lanes, joined{j.how}, scratch);
  if (lane == 0 && x != nullptr) put_segment(j, line, carried);
}

/* `lanes` lines side by side, the other threads of the block further along them; joined in shared
   memory: bound by bytes. */
template <class T>
static __global__ void __launch_bounds__(THREADS, RESIDENT<T>) columns(LT_CONSTANT job j) {
  typedef typename wide<T>::type W;
  LT_SHARED(W, scratch, THREADS);
  uint32_t lanes = static_cast<uint32_t>(j.lanes), step = THREADS / lanes;
  uint32_t line = blockIdx.x * lanes + threadIdx.x % lanes, row = threadIdx.x / lanes;
  uint32_t start = blockIdx.y * j.segment, end = start + j.segment;
  if (end > j.x.length) end = j.x.length;
  char *x = line < j.x.count ? lt_line(j.x, 0, line) : nullptr;
  T none = nothing<T>(j.how, j.truth), part = none, v[8];
  W carried = static_cast<W>(none);
  int carry = 0;
  for (uint32_t i = start + row; x != nullptr && i < end; i += 8 * step) {
    lt_line_load_apart<T, 8>(j.x, 0, x, i, step, end, none, v);
    take4(j, v, &part, &carried);
    take4(j, v + 4, &part, &carried);
    if ((carry += 2) < CARRY) continue;
    carried = joined{j.how}(carried, static_cast<W>(part));
    part = none, carry = 0;
  }
  scratch[threadIdx.x] = joined{j.how}(carried, static_cast<W>(part));
  for (uint32_t d = step / 2; d > 0; d /= 2) {
    __syncthreads();
    if (row < d)
      scratch[threadIdx.x] = joined{j.how}(scratch[threadIdx.x], scratch[threadIdx.x + d * lanes]);
  }
  if (row == 0 && x != nullptr) put_segment(j, line, scratch[threadIdx.x]);
}

/* A team a line joins its segments, in the order in which they were cut. */
template <class W>
static __global__ void __launch_bounds__(THREADS) finish(LT_CONSTANT job j) {
  uint32_t lanes = static_cast<uint32_t>(j.lanes), lane = threadIdx.x % lanes;
  uint32_t line = blockIdx.x * (THREADS / lanes) + threadIdx.x / lanes;
  const W *from = static_cast<const W *>(j.partial) + line;
  W v = nothing<W>(j.how, j.truth);
  for (uint32_t s = lane; line < j.x.count && s < j.segments; s += lanes)
    v = joined{j.how}(v, from[static_cast<int64_t>(s) * j.x.count]);
  v = lt_lanes_all(v, j.lanes, joined{j.how});
  if (lane == 0 && line < j.x.count) put(j, line, v);
}

/* The least power of 2 that is not below n, at most `most`. */
static int power_of_2(int64_t n, int most) {
  int p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

/* Threads and segments: enough blocks for a large GPU, enough elements for each thread. Returns the
   blocks; *most: how many segments a line of this length or less may get. WANTED_BLOCKS is eight
   for each of 132 multiprocessors (an H100's); on a smaller GPU the same cut, so that results do
   not depend on the device. At least 16 elements a thread: fewer would cost more in joining than
   they save. */
static int64_t cut(job *j, int64_t *most) {
  int64_t length = j->x.length, count = j->x.count;
  j->lanes = j->x.columns ? power_of_2(count, 32) : lt_cuda_team(count, length);
  int64_t side = j->x.columns ? j->lanes : THREADS / j->lanes;
  int64_t blocks = (count + side - 1) / side;
  int64_t least = j->x.columns ? 16 * (THREADS / j->lanes) : 16 * j->lanes;
  int64_t segments = blocks < WANTED_BLOCKS ? WANTED_BLOCKS / blocks : 1;
  if (segments > length / least) segments = length / least;
  if (segments > SEGMENTS) segments = SEGMENTS;
  if (segments < 1) segments = 1;
  *most = segments;
  j->segment = static_cast<uint32_t>((length + segments - 1) / segments + 3) / 4 * 4;
  j->segments = static_cast<uint32_t>((length + j->segment - 1) / j->segment);
  return blocks;
}

template <class T> static bool issue(lt_ctx *c, job *j, int64_t blocks) {
  dim3 grid(static_cast<unsigned>(blocks), j->segments);
  return lt_cuda_grid(c, j->x.columns ? columns<T> : rows<T>, grid, THREADS, 0, *j);
}

static bool run_segments(lt_ctx *c, job *j, int64_t blocks) {
  int compute = lt_cuda_compute(j->x.o[0].dtype);
  return compute == LT_CUDA_F32   ? issue<float>(c, j, blocks)
         : compute == LT_CUDA_F64 ? issue<double>(c, j, blocks)
                                  : issue<int64_t>(c, j, blocks);
}

static bool run_finish(lt_ctx *c, job *j) {
  j->lanes = power_of_2(j->segments, 32);
  unsigned lines = static_cast<unsigned>(THREADS / j->lanes);
  auto kernel = lt_cuda_compute(j->x.o[0].dtype) == LT_CUDA_I64 ? finish<int64_t> : finish<double>;
  return lt_cuda_grid(c, kernel, (j->x.count + lines - 1) / lines, THREADS, 0, *j);
}

typedef struct state {
  lt_ctx *c;
  job j;
  int64_t parts, part; /* of lines that are too long for 32 bits */
  double *partial;
  int64_t done;        /* segments of the parts before */
} state;

/* Scratch for the partial results is taken with the first part, for all. */
static bool run_piece(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  job *j = &s->j;
  j->x = *x;
  j->partial = nullptr;
  int64_t most, blocks = cut(j, &most), count = x->count;
  if (s->parts == 1 && j->segments == 1) return run_segments(s->c, j, blocks);
  if (s->part == 0) s->partial = lt_cuda_scratch<double>(s->c, s->parts * most * count);
  if (s->partial == nullptr) return false;
  j->partial = s->partial + s->done * count;
  if (!run_segments(s->c, j, blocks)) return false;
  s->done += j->segments;
  if (++s->part < s->parts) return true;
  j->partial = s->partial;
  j->segments = static_cast<uint32_t>(s->done);
  s->part = s->done = 0;
  return run_finish(s->c, j);
}

/* Lines that are too long are cut along their slowest dim. */
static bool run(lt_cuda_lines_plan *p, state *s) {
  s->parts = 1;
  if (p->length <= LT_CUDA_LINES_MOST) return lt_cuda_lines_pieces(s->c, p, run_piece, s);
  int64_t full = p->along[0], inner = p->length / full, most = LT_CUDA_LINES_MOST / inner;
  if (most == 0) return lt_cuda_lines_pieces(s->c, p, run_piece, s); /* which refuses them */
  s->parts = (full + most - 1) / most;
  char *data = static_cast<char *>(p->v[0].data);
  int64_t step = p->along_stride[0][0] * lt_cuda_item_size(p->v[0].dtype);
  for (int64_t at = 0; at < full; at += most) {
    p->along[0] = full - at < most ? full - at : most;
    p->length = p->along[0] * inner;
    p->v[0].data = data + at * step;
    if (!lt_cuda_lines_pieces(s->c, p, run_piece, s)) return false;
  }
  return true;
}

/* Over no elements: the neutral one; a mean is 0 / 0. */
static bool reduce(lt_ctx *c, const lt_call *call, by how, bool mean, bool truth) {
  const lt_args_reduce *a = lt_cuda_args<lt_args_reduce>(call);
  lt_view v[2];
  lt_cuda_lines_plan p;
  uint32_t along = 0;
  if (!lt_cuda_view(c, call->in[0], &v[0]) || !lt_cuda_view(c, call->out[0], &v[1])) return false;
  for (int k = 0; k < a->dims.n; k++) along |= 1u << a->dims.dim[k];
  lt_cuda_lines_make(&p, along, LT_LINES_BY_MEMORY, true, 2, v);
  if (p.length == 0) {
    static const double empty[] = {0, 1, 0, 1};
    return lt_cuda_fill_view(c, &v[1], lt_cuda_number(mean ? NAN : empty[how]));
  }
  state s = {};
  s.c = c;
  s.j.how = how, s.j.mean = mean, s.j.truth = truth, s.j.total = p.length;
  return run(&p, &s);
}

LT_CUDA_KERNEL(sum) { return reduce(c, call, BY_SUM, false, false); }
LT_CUDA_KERNEL(mean) { return reduce(c, call, BY_SUM, true, false); }
LT_CUDA_KERNEL(prod) { return reduce(c, call, BY_PROD, false, false); }
LT_CUDA_KERNEL(amax) { return reduce(c, call, BY_MAX, false, false); }
LT_CUDA_KERNEL(amin) { return reduce(c, call, BY_MIN, false, false); }
LT_CUDA_KERNEL(any) { return reduce(c, call, BY_MAX, false, true); }
LT_CUDA_KERNEL(all) { return reduce(c, call, BY_MIN, false, true); }
