/* runtime/cpu/select.c: where, masked_fill, tril, triu, one_hot, and the positions of a mask's true
   elements. */
#include <string.h>

#include "cpu/index.h"

/* result = mask ? a : b. Operands 0..3 of `it`; `a` may be a number. */
typedef struct job {
  lt_iter it;
  bool constant;
  lt_scalar value;
  lt_compute compute;
} job;

/* Both values are loaded before the choice: a selection without a branch, and the result may lie on
   either input. */
#define CHOOSE(suffix, T, own, number)                                                      \
  static void choose_##suffix(const job *j, int64_t from, int64_t to) {                     \
    T scratch[4][LT_TILE];                                                                  \
    for (int i = 0; i < LT_TILE && j->constant; i++) scratch[2][i] = (T)(number);           \
    for (int64_t at = from; at < to; at += LT_TILE) {                                       \
      int64_t n = to - at < LT_TILE ? to - at : LT_TILE;                                    \
      const T *m = LT_CPU(lt_load_##suffix)(&j->it, 1, at, n, scratch[1]), *a = scratch[2]; \
      if (!j->constant) a = LT_CPU(lt_load_##suffix)(&j->it, 2, at, n, scratch[2]);         \
      const T *b = LT_CPU(lt_load_##suffix)(&j->it, 3, at, n, scratch[3]);                  \
      T *out = LT_CPU(lt_target)(&j->it, 0, at, own, scratch[0]);                           \
      LT_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                      \
        T yes = a[i], no = b[i];                                                            \
        out[i] = m[i] != 0 ? yes : no;                                                      \
      }                                                                                     \
      LT_CPU(lt_store_##suffix)(&j->it, 0, at, n, out);                                     \
    }                                                                                       \
  }
CHOOSE(f32, float, LT_F32, j->value.f)
CHOOSE(f64, double, LT_F64, j->value.f)
CHOOSE(i64, int64_t, LT_I64, j->value.i)
#undef CHOOSE

static void choose_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * LT_CHUNK, to = from + LT_CHUNK;
  if (to > j->it.numel) to = j->it.numel;
  if (j->compute == LT_COMPUTE_F32) choose_f32(j, from, to);
  if (j->compute == LT_COMPUTE_F64) choose_f64(j, from, to);
  if (j->compute == LT_COMPUTE_I64) choose_i64(j, from, to);
}

static bool choose(lt_ctx *c, job *j, lt_tensor *out, lt_tensor *mask, lt_tensor *a, lt_tensor *b) {
  lt_tensor *operands[] = {out, mask, a, b};
  j->compute = lt_compute_of((lt_dtype)out->dtype);
  LT_CPU(lt_iter_make)(&j->it, lt_tensor_shape(out), 4, operands);
  lt_parallel(c, (j->it.numel + LT_CHUNK - 1) / LT_CHUNK, choose_chunk, j);
  return true;
}

/* The mask is converted to the compute type with the values, as any operand: one loop for all. */
LT_KERNEL(where) {
  job j = {.constant = false};
  return choose(c, &j, call->out[0], call->in[0], call->in[1], call->in[2]);
}

/* The number in each compute type: a float into integers is cut off, as by a cast; into bools every
   number but 0 is true. */
LT_KERNEL(masked_fill) {
  const lt_args_masked_fill *a = call->args;
  job j = {.constant = true, .value = a->value};
  if (a->value.kind == LT_SCALAR_FLOAT) j.value.i = (int64_t)a->value.f;
  if (call->out[0]->dtype == LT_BOOL) j.value.i = a->value.f != 0;
  return choose(c, &j, call->out[0], call->in[1], NULL, call->in[0]);
}

/* A copy of the input in which columns first(row)..last(row) - 1 of each matrix are cleared. By
   memset from the edge of each row: the rest was copied already. */
static bool triangle(lt_ctx *c, const lt_call *call, bool lower) {
  const lt_args_triangle *a = call->args;
  lt_tensor *out = call->out[0];
  lt_frame frame = lt_frame_open(c);
  lt_tensor *y = lt_cpu_result(c, out, (lt_dtype)out->dtype, NULL);
  if (y != NULL && lt_cpu_move(c, y, call->in[0]) && y->numel > 0) {
    int64_t rows = y->size[y->ndim - 2], columns = y->size[y->ndim - 1], diagonal = a->diagonal;
    diagonal = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
    size_t item = lt_item_size(y);
    for (int64_t r = 0; r < y->numel / columns; r++) {
      int64_t edge = r % rows + diagonal + (lower ? 1 : 0); /* kept: below it, or from it on */
      edge = edge < 0 ? 0 : edge > columns ? columns : edge;
      char *row = (char *)lt_data(y) + (size_t)(r * columns) * item;
      if (lower)
        memset(row + (size_t)edge * item, 0, (size_t)(columns - edge) * item);
      else
        memset(row, 0, (size_t)edge * item);
    }
  }
  if (lt_ok(c) && y != out) lt_cpu_move(c, out, y);
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

LT_KERNEL(tril) { return triangle(c, call, true); }
LT_KERNEL(triu) { return triangle(c, call, false); }

/* Zeros, and a one for each id. An id out of range ends it: the rest of the result is not used. */
LT_KERNEL(one_hot) {
  lt_tensor *out = call->out[0];
  lt_frame frame = lt_frame_open(c);
  int64_t n = out->size[out->ndim - 1];
  lt_tensor *ids = lt_cpu_contiguous(c, call->in[0], LT_I64);
  lt_tensor *y = lt_cpu_result(c, out, LT_I64, NULL);
  if (lt_ok(c)) {
    const int64_t *v = lt_data(ids);
    int64_t *to = lt_data(y);
    memset(to, 0, (size_t)y->numel * sizeof *to);
    for (int64_t k = 0; k < ids->numel && lt_ok(c); k++) {
      if (v[k] >= 0 && v[k] < n)
        to[k * n + v[k]] = 1;
      else
        lt_fail_value(c, v[k], n, "one_hot: id %lld is out of 0..%lld (num_classes = %lld)",
                      (long long)v[k], (long long)n - 1, (long long)n);
    }
    if (lt_ok(c) && y != out) lt_cpu_move(c, out, y);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

/* Coordinates of the trues, row by row: the result has as many rows as infer counted. The
   coordinates are counted on like an odometer, without a division for each element. */
LT_KERNEL(mask_positions) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor *mask = lt_cpu_contiguous(c, call->in[0], LT_BOOL), *out = call->out[0];
  const uint8_t *v = mask != NULL ? lt_data(mask) : NULL;
  int64_t *to = lt_data(out), at[LT_MAX_DIMS] = {0};
  for (int64_t k = 0; v != NULL && k < mask->numel; k++) {
    for (int d = 0; v[k] != 0 && d < mask->ndim; d++) *to++ = at[d];
    for (int d = mask->ndim - 1; d >= 0 && ++at[d] == mask->size[d]; d--) at[d] = 0;
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}
