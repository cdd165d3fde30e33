/* runtime/image/resize.c: PIL's resampling: weights of each output pixel, rows first, then columns.

   The cubic is R. Keys' with a = -1/2 (Cubic Convolution Interpolation for Digital Image
   Processing, 1981), which is Catmull and Rom's. Where an image becomes smaller the filter is
   stretched, so that each input counts (antialiasing). Both directions are separate: 2 k
   products a pixel in place of k^2. */
#include "image/resize.h"

#include <math.h>
#include <string.h>

#include "base/target_clones.h"

/* For each of n outputs the first of the `count` inputs that it is made of, and their weights:
   `most` places for each. All have as many, some with weights of zero: loops that differ in length
   from pixel to pixel are slow. Weights of u8 are integers of BITS bits behind the point. */
enum { BITS = 22, HALF = 1 << (BITS - 1) };
typedef struct taps {
  int n, most, count;
  int *first;
  int32_t *fixed;
  float *weight;
  size_t bytes;
} taps;

/* The filter's weight at a distance of x inputs. Horner's form of PIL, factor by factor: another
   one would round differently. */
static double kernel(lt_filter filter, double x) {
  const double a = -0.5;
  x = fabs(x);
  if (filter == LT_BILINEAR) return x < 1 ? 1 - x : 0;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* One allocation for the three lists. */
static bool taps_new(lt_ctx *c, taps *t, int in, int out, double support) {
  t->n = out;
  t->most = (int)ceil(support) * 2 + 1;
  if (t->most > in + 1) t->most = in + 1;
  size_t places = (size_t)out * (size_t)t->most;
  t->bytes = places * (sizeof *t->fixed + sizeof *t->weight) + (size_t)out * sizeof(int);
  t->first = lt_alloc(c, t->bytes);
  if (t->first == NULL) return false;
  t->fixed = (int32_t *)(t->first + out);
  t->weight = (float *)(t->fixed + places);
  return true;
}

/* The inputs under the filter around output i and their weights, which are divided by their sum: at
   the edges part of the filter is cut off. */
static void weigh(taps *t, int i, int in, double centre, double support, double stretch,
                  lt_filter filter) {
  int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
  if (first < 0) first = 0;
  if (end > in) end = in;
  double sum = 0, inverse = 1 / stretch; /* in PIL's order, for the same bits */
  float *weight = t->weight + (size_t)i * (size_t)t->most;
  int32_t *fixed = t->fixed + (size_t)i * (size_t)t->most;
  for (int k = 0; k < end - first; k++)
    sum += kernel(filter, (k + first - centre + 0.5) * inverse);
  for (int k = 0; k < end - first; k++) {
    double w = kernel(filter, (k + first - centre + 0.5) * inverse);
    if (sum != 0) w /= sum;
    weight[k] = (float)w;
    fixed[k] = (int32_t)(w * (1 << BITS) + (w < 0 ? -0.5 : 0.5));
  }
  t->first[i] = first;
  if (end - first > t->count) t->count = end - first;
}

/* No output looks behind the last input: those near it begin earlier, with zeros before. */
static void even_out(taps *t, int i, int in) {
  int back = t->first[i] + t->count - in;
  float *weight = t->weight + (size_t)i * (size_t)t->most;
  int32_t *fixed = t->fixed + (size_t)i * (size_t)t->most;
  if (back <= 0) return;
  size_t kept = (size_t)(t->count - back);
  memmove(weight + back, weight, kept * sizeof *weight);
  memmove(fixed + back, fixed, kept * sizeof *fixed);
  memset(weight, 0, (size_t)back * sizeof *weight);
  memset(fixed, 0, (size_t)back * sizeof *fixed);
  t->first[i] -= back;
}

static bool taps_make(lt_ctx *c, taps *t, int in, int out, lt_filter filter) {
  double scale = (double)in / out, stretch = scale < 1 ? 1 : scale;
  double support = (filter == LT_BILINEAR ? 1 : 2) * stretch;
  if (!taps_new(c, t, in, out, support)) return false;
  t->count = 0;
  for (int i = 0; i < out; i++) weigh(t, i, in, (i + 0.5) * scale, support, stretch, filter);
  for (int i = 0; i < out; i++) even_out(t, i, in);
  return true;
}

/* The shift rounds down; HALF, with which each sum begins, makes that to the nearest. */
static uint8_t clip(int32_t sum) {
  sum >>= BITS;
  return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

LT_CLONES static void row_bytes(const taps *t, const uint8_t *in, int64_t step, uint8_t *out) {
  for (int i = 0; i < t->n; i++) {
    const uint8_t *p = in + t->first[i] * step;
    const int32_t *w = t->fixed + (size_t)i * (size_t)t->most;
    int32_t sum = HALF;
    for (int k = 0; k < t->count; k++, p += step) sum += *p * w[k];
    out[i] = clip(sum);
  }
}

/* Three channels side by side, as decoders give them. The fourth byte is of the next pixel in
   memory: it is not read behind the last one, and what is written there is overwritten by the next
   pixel, or is in the one byte that pictures have behind them. */
typedef int32_t quad __attribute__((vector_size(16)));
typedef uint8_t quad_bytes __attribute__((vector_size(16)));

/* Bytes of a word as integers, and back; shuffles that there is one instruction for. */
static inline quad to_quad(uint32_t word) {
  quad_bytes bytes = (quad_bytes)(quad){(int32_t)word};
  return (quad)__builtin_shufflevector(bytes, (quad_bytes){0}, 0, 16, 16, 16, 1, 16, 16, 16, 2, 16,
                                       16, 16, 3, 16, 16, 16);
}

static inline uint32_t to_word(quad q) {
  quad_bytes bytes = (quad_bytes)q;
  return (uint32_t)((quad)__builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0,
                                                  0, 0, 0, 0))[0];
}

LT_CLONES static void row_triples(const taps *t, const uint8_t *in, int64_t step, int width,
                                  uint8_t *out) {
  int last = step < 0 ? 0 : width - 1, n = t->count;
  for (int i = 0; i < t->n; i++) {
    int first = t->first[i];
    const uint8_t *p = in + first * step;
    const int32_t *w = t->fixed + (size_t)i * (size_t)t->most;
    bool ends = last >= first && last < first + n;
    quad sum = {HALF, HALF, HALF, 0};
    for (int k = 0; k < n; k++, p += step) {
      uint32_t word = 0;
      if (ends)
        memcpy(&word, p, 3);
      else
        memcpy(&word, p, 4);
      sum += to_quad(word) * w[k];
    }
    sum >>= BITS;
    sum &= sum > 0; /* a comparison is all ones, or zero */
    sum = (sum & (sum < 256)) | (255 & (sum > 255));
    uint32_t pixel = to_word(sum);
    memcpy(out + 3 * i, &pixel, 4);
  }
}

static void row_floats(const taps *t, const float *in, int64_t step, float *out) {
  for (int i = 0; i < t->n; i++) {
    const float *p = in + t->first[i] * step, *w = t->weight + (size_t)i * (size_t)t->most;
    float sum = 0;
    for (int k = 0; k < t->count; k++, p += step) sum += *p * w[k];
    out[i] = sum;
  }
}

/* Decoded pictures come interleaved; resizing their rows as they are saves a pass that would
   separate the channels. */
static bool across_triples(lt_ctx *c, const lt_picture *p, const taps *t, lt_picture *out) {
  if (!lt_picture_interleaved(c, out, p->depth, 3, p->height, t->n)) return false;
  for (int y = 0; y < p->height; y++)
    row_triples(t, lt_picture_row(p, 0, y), p->stride_x, p->width, lt_picture_row(out, 0, y));
  return true;
}

static bool across(lt_ctx *c, const lt_picture *p, const taps *t, lt_picture *out) {
  if (p->depth == LT_DEPTH_U8 && p->channels == 3 && p->stride_c == 1)
    return across_triples(c, p, t, out);
  if (!lt_picture_new(c, out, p->depth, p->channels, p->height, t->n)) return false;
  for (int ch = 0; ch < p->channels; ch++)
    for (int y = 0; y < p->height; y++) {
      const void *from = lt_picture_row(p, ch, y);
      if (p->depth == LT_DEPTH_U8)
        row_bytes(t, from, p->stride_x, lt_picture_row(out, ch, y));
      else
        row_floats(t, from, p->stride_x, lt_picture_row(out, ch, y));
    }
  return true;
}

enum { TILE = 32 };

/* Row i of a channel whose rows are contiguous, or of all channels side by side, `width` elements:
   TILE of them at once, in registers. */
LT_CLONES static void column_bytes(const taps *t, const lt_picture *p, int ch, int i, int width,
                                   uint8_t *restrict out) {
  const int32_t *w = t->fixed + (size_t)i * (size_t)t->most;
  const uint8_t *rows = lt_picture_row(p, ch, t->first[i]);
  for (int x = 0; x < width; x += TILE) {
    int32_t sum[TILE];
    int n = width - x < TILE ? width - x : TILE;
    for (int j = 0; j < TILE; j++) sum[j] = HALF;
    for (int k = 0; k < t->count; k++) {
      const uint8_t *row = rows + k * p->stride_y + x;
      if (n == TILE)
        for (int j = 0; j < TILE; j++) sum[j] += row[j] * w[k];
      else
        for (int j = 0; j < n; j++) sum[j] += row[j] * w[k];
    }
    for (int j = 0; j < n; j++) out[x + j] = clip(sum[j]);
  }
}

/* Row by row instead of pixel by pixel: memory is read in order. f32 sums in the order of the
   taps. */
static void column_floats(const taps *t, const lt_picture *p, int ch, int i, float *out) {
  const float *w = t->weight + (size_t)i * (size_t)t->most;
  memset(out, 0, (size_t)p->width * sizeof *out);
  for (int k = 0; k < t->count; k++) {
    const float *row = lt_picture_row(p, ch, t->first[i] + k);
    for (int x = 0; x < p->width; x++) out[x] += row[x] * w[k];
  }
}

static bool is_interleaved(const lt_picture *p) {
  return p->depth == LT_DEPTH_U8 && p->stride_c == 1 && p->stride_x == p->channels;
}

static bool down_interleaved(lt_ctx *c, const lt_picture *p, const taps *t, lt_picture *out) {
  bool ok = lt_picture_interleaved(c, out, p->depth, p->channels, t->n, p->width);
  for (int i = 0; i < t->n && ok; i++)
    column_bytes(t, p, 0, i, p->width * p->channels, lt_picture_row(out, 0, i));
  return ok;
}

static bool down(lt_ctx *c, const lt_picture *p, const taps *t, lt_picture *out) {
  bool ok = lt_picture_new(c, out, p->depth, p->channels, t->n, p->width);
  for (int ch = 0; ch < p->channels && ok; ch++)
    for (int i = 0; i < t->n; i++) {
      void *to = lt_picture_row(out, ch, i);
      if (p->depth == LT_DEPTH_U8)
        column_bytes(t, p, ch, i, p->width, to);
      else
        column_floats(t, p, ch, i, to);
    }
  return ok;
}

/* PIL's nearest: the input under the output's centre, cut off. */
static void pick(const lt_picture *p, lt_picture *out, double scale_y, double scale_x) {
  size_t size = lt_depth_size(p->depth);
  for (int ch = 0; ch < p->channels; ch++)
    for (int y = 0; y < out->height; y++) {
      const char *from = lt_picture_row(p, ch, (int)((y + 0.5) * scale_y));
      char *to = lt_picture_row(out, ch, y);
      for (int x = 0; x < out->width; x++, to += size)
        memcpy(to, from + (int)((x + 0.5) * scale_x) * p->stride_x * (int64_t)size, size);
    }
}

static bool resize_nearest(lt_ctx *c, lt_picture *p, int height, int width) {
  lt_picture out;
  if (!lt_picture_new(c, &out, p->depth, p->channels, height, width)) return false;
  pick(p, &out, (double)p->height / height, (double)p->width / width);
  lt_picture_replace(c, p, out);
  return true;
}

/* Rows first, as PIL, whose intermediate u8 is rounded too: the order shows in the last bit. A
   direction that keeps its size is skipped. */
bool lt_picture_resize(lt_ctx *c, lt_picture *p, int height, int width, lt_filter filter) {
  if (p->height == height && p->width == width) return true;
  if (filter == LT_NEAREST || p->depth == LT_DEPTH_I32) return resize_nearest(c, p, height, width);
  taps t;
  lt_picture out;
  bool ok = true;
  if (p->width != width) {
    ok = taps_make(c, &t, p->width, width, filter);
    if (!ok) return false;
    ok = across(c, p, &t, &out);
    lt_free(c, t.first, t.bytes);
    if (ok) lt_picture_replace(c, p, out);
  }
  if (!ok || p->height == height) return ok;
  bool interleaved = is_interleaved(p);
  if (!interleaved && p->stride_x != 1 && !lt_picture_own(c, p)) return false;
  if (!taps_make(c, &t, p->height, height, filter)) return false;
  ok = (interleaved ? down_interleaved : down)(c, p, &t, &out);
  lt_free(c, t.first, t.bytes);
  if (ok) lt_picture_replace(c, p, out);
  return ok;
}
