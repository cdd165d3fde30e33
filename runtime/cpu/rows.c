/* runtime/cpu/rows.c: the kernel of every elementwise row: one loop per row and compute type. */
#include "ops/math/f32.h"
#include "ops/math/f64.h"
#include "ops/math/i64.h"
#include "cpu/tile.h"

/* One call, ready to be cut into chunks. Operand 0 of `it` is the result. */
typedef struct job {
  lt_iter it;
  lt_op op;
  int n_in;
  bool constant[LT_ITER_OPERANDS]; /* a number instead of a tensor */
  lt_scalar scalar[LT_ITER_OPERANDS];
  lt_scalar p, q;
  lt_compute compute;
} job;

/* No dependency between iterations; a result may lie exactly on an input (in-place forms). */
#define LT_EACH LT_INDEPENDENT for (int64_t i = 0; i < n; i++)

static inline float scalar_f32(lt_scalar s) { return (float)s.f; }
static inline double scalar_f64(lt_scalar s) { return s.f; }
static inline int64_t scalar_i64(lt_scalar s) { return s.i; }

#define T float
#define NAME(f) f##_f32
#define OWN LT_F32
#define K(x) ((float)(x))
#define IF_any(...) __VA_ARGS__
#define IF_float(...) __VA_ARGS__
#define IF_derivative(...) __VA_ARGS__
#define exp(x) lt_exp_f32(x)
#define expm1(x) lt_expm1_f32(x)
#define log(x) lt_log_f32(x)
#define log1p(x) lt_log1p_f32(x)
#define sqrt(x) lt_sqrt_f32(x)
#define rsqrt(x) lt_rsqrt_f32(x)
#define sin(x) lt_sin_f32(x)
#define cos(x) lt_cos_f32(x)
#define tanh(x) lt_tanh_f32(x)
#define erf(x) lt_erf_f32(x)
#define floor(x) lt_floor_f32(x)
#define round(x) lt_round_f32(x)
#define abs(x) lt_abs_f32(x)
#define pow(x, y) lt_pow_f32(x, y)
#define floordiv(a, b) lt_floordiv_f32(a, b)
#define floormod(a, b) lt_floormod_f32(a, b)
#include "cpu/rows_type.h"

#define T double
#define NAME(f) f##_f64
#define OWN LT_F64
#define K(x) ((double)(x))
#define IF_any(...) __VA_ARGS__
#define IF_float(...) __VA_ARGS__
#define IF_derivative(...) __VA_ARGS__
#define exp(x) lt_exp_f64(x)
#define expm1(x) lt_expm1_f64(x)
#define log(x) lt_log_f64(x)
#define log1p(x) lt_log1p_f64(x)
#define sqrt(x) lt_sqrt_f64(x)
#define rsqrt(x) lt_rsqrt_f64(x)
#define sin(x) lt_sin_f64(x)
#define cos(x) lt_cos_f64(x)
#define tanh(x) lt_tanh_f64(x)
#define erf(x) lt_erf_f64(x)
#define floor(x) lt_floor_f64(x)
#define round(x) lt_round_f64(x)
#define abs(x) lt_abs_f64(x)
#define pow(x, y) lt_pow_f64(x, y)
#define floordiv(a, b) lt_floordiv_f64(a, b)
#define floormod(a, b) lt_floormod_f64(a, b)
#include "cpu/rows_type.h"

#define T int64_t
#define NAME(f) f##_i64
#define OWN LT_I64
#define IF_any(...) __VA_ARGS__
#define IF_float(...)
#define IF_derivative(...)
#define abs(x) ((x) < 0 ? -(x) : (x))
#define floor(x) (x)
#define round(x) (x)
#define pow(x, y) lt_pow_i64(x, y)
#define floordiv(a, b) lt_floordiv_i64(a, b)
#define floormod(a, b) lt_floormod_i64(a, b)
#include "cpu/rows_type.h"

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * LT_CHUNK, to = from + LT_CHUNK;
  if (to > j->it.numel) to = j->it.numel;
  if (j->compute == LT_COMPUTE_F32) chunk_f32(j, from, to);
  if (j->compute == LT_COMPUTE_F64) chunk_f64(j, from, to);
  if (j->compute == LT_COMPUTE_I64) chunk_i64(j, from, to);
}

