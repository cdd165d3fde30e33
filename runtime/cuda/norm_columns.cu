/* runtime/cuda/norm_columns.cu: gradients of the weights and biases of norms: sums of columns, over
   segments of the rows, then over the segments in order.

   dweight[i] = sum over rows of g (x - mean) scale, dbias[i] = sum of g. The rows of a batch are
   many and the columns few, so rows are cut into segments to fill the GPU; atomics would do without
   the second pass, and would not repeat their bits. */
#include "cuda/norm.h"
#include "cuda/online_softmax.h"
#include "cuda/thread_groups.h"

/* Four blocks for each multiprocessor of an H100; a segment of fewer than LEAST elements costs more
   to join than it saves. */
enum { WANTED_BLOCKS = 528, LEAST = 2048 };

/* Operands: x, gradient, the two results. */
typedef struct job {
  lt_cuda_lines x;
  int lanes;
  uint32_t segment, segments;
  uint32_t groups; /* group_norm, whose lines are channels: of the batch and of their values */
  lt_divider channels, values;
  const void *stats;
  double *partial; /* [segments][2][columns] */
} job;

/* The row that element `i` of a column is in. */
static __device__ inline uint32_t row_of(const job &j, uint32_t line, uint32_t i) {
  if (j.groups == 0) return i;
  return lt_quotient(i, j.values) * j.groups + lt_quotient(line, j.channels);
}

/* A team a column, the block a segment of the rows: bound by bytes. */
template <class T, bool COLUMNS>
static __global__ void __launch_bounds__(LT_CUDA_THREADS, lt_team_blocks<T>)
columns(LT_CONSTANT job j) {
  LT_SHARED(double, scratch, LT_CUDA_THREADS);
  lt_team t = lt_team_of<COLUMNS>(j.lanes);
  bool has = t.line < j.x.count;
  char *x = has ? lt_line(j.x, 0, t.line) : nullptr, *g = has ? lt_line(j.x, 1, t.line) : nullptr;
  uint32_t from = blockIdx.y * j.segment, to = from + j.segment;
  if (to > j.x.length) to = j.x.length;
  const T *stats = static_cast<const T *>(j.stats);
  T w = 0, b = 0;
  lt_quad<T> v[lt_quads<T>], d[lt_quads<T>];
  double ws = 0, bs = 0;
  int taken = 0;
  for (uint32_t i = from + t.start; has && i < to; i += lt_quads<T> * t.step) {
    lt_team_load_many<COLUMNS, T>(j.x, 0, x, t, i, to, T(0), v);
    lt_team_load_many<COLUMNS, T>(j.x, 1, g, t, i, to, T(0), d);
#pragma unroll
    for (uint32_t e = 0; e < lt_team_many<T>; e++) {
      uint32_t at = lt_team_index<COLUMNS>(t, i, e);
      if (at >= to) continue;
      const T *of = stats + 2 * static_cast<int64_t>(row_of(j, t.line, at));
      w += d[e / 4].v[e % 4] * ((v[e / 4].v[e % 4] - of[0]) * of[1]);
      b += d[e / 4].v[e % 4];
    }
    if ((taken += lt_team_many<T>) % LT_CUDA_CARRY != 0) continue;
    lt_carry(&w, &ws);
    lt_carry(&b, &bs);
  }
  lt_carry(&w, &ws);
  lt_carry(&b, &bs);
  ws = lt_join<COLUMNS>(t, ws, 0.0, lt_plus(), scratch);
  bs = lt_join<COLUMNS>(t, bs, 0.0, lt_plus(), scratch);
  if (!has || !t.leads) return;
  double *out = j.partial + 2 * static_cast<int64_t>(blockIdx.y) * j.x.count + t.line;
  out[0] = ws, out[j.x.count] = bs;
}

/* A thread a column joins the segments. */
static __global__ void __launch_bounds__(LT_CUDA_THREADS) finish(LT_CONSTANT job j) {
  uint32_t line = blockIdx.x * LT_CUDA_THREADS + threadIdx.x;
  if (line >= j.x.count) return;
  double w = 0, b = 0;
  for (uint32_t k = 0; k < j.segments; k++) {
    const double *from = j.partial + 2 * static_cast<int64_t>(k) * j.x.count + line;
    w += from[0], b += from[j.x.count];
  }
  lt_store<double>(lt_line(j.x, 2, line), j.x.o[2].dtype, 0, w);
  if (j.x.o[3].data != nullptr) lt_store<double>(lt_line(j.x, 3, line), j.x.o[3].dtype, 0, b);
}

template <class T> static bool issue(lt_ctx *c, const job *j, dim3 grid) {
  auto kernel = j->x.columns ? columns<T, true> : columns<T, false>;
  return lt_cuda_grid(c, kernel, grid, LT_CUDA_THREADS, 0, *j) &&
         lt_cuda_grid(c, finish, (j->x.count + LT_CUDA_THREADS - 1) / LT_CUDA_THREADS,
                      LT_CUDA_THREADS, 0, *j);
}

typedef struct state {
  lt_ctx *c;
  job j;
  bool wide;
} state;

static bool run_columns(void *ud, const lt_cuda_lines *x) {
  state *s = static_cast<state *>(ud);
  job *j = &s->j;
  unsigned lines;
  j->x = *x;
  j->lanes = lt_cuda_team_lanes(x, &lines);
  unsigned blocks = (x->count + lines - 1) / lines;
  unsigned segments = blocks < WANTED_BLOCKS ? WANTED_BLOCKS / blocks : 1;
  unsigned most = static_cast<unsigned>(static_cast<int64_t>(x->length) * lines / LEAST);
  if (segments > most) segments = most > 0 ? most : 1;
  j->segment = ((x->length + segments - 1) / segments + 3) / 4 * 4;
  j->segments = (x->length + j->segment - 1) / j->segment;
  j->partial = lt_cuda_scratch<double>(s->c, 2 * static_cast<int64_t>(j->segments) * x->count);
  dim3 grid(blocks, j->segments);
  return j->partial != nullptr &&
         (s->wide ? issue<double>(s->c, j, grid) : issue<float>(s->c, j, grid));
}

bool lt_cuda_norm_columns(lt_ctx *c, const lt_cuda_norm *n, const lt_view *v) {
  lt_cuda_lines_plan p;
  state s = {};
  uint32_t along = ((1u << v[0].ndim) - 1) & ~n->along;
  s.c = c;
  s.wide = v[0].dtype == LT_F64;
  s.j.stats = n->stats;
  if (n->groups > 0) {
    s.j.groups = static_cast<uint32_t>(n->groups);
    s.j.channels = lt_divide_by(static_cast<uint32_t>(v[0].size[2]));
    s.j.values = lt_divide_by(static_cast<uint32_t>(v[0].size[3]));
    along = 1u << 0 | 1u << 3;
  }
  lt_cuda_lines_make(&p, along, LT_LINES_BY_MEMORY, false, 4, v);
  return lt_cuda_lines_pieces(c, &p, run_columns, &s);
}
