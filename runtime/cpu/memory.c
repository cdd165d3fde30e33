/* runtime/cpu/memory.c: creation, casts, copies, and writes through strided views
   (as_strided_scatter, as_strided_backward). */
#include <string.h>

#include "cpu/tile.h"
#include "cpu/transpose.h"
#include "ops/math/compute_type.h"

/* The allocation was the work. */
LT_KERNEL(empty) {
  (void)c, (void)call;
  return true;
}

typedef struct job {
  lt_iter it;
  lt_compute compute;
  lt_scalar value;
} job;

static void fill_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * LT_CHUNK, to = from + LT_CHUNK;
  if (to > j->it.numel) to = j->it.numel;
  double f[LT_TILE];
  int64_t n[LT_TILE];
  for (int i = 0; i < LT_TILE; i++) f[i] = j->value.f, n[i] = j->value.i;
  for (int64_t at = from; at < to; at += LT_TILE) {
    int64_t count = to - at < LT_TILE ? to - at : LT_TILE;
    if (j->compute == LT_COMPUTE_I64) {
      int64_t *out = LT_CPU(lt_target)(&j->it, 0, at, LT_I64, n);
      if (out != n) memcpy(out, n, (size_t)count * sizeof *n);
      LT_CPU(lt_store_i64)(&j->it, 0, at, count, n);
    } else {
      double *out = LT_CPU(lt_target)(&j->it, 0, at, LT_F64, f);
      if (out != f) memcpy(out, f, (size_t)count * sizeof *f);
      LT_CPU(lt_store_f64)(&j->it, 0, at, count, f);
    }
  }
}

/* Zeros by memset; -0 has a bit set. */
static bool fill(lt_ctx *c, lt_tensor *t, lt_scalar value) {
  if (t->contiguous && value.f == 0 && !signbit(value.f)) {
    memset(lt_data(t), 0, (size_t)t->numel * lt_item_size(t));
    return true;
  }
  job j = {.compute = lt_compute_of((lt_dtype)t->dtype), .value = value};
  if (value.kind == LT_SCALAR_FLOAT) j.value.i = (int64_t)value.f;
  if (t->dtype == LT_BOOL) j.value.i = value.f != 0;
  LT_CPU(lt_iter_make)(&j.it, lt_tensor_shape(t), 1, &t);
  lt_parallel(c, (j.it.numel + LT_CHUNK - 1) / LT_CHUNK, fill_chunk, &j);
  return true;
}

LT_KERNEL(full) { return fill(c, call->out[0], ((const lt_args_create *)call->args)->fill_value); }
LT_KERNEL(fill) { return fill(c, call->out[0], ((const lt_args_fill *)call->args)->value); }

/* Whether one side is in order in the type of the computation: no tile between the two then. */
static bool is_direct(const job *j, lt_dtype own) {
  const lt_operand *to = &j->it.operand[0], *from = &j->it.operand[1];
  return (to->linear && to->dtype == own) || (from->linear && from->dtype == own);
}

/* Source to destination by way of the compute type that holds all values of both (lt_cast_through):
   i64 to f64 must not pass f32. */
static void copy_chunk(void *ud, int64_t chunk) {
  static const lt_dtype own[] = {
      [LT_COMPUTE_F32] = LT_F32, [LT_COMPUTE_F64] = LT_F64, [LT_COMPUTE_I64] = LT_I64};
  const job *j = ud;
  int64_t from = chunk * LT_CHUNK, to = from + LT_CHUNK;
  int64_t step = is_direct(j, own[j->compute]) ? LT_CHUNK : LT_TILE;
  if (to > j->it.numel) to = j->it.numel;
  union {
    float f32[LT_TILE];
    double f64[LT_TILE];
    int64_t i64[LT_TILE];
  } scratch;
#define MOVE(suffix, type, own)                                                    \
  {                                                                                \
    type *out = LT_CPU(lt_target)(&j->it, 0, at, own, scratch.suffix);             \
    const type *v = LT_CPU(lt_load_##suffix)(&j->it, 1, at, n, out);               \
    if (out != scratch.suffix && out != v) memmove(out, v, (size_t)n * sizeof *v); \
    LT_CPU(lt_store_##suffix)(&j->it, 0, at, n, v);                                \
  }
  for (int64_t at = from; at < to; at += step) {
    int64_t n = to - at < step ? to - at : step;
    if (j->compute == LT_COMPUTE_F32) MOVE(f32, float, LT_F32)
    if (j->compute == LT_COMPUTE_F64) MOVE(f64, double, LT_F64)
    if (j->compute == LT_COMPUTE_I64) MOVE(i64, int64_t, LT_I64)
  }
#undef MOVE
}

/* Every copy, cast and change of layout. Where neither side is in order a transposition by tiles is
   tried (cpu/transpose.c): element by element one of the sides would touch a cache line for
   each. */
static bool move(lt_ctx *c, lt_tensor *to, lt_tensor *from) {
  /* In one go, without threads; memmove, as the two may overlap. */
  if (to->contiguous && from->contiguous && to->dtype == from->dtype && to->numel == from->numel &&
      to->numel < LT_CHUNK) {
    memmove(lt_data(to), lt_data(from), (size_t)to->numel * lt_item_size(to));
    return true;
  }
  lt_dtype through = lt_cast_through((lt_dtype)from->dtype, (lt_dtype)to->dtype);
  job j = {.compute = lt_compute_of(through)};
  lt_tensor *operands[2] = {to, from};
  LT_CPU(lt_iter_make)(&j.it, lt_tensor_shape(to), 2, operands);
  if (!LT_CPU(lt_copy_transposed)(c, &j.it))
    lt_parallel(c, (j.it.numel + LT_CHUNK - 1) / LT_CHUNK, copy_chunk, &j);
  return true;
}

LT_KERNEL(cast) { return move(c, call->out[0], call->in[0]); }
LT_KERNEL(clone) { return move(c, call->out[0], call->in[0]); }
LT_KERNEL(copy) { return move(c, call->out[0], call->in[1]); }

/* A strided view of `t`; lives on the stack. `t` is row-major. */
static lt_tensor strided_view(const lt_tensor *t, lt_sizes size, lt_sizes stride, int64_t offset) {
  lt_tensor w = *t;
  lt_tensor_set_shape(&w, size.n, size.size, stride.size);
  w.offset += offset;
  return w;
}

/* A copy of the first input, then the second one written through a view of the result. */
LT_KERNEL(as_strided_scatter) {
  const lt_args_as_strided_scatter *a = call->args;
  lt_tensor w = strided_view(call->out[0], a->size, a->stride, a->offset);
  return move(c, call->out[0], call->in[0]) && move(c, &w, call->in[1]);
}

LT_KERNEL(as_strided_zero) {
  const lt_args_as_strided_zero *a = call->args;
  lt_tensor w = strided_view(call->out[0], a->size, a->stride, a->offset);
  return move(c, call->out[0], call->in[0]) && fill(c, &w, lt_scalar_int(0));
}

LT_KERNEL(as_strided_backward) {
  const lt_args_as_strided_backward *a = call->args;
  lt_tensor w = strided_view(call->out[0], a->size, a->stride, a->offset);
  return fill(c, call->out[0], lt_scalar_int(0)) && move(c, &w, call->in[0]);
}
