/* runtime/xla/views.c: reads and writes of tensors that are parts of flat values.

   Sorted by stride, dims that divide each other are a slice of an array whose strides they are: a
   reshape, a slice and a transpose, which XLA folds away. All other strides gather and scatter. */
#include "xla/views.h"

#include <string.h>

#include "xla/lowerings.h"

/* The array of which a tensor is a slice: dim k of it is dim `of[k]` of the tensor; the last, one
   element of a last stride, is not. */
typedef struct box {
  int n;
  int of[LT_MAX_DIMS];
  int64_t full[LT_MAX_DIMS + 1], start[LT_MAX_DIMS + 1], size[LT_MAX_DIMS + 1];
} box;

static void sort_dims(const lt_flat_view *v, box *b) {
  b->n = 0;
  for (int d = 0; d < v->ndim; d++) {
    if (v->size[d] == 1 || v->stride[d] == 0) continue;
    int k = b->n++;
    for (; k > 0 && v->stride[b->of[k - 1]] < v->stride[d]; k--) b->of[k] = b->of[k - 1];
    b->of[k] = d;
  }
}

static bool find_box(const lt_flat_view *v, int64_t n, box *b) {
  sort_dims(v, b);
  int64_t around = n, rest = v->offset;
  for (int k = 0; k <= b->n; k++) {
    int64_t stride = k < b->n ? v->stride[b->of[k]] : 1;
    if (stride <= 0 || around % stride != 0) return false;
    b->full[k] = around / stride;
    b->start[k] = rest / stride;
    b->size[k] = k < b->n ? v->size[b->of[k]] : 1;
    if (b->start[k] + b->size[k] > b->full[k]) return false;
    rest %= stride;
    around = stride;
  }
  return true;
}

bool lt_view_boxed(const lt_flat_view *v, int64_t n) {
  box b;
  return lt_view_is_whole(v, n) || find_box(v, n, &b);
}

/* Where a box begins, scalars i64: constants, or of an offset that is an input. */
static void starts(lt_hlo_text *h, const lt_flat_view *v, const box *b, lt_hlo offset,
                   lt_hlo *out) {
  lt_hlo rest = offset, scalar = lt_hlo_scalar(LT_I64);
  for (int k = 0; k <= b->n; k++) {
    out[k] = lt_hlo_integer(h, b->start[k], scalar);
    if (offset.id == 0) continue;
    lt_hlo stride = lt_hlo_integer(h, k < b->n ? v->stride[b->of[k]] : 1, scalar);
    out[k] = lt_hlo_two(h, "divide", rest, stride);
    rest = lt_hlo_two(h, "remainder", rest, stride);
  }
}

/* The same elements as another type, as memory has them. */
static lt_hlo retype(lt_hlo_text *h, lt_hlo flat, int type, int64_t n) {
  if (flat.type == type) return flat;
  if (lt_hlo_stored(flat.type) != flat.type || lt_hlo_stored(type) != type) h->failed = true;
  if (flat.type == LT_BOOL) flat = lt_hlo_convert(h, flat, LT_U8);
  lt_hlo x = flat, y = lt_hlo_of(type == LT_BOOL ? LT_U8 : type, 1, &n);
  int64_t have = lt_hlo_numel(flat);
  if (have > n && n > 0) { /* several make one: their dim is the last */
    x = lt_hlo_reshape(h, flat, 2, (int64_t[]){n, have / n});
  } else if (have < n && have > 0) {
    y = lt_hlo_of(y.type, 2, (int64_t[]){have, n / have});
  }
  if (x.type != y.type)
    y = lt_hlo_line(h, y, "stablehlo.bitcast_convert $ : (@) -> @", &x, &x, &y);
  else
    y = x;
  y = lt_hlo_flat(h, y);
  return type == LT_BOOL ? lt_hlo_convert(h, y, LT_BOOL) : y;
}

static lt_hlo shape_of(const lt_flat_view *v, int type) {
  return lt_hlo_of(type, v->ndim, v->size);
}

/* Where in the flat value the elements are. */
static lt_hlo places(lt_hlo_text *h, const lt_flat_view *v, lt_hlo offset) {
  lt_hlo shape = shape_of(v, LT_I64);
  lt_hlo at =
      offset.id != 0 ? lt_hlo_expand(h, offset, shape) : lt_hlo_integer(h, v->offset, shape);
  for (int d = 0; d < v->ndim; d++) {
    if (v->size[d] == 1 || v->stride[d] == 0) continue;
    lt_hlo by = lt_hlo_integer(h, v->stride[d], shape);
    at = lt_hlo_two(h, "add", at,
                    lt_hlo_two(h, "multiply", lt_hlo_iota(h, LT_I64, shape, d), by));
  }
  return at;
}