/* Put the operands of binary kinds in place: numbers become constants. */
static void place_binary(job *j, const lt_call *call, lt_tensor **operands) {
  const lt_args_binary *args = call->args;
  int first = lt_ops[call->op].kind == LT_KIND_binary_backward ? 1 : 0; /* g comes first */
  j->constant[first] = args->a.kind != LT_NO_SCALAR;
  j->constant[first + 1] = args->b.kind != LT_NO_SCALAR;
  j->scalar[first] = args->a;
  j->scalar[first + 1] = args->b;
  if (first == 0 && args->a.kind != LT_NO_SCALAR) operands[2] = call->in[0], operands[1] = NULL;
}

/* Integers have no infinity and no fractions: dividing by 0 is an error, as in Lua, and so are
   negative powers. */
static bool is_defined(lt_ctx *c, const job *j) {
  bool power = j->op == LT_OP_pow;
  if (j->compute != LT_COMPUTE_I64) return true;
  if (!power && j->op != LT_OP_floor_divide && j->op != LT_OP_remainder) return true;
  int64_t room[LT_TILE], constant = j->scalar[1].i;
  bool bad = j->constant[1] && j->it.numel > 0 && (power ? constant < 0 : constant == 0);
  for (int64_t at = 0; at < j->it.numel && !j->constant[1] && !bad; at += LT_TILE) {
    int64_t n = j->it.numel - at < LT_TILE ? j->it.numel - at : LT_TILE;
    const int64_t *b = LT_CPU(lt_load_i64)(&j->it, 2, at, n, room);
    for (int64_t i = 0; i < n; i++) bad |= power ? b[i] < 0 : b[i] == 0;
  }
  return !bad || lt_fail_value(c, 0, 0, "%s: integers %s", lt_ops[j->op].name,
                         power ? "to a negative power; write x:to('f32')" : "divided by zero");
}

LT_KERNEL(rows) {
  const lt_op_info *op = &lt_ops[call->op];
  job j = {.op = (lt_op)call->op, .n_in = call->n_in};
  lt_tensor *operands[LT_ITER_OPERANDS] = {call->out[0]};
  j.compute = lt_compute_of(lt_row_dtype(call));
  for (int k = 0; k < call->n_in; k++) operands[k + 1] = call->in[k];
  bool binary = op->kind == LT_KIND_binary || op->kind == LT_KIND_compare;
  if (binary) j.n_in = 2;
  if (binary || op->kind == LT_KIND_binary_backward) place_binary(&j, call, operands);
  if (op->kind == LT_KIND_binary_backward) j.n_in = 4;
  if (op->kind == LT_KIND_unary_backward || op->kind == LT_KIND_clamp_backward) j.n_in = 2;
  if (op->kind == LT_KIND_clamp || op->kind == LT_KIND_clamp_backward) {
    const lt_args_clamp *args = call->args;
    bool whole = j.compute == LT_COMPUTE_I64; /* an absent bound clamps nothing */
    j.p = args->min, j.q = args->max;
    if (j.p.kind == LT_NO_SCALAR) j.p = whole ? lt_scalar_int(INT64_MIN) : lt_scalar_of(-INFINITY);
    if (j.q.kind == LT_NO_SCALAR) j.q = whole ? lt_scalar_int(INT64_MAX) : lt_scalar_of(INFINITY);
  }
  for (int k = 0; k < j.n_in; k++) /* values that a derivative does not read */
    if (operands[k + 1] == NULL && !j.constant[k]) j.constant[k] = true;
  LT_CPU(lt_iter_make)(&j.it, lt_tensor_shape(call->out[0]), j.n_in + 1, operands);
  if (!is_defined(c, &j)) return false;
  lt_parallel(c, (j.it.numel + LT_CHUNK - 1) / LT_CHUNK, run_chunk, &j);
  return true;
}
