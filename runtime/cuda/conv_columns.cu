/* runtime/cuda/conv_columns.cu: images as columns and back (im2col, col2im).

   K. Chellapilla and others, 2006. Columns take kh kw times the memory of the images:
   conv_product.cu bounds it by tiles. */
#include "cuda/conv.h"
#include "cuda/tile.h"

enum { THREADS = 256 };

typedef struct pair {
  int32_t h, w;
} pair;

typedef struct job {
  uint32_t count; /* threads */
  pair size, out, kernel, stride, padding, dilation;
  char *x; /* the first pixel of the tile */
  int dtype, item;
  int64_t x_stride[4];
  lt_cuda_columns col;
  uint32_t first;         /* output position */
  lt_divider by[3];       /* sizes of the dims of threads, from the fastest on */
  lt_divider by_h, by_w;  /* the strides; by_w in `spread`: positions of a row */
  lt_divider block;       /* channels of a group: in the tile, and in x */
  int64_t group;
} job;

/* Neighbouring threads have neighbouring output positions of a channel, each all its taps: writes
   are side by side, reads as far apart as the stride. Limited by bytes. */
template <class T> static __global__ void __launch_bounds__(THREADS) spread(LT_CONSTANT job j) {
  uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= j.count) return;
  uint32_t q = lt_quotient(i, j.by[0]), p = i - q * j.by[0].d;
  uint32_t n = lt_quotient(q, j.by[1]), c = q - n * j.by[1].d;
  uint32_t at = j.first + p, oh = lt_quotient(at, j.by_w);
  int32_t h0 = static_cast<int32_t>(oh) * j.stride.h - j.padding.h;
  int32_t w0 = static_cast<int32_t>(at - oh * j.by_w.d) * j.stride.w - j.padding.w;
  const T *x = reinterpret_cast<const T *>(j.x) + n * j.x_stride[0] + c * j.x_stride[1];
  T *to = static_cast<T *>(j.col.data) + n * j.col.image + c * j.col.channel + p;
  for (int32_t kh = 0; kh < j.kernel.h; kh++) {
    int32_t h = h0 + kh * j.dilation.h;
    bool inside = h >= 0 && h < j.size.h;
    for (int32_t kw = 0; kw < j.kernel.w; kw++) {
      int32_t w = w0 + kw * j.dilation.w;
      *to = inside && w >= 0 && w < j.size.w ? x[h * j.x_stride[2] + w * j.x_stride[3]] : T(0);
      to += j.col.tap;
    }
  }
}

/* One thread a pixel of x: it looks up the output positions that saw it, in the order of the taps.
   Limited by bytes: neighbouring threads read neighbours where the stride is 1. The adjoint of
   `spread`. Gathered, not scattered: a pixel in several windows would need atomics. */
template <class T> static __global__ void __launch_bounds__(THREADS) collect(LT_CONSTANT job j) {
  uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= j.count) return;
  uint32_t q = lt_quotient(i, j.by[0]), w = i - q * j.by[0].d;
  uint32_t r = lt_quotient(q, j.by[1]), h = q - r * j.by[1].d;
  uint32_t n = lt_quotient(r, j.by[2]), k = r - n * j.by[2].d;
  const T *from = static_cast<const T *>(j.col.data) + n * j.col.image + k * j.col.channel;
  T sum = 0;
  for (int32_t kh = 0; kh < j.kernel.h; kh++) {
    int32_t y = static_cast<int32_t>(h) + j.padding.h - kh * j.dilation.h;
    if (y < 0) break;
    int32_t oh = static_cast<int32_t>(lt_quotient(static_cast<uint32_t>(y), j.by_h));
    if (oh >= j.out.h || oh * j.stride.h != y) continue;
    for (int32_t kw = 0; kw < j.kernel.w; kw++) {
      int32_t x = static_cast<int32_t>(w) + j.padding.w - kw * j.dilation.w;
      if (x < 0) break;
      int32_t ow = static_cast<int32_t>(lt_quotient(static_cast<uint32_t>(x), j.by_w));
      if (ow >= j.out.w || ow * j.stride.w != x) continue;
      int64_t tap = static_cast<int64_t>(kh) * j.kernel.w + kw;
      sum += from[tap * j.col.tap + static_cast<int64_t>(oh) * j.out.w + ow];
    }
  }
  uint32_t g = lt_quotient(k, j.block);
  int64_t c = g * j.group + (k - g * j.block.d);
  int64_t at = n * j.x_stride[0] + c * j.x_stride[1] + h * j.x_stride[2] + w * j.x_stride[3];
  lt_store<T>(j.x + at * j.item, j.dtype, 0, sum);
}

