/* runtime/tensor/shape.c: arithmetic on shapes and strides.

   Shapes come from scripts and files: products of sizes are checked for overflow once, where a
   tensor is made (lt_shape_check), so that kernels multiply without checks. */
#include <stdio.h>
#include <string.h>

#include "tensor/tensor.h"

lt_shape lt_shape_of(int ndim, const int64_t *size) {
  lt_shape s = {.ndim = ndim};
  for (int i = 0; i < ndim; i++) s.size[i] = size[i];
  return s;
}

/* A size of 0 after an overflow still makes 0: [2^40, 2^40, 0] is an empty tensor, as in
   PyTorch. */
int64_t lt_shape_numel(lt_shape s) {
  int64_t n = 1;
  bool many = false;
  for (int i = 0; i < s.ndim; i++) {
    if (s.size[i] == 0) return 0;
    many = __builtin_mul_overflow(n, s.size[i], &n) || many;
  }
  return many ? INT64_MAX : n;
}

bool lt_shape_check(lt_ctx *c, int ndim, const int64_t *size) {
  int64_t n = 1; /* of the sizes that are not 0: strides are their products */
  bool fits = true;
  for (int i = 0; i < ndim; i++)
    fits = fits && size[i] >= 0 && (size[i] == 0 || !__builtin_mul_overflow(n, size[i], &n));
  /* Bytes must be countable for every dtype, with some margin for rounding up to alignment. */
  fits = fits && n <= INT64_MAX / 16;
  return fits || lt_shape_refuse(c, c->op != NULL ? c->op : "empty", ndim, size);
}

bool lt_shape_refuse(lt_ctx *c, const char *who, int ndim, const int64_t *size) {
  const char *why = " (too many elements)";
  for (int i = 0; i < ndim; i++)
    if (size[i] < 0) why = " (sizes are at least 0)";
  return lt_fail(c, LT_ESHAPE, "%s: impossible shape %s%s", who,
                 LT_SHAPE_STR(lt_shape_of(ndim, size)), why);
}

bool lt_shape_equal(lt_shape a, lt_shape b) {
  return a.ndim == b.ndim && memcmp(a.size, b.size, (size_t)a.ndim * sizeof *a.size) == 0;
}

/* Dims of size 0 count as 1, so that strides of empty tensors stay positive, as PyTorch prints
   them. */
void lt_shape_strides(lt_shape s, int64_t *stride) {
  int64_t step = 1;
  for (int i = s.ndim - 1; i >= 0; i--) {
    stride[i] = step;
    step *= s.size[i] > 0 ? s.size[i] : 1;
  }
}

void lt_shape_channels_last(lt_shape s, int64_t *stride) {
  int64_t step = s.size[1] > 0 ? s.size[1] : 1;
  stride[1] = 1;
  for (int i = s.ndim - 1; i > 1; i--) {
    stride[i] = step;
    step *= s.size[i] > 0 ? s.size[i] : 1;
  }
  stride[0] = step;
}

/* NumPy's rule: dims are compared from the last one; missing ones count as 1, and 1 stretches. */
bool lt_shape_broadcast(lt_shape *a, lt_shape b) {
  if (lt_shape_equal(*a, b)) return true;
  lt_shape r = {.ndim = a->ndim > b.ndim ? a->ndim : b.ndim};
  for (int i = 1; i <= r.ndim; i++) {
    int64_t x = i <= a->ndim ? a->size[a->ndim - i] : 1;
    int64_t y = i <= b.ndim ? b.size[b.ndim - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    r.size[r.ndim - i] = x == 1 ? y : x;
  }
  *a = r;
  return true;
}

bool lt_shape_dim(lt_ctx *c, lt_shape s, int64_t dim, int *out) {
  int n = s.ndim > 0 ? s.ndim : 1;
  if (dim < -n || dim >= n)
    return lt_fail(c, LT_EARG, "%s: dim %lld is out of range for shape %s (1..%d or -1..-%d)",
                   c->op != NULL ? c->op : "dim", (long long)(dim < 0 ? dim : dim + 1),
                   LT_SHAPE_STR(s), n, n);
  *out = (int)(dim < 0 ? dim + n : dim);
  return true;
}

void lt_broadcast_strides(const lt_tensor *t, lt_shape s, int64_t *stride) {
  int lead = s.ndim - t->ndim;
  for (int i = 0; i < s.ndim; i++) {
    int k = i - lead;
    stride[i] = k < 0 || (t->size[k] == 1 && s.size[i] != 1) ? 0 : t->stride[k];
  }
}

/* Walk groups of dims of `t` that are mutually contiguous and split each over the new sizes. The
   new sizes must divide at the borders of such groups: otherwise one new dim would need two
   strides. The same rule as PyTorch's computeStride, so that view() fails for the same tensors. */
bool lt_view_strides(const lt_tensor *t, int ndim, const int64_t *size, int64_t *stride) {
  if (t->numel == 0 || t->contiguous) {
    lt_shape_strides(lt_shape_of(ndim, size), stride);
    return true;
  }
  int k = ndim - 1;
  int64_t step = t->stride[t->ndim - 1], old_count = 1, new_count = 1;
  for (int i = t->ndim - 1; i >= 0; i--) {
    old_count *= t->size[i];
    bool ends = i == 0 || (t->size[i - 1] != 1 && t->stride[i - 1] != old_count * step);
    if (!ends) continue;
    while (k >= 0 && (new_count < old_count || size[k] == 1)) {
      stride[k] = new_count * step;
      new_count *= size[k];
      k--;
    }
    if (new_count != old_count) return false;
    if (i > 0) step = t->stride[i - 1], old_count = 1, new_count = 1;
  }
  return k == -1;
}

const char *lt_shape_text(lt_shape s, char *buffer) {
  size_t at = 0;
  at += (size_t)snprintf(buffer, LT_SHAPE_TEXT, "[");
  for (int i = 0; i < s.ndim && at < LT_SHAPE_TEXT; i++)
    at += (size_t)snprintf(buffer + at, LT_SHAPE_TEXT - at, "%s%lld", i > 0 ? ", " : "",
                           (long long)s.size[i]);
  if (at < LT_SHAPE_TEXT) snprintf(buffer + at, LT_SHAPE_TEXT - at, "]");
  return buffer;
}
