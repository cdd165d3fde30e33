/* runtime/image/geometry_steps.c: crops, flips and resizing, with parameters drawn as torchvision
   draws them. */
#include <math.h>

#include "image/chain.h"

/* size, 0: the shorter side, as far as the longer one is at most max_size (0: any); or height,
   width. Then filter, max_size. */
bool lt_step_resize(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  (void)d;
  int height = (int)t->v[0], width = (int)t->v[1], h = s->image.height, w = s->image.width;
  if (width == 0) {
    int shorter = h < w ? h : w, longer = h < w ? w : h, most = (int)t->v[3];
    double to = height, other = floor(to * longer / (shorter > 0 ? shorter : 1));
    if (most > 0 && other > most) {
      to = floor(most * to / other);
      other = most;
    }
    if (other > LT_SIDE_MAX) other = LT_SIDE_MAX + 1;
    height = (int)(h < w ? to : other);
    width = (int)(h < w ? other : to);
  }
  return lt_sample_resize(c, s, height, width, (lt_filter)t->v[2]);
}

static int at_least_0(int v) { return v > 0 ? v : 0; }

/* height, width. What is smaller is padded. rint rounds halves to even, as Python's round, by which
   torchvision crops. */
bool lt_step_center_crop(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  (void)d;
  int height = (int)t->v[0], width = (int)t->v[1];
  int dx = at_least_0(width - s->image.width), dy = at_least_0(height - s->image.height);
  int sides[4] = {dx / 2, dy / 2, (dx + 1) / 2, (dy + 1) / 2};
  if ((dx > 0 || dy > 0) && !lt_sample_pad(c, s, sides, LT_PAD_CONSTANT, t->fill)) return false;
  lt_sample_crop(s, (int)rint((s->image.height - height) / 2.0),
                 (int)rint((s->image.width - width) / 2.0), height, width);
  return true;
}

/* height, width, padding (4, all 0: none), pad_if_needed, mode. */
bool lt_step_random_crop(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  int height = (int)t->v[0], width = (int)t->v[1], sides[4];
  bool padded = false;
  for (int k = 0; k < 4; k++) {
    sides[k] = (int)t->v[2 + k];
    padded = padded || sides[k] != 0;
  }
  lt_padding mode = (lt_padding)t->v[7];
  if (padded && !lt_sample_pad(c, s, sides, mode, t->fill)) return false;
  if (t->v[6] != 0) {
    int dx = at_least_0(width - s->image.width), dy = at_least_0(height - s->image.height);
    int more[4] = {dx, dy, dx, dy};
    if ((dx > 0 || dy > 0) && !lt_sample_pad(c, s, more, mode, t->fill)) return false;
  }
  int h = s->image.height, w = s->image.width;
  if (h < height || w < width)
    return lt_fail(c, LT_ESHAPE, "transforms.RandomCrop: a crop of %d x %d of an image of %d x %d",
                   width, height, w, h);
  int top = lt_random_stream_below(d, h - height + 1),
      left = lt_random_stream_below(d, w - width + 1);
  lt_sample_crop(s, top, left, height, width);
  return true;
}

/* An area of the image and its shape: false when ten draws do not fit. Ratios are drawn evenly in
   their logarithm: 3:4 is as likely as 4:3 (C. Szegedy and others, Going Deeper with Convolutions,
   2015). `strictly`: smaller than the image in both directions, as torchvision's RandomErasing asks
   for. */
static bool draw_area(const lt_sample *s, const double *v, lt_random_stream *d, bool strictly,
                      int *height, int *width) {
  double area = (double)s->image.height * s->image.width;
  int most_h = s->image.height - strictly, most_w = s->image.width - strictly;
  for (int k = 0; k < 10; k++) {
    double target = area * lt_random_stream_uniform(d, v[0], v[1]);
    double ratio = exp(lt_random_stream_uniform(d, log(v[2]), log(v[3])));
    *width = (int)rint(sqrt(target * ratio));
    *height = (int)rint(sqrt(target / ratio));
    if (*width > 0 && *width <= most_w && *height > 0 && *height <= most_h) return true;
  }
  return false;
}

/* height, width, scale (2), ratio (2), filter. Where no draw fits: the largest crop of the middle
   whose ratio is within the bounds, as in torchvision. */
bool lt_step_random_resized_crop(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  int h = s->image.height, w = s->image.width, height, width, top, left;
  if (draw_area(s, t->v + 2, d, false, &height, &width)) {
    top = lt_random_stream_below(d, h - height + 1);
    left = lt_random_stream_below(d, w - width + 1);
  } else {
    double ratio = (double)w / h, low = t->v[4], high = t->v[5];
    width = ratio > high ? (int)rint(h * high) : w;
    height = ratio < low ? (int)rint(w / low) : h;
    top = (h - height) / 2;
    left = (w - width) / 2;
  }
  lt_sample_crop(s, top, left, height, width);
  return lt_sample_resize(c, s, (int)t->v[0], (int)t->v[1], (lt_filter)t->v[6]);
}

/* p. */
bool lt_step_horizontal_flip(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (lt_random_stream_chance(d, t->v[0])) lt_sample_mirror(s, false);
  return lt_ok(c);
}

/* p. */
bool lt_step_vertical_flip(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (lt_random_stream_chance(d, t->v[0])) lt_sample_mirror(s, true);
  return lt_ok(c);
}

/* left, top, right, bottom, mode. */
bool lt_step_pad(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  (void)d;
  int sides[4] = {(int)t->v[0], (int)t->v[1], (int)t->v[2], (int)t->v[3]};
  return lt_sample_pad(c, s, sides, (lt_padding)t->v[4], t->fill);
}

/* p, scale (2), ratio (2) of height to width, whether with random values. Mask and boxes stay. Z.
   Zhong and others, Random Erasing Data Augmentation, 2020. Its ratio is height to width,
   draw_area's the inverse: hence the bounds change places. */
bool lt_step_erasing(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  int height, width;
  double area[4] = {t->v[1], t->v[2], 1 / t->v[4], 1 / t->v[3]};
  if (!lt_random_stream_chance(d, t->v[0]) || !draw_area(s, area, d, true, &height, &width))
    return true;
  int top = lt_random_stream_below(d, s->image.height - height + 1);
  int left = lt_random_stream_below(d, s->image.width - width + 1);
  if (!lt_picture_own(c, &s->image)) return false;
  for (int ch = 0; ch < s->image.channels; ch++)
    for (int y = top; y < top + height; y++)
      for (int x = left; x < left + width; x++) {
        void *row = lt_picture_row(&s->image, ch, y);
        float value = t->v[5] != 0 ? lt_random_stream_normal(d) : t->fill[ch];
        if (s->image.depth == LT_DEPTH_F32)
          ((float *)row)[x] = value;
        else /* noise of bytes is uniform */
          ((uint8_t *)row)[x] =
              t->v[5] != 0 ? (uint8_t)lt_random_stream_below(d, 256) : (uint8_t)value;
      }
  return true;
}
