/* runtime/cuda/pool.cu: max_window and its gradient, for any strides.

   A position in a window is row * width + column. The gradient of a pixel is gathered from the
   windows that cover it, in the CPU's order: the same bits. Images of 2^31 elements are refused. */
#include <math.h>

#include "cuda/elementwise.h"
#include "cuda/tile.h"

enum { THREADS = 256 };

typedef struct pair {
  int32_t h, w;
} pair;

/* [N, C, H, W], here or there. */
typedef struct operand {
  char *data;
  int dtype, item;
  int64_t stride[4];
} operand;

typedef struct job {
  uint32_t count;     /* threads */
  bool channels_last; /* the order of the threads */
  lt_divider by[3];   /* sizes of their dims, from the fastest on */
  pair size, out, kernel, stride, padding, dilation;
  lt_divider by_h, by_w; /* the strides */
  lt_divider apart_h, apart_w; /* the dilations */
  operand x, y, at;
} job;

typedef struct place {
  int32_t n, c, h, w;
} place;

/* Threads are numbered in the order of the memory that they write, rows or channels last. */
static __device__ inline place place_of(const job &j, uint32_t i) {
  uint32_t a = lt_quotient(i, j.by[0]), b = lt_quotient(a, j.by[1]), n = lt_quotient(b, j.by[2]);
  int32_t r0 = static_cast<int32_t>(i - a * j.by[0].d);
  int32_t r1 = static_cast<int32_t>(a - b * j.by[1].d);
  int32_t r2 = static_cast<int32_t>(b - n * j.by[2].d);
  place p = {static_cast<int32_t>(n), j.channels_last ? r0 : r2, j.channels_last ? r2 : r1,
             j.channels_last ? r1 : r0};
  return p;
}

/* Pixel (0, 0) of the place's channel. */
static __device__ inline char *channel_of(const operand &o, const place &p) {
  return o.data + (p.n * o.stride[0] + p.c * o.stride[1]) * o.item;
}
static __device__ inline char *pixel_of(const operand &o, char *channel, int32_t h, int32_t w) {
  return channel + (h * o.stride[2] + w * o.stride[3]) * o.item;
}

template <class T> static __device__ inline T lowest() { return -INFINITY; }
template <> __device__ inline int64_t lowest<int64_t>() { return INT64_MIN; }

static __device__ inline float add(float a, float b) { return a + b; }
static __device__ inline double add(double a, double b) { return a + b; }
static __device__ inline int64_t add(int64_t a, int64_t b) { /* integers wrap */
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

static __device__ inline void store_position(const operand &o, char *to, int32_t at) {
  if (o.dtype == LT_U8)
    *reinterpret_cast<uint8_t *>(to) = static_cast<uint8_t>(at);
  else
    *reinterpret_cast<int32_t *>(to) = at;
}
static __device__ inline int32_t load_position(const operand &o, const char *from) {
  return o.dtype == LT_U8 ? *reinterpret_cast<const uint8_t *>(from)
                          : *reinterpret_cast<const int32_t *>(from);
}

/* How many steps of `by` bring `n` up to 0 or beyond. The bounds of a window inside of the image
   are computed, so that the loop over it has no test. */
static __device__ inline int32_t steps_to(int32_t n, lt_divider by) {
  return n <= 0 ? 0 : static_cast<int32_t>(lt_quotient(static_cast<uint32_t>(n - 1), by)) + 1;
}

/* One thread a window, NaN above all; the first position inside is where a maximum of -infinity
   stands. Limited by bytes. */
template <class T>
static __global__ void __launch_bounds__(THREADS, 4) forward(LT_CONSTANT job j) {
  uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= j.count) return;
  place p = place_of(j, i);
  int32_t h0 = p.h * j.stride.h - j.padding.h, w0 = p.w * j.stride.w - j.padding.w;
  int32_t first_h = steps_to(-h0, j.apart_h), first_w = steps_to(-w0, j.apart_w);
  int32_t end_h = steps_to(j.size.h - h0, j.apart_h), end_w = steps_to(j.size.w - w0, j.apart_w);
  if (end_h > j.kernel.h) end_h = j.kernel.h;
  if (end_w > j.kernel.w) end_w = j.kernel.w;
  char *x = channel_of(j.x, p);
  T best = lowest<T>();
  int32_t at = first_h * j.kernel.w + first_w;
  for (int32_t kh = first_h; kh < end_h; kh++)
    for (int32_t kw = first_w; kw < end_w; kw++) {
      int32_t h = h0 + kh * j.dilation.h, w = w0 + kw * j.dilation.w;
      T v = lt_load<T>(pixel_of(j.x, x, h, w), j.x.dtype, 0);
      bool more = v > best || v != v;
      best = more ? v : best;
      at = more ? kh * j.kernel.w + kw : at;
    }
  lt_store<T>(pixel_of(j.y, channel_of(j.y, p), p.h, p.w), j.y.dtype, 0, best);
  store_position(j.at, pixel_of(j.at, channel_of(j.at, p), p.h, p.w), at);
}

