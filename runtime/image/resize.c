/* runtime/image/resize.c: PIL's resampling: weights of each output pixel, rows first, then columns.
 */
#include "image/resize.h"

#include <math.h>
#include <string.h>

/* For each of n outputs the inputs that it is made of, and their weights: `most` places for each.
   Weights of u8 are integers of BITS bits behind the point. */
enum { BITS = 22, HALF = 1 << (BITS - 1) };
typedef struct taps {
  int n, most;
  int *first, *count;
  int32_t *fixed;
  float *weight;
  size_t bytes;
} taps;

static double kernel(lt_filter filter, double x) {
  const double a = -0.5;
  x = fabs(x);
  if (filter == LT_BILINEAR) return x < 1 ? 1 - x : 0;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static bool taps_new(lt_ctx *c, taps *t, int in, int out, double support) {
  t->n = out;
  t->most = (int)ceil(support) * 2 + 1;
  if (t->most > in + 1) t->most = in + 1;
  size_t places = (size_t)out * (size_t)t->most;
  t->bytes = places * (sizeof *t->fixed + sizeof *t->weight) + (size_t)out * 2 * sizeof(int);
  t->first = lt_alloc(c, t->bytes);
  if (t->first == NULL) return false;
  t->count = t->first + out;
  t->fixed = (int32_t *)(t->count + out);
  t->weight = (float *)(t->fixed + places);
  return true;
}

static void weigh(taps *t, int i, int in, double centre, double support, double stretch,
                  lt_filter filter) {
  int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
  if (first < 0) first = 0;
  if (end > in) end = in;
  double sum = 0, w[2];
  float *weight = t->weight + (size_t)i * (size_t)t->most;
  int32_t *fixed = t->fixed + (size_t)i * (size_t)t->most;
  for (int k = 0; k < end - first; k++)
    sum += kernel(filter, (k + first - centre + 0.5) / stretch);
  for (int k = 0; k < end - first; k++) {
    w[0] = kernel(filter, (k + first - centre + 0.5) / stretch);
    w[1] = sum != 0 ? w[0] / sum : w[0];
    weight[k] = (float)w[1];
    fixed[k] = (int32_t)(w[1] * (1 << BITS) + (w[1] < 0 ? -0.5 : 0.5));
  }
  t->first[i] = first;
  t->count[i] = end - first;
}

static bool taps_make(lt_ctx *c, taps *t, int in, int out, lt_filter filter) {
  double scale = (double)in / out, stretch = scale < 1 ? 1 : scale;
  double support = (filter == LT_BILINEAR ? 1 : 2) * stretch;
  if (!taps_new(c, t, in, out, support)) return false;
  for (int i = 0; i < out; i++) weigh(t, i, in, (i + 0.5) * scale, support, stretch, filter);
  return true;
}

static uint8_t clip(int32_t sum) {
  sum >>= BITS;
  return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void row_bytes(const taps *t, const uint8_t *in, int64_t step, uint8_t *out) {
  for (int i = 0; i < t->n; i++) {
    const uint8_t *p = in + t->first[i] * step;
    const int32_t *w = t->fixed + (size_t)i * (size_t)t->most;
    int32_t sum = HALF;
    for (int k = 0; k < t->count[i]; k++, p += step) sum += *p * w[k];
    out[i] = clip(sum);
  }
}

/* Three channels side by side, as decoders give them. */
static void row_triples(const taps *t, const uint8_t *in, int64_t step, uint8_t *r, uint8_t *g,
                        uint8_t *b) {
  for (int i = 0; i < t->n; i++) {
    const uint8_t *p = in + t->first[i] * step;
    const int32_t *w = t->fixed + (size_t)i * (size_t)t->most;
    int32_t sum[3] = {HALF, HALF, HALF};
    for (int k = 0; k < t->count[i]; k++, p += step) {
      sum[0] += p[0] * w[k];
      sum[1] += p[1] * w[k];
      sum[2] += p[2] * w[k];
    }
    r[i] = clip(sum[0]);
    g[i] = clip(sum[1]);
    b[i] = clip(sum[2]);
  }
}

static void row_floats(const taps *t, const float *in, int64_t step, float *out) {
  for (int i = 0; i < t->n; i++) {
    const float *p = in + t->first[i] * step, *w = t->weight + (size_t)i * (size_t)t->most;
    float sum = 0;
    for (int k = 0; k < t->count[i]; k++, p += step) sum += *p * w[k];
    out[i] = sum;
  }
}

static bool across(lt_ctx *c, const lt_picture *p, const taps *t, lt_picture *out) {
  if (!lt_picture_new(c, out, p->depth, p->channels, p->height, t->n)) return false;
  bool triples = p->depth == LT_DEPTH_U8 && p->channels == 3 && p->stride_c == 1;
  for (int y = 0; y < p->height && triples; y++)
    row_triples(t, lt_picture_row(p, 0, y), p->stride_x, lt_picture_row(out, 0, y),
                lt_picture_row(out, 1, y), lt_picture_row(out, 2, y));
  for (int ch = 0; ch < p->channels && !triples; ch++)
    for (int y = 0; y < p->height; y++) {
      const void *from = lt_picture_row(p, ch, y);
      if (p->depth == LT_DEPTH_U8)
        row_bytes(t, from, p->stride_x, lt_picture_row(out, ch, y));
      else
        row_floats(t, from, p->stride_x, lt_picture_row(out, ch, y));
    }
  return true;
}

/* Row i of a channel whose rows are contiguous. */
static void column_bytes(const taps *t, const lt_picture *p, int ch, int i, int32_t *sum,
                         uint8_t *out) {
  const int32_t *w = t->fixed + (size_t)i * (size_t)t->most;
  for (int x = 0; x < p->width; x++) sum[x] = HALF;
  for (int k = 0; k < t->count[i]; k++) {
    const uint8_t *row = lt_picture_row(p, ch, t->first[i] + k);
    int32_t weight = w[k];
    for (int x = 0; x < p->width; x++) sum[x] += row[x] * weight;
  }
  for (int x = 0; x < p->width; x++) out[x] = clip(sum[x]);
}

static void column_floats(const taps *t, const lt_picture *p, int ch, int i, float *out) {
  const float *w = t->weight + (size_t)i * (size_t)t->most;
  memset(out, 0, (size_t)p->width * sizeof *out);
  for (int k = 0; k < t->count[i]; k++) {
    const float *row = lt_picture_row(p, ch, t->first[i] + k);
    for (int x = 0; x < p->width; x++) out[x] += row[x] * w[k];
  }
}

static bool down(lt_ctx *c, const lt_picture *p, const taps *t, lt_picture *out) {
  size_t bytes = (size_t)p->width * sizeof(int32_t);
  int32_t *sum = lt_alloc(c, bytes);
  bool ok = sum != NULL && lt_picture_new(c, out, p->depth, p->channels, t->n, p->width);
  for (int ch = 0; ch < p->channels && ok; ch++)
    for (int i = 0; i < t->n; i++) {
      void *to = lt_picture_row(out, ch, i);
      if (p->depth == LT_DEPTH_U8)
        column_bytes(t, p, ch, i, sum, to);
      else
        column_floats(t, p, ch, i, to);
    }
  lt_free(c, sum, bytes);
  return ok;
}

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
  if (p->stride_x != 1 && !lt_picture_own(c, p)) return false;
  if (!taps_make(c, &t, p->height, height, filter)) return false;
  ok = down(c, p, &t, &out);
  lt_free(c, t.first, t.bytes);
  if (ok) lt_picture_replace(c, p, out);
  return ok;
}
