/* runtime/cpu/tile.c: iteration over strided operands, in tiles of a compute type.

   The job of PyTorch's TensorIterator. An operation on tensors of any strides becomes a walk over
   few dims: those of size 1 are dropped, the others ordered by the result's strides and merged
   where all operands allow it. Contiguous operands end with one dim and are never copied. */
#include "cpu/tile.h"

#include "ops/math/half.h"

/* Order dims by the first operand's strides (largest first), so that its memory is walked in order;
   then merge neighbours. By insertion: at most eight dims, mostly in order already. */
static void sort_dims(lt_iter *it) {
  for (int i = 1; i < it->ndim; i++)
    for (int j = i; j > 0 && it->operand[0].stride[j - 1] < it->operand[0].stride[j]; j--) {
      int64_t size = it->size[j];
      it->size[j] = it->size[j - 1], it->size[j - 1] = size;
      for (int k = 0; k < it->n; k++) {
        int64_t *s = it->operand[k].stride, t = s[j];
        s[j] = s[j - 1], s[j - 1] = t;
      }
    }
}

/* An operand that broadcasts has stride 0 in both dims or in neither, else it keeps them apart. */
static bool merges(const lt_iter *it, int outer, int inner) {
  for (int k = 0; k < it->n; k++) {
    const int64_t *s = it->operand[k].stride;
    if (it->operand[k].data != NULL && s[outer] != s[inner] * it->size[inner]) return false;
  }
  return true;
}

static void merge_dims(lt_iter *it) {
  int top = 0;
  for (int i = 1; i < it->ndim; i++) {
    bool merge = merges(it, top, i);
    if (!merge) top++;
    it->size[top] = merge ? it->size[top] * it->size[i] : it->size[i];
    for (int k = 0; k < it->n; k++) it->operand[k].stride[top] = it->operand[k].stride[i];
  }
  it->ndim = top + 1;
}

/* Broadcast dims have stride 0: an element is read again instead of being repeated in memory. */
void LT_CPU(lt_iter_make)(lt_iter *it, lt_shape shape, int n, lt_tensor *const *tensors) {
  it->n = n;
  it->numel = lt_shape_numel(shape);
  it->ndim = 0;
  int64_t full[LT_MAX_DIMS];
  for (int k = 0; k < n; k++) {
    lt_operand *o = &it->operand[k];
    o->data = tensors[k] != NULL ? lt_data(tensors[k]) : NULL;
    o->dtype = tensors[k] != NULL ? (lt_dtype)tensors[k]->dtype : LT_F32;
    if (tensors[k] != NULL) lt_broadcast_strides(tensors[k], shape, full);
    int at = 0;
    for (int i = 0; i < shape.ndim; i++)
      if (shape.size[i] != 1) {
        it->size[at] = shape.size[i];
        o->stride[at++] = tensors[k] != NULL ? full[i] : 0;
      }
    it->ndim = at;
  }
  if (it->ndim == 0) {
    it->ndim = 1;
    it->size[0] = 1;
    for (int k = 0; k < n; k++) it->operand[k].stride[0] = 1;
  }
  sort_dims(it);
  merge_dims(it);
  for (int k = 0; k < n; k++)
    it->operand[k].linear = it->ndim == 1 && it->operand[k].stride[0] == 1;
}

/* A position in the iteration. */
typedef struct walk {
  int64_t index[LT_MAX_DIMS];
} walk;

/* A chunk can begin anywhere: its position comes from dividing, once; after that it only counts
   on. */
static walk walk_from(const lt_iter *it, int64_t start) {
  walk w;
  for (int i = it->ndim - 1; i >= 0; i--) {
    w.index[i] = start % it->size[i];
    start /= it->size[i];
  }
  return w;
}

/* How many elements follow along the last dim, at most `most`. */
static int64_t walk_run(const lt_iter *it, const walk *w, int64_t most) {
  int64_t left = it->size[it->ndim - 1] - w->index[it->ndim - 1];
  return left < most ? left : most;
}

static int64_t walk_at(const lt_iter *it, const walk *w, const lt_operand *o) {
  int64_t at = 0;
  for (int i = 0; i < it->ndim; i++) at += w->index[i] * o->stride[i];
  return at;
}

/* An odometer: the last dim counts, and carries into the one before it. */
static void walk_on(const lt_iter *it, walk *w, int64_t run) {
  int i = it->ndim - 1;
  w->index[i] += run;
  while (i > 0 && w->index[i] == it->size[i]) {
    w->index[i] = 0;
    w->index[--i]++;
  }
}

/* Kernels write straight into a result that is in order and in their type; else into a tile,
   which store then spreads. */
void *LT_CPU(lt_target)(const lt_iter *it, int k, int64_t start, lt_dtype computed, void *buffer) {
  const lt_operand *o = &it->operand[k];
  if (o->linear && o->dtype == computed) return o->data + (size_t)start * lt_dtype_size(computed);
  return buffer;
}

#define T float
#define NAME(f) f##_f32
#define OWN LT_F32
#define lt_to_int lt_int_of_f32
#include "cpu/tile_type.h"
#undef T
#undef NAME
#undef OWN
#undef lt_to_int

#define T double
#define NAME(f) f##_f64
#define OWN LT_F64
#define lt_to_int lt_int_of_f64
#include "cpu/tile_type.h"
#undef T
#undef NAME
#undef OWN
#undef lt_to_int

#define T int64_t
#define NAME(f) f##_i64
#define OWN LT_I64
#define lt_to_int(x) (x)
#include "cpu/tile_type.h"