static lt_hlo dynamic_slice(lt_hlo_text *h, lt_hlo whole, const box *b, const lt_hlo *at) {
  lt_hlo y = lt_hlo_of(whole.type, whole.ndim, b->size);
  return lt_hlo_line(h, y, "stablehlo.dynamic_slice $, %v, sizes = [%l] : (@, %t) -> @", &whole, at,
                     whole.ndim, b->size, whole.ndim, &whole, at, whole.ndim, &y);
}

static lt_hlo slice(lt_hlo_text *h, lt_hlo x, const lt_flat_view *v, const box *b, lt_hlo offset) {
  lt_hlo at[LT_MAX_DIMS + 1];
  if (offset.id != 0) {
    starts(h, v, b, offset, at);
    return dynamic_slice(h, x, b, at);
  }
  for (int k = 0; k <= b->n; k++)
    x = lt_hlo_slice(h, x, k, b->start[k], b->start[k] + b->size[k], 1);
  return x;
}

lt_hlo lt_view_read(lt_hlo_text *h, lt_hlo flat, const lt_flat_view *v, lt_hlo offset) {
  lt_hlo shape = shape_of(v, v->type);
  int64_t n = lt_hlo_numel(flat) * (int64_t)lt_hlo_bytes(flat.type);
  n /= (int64_t)lt_hlo_bytes(v->type);
  if (lt_hlo_numel(shape) == 0) return lt_hlo_number(h, 0, shape);
  flat = retype(h, flat, v->type, n);
  box b;
  if (lt_view_is_whole(v, n)) return lt_hlo_reshape(h, flat, v->ndim, v->size);
  if (!find_box(v, n, &b)) return lt_lower_take(h, flat, places(h, v, offset), 0);
  lt_hlo x = lt_hlo_reshape(h, flat, b.n + 1, b.full);
  x = slice(h, x, v, &b, offset);
  x = lt_hlo_reshape(h, x, b.n, b.size);
  /* In the order of the tensor's dims. */
  int64_t order[LT_HLO_DIMS], dims[LT_HLO_DIMS];
  int m = 0;
  for (int d = 0; d < v->ndim; d++)
    for (int k = 0; k < b.n; k++)
      if (b.of[k] == d) order[m] = k, dims[m++] = d;
  x = lt_hlo_permute(h, x, order);
  bool same = m == v->ndim;
  return same ? x : lt_hlo_spread(h, x, shape, dims);
}

static lt_hlo update_slice(lt_hlo_text *h, lt_hlo whole, lt_hlo part, const lt_hlo *at) {
  return lt_hlo_line(h, whole, "stablehlo.dynamic_update_slice $, $, %v : (@, @, %t) -> @", &whole,
                     &part, at, whole.ndim, &whole, &part, at, whole.ndim, &whole);
}

lt_hlo lt_view_write(lt_hlo_text *h, lt_hlo flat, int64_t n, const lt_flat_view *v, lt_hlo offset,
                     lt_hlo x) {
  box b;
  lt_hlo at[LT_MAX_DIMS + 1];
  if (lt_view_is_whole(v, n)) return lt_hlo_flat(h, x);
  if (flat.id == 0) flat = lt_hlo_number(h, 0, lt_hlo_of(v->type, 1, &n));
  flat = retype(h, flat, v->type, n);
  if (lt_hlo_numel(x) == 0) return flat;
  if (!find_box(v, n, &b))
    return lt_lower_put(h, "second", flat, lt_hlo_flat(h, places(h, v, offset)), lt_hlo_flat(h, x));
  /* Dims of size 1 go, the others in the order of strides. */
  int64_t sizes[LT_HLO_DIMS], order[LT_HLO_DIMS];
  int place[LT_MAX_DIMS] = {0}, m = 0;
  for (int d = 0; d < v->ndim; d++)
    if (v->size[d] != 1) place[d] = m, sizes[m++] = v->size[d];
  if (m != b.n) h->failed = true; /* an element at several places of the tensor */
  if (h->failed) return flat;
  x = lt_hlo_reshape(h, x, m, sizes);
  for (int k = 0; k < b.n; k++) order[k] = place[b.of[k]];
  x = lt_hlo_permute(h, x, order);
  x = lt_hlo_reshape(h, x, b.n + 1, b.size);
  if (lt_hlo_numel(x) == n) return lt_hlo_flat(h, x); /* in another order */
  lt_hlo whole = lt_hlo_reshape(h, flat, b.n + 1, b.full);
  starts(h, v, &b, offset, at);
  return lt_hlo_flat(h, update_slice(h, whole, x, at));
}