static pair pair_of(int64_t h, int64_t w) {
  pair p = {static_cast<int32_t>(h), static_cast<int32_t>(w)};
  return p;
}

static lt_divider divider(int64_t d) { return lt_divide_by(static_cast<uint32_t>(d)); }

/* False with a failure where the threads do not fit into 31 bits. Index arithmetic is in 32 bits
   with precomputed divisors (lt_divider): a 64-bit division costs some hundred instructions, and
   each thread has several. */
static bool job_of(lt_ctx *c, const lt_cuda_conv *v, const lt_cuda_conv_tile *tile,
                   int64_t threads, job *j) {
  if (threads > INT32_MAX)
    return lt_cuda_fail(c, LT_ESHAPE, "%s: an image of %lld x %lld x %lld is too large",
                        lt_cuda_now.op, static_cast<long long>(v->c),
                        static_cast<long long>(v->h), static_cast<long long>(v->w));
  j->count = static_cast<uint32_t>(threads);
  j->size = pair_of(v->h, v->w), j->out = pair_of(v->oh, v->ow);
  j->kernel = pair_of(v->kh, v->kw);
  j->stride = pair_of(v->stride.h, v->stride.w);
  j->padding = pair_of(v->padding.h, v->padding.w);
  j->dilation = pair_of(v->dilation.h, v->dilation.w);
  j->dtype = v->x.dtype, j->item = static_cast<int>(lt_cuda_item_size(v->x.dtype));
  for (int d = 0; d < 4; d++) j->x_stride[d] = v->x.stride[d];
  j->x = static_cast<char *>(v->x.data) + tile->first_n * v->x.stride[0] * j->item;
  return true;
}

template <class... P> static bool issue(lt_ctx *c, const job *j, void (*kernel)(P...)) {
  return lt_cuda_grid(c, kernel, (j->count + THREADS - 1) / THREADS, THREADS, 0, *j);
}

/* Copies go by the size of an element: dtypes do not matter here. */
bool lt_cuda_conv_spread(lt_ctx *c, const lt_cuda_conv *v, lt_cuda_conv_tile tile,
                         lt_cuda_columns to) {
  job j = {};
  if (!job_of(c, v, &tile, tile.n * v->c * tile.count, &j)) return false;
  j.col = to;
  j.first = static_cast<uint32_t>(tile.first);
  j.by[0] = divider(tile.count), j.by[1] = divider(v->c), j.by_w = divider(v->ow);
  return j.item == 2   ? issue(c, &j, spread<uint16_t>)
         : j.item == 4 ? issue(c, &j, spread<uint32_t>)
                       : issue(c, &j, spread<uint64_t>);
}

bool lt_cuda_conv_collect(lt_ctx *c, const lt_cuda_conv *v, lt_cuda_conv_tile tile,
                          lt_cuda_columns from) {
  job j = {};
  int64_t channels = v->groups * tile.count;
  if (!job_of(c, v, &tile, tile.n * channels * v->h * v->w, &j)) return false;
  j.col = from;
  j.x += tile.first * v->x.stride[1] * j.item;
  j.by[0] = divider(v->w), j.by[1] = divider(v->h), j.by[2] = divider(channels);
  j.by_h = divider(v->stride.h), j.by_w = divider(v->stride.w);
  j.block = divider(tile.count), j.group = v->c / v->groups;
  return v->x.dtype == LT_F64 ? issue(c, &j, collect<double>) : issue(c, &j, collect<float>);
}