/* Windows from..to of those along one dim reach over pixel `x`, padding included; `span`: from the
   first to the last position of one. Window k with k stride <= x < k stride + span: what is over x,
   without walking all windows. */
static __device__ inline int32_t first_window(int32_t x, int32_t span, lt_divider stride) {
  uint32_t before = static_cast<uint32_t>(x - span);
  return x < span ? 0 : static_cast<int32_t>(lt_quotient(before, stride)) + 1;
}
static __device__ inline int32_t last_window(int32_t x, int32_t windows, lt_divider stride) {
  int32_t last = static_cast<int32_t>(lt_quotient(static_cast<uint32_t>(x), stride));
  return last < windows ? last : windows - 1;
}

/* One thread a pixel. Limited by bytes. Gathering needs no atomics: the few windows over a pixel
   are asked whether they chose it. */
template <class T>
static __global__ void __launch_bounds__(THREADS, 4) backward(LT_CONSTANT job j) {
  uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= j.count) return;
  place p = place_of(j, i);
  int32_t h = p.h + j.padding.h, w = p.w + j.padding.w;
  int32_t span_h = (j.kernel.h - 1) * j.dilation.h + 1;
  int32_t span_w = (j.kernel.w - 1) * j.dilation.w + 1;
  int32_t first_w = first_window(w, span_w, j.by_w), last_w = last_window(w, j.out.w, j.by_w);
  int32_t last_h = last_window(h, j.out.h, j.by_h);
  char *at = channel_of(j.at, p), *g = channel_of(j.y, p);
  T sum = 0;
  for (int32_t oh = first_window(h, span_h, j.by_h); oh <= last_h; oh++)
    for (int32_t ow = last_w; ow >= first_w; ow--) {
      uint32_t dh = static_cast<uint32_t>(h - oh * j.stride.h);
      uint32_t dw = static_cast<uint32_t>(w - ow * j.stride.w);
      uint32_t kh = lt_quotient(dh, j.apart_h), kw = lt_quotient(dw, j.apart_w);
      if (kh * j.apart_h.d != dh || kw * j.apart_w.d != dw) continue;
      int32_t k = static_cast<int32_t>(kh) * j.kernel.w + static_cast<int32_t>(kw);
      if (load_position(j.at, pixel_of(j.at, at, oh, ow)) == k)
        sum = add(sum, lt_load<T>(pixel_of(j.y, g, oh, ow), j.y.dtype, 0));
    }
  lt_store<T>(pixel_of(j.x, channel_of(j.x, p), p.h, p.w), j.x.dtype, 0, sum);
}

static pair pair_of(int64_t h, int64_t w) {
  pair p = {static_cast<int32_t>(h), static_cast<int32_t>(w)};
  return p;
}

/* Moved to image n: offsets within a piece then fit 32 bits. */
static operand operand_of(const lt_view *v, int64_t n) {
  operand o = {static_cast<char *>(v->data), v->dtype,
               static_cast<int>(lt_cuda_item_size(v->dtype)), {}};
  for (int d = 0; d < 4; d++) o.stride[d] = v->stride[d];
  o.data += n * o.stride[0] * o.item;
  return o;
}

/* Threads in the order of the memory that they write. Channels last, if the memory that is written
   has channels side by side. */
static void order_threads(job *j, const lt_view *made) {
  j->channels_last = made->size[1] > 1 && made->stride[1] == 1 && made->size[3] > 1;
  const int dims[2][3] = {{3, 2, 1}, {1, 3, 2}};
  for (int k = 0; k < 3; k++)
    j->by[k] = lt_divide_by(static_cast<uint32_t>(made->size[dims[j->channels_last][k]]));
}

