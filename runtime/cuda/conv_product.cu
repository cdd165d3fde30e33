/* runtime/cuda/conv_product.cu: convolutions as products of matrices (gemm.h) with the columns of
   conv_columns.cu. Columns are made for a tile of images, or of a part of one, at a time: scratch
   memory stays bounded. Kernels of one position need none where the stride is 1.

   Letters as in conv.h. Per group: K = C / G taps of a channel, columns [K, P], y = weight columns.


   The method is that of K. Chellapilla and others (2006), which Caffe made known. Forward and the
   gradient of the weight read columns of x; the gradient of x makes columns and adds them up where
   they overlap. */
#include "cuda/conv.h"
#include "cuda/elementwise.h"
#include "cuda/gemm.h"
#include "cuda/tile.h"

#ifndef LT_CUDA_CONV_BYTES /* specs want many tiles of small images */
#define LT_CUDA_CONV_BYTES (256 << 20)
#endif
static const int64_t MOST_BYTES =
    LT_CUDA_CONV_BYTES; /* bytes of columns, unless one part takes more */

typedef struct sizes {
  int64_t taps, k, p, o; /* taps; K, P, O of a group */
} sizes;

static sizes sizes_of(const lt_cuda_conv *v) {
  sizes s = {v->kh * v->kw, 0, v->oh * v->ow, v->o / v->groups};
  s.k = v->c / v->groups * s.taps;
  return s;
}

/* At least 1: a part that is larger than MOST_BYTES is done all the same. */
static int64_t at_most(int64_t total, int64_t most) {
  return most < 1 ? 1 : total < most ? total : most;
}

/* Images of a tile, or how much of one: in `total` parts of `bytes` each. */
static lt_cuda_conv_tile tile_of(const lt_cuda_conv *v, int64_t total, int64_t bytes) {
  lt_cuda_conv_tile t = {};
  t.count = at_most(total, MOST_BYTES / bytes);
  t.n = t.count < total ? 1 : at_most(v->n, MOST_BYTES / (bytes * total));
  return t;
}

/* Are h and w one dim, of stride *step? */
static bool joins(const lt_view *v, int64_t *step) {
  *step = v->size[3] > 1 ? v->stride[3] : v->size[2] > 1 ? v->stride[2] : 1;
  return v->size[3] <= 1 || v->size[2] <= 1 || v->stride[2] == v->size[3] * *step;
}

/* x as columns already: one tap, which sees each pixel once. */
static bool is_pointwise(const lt_cuda_conv *v) {
  int64_t step;
  return v->kh * v->kw == 1 && v->stride.h == 1 && v->stride.w == 1 && v->padding.h == 0 &&
         v->padding.w == 0 && joins(&v->x, &step);
}

static lt_cuda_matrix matrix(void *data, int dtype, int64_t row, int64_t col, int64_t image,
                             int64_t group) {
  lt_cuda_matrix m = {};
  m.data = data;
  m.dtype = dtype;
  m.row = row, m.col = col;
  m.batch[0] = image, m.batch[1] = group;
  return m;
}

static void advance(lt_cuda_matrix *m, int64_t elements) {
  m->data = static_cast<char *>(m->data) + elements * lt_cuda_item_size(m->dtype);
}

/* An activation as matrices [channels of a group, positions] by image and group; h and w join. */
static lt_cuda_matrix activation(const lt_view *x, int64_t groups) {
  int64_t step;
  joins(x, &step);
  return matrix(x->data, x->dtype, x->stride[1], step, x->stride[0],
                x->size[1] / groups * x->stride[1]);
}

/* A product of n images and all groups. */
static lt_cuda_product product(const lt_cuda_conv *v, int64_t n) {
  lt_cuda_product p = {};
  p.n_batch = 2;
  p.batch[0] = n, p.batch[1] = v->groups;
  p.alpha = 1;
  return p;
}

/* y = weight columns for the positions of a tile, all groups as a stack; `add`: onto the bias that
   is in y. */
