/* runtime/image/levels.c: histogram-based and pointwise colour operations: equalize, autocontrast,
   posterize, solarize, invert.

   Of u8 each is a table of 256 values, made once. Formulas and roundings are those of PIL and
   torchvision, pixel for pixel. */
#include <math.h>

#include "image/colour.h"

/* A table look-up a pixel: 256 evaluations of the formula in place of one for each pixel, and
   exact, as u8 has no other values. */
static void map_bytes(lt_picture *p, int channel, const uint8_t table[256]) {
  int64_t n = lt_plane(p);
  uint8_t *v = (uint8_t *)p->first + channel * n;
  for (int64_t i = 0; i < n; i++) v[i] = table[v[i]];
}

static void map_all(lt_picture *p, const uint8_t table[256]) {
  for (int ch = 0; ch < p->channels; ch++) map_bytes(p, ch, table);
}

void lt_invert(lt_picture *p) {
  uint8_t table[256];
  for (int v = 0; v < 256; v++) table[v] = (uint8_t)(255 - v);
  if (p->depth == LT_DEPTH_U8) {
    map_all(p, table);
    return;
  }
  float *value = p->first;
  for (int64_t i = 0, n = p->channels * lt_plane(p); i < n; i++) value[i] = 1 - value[i];
}

void lt_solarize(lt_picture *p, float threshold) {
  uint8_t table[256];
  for (int v = 0; v < 256; v++) table[v] = (uint8_t)((float)v >= threshold ? 255 - v : v);
  if (p->depth == LT_DEPTH_U8) {
    map_all(p, table);
    return;
  }
  float *value = p->first;
  for (int64_t i = 0, n = p->channels * lt_plane(p); i < n; i++)
    if (value[i] >= threshold) value[i] = 1 - value[i];
}

/* u8 loses its low bits (PIL's mask); floats are cut to 2^bits levels of 0..1, torchvision's
   formula. */
void lt_posterize(lt_picture *p, int bits) {
  uint8_t table[256];
  for (int v = 0; v < 256; v++) table[v] = (uint8_t)(v & ((1 << bits) - 1) << (8 - bits));
  if (p->depth == LT_DEPTH_U8) {
    map_all(p, table);
    return;
  }
  float *value = p->first, levels = (float)(1 << bits);
  for (int64_t i = 0, n = p->channels * lt_plane(p); i < n; i++) {
    float level = floorf(value[i] * levels);
    value[i] = (level < 0 ? 0 : level > levels - 1 ? levels - 1 : level) / levels;
  }
}

/* torchvision's: (v - low) / ((high - low) / 255), in f32 and cut off, not rounded; an image of one
   value stays. */
static void stretch_bytes(lt_picture *p, int ch) {
  uint8_t table[256];
  int64_t n = lt_plane(p);
  const uint8_t *v = (uint8_t *)p->first + ch * n;
  int low = 255, high = 0;
  for (int64_t i = 0; i < n; i++) {
    low = v[i] < low ? v[i] : low;
    high = v[i] > high ? v[i] : high;
  }
  if (low >= high) return;
  float inverse = (float)(high - low) * (1.0f / 255);
  for (int k = 0; k < 256; k++) {
    float value = (float)(k - low) / inverse;
    table[k] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
  }
  map_bytes(p, ch, table);
}

static void stretch_floats(lt_picture *p, int ch) {
  int64_t n = lt_plane(p);
  float *v = (float *)p->first + ch * n, low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < n; i++) {
    low = fminf(low, v[i]);
    high = fmaxf(high, v[i]);
  }
  if (!(low < high)) return;
  for (int64_t i = 0; i < n; i++) v[i] = (v[i] - low) / (high - low);
}

void lt_autocontrast(lt_picture *p) {
  for (int ch = 0; ch < p->channels; ch++)
    p->depth == LT_DEPTH_U8 ? stretch_bytes(p, ch) : stretch_floats(p, ch);
}

/* PIL's: each value becomes the share of pixels below it, in steps. The step of PIL is an integer:
   with fewer than 255 pixels besides the last value it is 0, and the channel stays as it is. */
static void equalize_channel(lt_picture *p, int ch) {
  int64_t count[256] = {0}, n = lt_plane(p), below = 0;
  const uint8_t *v = (uint8_t *)p->first + ch * n;
  uint8_t table[256];
  int last = 255;
  for (int64_t i = 0; i < n; i++) count[v[i]]++;
  while (last > 0 && count[last] == 0) last--;
  /* Without the last value, which becomes 255 in any case; integers throughout, as in PIL. */
  int64_t step = (n - count[last]) / 255;
  if (step == 0) return;
  for (int k = 0; k < 256; below += count[k++]) {
    int64_t value = (below + step / 2) / step;
    table[k] = (uint8_t)(k == 0 ? 0 : value > 255 ? 255 : value);
  }
  map_bytes(p, ch, table);
}

bool lt_equalize(lt_picture *p) {
  if (p->depth != LT_DEPTH_U8) return false;
  for (int ch = 0; ch < p->channels; ch++) equalize_channel(p, ch);
  return true;
}