/* What max_window and its gradient are called with. */
typedef struct window {
  lt_pair kernel, stride, padding, dilation;
} window;

static bool fits(lt_ctx *c, const lt_view *x, const lt_view *made, const window &v) {
  int64_t h = x->size[2] + 2 * v.padding.h, w = x->size[3] + 2 * v.padding.w;
  int64_t span_h = (v.kernel.h - 1) * v.dilation.h, span_w = (v.kernel.w - 1) * v.dilation.w;
  bool one = made->size[1] * made->size[2] * made->size[3] <= INT32_MAX;
  if (one && h + span_h <= INT32_MAX && w + span_w <= INT32_MAX &&
      v.kernel.h * v.kernel.w <= INT32_MAX)
    return true;
  return lt_cuda_fail(c, LT_ESHAPE, "%s: an image of %lld x %lld x %lld is too large with "
                      "kernel_size {%lld, %lld}", lt_cuda_now.op,
                      static_cast<long long>(x->size[1]), static_cast<long long>(x->size[2]),
                      static_cast<long long>(x->size[3]), static_cast<long long>(v.kernel.h),
                      static_cast<long long>(v.kernel.w));
}

typedef void (*kernel_fn)(job);

/* `made` is x or y: what the kernel writes. Images are cut where they are 2^31 elements. 31 bits
   for thread numbers and offsets within a piece; images are independent, so that cutting between
   them changes nothing. */
static bool run(lt_ctx *c, const kernel_fn *by_type, const lt_view *made, const lt_view *x,
                const lt_view *y, const lt_view *at, const window &v) {
  int64_t n = x->size[0], each = made->size[1] * made->size[2] * made->size[3];
  if (n * each == 0) return true;
  if (!fits(c, x, made, v)) return false;
  job j = {};
  order_threads(&j, made);
  j.size = pair_of(x->size[2], x->size[3]), j.out = pair_of(y->size[2], y->size[3]);
  j.kernel = pair_of(v.kernel.h, v.kernel.w), j.stride = pair_of(v.stride.h, v.stride.w);
  j.padding = pair_of(v.padding.h, v.padding.w);
  j.dilation = pair_of(v.dilation.h, v.dilation.w);
  j.by_h = lt_divide_by(static_cast<uint32_t>(v.stride.h));
  j.by_w = lt_divide_by(static_cast<uint32_t>(v.stride.w));
  j.apart_h = lt_divide_by(static_cast<uint32_t>(v.dilation.h));
  j.apart_w = lt_divide_by(static_cast<uint32_t>(v.dilation.w));
  int64_t most = INT32_MAX / each;
  for (int64_t first = 0; first < n; first += most) {
    j.count = static_cast<uint32_t>((n - first < most ? n - first : most) * each);
    j.x = operand_of(x, first), j.y = operand_of(y, first), j.at = operand_of(at, first);
    unsigned blocks = (j.count + THREADS - 1) / THREADS;
    if (!lt_cuda_grid(c, by_type[lt_cuda_compute(x->dtype)], blocks, THREADS, 0, j)) return false;
  }
  return true;
}

LT_CUDA_KERNEL(max_window) {
  static const kernel_fn by_type[] = {forward<float>, forward<double>, forward<int64_t>};
  const lt_args_max_window *a = lt_cuda_args<lt_args_max_window>(call);
  const window v = {a->kernel_size, a->stride, a->padding, a->dilation};
  lt_view x, y, at;
  return lt_cuda_view(c, call->in[0], &x) && lt_cuda_view(c, call->out[0], &y) &&
         lt_cuda_view(c, call->out[1], &at) && run(c, by_type, &y, &x, &y, &at, v);
}

LT_CUDA_KERNEL(max_window_backward) {
  static const kernel_fn by_type[] = {backward<float>, backward<double>, backward<int64_t>};
  const lt_args_max_window_backward *a = lt_cuda_args<lt_args_max_window_backward>(call);
  const window v = {a->kernel_size, a->stride, a->padding, a->dilation};
  lt_view g, at, x;
  return lt_cuda_view(c, call->in[0], &g) && lt_cuda_view(c, call->in[1], &at) &&
         lt_cuda_view(c, call->out[0], &x) && run(c, by_type, &x, &x, &g, &at, v);
}
