/* runtime/image/warp.c: pictures through a projection, as torchvision samples them; padding.

   The projection goes from the result to the source: each pixel of the result is asked for once
   and none is left open, as it would be the other way round.

   Bilinear sampling reads four pixels for each of the result; a strong reduction aliases, as
   torchvision's grid_sample does, and unlike resize.c. */
#include <math.h>
#include <string.h>

#include "image/resize.h"

static float load(const lt_picture *p, int ch, int y, int x) {
  const void *row = lt_picture_row(p, ch, y);
  if (p->depth == LT_DEPTH_U8) return ((const uint8_t *)row)[x * p->stride_x];
  return ((const float *)row)[x * p->stride_x];
}

static void store(lt_picture *p, int ch, int y, int x, float value) {
  void *row = lt_picture_row(p, ch, y);
  if (p->depth == LT_DEPTH_U8) {
    value = rintf(value);
    ((uint8_t *)row)[x] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
  } else {
    ((float *)row)[x] = value;
  }
}

static bool within(const lt_picture *p, int64_t y, int64_t x) {
  return y >= 0 && y < p->height && x >= 0 && x < p->width;
}

/* The share of the four neighbours that are within, and their weighted sum. */
static float blend(const lt_picture *p, int ch, double fy, double fx, float *inside) {
  int64_t y = (int64_t)floor(fy), x = (int64_t)floor(fx);
  float dy = (float)(fy - (double)y), dx = (float)(fx - (double)x), sum = 0;
  *inside = 0;
  for (int k = 0; k < 4; k++) {
    int64_t at_y = y + k / 2, at_x = x + k % 2;
    if (!within(p, at_y, at_x)) continue;
    float share = (k / 2 == 1 ? dy : 1 - dy) * (k % 2 == 1 ? dx : 1 - dx);
    sum += share * load(p, ch, (int)at_y, (int)at_x);
    *inside += share;
  }
  return sum;
}

/* nearbyint rounds halves to even, as torchvision's grid_sample does in mode "nearest". Masks (i32)
   are copied bit by bit and filled with 0. */
static void put_nearest(const lt_picture *p, lt_picture *out, int y, int x, double fy, double fx,
                        const float *fill) {
  double ny = nearbyint(fy), nx = nearbyint(fx);
  size_t size = lt_depth_size(p->depth);
  bool in = ny >= 0 && ny < p->height && nx >= 0 && nx < p->width;
  for (int ch = 0; ch < p->channels; ch++) {
    char *to = (char *)lt_picture_row(out, ch, y) + (size_t)x * size;
    if (in)
      memcpy(to, (char *)lt_picture_row(p, ch, (int)ny) + (int64_t)nx * p->stride_x * (int64_t)size,
             size);
    else if (p->depth == LT_DEPTH_I32)
      memset(to, 0, size);
    else
      store(out, ch, y, x, fill[ch]);
  }
}

/* Far outside nothing is read: the test also keeps the conversion of huge coordinates to integers
   defined. */
static void put_blend(const lt_picture *p, lt_picture *out, int y, int x, double fy, double fx,
                      const float *fill) {
  bool near = fy > -2 && fy < p->height + 1.0 && fx > -2 && fx < p->width + 1.0;
  for (int ch = 0; ch < p->channels; ch++) {
    float inside = 0, sum = near ? blend(p, ch, fy, fx, &inside) : 0;
    store(out, ch, y, x, inside * sum + (1 - inside) * fill[ch]); /* sic: as torchvision mixes */
  }
}

/* Homogeneous coordinates: one division for each pixel; affine maps have w = 1. */
bool lt_picture_warp(lt_ctx *c, lt_picture *p, const lt_projection *from, int height, int width,
                     lt_filter filter, const float fill[LT_CHANNELS_MAX]) {
  lt_picture out;
  if (!lt_picture_new(c, &out, p->depth, p->channels, height, width)) return false;
  const double *m = from->m;
  bool nearest = filter == LT_NEAREST || p->depth == LT_DEPTH_I32;
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      double w = m[6] * x + m[7] * y + m[8];
      double fx = (m[0] * x + m[1] * y + m[2]) / w, fy = (m[3] * x + m[4] * y + m[5]) / w;
      if (nearest)
        put_nearest(p, &out, y, x, fy, fx, fill);
      else
        put_blend(p, &out, y, x, fy, fx, fill);
    }
  lt_picture_replace(c, p, out);
  return true;
}

/* The source of position `at` of a padded dim: clamped, or folded back by the period 2 n - 2
   (reflect, without the edge) or 2 n (symmetric, with it), as NumPy's pad. */
int lt_pad_index(int at, int n, lt_padding mode) {
  if (at >= 0 && at < n) return at;
  if (mode == LT_PAD_EDGE || n == 1) return at < 0 ? 0 : n - 1;
  int period = mode == LT_PAD_REFLECT ? 2 * n - 2 : 2 * n;
  at %= period;
  if (at < 0) at += period;
  return at < n ? at : mode == LT_PAD_REFLECT ? period - at : period - 1 - at;
}

static void pad_row(const lt_picture *p, lt_picture *out, int ch, int y, const int sides[4],
                    lt_padding mode, float fill) {
  int from_y = y - sides[1];
  size_t size = lt_depth_size(p->depth);
  char *to = lt_picture_row(out, ch, y);
  for (int x = 0; x < out->width; x++, to += size) {
    int from_x = x - sides[0];
    bool in = within(p, from_y, from_x);
    if (!in && mode == LT_PAD_CONSTANT) {
      if (p->depth == LT_DEPTH_I32)
        memset(to, 0, size);
      else
        store(out, ch, y, x, fill);
      continue;
    }
    int at_y = lt_pad_index(from_y, p->height, mode), at_x = lt_pad_index(from_x, p->width, mode);
    memcpy(to, (char *)lt_picture_row(p, ch, at_y) + at_x * p->stride_x * (int64_t)size, size);
  }
}

/* sides: left, top, right, bottom, as torchvision's; negative ones crop. */
bool lt_picture_pad(lt_ctx *c, lt_picture *p, const int sides[4], lt_padding mode,
                    const float fill[LT_CHANNELS_MAX]) {
  lt_picture out;
  int height = p->height + sides[1] + sides[3], width = p->width + sides[0] + sides[2];
  if (height < 0 || width < 0 || height > LT_SIDE_MAX || width > LT_SIDE_MAX)
    return lt_fail(c, LT_ESHAPE, "transforms: padding makes %d x %d of %d x %d", width, height,
                   p->width, p->height);
  if (mode != LT_PAD_CONSTANT && (p->height == 0 || p->width == 0))
    return lt_fail(c, LT_ESHAPE, "transforms: an image without pixels has no edge to repeat");
  if (!lt_picture_new(c, &out, p->depth, p->channels, height, width)) return false;
  for (int ch = 0; ch < p->channels; ch++)
    for (int y = 0; y < height; y++) pad_row(p, &out, ch, y, sides, mode, fill[ch]);
  lt_picture_replace(c, p, out);
  return true;
}