static bool forward_tile(lt_ctx *c, const lt_cuda_conv *v, const lt_cuda_conv_tile *t,
                         const lt_cuda_matrix *columns, bool add) {
  sizes s = sizes_of(v);
  lt_cuda_product p = product(v, t->n);
  p.m = s.o, p.k = s.k, p.n = t->count;
  p.a = matrix(v->weight.data, v->weight.dtype, s.k, 1, 0, s.o * s.k);
  p.b = *columns;
  p.d = activation(&v->y, v->groups);
  advance(&p.d, t->first_n * v->o * s.p + t->first);
  p.beta = add;
  return lt_cuda_gemm(c, &p);
}

bool lt_cuda_conv_forward(lt_ctx *c, const lt_cuda_conv *v, bool add) {
  sizes s = sizes_of(v);
  int64_t all = v->c * s.taps, item = lt_cuda_item_size(v->x.dtype);
  if (is_pointwise(v)) {
    lt_cuda_conv_tile whole = {0, v->n, 0, s.p};
    lt_cuda_matrix x = activation(&v->x, v->groups);
    return forward_tile(c, v, &whole, &x, add);
  }
  lt_cuda_conv_tile t = tile_of(v, s.p, all * item);
  int64_t images = t.n, positions = t.count;
  void *columns_memory = lt_cuda_scratch<char>(c, images * positions * all * item);
  if (columns_memory == nullptr) return false;
  for (; t.first_n < v->n; t.first_n += images) {
    t.n = at_most(images, v->n - t.first_n);
    for (t.first = 0; t.first < s.p; t.first += positions) {
      t.count = at_most(positions, s.p - t.first);
      lt_cuda_columns to = {columns_memory, all * t.count, s.taps * t.count, t.count};
      lt_cuda_matrix columns =
          matrix(columns_memory, v->x.dtype, t.count, 1, to.image, s.k * t.count);
      if (!lt_cuda_conv_spread(c, v, t, to) || !forward_tile(c, v, &t, &columns, add))
        return false;
    }
  }
  return true;
}

/* columns = weight' y, for `count` channels of each group from `first` on. */
static bool input_tile(lt_ctx *c, const lt_cuda_conv *v, const lt_cuda_conv_tile *t,
                       const lt_cuda_matrix *columns) {
  sizes s = sizes_of(v);
  lt_cuda_product p = product(v, t->n);
  p.m = t->count * s.taps, p.k = s.o, p.n = s.p;
  p.a = matrix(v->weight.data, v->weight.dtype, 1, s.k, 0, s.o * s.k);
  advance(&p.a, t->first * s.taps);
  p.b = activation(&v->y, v->groups);
  advance(&p.b, t->first_n * v->y.stride[0]);
  p.d = *columns;
  return lt_cuda_gemm(c, &p);
}

bool lt_cuda_conv_input(lt_ctx *c, const lt_cuda_conv *v) {
  sizes s = sizes_of(v);
  int64_t channels = v->c / v->groups;
  if (is_pointwise(v)) {
    lt_cuda_conv_tile whole = {0, v->n, 0, channels};
    lt_cuda_matrix x = activation(&v->x, v->groups);
    return input_tile(c, v, &whole, &x);
  }
  lt_dtype own = lt_cuda_own(v->x.dtype); /* sums are rounded once */
  int64_t item = lt_cuda_item_size(own);
  int64_t each = v->groups * (s.taps * s.p * item + v->h * v->w); /* pixels bound the threads */
  lt_cuda_conv_tile t = tile_of(v, channels, each);
  int64_t images = t.n, block = t.count;
  void *columns_memory = lt_cuda_scratch<char>(c, images * block * v->groups * s.taps * s.p * item);
  if (columns_memory == nullptr) return false;
  for (; t.first_n < v->n; t.first_n += images) {
    t.n = at_most(images, v->n - t.first_n);
    for (t.first = 0; t.first < channels; t.first += block) {
      t.count = at_most(block, channels - t.first);
      int64_t rows = t.count * s.taps;
      lt_cuda_columns from = {columns_memory, v->groups * rows * s.p, s.taps * s.p, s.p};
      lt_cuda_matrix columns = matrix(columns_memory, own, s.p, 1, from.image, rows * s.p);
      if (!input_tile(c, v, &t, &columns) || !lt_cuda_conv_collect(c, v, t, from)) return false;
    }
  }
  return true;
}

