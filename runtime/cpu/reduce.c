/* runtime/cpu/reduce.c: sum, mean, extrema and their kin over any dims.

   Outputs are `count` lines of `length` elements. Where the memory runs along the reduced dims, a
   line is reduced by lanes (rows); where it runs along the kept ones, a tile of outputs is carried
   over the lines (columns). Both are cut into blocks of outputs and segments of the length, which
   depend on the shape alone, so the result does not depend on the number of threads. Floats are
   added up in their own type within TOGETHER elements of a line, CARRY steps of columns, and in
   double from there on.

   Adding in blocks bounds the rounding error by the length of a block plus the number of blocks,
   not by the length (N. Higham, The accuracy of floating point summation, 1993). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/dim_order.h"

enum { LANES = 32, AT_ONCE = 4, CARRY = 32, SEGMENTS = 64, TOGETHER = 4 * LT_TILE };

typedef enum by { BY_SUM, BY_PROD, BY_MAX, BY_MIN } by;

typedef struct plan {
  const lt_ctx *c;
  lt_iter x, y;
  by by;
  bool mean;    /* divide by the length */
  bool truth;   /* read x as x != 0 */
  bool columns;
  int64_t count, length;
  int64_t step;                 /* from row to row of columns; 0: over several dims */
  int64_t block, n_blocks;      /* outputs a chunk */
  int64_t segment, n_segments;  /* elements of the length a chunk */
  void *partial;                /* [n_segments][count] of double or int64_t */
} plan;

#define put_wide_f32 LT_CPU(lt_put_f64)
#define put_wide_f64 LT_CPU(lt_put_f64)
#define put_wide_i64 LT_CPU(lt_put_i64)

#define FLOAT_ADD(a, b) ((a) + (b))
#define FLOAT_MULTIPLY(a, b) ((a) * (b))
#define INT_ADD(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define INT_MULTIPLY(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))

#define T float
#define WIDE double
#define NAME(f) f##_f32
#define LOWEST (-INFINITY)
#define HIGHEST INFINITY
#define ADD FLOAT_ADD
#define MULTIPLY FLOAT_MULTIPLY
#include "cpu/reduce_type.h"

#define T double
#define WIDE double
#define NAME(f) f##_f64
#define LOWEST (-INFINITY)
#define HIGHEST INFINITY
#define ADD FLOAT_ADD
#define MULTIPLY FLOAT_MULTIPLY
#include "cpu/reduce_type.h"

#define T int64_t
#define WIDE int64_t
#define NAME(f) f##_i64
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#define ADD INT_ADD
#define MULTIPLY INT_MULTIPLY
#include "cpu/reduce_type.h"

static void run_chunk(void *ud, int64_t chunk) {
  const plan *p = ud;
  switch (lt_compute_of(p->x.operand[0].dtype)) {
    case LT_COMPUTE_F32: chunk_f32(p, chunk); return;
    case LT_COMPUTE_F64: chunk_f64(p, chunk); return;
    case LT_COMPUTE_I64: chunk_i64(p, chunk); return;
  }
}

static void run_finish(void *ud, int64_t chunk) {
  const plan *p = ud;
  switch (lt_compute_of(p->x.operand[0].dtype)) {
    case LT_COMPUTE_F32: finish_f32(p, chunk); return;
    case LT_COMPUTE_F64: finish_f64(p, chunk); return;
    case LT_COMPUTE_I64: finish_i64(p, chunk); return;
  }
}

/* Order of dims: kept ones as the result lies, reduced ones as the memory lies. The result's order
   does not matter to it, but memory read along its smallest stride is read once. */
