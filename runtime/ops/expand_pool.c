/* runtime/ops/expand_pool.c: maxima of windows of 1 to 3 dims, and of parts.

   Sequences are images with a height of 1. Volumes are pooled plane by plane, then along depth.
   An index counts the elements of [D, H, W], from 0. N batch, C channels.

   A maximum is separable (the maximum of the row maxima is the maximum of the box), which is why
   one kernel, max_window of images, serves all. It returns the position inside the window, one byte
   for windows of up to 256 elements, since that is all the gradient needs; indices into the input
   are computed from it only when they are asked for. */
#include "ops/expand.h"
#include "ops/spatial.h"

/* 0, step, 2 step, ... minus `before`, as [n, 1] or [1, n]. */
static lt_tensor *starts(lt_ctx *c, int64_t n, int64_t step, int64_t before, bool column,
                         lt_device device) {
  lt_tensor *t = lt_binary_scalar(c, LT_OP_mul, lt_counting(c, n, device), lt_scalar_int(step));
  t = lt_binary_scalar(c, LT_OP_sub, t, lt_scalar_int(before));
  return lt_reshape(c, t, (lt_shape){2, {column ? n : 1, column ? 1 : n}});
}

/* `at` counts the elements of a window row by row: row = at / width, column = at % width, each
   times its dilation and moved to where the window begins (o stride - padding). A maximum is never
   in the padding, so that the index is inside the image. */
lt_tensor *lt_window_indices(lt_ctx *c, lt_tensor *at, const lt_args_max_window *a,
                             int64_t width) {
  if (at == NULL) return NULL;
  int64_t rows = at->size[2], columns = at->size[3];
  lt_device device = at->storage->device;
  at = lt_cast(c, at, LT_I64);
  lt_tensor *h = lt_binary_scalar(c, LT_OP_floor_divide, at, lt_scalar_int(a->kernel_size.w));
  lt_tensor *w = lt_sub(c, at, lt_binary_scalar(c, LT_OP_mul, h, lt_scalar_int(a->kernel_size.w)));
  h = lt_binary_scalar(c, LT_OP_mul, h, lt_scalar_int(a->dilation.h));
  w = lt_binary_scalar(c, LT_OP_mul, w, lt_scalar_int(a->dilation.w));
  h = lt_add(c, h, starts(c, rows, a->stride.h, a->padding.h, true, device));
  w = lt_add(c, w, starts(c, columns, a->stride.w, a->padding.w, false, device));
  return lt_add(c, lt_binary_scalar(c, LT_OP_mul, h, lt_scalar_int(width)), w);
}

/* Of images; `at` gets the indices, or is NULL. */
static lt_tensor *of_images(lt_ctx *c, lt_tensor *x, const lt_args_max_window *a, bool ceil,
                            lt_tensor **at) {
  lt_args_max_window w = *a;
  lt_tensor *out[2] = {NULL};
  if (x == NULL) return NULL;
  w.out.h = lt_window_count(x->size[2], a->kernel_size.h, a->stride.h, a->padding.h, a->dilation.h,
                            ceil);
  w.out.w = lt_window_count(x->size[3], a->kernel_size.w, a->stride.w, a->padding.w, a->dilation.w,
                            ceil);
  if (!lt_apply(c, LT_OP_max_window, 1, &x, &w, 2, out)) return NULL;
  if (at != NULL) *at = lt_window_indices(c, out[1], &w, x->size[3]);
  return out[0];
}

/* Of volumes: the maxima of planes, then those of runs of depth. The index of the box's maximum:
   `along` names the plane for each place, `inside` the place in that plane, gathered there. */
