/* runtime/image/sample.c: applies one change of geometry to an image, its mask and its boxes.

   Whatever moves the pixels moves the mask by the nearest pixel (ids have no mean) and the boxes by
   the same map; boxes are clipped to the image afterwards, as torchvision's v2 transforms do, and
   may become empty: whoever labels them drops those. */
#include "image/sample.h"

#include <math.h>

static float clamp(float v, float high) { return v < 0 ? 0 : v > high ? high : v; }

/* Boxes end where the image does. */
static void clip_boxes(lt_sample *s) {
  for (int64_t i = 0; i < 4 * s->n_boxes; i++)
    s->boxes[i] = clamp(s->boxes[i], (float)(i % 2 == 0 ? s->image.width : s->image.height));
}

/* x and y of both corners: b = b scale + offset. */
static void move_boxes(lt_sample *s, float scale_x, float scale_y, float x, float y) {
  for (int64_t i = 0; i < 4 * s->n_boxes; i += 2) {
    s->boxes[i] = s->boxes[i] * scale_x + x;
    s->boxes[i + 1] = s->boxes[i + 1] * scale_y + y;
  }
}

/* A view: the first element and the sides change. */
static void crop(lt_picture *p, int top, int left, int height, int width) {
  if (p->channels == 0) return;
  p->first = (char *)p->first +
             (top * p->stride_y + left * p->stride_x) * (int64_t)lt_depth_size(p->depth);
  p->height = height;
  p->width = width;
}

void lt_sample_crop(lt_sample *s, int top, int left, int height, int width) {
  crop(&s->image, top, left, height, width);
  crop(&s->mask, top, left, height, width);
  move_boxes(s, 1, 1, (float)-left, (float)-top);
  clip_boxes(s);
}

void lt_sample_mirror(lt_sample *s, bool upright) {
  lt_picture_mirror(&s->image, upright);
  lt_picture_mirror(&s->mask, upright);
  float side = (float)(upright ? s->image.height : s->image.width);
  for (float *b = s->boxes; b < s->boxes + 4 * s->n_boxes; b += 4) {
    float low = b[upright], high = b[2 + upright];
    b[upright] = side - high;
    b[2 + upright] = side - low;
  }
}

void lt_sample_transpose(lt_sample *s) {
  lt_picture_transpose(&s->image);
  lt_picture_transpose(&s->mask);
  for (int64_t i = 0; i < 4 * s->n_boxes; i += 2) {
    float x = s->boxes[i];
    s->boxes[i] = s->boxes[i + 1];
    s->boxes[i + 1] = x;
  }
}

bool lt_sample_resize(lt_ctx *c, lt_sample *s, int height, int width, lt_filter filter) {
  if (height < 1 || width < 1 || height > LT_SIDE_MAX || width > LT_SIDE_MAX)
    return lt_fail(c, LT_ESHAPE, "transforms: an image of %d x %d cannot have %d x %d",
                   s->image.width, s->image.height, width, height);
  if (s->image.height == 0 || s->image.width == 0)
    return lt_fail(c, LT_ESHAPE, "transforms: an image without pixels cannot be resized");
  move_boxes(s, (float)width / (float)s->image.width, (float)height / (float)s->image.height, 0,
             0);
  if (!lt_picture_resize(c, &s->image, height, width, filter)) return false;
  return s->mask.channels == 0 || lt_picture_resize(c, &s->mask, height, width, LT_NEAREST);
}

static const float zeros[LT_CHANNELS_MAX];

bool lt_sample_pad(lt_ctx *c, lt_sample *s, const int sides[4], lt_padding mode,
                   const float fill[LT_CHANNELS_MAX]) {
  if (!lt_picture_pad(c, &s->image, sides, mode, fill)) return false;
  if (s->mask.channels > 0 && !lt_picture_pad(c, &s->mask, sides, mode, zeros)) return false;
  move_boxes(s, 1, 1, (float)sides[0], (float)sides[1]);
  clip_boxes(s); /* sides may be negative */
  return true;
}

/* The projection the other way round: the adjugate, which is it up to a factor. */
static lt_projection inverse(const lt_projection *of) {
  const double *m = of->m;
  return (lt_projection){{
      m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
      m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
      m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3],
  }};
}

/* The least box around the corners where they go; coordinates are of pixels' edges, those of the
   projection of their centres. */
static void warp_box(const double *m, float *b) {
  float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
  for (int k = 0; k < 4; k++) {
    double x = b[k % 2 * 2] - 0.5, y = b[1 + k / 2 * 2] - 0.5;
    double w = m[6] * x + m[7] * y + m[8];
    float at[2] = {(float)((m[0] * x + m[1] * y + m[2]) / w + 0.5),
                   (float)((m[3] * x + m[4] * y + m[5]) / w + 0.5)};
    for (int i = 0; i < 2; i++) {
      low[i] = fminf(low[i], at[i]);
      high[i] = fmaxf(high[i], at[i]);
    }
  }
  b[0] = low[0], b[1] = low[1], b[2] = high[0], b[3] = high[1];
}

/* Pixels are pulled from the source through `from`; corners of boxes are pushed to the result,
   through its inverse. */
bool lt_sample_warp(lt_ctx *c, lt_sample *s, const lt_projection *from, int height, int width,
                    lt_filter filter, const float fill[LT_CHANNELS_MAX]) {
  lt_projection to = inverse(from);
  for (int64_t i = 0; i < s->n_boxes; i++) warp_box(to.m, s->boxes + 4 * i);
  if (!lt_picture_warp(c, &s->image, from, height, width, filter, fill)) return false;
  clip_boxes(s);
  return s->mask.channels == 0 ||
         lt_picture_warp(c, &s->mask, from, height, width, LT_NEAREST, zeros);
}

void lt_sample_free(lt_ctx *c, lt_sample *s) {
  lt_picture_free(c, &s->image);
  lt_picture_free(c, &s->mask);
  if (s->boxes != NULL) lt_free(c, s->boxes, (size_t)(4 * s->n_boxes) * sizeof *s->boxes);
  *s = (lt_sample){0};
}