static void arrange(plan *p, const lt_tensor *x, const lt_tensor *y, const lt_args_reduce *a) {
  int kept[LT_MAX_DIMS], reduced[LT_MAX_DIMS], order[LT_MAX_DIMS], of_y[LT_MAX_DIMS];
  int n_kept = 0, n_reduced = 0;
  int64_t least_kept = INT64_MAX, least_reduced = INT64_MAX;
  p->count = p->length = 1;
  for (int k = 0; k < x->ndim; k++) {
    bool reduce = n_reduced < a->dims.n && a->dims.dim[n_reduced] == k;
    int64_t *least = reduce ? &least_reduced : &least_kept;
    if (reduce && x->size[k] > 1) p->step = p->length == 1 ? x->stride[k] : 0;
    if (x->size[k] > 1 && llabs(x->stride[k]) < *least) *least = llabs(x->stride[k]);
    *(reduce ? &p->length : &p->count) *= x->size[k];
    if (!reduce) of_y[n_kept] = a->keepdim ? k : n_kept;
    if (reduce)
      reduced[n_reduced++] = k;
    else
      kept[n_kept++] = k;
  }
  for (int i = 1; i < n_reduced; i++)
    for (int j = i; j > 0 && x->stride[reduced[j - 1]] < x->stride[reduced[j]]; j--) {
      int d = reduced[j];
      reduced[j] = reduced[j - 1], reduced[j - 1] = d;
    }
  p->columns = least_kept < least_reduced;
  memcpy(order, p->columns ? reduced : kept, sizeof order);
  memcpy(order + (p->columns ? n_reduced : n_kept), p->columns ? kept : reduced,
         (size_t)(p->columns ? n_kept : n_reduced) * sizeof *order);
  LT_CPU(lt_iter_dims)(&p->x, x, x->ndim, order);
  LT_CPU(lt_iter_dims)(&p->y, y, n_kept, of_y);
}

/* The widest block of columns that is in one run of the memory, so that it is read in place. */
static int64_t width(const plan *p) {
  int64_t run = p->x.size[p->x.ndim - 1], pieces = (run + LT_TILE - 1) / LT_TILE;
  return run >= LT_TILE / 8 && run < p->count && run % pieces == 0 ? run / pieces : LT_TILE;
}

/* Cut into chunks of about LT_CHUNK elements, and at most SEGMENTS segments a block. */
static void cut(plan *p) {
  int64_t most = p->columns ? width(p) : LT_CHUNK / p->length;
  p->block = most < 1 ? 1 : most < p->count ? most : p->count;
  p->n_blocks = (p->count + p->block - 1) / p->block;
  /* One long line has to be cut to use the threads; many lines are enough work by themselves. By
     counts of the shape alone, never by the number of threads. */
  int64_t wanted = p->n_blocks >= SEGMENTS ? 1 : SEGMENTS / p->n_blocks;
  int64_t least = LT_CHUNK / p->block < 1 ? 1 : LT_CHUNK / p->block;
  p->segment = (p->length + wanted - 1) / wanted;
  if (p->segment < least) p->segment = least;
  if (p->segment > p->length) p->segment = p->length;
  p->n_segments = (p->length + p->segment - 1) / p->segment;
}

static bool reduce(lt_ctx *c, const lt_call *call, plan p) {
  p.c = c;
  arrange(&p, call->in[0], call->out[0], call->args);
  if (p.count == 0) return true;
  if (p.length == 0) {
    /* Of nothing: the neutral element, as PyTorch; a mean of nothing is NaN. */
    static const double nothing[] = {[BY_SUM] = 0, [BY_PROD] = 1, [BY_MIN] = 1};
    lt_scalar value = lt_scalar_of(p.mean ? NAN : nothing[p.by]);
    value.i = (int64_t)nothing[p.by];
    const lt_args_fill args = {.value = value};
    const lt_call fill = {.op = LT_OP_fill, .n_out = 1, .out = call->out, .args = &args};
    return LT_CPU(lt_cpu_fill)(c, &fill);
  }
  cut(&p);
  lt_frame frame = lt_frame_open(c);
  int64_t words = p.n_segments * p.count;
  lt_tensor *partial = lt_tensor_empty(c, LT_CPU_DEVICE, LT_I64, 1, &words);
  if (partial != NULL) {
    p.partial = lt_data(partial);
    lt_parallel(c, p.n_blocks * p.n_segments, run_chunk, &p);
    lt_parallel(c, (p.count + LT_CHUNK - 1) / LT_CHUNK, run_finish, &p);
  }
  lt_frame_close(c, frame, 0, NULL);
  return partial != NULL;
}

LT_KERNEL(sum) { return reduce(c, call, (plan){.by = BY_SUM}); }
LT_KERNEL(mean) { return reduce(c, call, (plan){.by = BY_SUM, .mean = true}); }
LT_KERNEL(prod) { return reduce(c, call, (plan){.by = BY_PROD}); }
LT_KERNEL(amax) { return reduce(c, call, (plan){.by = BY_MAX}); }
LT_KERNEL(amin) { return reduce(c, call, (plan){.by = BY_MIN}); }
LT_KERNEL(any) { return reduce(c, call, (plan){.by = BY_MAX, .truth = true}); }
LT_KERNEL(all) { return reduce(c, call, (plan){.by = BY_MIN, .truth = true}); }