static lt_tensor *of_volumes(lt_ctx *c, lt_tensor *x, const lt_args_max_pool *a, lt_tensor **at) {
  const lt_args_max_window plane = {.kernel_size = lt_image_pair(&a->kernel_size, 1),
                                    .stride = lt_image_pair(&a->stride, 1),
                                    .padding = lt_image_pair(&a->padding, 0),
                                    .dilation = lt_image_pair(&a->dilation, 1)};
  const lt_args_max_window depth = {.kernel_size = {a->kernel_size.size[0], 1},
                                    .stride = {a->stride.size[0], 1},
                                    .padding = {a->padding.size[0], 0},
                                    .dilation = {a->dilation.size[0], 1}};
  lt_tensor *inside = NULL, *along = NULL, **want = at != NULL ? &inside : NULL;
  lt_tensor *y = of_images(c, lt_planes(c, x), &plane, a->ceil_mode, want);
  y = lt_volumes(c, y, x);
  if (y == NULL) return NULL;
  const int64_t n = x->size[0], ch = x->size[1], d = x->size[2], h = y->size[3], w = y->size[4];
  y = lt_reshape(c, y, (lt_shape){4, {n, ch, d, h * w}});
  y = of_images(c, y, &depth, a->ceil_mode, at != NULL ? &along : NULL);
  if (y == NULL) return NULL;
  int64_t out = y->size[2];
  y = lt_reshape(c, y, (lt_shape){5, {n, ch, out, h, w}});
  if (at == NULL) return y;
  inside = lt_reshape(c, lt_volumes(c, inside, x), (lt_shape){3, {n, ch, d * h * w}});
  along = lt_reshape(c, along, (lt_shape){3, {n, ch, out * h * w}});
  inside = lt_gather_along(c, inside, 2, along);
  along = lt_binary_scalar(c, LT_OP_floor_divide, along, lt_scalar_int(h * w));
  along = lt_binary_scalar(c, LT_OP_mul, along, lt_scalar_int(x->size[3] * x->size[4]));
  *at = lt_reshape(c, lt_add(c, along, inside), lt_tensor_shape(y));
  return y;
}

/* Of x [N, C, ...] of 1 to 3 spatial dims, with arguments that are resolved and fit
   (infer_pool.c). */
static lt_tensor *pooled(lt_ctx *c, lt_tensor *x, const lt_args_max_pool *a, lt_tensor **at) {
  if (x->ndim == 5) return of_volumes(c, x, a, at);
  const lt_args_max_window w = {.kernel_size = lt_image_pair(&a->kernel_size, 1),
                                .stride = lt_image_pair(&a->stride, 1),
                                .padding = lt_image_pair(&a->padding, 0),
                                .dilation = lt_image_pair(&a->dilation, 1)};
  lt_tensor *y = of_images(c, lt_as_image(c, x), &w, a->ceil_mode, at);
  if (y == NULL || x->ndim == 4) return y;
  lt_shape s = {3, {y->size[0], y->size[1], y->size[3]}};
  if (at != NULL) *at = lt_reshape(c, *at, s);
  return lt_reshape(c, y, s);
}

static bool max_pool(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_max_pool *a = call->args;
  if (lt_spatial_unbatched(c, call, out)) return lt_ok(c);
  out[0] = pooled(c, call->in[0], a, a->return_indices ? &out[1] : NULL);
  return out[0] != NULL;
}

bool lt_expand_max_pool1d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return max_pool(c, call, out);
}
bool lt_expand_max_pool2d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return max_pool(c, call, out);
}
bool lt_expand_max_pool3d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return max_pool(c, call, out);
}

/* Part p covers floor(p n / parts) to ceil((p + 1) n / parts), exclusive, the rule of PyTorch's
   adaptive pools: with parts > n neighbours share elements. (p + 1) n / parts rounded up is (p n +
   n + parts - 1) / parts rounded down; products stay below 2^63 as both factors are sizes of one
   tensor. */
void lt_part_bounds(lt_ctx *c, int64_t n, int64_t parts, lt_device device, lt_tensor **from,
                    lt_tensor **to) {
  lt_tensor *o = lt_reshape(c, lt_counting(c, parts, device), (lt_shape){2, {parts, 1}});
  lt_tensor *at = lt_binary_scalar(c, LT_OP_mul, o, lt_scalar_int(n));
  lt_scalar by = lt_scalar_int(parts > 0 ? parts : 1);
  *from = lt_binary_scalar(c, LT_OP_floor_divide, at, by);
  *to = lt_binary_scalar(c, LT_OP_add, at, lt_scalar_int(n + parts - 1));
  *to = lt_binary_scalar(c, LT_OP_floor_divide, *to, by);
}

/* The maxima of the parts of a dim. Parts differ in length by at most one; all are
   read as long as the longest, and shorter ones repeat their last element, which changes no maximum
   and keeps the first of equal ones first. `at` gets the position in the dim of each maximum, or is
   NULL. */