/* Images t of y as one matrix [O, n P], copied to `columns_memory` unless they lie like one. */
static bool joined_images(lt_ctx *c, const lt_cuda_conv *v, const lt_cuda_conv_tile *t,
                          void *columns_memory, lt_cuda_matrix *out) {
  sizes s = sizes_of(v);
  *out = activation(&v->y, v->groups);
  advance(out, t->first_n * v->y.stride[0] + t->first * out->col);
  if (t->n == 1 || v->y.stride[0] == s.p * out->col) return true;
  lt_view from = v->y, to = v->y;
  from.data = out->data;
  from.size[0] = to.size[0] = t->n;
  to.data = columns_memory;
  to.stride[0] = s.p, to.stride[1] = t->n * s.p, to.stride[2] = v->ow, to.stride[3] = 1;
  *out = activation(&to, v->groups);
  return lt_cuda_move(c, &to, &from);
}

/* d += y columns', over the images and positions of a tile. */
static bool weight_tile(lt_ctx *c, const lt_cuda_conv *v, lt_cuda_conv_tile t, void *y, void *col,
                        void *d, lt_dtype dtype) {
  sizes s = sizes_of(v);
  int64_t tap = t.n * t.count;
  lt_cuda_columns to = {col, t.count, s.taps * tap, tap};
  lt_cuda_product p = product(v, 1);
  p.m = s.o, p.n = s.k, p.k = tap;
  p.b = matrix(col, v->x.dtype, 1, tap, 0, s.k * tap);
  p.d = matrix(d, dtype, s.k, 1, 0, s.o * s.k);
  p.beta = t.first_n > 0 || t.first > 0;
  return joined_images(c, v, &t, y, &p.a) && lt_cuda_conv_spread(c, v, t, to) &&
         lt_cuda_gemm(c, &p);
}

/* The gradient, which several tiles sum in f32 or f64. */
static bool give_weight(lt_ctx *c, const lt_cuda_conv *v, void *sums, lt_dtype dtype) {
  lt_view from = v->weight;
  from.data = sums;
  from.dtype = dtype;
  return sums == v->weight.data || lt_cuda_move(c, &v->weight, &from);
}

/* The sum over images and positions is one product per tile, whose K is the number of positions;
   tiles add up in f32 or f64 even where the weight is of 16 bits. */
bool lt_cuda_conv_weight(lt_ctx *c, const lt_cuda_conv *v) {
  sizes s = sizes_of(v);
  int64_t all = v->c * s.taps, item = lt_cuda_item_size(v->x.dtype), size = v->o * s.k;
  lt_cuda_conv_tile t = tile_of(v, s.p, all * item);
  int64_t images = t.n, positions = t.count;
  lt_dtype own = lt_cuda_own(v->x.dtype), dtype = v->weight.dtype;
  bool apart = dtype != own && (images < v->n || positions < s.p);
  if (apart) dtype = own;
  void *y = lt_cuda_scratch<char>(c, images > 1 ? images * v->o * s.p * item : 1);
  void *col = lt_cuda_scratch<char>(c, images * positions * all * item);
  void *d = apart ? lt_cuda_scratch<char>(c, size * lt_cuda_item_size(own)) : v->weight.data;
  if (y == nullptr || col == nullptr || d == nullptr) return false;
  for (; t.first_n < v->n; t.first_n += images) {
    t.n = at_most(images, v->n - t.first_n);
    for (t.first = 0; t.first < s.p; t.first += positions) {
      t.count = at_most(positions, s.p - t.first);
      if (!weight_tile(c, v, t, y, col, d, dtype)) return false;
    }
  }
  return give_weight(c, v, d, dtype);
}
