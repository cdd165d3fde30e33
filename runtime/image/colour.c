/* runtime/image/colour.c: brightness, contrast, saturation, hue, grey. */
#include "image/colour.h"

#include <math.h>

static float load(const lt_picture *p, int64_t i) {
  return p->depth == LT_DEPTH_U8 ? ((const uint8_t *)p->first)[i] : ((const float *)p->first)[i];
}

/* Clamped; u8 is cut off, not rounded, as torchvision does. */
static void store(lt_picture *p, int64_t i, float value) {
  float bound = lt_bound(p);
  value = value > 0 ? value < bound ? value : bound : 0;
  if (p->depth == LT_DEPTH_U8)
    ((uint8_t *)p->first)[i] = (uint8_t)value;
  else
    ((float *)p->first)[i] = value;
}

/* Luminance of pixel i; whole for u8 where it is mixed with whole numbers. Luma of ITU-R BT.601, in
   torchvision's digits. torchvision floors that of u8 before it blends; the mean of contrast is of
   those whole numbers too. */
static float luminance(const lt_picture *p, int64_t i) {
  int64_t n = lt_plane(p);
  if (p->channels < 3) return load(p, i);
  float l = 0.2989f * load(p, i) + 0.587f * load(p, i + n) + 0.114f * load(p, i + 2 * n);
  return p->depth == LT_DEPTH_U8 ? floorf(l) : l;
}

/* torchvision's blend: factor 1 gives the image, 0 the other, beyond 1 it is exaggerated;
   clamped. */
static void mix(lt_picture *p, int64_t i, float other, float factor) {
  store(p, i, load(p, i) * factor + other * (1 - factor));
}

void lt_adjust_brightness(lt_picture *p, float factor) {
  for (int64_t i = 0, n = p->channels * lt_plane(p); i < n; i++) store(p, i, load(p, i) * factor);
}

/* Away from the mean luminance. The sum is in double: in f32 it would lose low bits from 2^24
   on. */
void lt_adjust_contrast(lt_picture *p, float factor) {
  int64_t n = lt_plane(p);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += luminance(p, i);
  float mean = (float)(sum / (double)(n > 0 ? n : 1));
  for (int64_t i = 0; i < p->channels * n; i++) mix(p, i, mean, factor);
}

void lt_adjust_saturation(lt_picture *p, float factor) {
  int64_t n = lt_plane(p);
  for (int64_t i = 0; i < n && p->channels == 3; i++) {
    float grey = luminance(p, i);
    for (int ch = 0; ch < 3; ch++) mix(p, i + ch * n, grey, factor);
  }
}

/* Hue, saturation and value in 0..1 of red, green and blue in 0..1, with the hue turned. A. Smith,
   Color Gamut Transform Pairs, 1978 (the hexcone model). One of red, green and blue is 1, or 0, in
   each sixth of the hue circle; `sectors` has what the others are there. */
static void turn_hue(float rgb[3], float turn) {
  float r = rgb[0], g = rgb[1], b = rgb[2];
  float high = fmaxf(r, fmaxf(g, b)), low = fminf(r, fminf(g, b)), range = high - low;
  if (range == 0) return; /* grey has no hue */
  float rc = (high - r) / range, gc = (high - g) / range, bc = (high - b) / range;
  float h = high == r ? bc - gc : high == g ? 2 + rc - bc : 4 + gc - rc;
  h = fmodf(h / 6 + 1, 1) + turn;
  h -= floorf(h);
  float s = range / high, h6 = h * 6, i = floorf(h6), f = h6 - i;
  float q = (1 - s * f) * high, t = (1 - s * (1 - f)) * high, v = high, w = (1 - s) * high;
  const float sectors[6][3] = {{v, t, w}, {q, v, w}, {w, v, t}, {w, q, v}, {t, w, v}, {v, w, q}};
  const float *to = sectors[(int)i % 6];
  for (int k = 0; k < 3; k++) rgb[k] = to[k] < 0 ? 0 : to[k] > 1 ? 1 : to[k];
}

/* u8 comes back by 256 - 1e-3, torch's to_dtype, so that 1.0 becomes 255 and each byte has an equal
   share of 0..1. */
void lt_adjust_hue(lt_picture *p, float turn) {
  int64_t n = lt_plane(p);
  float bound = lt_bound(p), top = p->depth == LT_DEPTH_U8 ? 256 - 1e-3f : 1;
  for (int64_t i = 0; i < n && p->channels == 3; i++) {
    float rgb[3];
    for (int ch = 0; ch < 3; ch++) rgb[ch] = load(p, i + ch * n) / bound;
    turn_hue(rgb, turn);
    for (int ch = 0; ch < 3; ch++) store(p, i + ch * n, rgb[ch] * top);
  }
}

bool lt_to_grey(lt_ctx *c, lt_picture *p, int channels) {
  lt_picture out;
  int64_t n = lt_plane(p);
  if (p->channels == 1 && channels == 1) return true;
  if (!lt_picture_own(c, p)) return false;
  if (!lt_picture_new(c, &out, p->depth, channels, p->height, p->width)) return false;
  for (int64_t i = 0; i < n; i++)
    for (int ch = 0; ch < channels; ch++) store(&out, i + ch * n, luminance(p, i));
  lt_picture_replace(c, p, out);
  return true;
}

/* With a mean the normalization is in the table too: 256 divisions a channel, not one a pixel, and
   one pass over the image. The values are those of the two steps one after the other, as they are
   computed in the same order in f32. */
bool lt_to_floats(lt_ctx *c, lt_picture *p, bool scale, const float *mean,
                  const float *deviation) {
  lt_picture out;
  float table[256];
  if (p->depth == LT_DEPTH_F32) return lt_picture_own(c, p);
  if (!lt_picture_new(c, &out, LT_DEPTH_F32, p->channels, p->height, p->width)) return false;
  for (int ch = 0; ch < p->channels; ch++) {
    for (int v = 0; v < 256; v++) {
      float value = scale ? (float)v / 255 : (float)v;
      table[v] = mean != NULL ? (value - mean[ch]) / deviation[ch] : value;
    }
    for (int y = 0; y < p->height; y++) {
      const uint8_t *from = lt_picture_row(p, ch, y);
      float *to = lt_picture_row(&out, ch, y);
      for (int x = 0; x < p->width; x++) to[x] = table[from[x * p->stride_x]];
    }
  }
  lt_picture_replace(c, p, out);
  return true;
}

bool lt_to_bytes(lt_ctx *c, lt_picture *p, bool scale) {
  lt_picture out;
  if (p->depth == LT_DEPTH_U8) return true;
  if (!lt_picture_own(c, p)) return false;
  if (!lt_picture_new(c, &out, LT_DEPTH_U8, p->channels, p->height, p->width)) return false;
  const float *from = p->first;
  float factor = scale ? 256 - 1e-3f : 1; /* as torch's to_dtype: each u8 has as many floats */
  for (int64_t i = 0, n = p->channels * lt_plane(p); i < n; i++) store(&out, i, from[i] * factor);
  lt_picture_replace(c, p, out);
  return true;
}

void lt_normalize(lt_picture *p, const float *mean, const float *deviation) {
  int64_t n = lt_plane(p);
  float *value = p->first;
  for (int ch = 0; ch < p->channels; ch++)
    for (int64_t i = 0; i < n; i++, value++) *value = (*value - mean[ch]) / deviation[ch];
}