static lt_tensor *of_parts(lt_ctx *c, lt_tensor *x, int dim, int64_t parts, lt_tensor **at) {
  lt_shape s = lt_tensor_shape(x), cut = {.ndim = s.ndim + 1};
  int64_t n = s.size[dim], most = parts > 0 ? (n + parts - 1) / parts + (n % parts != 0) : 1;
  lt_device device = x->storage->device;
  lt_tensor *from, *to, *two[2] = {NULL};
  if (most > n) most = n;
  lt_part_bounds(c, n, parts, device, &from, &to);
  lt_tensor *k = lt_add(c, from, lt_counting(c, most, device));
  k = lt_binary(c, LT_OP_minimum, k, lt_binary_scalar(c, LT_OP_sub, to, lt_scalar_int(1)));
  k = lt_flat(c, k);
  for (int d = 0, j = 0; d < cut.ndim; d++) cut.size[d] = d == dim + 1 ? most : s.size[j++];
  cut.size[dim] = s.size[dim] = parts;
  x = lt_reshape(c, lt_taken(c, x, dim, k), cut);
  if (!lt_apply(c, LT_OP_max, 1, &x, &(lt_args_extremum){.dim = dim + 1}, 2, two)) return NULL;
  if (at == NULL) return two[0];
  lt_shape column = {.ndim = s.ndim - dim, .size = {parts, 1, 1}};
  lt_tensor *place = lt_binary_scalar(c, LT_OP_mul, lt_counting(c, parts, device),
                                      lt_scalar_int(most));
  place = lt_add(c, two[1], lt_reshape(c, place, column)); /* in k */
  lt_tensor *chosen = lt_taken(c, k, 0, lt_flat(c, place));
  *at = lt_reshape(c, chosen, s);
  return two[0];
}

/* Equal parts are windows; others go dim by dim, the last one first. Indices are composed on the
   way: a later dim's winner chooses among those of the dims behind it, and adds its own place times
   the size of these. */
static bool adaptive(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_adaptive_max_pool *a = call->args;
  if (lt_spatial_unbatched(c, call, out)) return lt_ok(c);
  lt_tensor *x = call->in[0], **at = a->return_indices ? &out[1] : NULL;
  int n = a->output_size.n;
  bool equal = true;
  lt_args_max_pool w = {.kernel_size = {.n = n}, .padding = {.n = n}, .dilation = {.n = n}};
  for (int k = 0; k < n; k++) {
    int64_t parts = a->output_size.size[k], size = x->size[k + 2];
    equal = equal && parts > 0 && size % parts == 0;
    w.kernel_size.size[k] = equal ? size / parts : 1;
    w.dilation.size[k] = 1;
  }
  w.stride = w.kernel_size;
  if (equal) return (out[0] = pooled(c, x, &w, at)) != NULL;
  int64_t inner = 1;
  lt_tensor *where = NULL;
  for (int k = n - 1; k >= 0 && x != NULL; k--) {
    int64_t size = x->size[k + 2];
    lt_tensor *row = NULL, *before = where;
    x = of_parts(c, x, k + 2, a->output_size.size[k], at != NULL ? &row : NULL);
    if (at != NULL && before != NULL)
      where = lt_add(c, lt_gather_along(c, before, k + 2, row),
                     lt_binary_scalar(c, LT_OP_mul, row, lt_scalar_int(inner)));
    else
      where = row;
    inner *= size;
  }
  out[0] = x;
  if (at != NULL) *at = where;
  return lt_ok(c);
}

bool lt_expand_adaptive_max_pool1d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return adaptive(c, call, out);
}
bool lt_expand_adaptive_max_pool2d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return adaptive(c, call, out);
}
bool lt_expand_adaptive_max_pool3d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return adaptive(c, call, out);
}

/* Zeros with the elements at the places where max_pool found them (M. Zeiler and R. Fergus,
   Visualizing and Understanding Convolutional Networks, 2014). Overlapping windows may name one
   place twice: scatter lets the last in row-major order stay, on every device. */
static bool unpool(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  const lt_args_max_unpool *a = call->args;
  if (lt_spatial_unbatched(c, call, out)) return lt_ok(c);
  lt_tensor *x = call->in[0], *at = call->in[1];
  lt_shape flat = {3, {x->size[0], x->size[1], 1}}, to = lt_tensor_shape(x), all = flat;
  for (int k = 0; k < a->output_size.n; k++) {
    flat.size[2] *= x->size[k + 2];
    all.size[2] *= to.size[k + 2] = a->output_size.size[k];
  }
  lt_tensor *y = lt_full(c, all, lt_scalar_int(0), (lt_dtype)x->dtype, x->storage->device);
  x = lt_reshape(c, x, flat), at = lt_reshape(c, at, flat);
  y = lt_apply1(c, LT_OP_scatter, LT_IN(y, at, x), &(lt_args_scatter){.dim = 2});
  *out = lt_reshape(c, y, to);
  return *out != NULL;
}

bool lt_expand_max_unpool1d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return unpool(c, call, out);
}
bool lt_expand_max_unpool2d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return unpool(c, call, out);
}
bool lt_expand_max_unpool3d(lt_ctx *c, const lt_call *call, lt_tensor **out) {
  return unpool(c, call, out);
}
