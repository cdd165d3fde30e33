/* runtime/cpu/elementwise.c: the kernels of all elementwise operations: one loop per row of
   unary.def and binary.def and compute type.

   A row of ops/unary.def or ops/binary.def is a C expression. The file is included three times
   (f32, f64, i64) and makes of each row a loop over a tile, which the compiler turns into vector
   instructions: f16 and bf16 are converted to f32 as a tile is loaded, so a dtype costs no loop of
   its own, and a loop knows nothing of strides or broadcasting (cpu/tile.h has those). Tiles of
   LT_TILE elements stay in the first cache between load, loop and store. */
#include "ops/math/i64.h"
#include "ops/math/special.h"
#include "ops/elementwise_numbers.h"
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

/* What a row calls exp is lt_exp_f32, lt_exp_f64 or lt_exp_i64, by the NAME of its type. */
#define FN(f) NAME(lt_##f)
#define K(x) ((T)(x))
#define exp(x) FN(exp)(x)
#define expm1(x) FN(expm1)(x)
#define log(x) FN(log)(x)
#define log1p(x) FN(log1p)(x)
#define log2(x) FN(log2)(x)
#define log10(x) FN(log10)(x)
#define sqrt(x) FN(sqrt)(x)
#define rsqrt(x) FN(rsqrt)(x)
#define sin(x) FN(sin)(x)
#define cos(x) FN(cos)(x)
#define tan(x) FN(tan)(x)
#define asin(x) FN(asin)(x)
#define acos(x) FN(acos)(x)
#define atan(x) FN(atan)(x)
#define sinh(x) FN(sinh)(x)
#define cosh(x) FN(cosh)(x)
#define tanh(x) FN(tanh)(x)
#define erf(x) FN(erf)(x)
#define erfc(x) FN(erfc)(x)
#define erfinv(x) FN(erfinv)(x)
#define lgamma(x) FN(lgamma)(x)
#define digamma(x) FN(digamma)(x)
#define erfcx(x) FN(erfcx)(x)
#define log_ndtr(x) FN(log_ndtr)(x)
#define ndtri(x) FN(ndtri)(x)
#define i0(x) FN(i0)(x)
#define i0e(x) FN(i0e)(x)
#define i1(x) FN(i1)(x)
#define i1e(x) FN(i1e)(x)
#define bessel_j0(x) FN(bessel_j0)(x)
#define bessel_j1(x) FN(bessel_j1)(x)
#define bessel_y0(x) FN(bessel_y0)(x)
#define bessel_y1(x) FN(bessel_y1)(x)
#define modified_bessel_k0(x) FN(modified_bessel_k0)(x)
#define modified_bessel_k1(x) FN(modified_bessel_k1)(x)
#define scaled_modified_bessel_k0(x) FN(scaled_modified_bessel_k0)(x)
#define scaled_modified_bessel_k1(x) FN(scaled_modified_bessel_k1)(x)
#define airy_ai(x) FN(airy_ai)(x)
#define floor(x) FN(floor)(x)
#define ceil(x) FN(ceil)(x)
#define round(x) FN(round)(x)
#define trunc(x) FN(trunc)(x)
#define abs(x) FN(abs)(x)
#define pow(a, b) FN(pow)(a, b)
#define floordiv(a, b) FN(floordiv)(a, b)
#define floormod(a, b) FN(floormod)(a, b)
#define fmod(a, b) FN(fmod)(a, b)
#define atan2(a, b) FN(atan2)(a, b)
#define zeta(a, b) FN(zeta)(a, b)
#define igamma(a, b) FN(igamma)(a, b)
#define igammac(a, b) FN(igammac)(a, b)
#define shift_left(a, b) FN(shift_left)(a, b)
#define shift_right(a, b) FN(shift_right)(a, b)
#define gcd(a, b) FN(gcd)(a, b)

#define T float
#define NAME(f) f##_f32
#define OWN LT_F32
#define IF_any(...) __VA_ARGS__
#define IF_float(...) __VA_ARGS__
#define IF_int(...)
#define IF_derivative(...) __VA_ARGS__
#include "cpu/elementwise_type.h"

#define T double
#define NAME(f) f##_f64
#define OWN LT_F64
#define IF_any(...) __VA_ARGS__
#define IF_float(...) __VA_ARGS__
#define IF_int(...)
#define IF_derivative(...) __VA_ARGS__
#include "cpu/elementwise_type.h"

#define T int64_t
#define NAME(f) f##_i64
#define OWN LT_I64
#define IF_any(...) __VA_ARGS__
#define IF_float(...)
#define IF_int(...) __VA_ARGS__
#define IF_derivative(...)
#include "cpu/elementwise_type.h"

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * LT_CHUNK, to = from + LT_CHUNK;
  if (to > j->it.numel) to = j->it.numel;
  if (j->compute == LT_COMPUTE_F32) chunk_f32(j, from, to);
  if (j->compute == LT_COMPUTE_F64) chunk_f64(j, from, to);
  if (j->compute == LT_COMPUTE_I64) chunk_i64(j, from, to);
}

/* Put the operands of binary kinds in place: numbers become constants. 2 - x has one tensor: it is
   input 0 of the call and the second operand of the row. */
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
   negative powers. Looked for before anything is computed: a result in place would be half
   written. */
static bool is_defined(lt_ctx *c, const job *j) {
  bool power = j->op == LT_OP_pow;
  if (j->compute != LT_COMPUTE_I64) return true;
  if (!power && j->op != LT_OP_floor_divide && j->op != LT_OP_remainder && j->op != LT_OP_fmod)
    return true;
  int64_t scratch[LT_TILE], constant = j->scalar[1].i;
  bool bad = j->constant[1] && j->it.numel > 0 && (power ? constant < 0 : constant == 0);
  for (int64_t at = 0; at < j->it.numel && !j->constant[1] && !bad; at += LT_TILE) {
    int64_t n = j->it.numel - at < LT_TILE ? j->it.numel - at : LT_TILE;
    const int64_t *b = LT_CPU(lt_load_i64)(&j->it, 2, at, n, scratch);
    for (int64_t i = 0; i < n; i++) bad |= power ? b[i] < 0 : b[i] == 0;
  }
  return !bad || lt_fail_value(c, 0, 0, "%s: integers %s", lt_ops[j->op].name,
                         power ? "to a negative power; write x:to('f32')" : "divided by zero");
}

/* The kernel of all rows: which loop runs is looked up by the op's number. */
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
  lt_row_numbers(op->kind, call->args, &j.p, &j.q);
  for (int k = 0; k < j.n_in; k++) /* values that a derivative does not read */
    if (operands[k + 1] == NULL && !j.constant[k]) j.constant[k] = true;
  LT_CPU(lt_iter_make)(&j.it, lt_tensor_shape(call->out[0]), j.n_in + 1, operands);
  if (!is_defined(c, &j)) return false;
  lt_parallel(c, (j.it.numel + LT_CHUNK - 1) / LT_CHUNK, run_chunk, &j);
  return true;
}
