/* runtime/image/colour_steps.c: transforms of the image alone: jitter, blur, levels, dtype,
   normalization. Masks and boxes stay.

   The numbers of a step are in t->v, in the order that the comment before its function names;
   `ColorJitter` and the others are torchvision's names, for messages. */
#include "image/chain.h"
#include "image/colour.h"

bool lt_step_colours(lt_ctx *c, const lt_sample *s, const char *name) {
  if (s->image.channels == 1 || s->image.channels == 3) return true;
  return lt_fail(c, LT_ESHAPE, "transforms.%s: an image has 1 or 3 channels: got %d", name,
                 s->image.channels);
}

/* Whether the dice say so, and the image can be written. */
static bool begins(lt_ctx *c, double p, lt_sample *s, lt_random_stream *d, const char *name) {
  return lt_step_colours(c, s, name) && lt_random_stream_chance(d, p) &&
         lt_picture_own(c, &s->image);
}

static void jitter(lt_picture *p, int which, float factor) {
  switch (which) {
    case 0: lt_adjust_brightness(p, factor); break;
    case 1: lt_adjust_contrast(p, factor); break;
    case 2: lt_adjust_saturation(p, factor); break;
    default: lt_adjust_hue(p, factor);
  }
}

/* brightness (2), contrast (2), saturation (2), hue (2), and which are wanted, as bits. In an order
   that is drawn. */
bool lt_step_color_jitter(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  int order[4];
  float factor[4];
  if (!begins(c, 1, s, d, "ColorJitter")) return lt_ok(c);
  for (int k = 0; k < 4; k++) {
    int at = lt_random_stream_below(d, k + 1);
    order[k] = order[at];
    order[at] = k;
    factor[k] = (float)lt_random_stream_uniform(d, t->v[2 * k], t->v[2 * k + 1]);
  }
  for (int k = 0; k < 4; k++)
    if (((int)t->v[8] >> order[k] & 1) != 0) jitter(&s->image, order[k], factor[order[k]]);
  return true;
}

/* channels. */
bool lt_step_grayscale(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  (void)d;
  return lt_step_colours(c, s, "Grayscale") && lt_to_grey(c, &s->image, (int)t->v[0]);
}

/* p. */
bool lt_step_random_grayscale(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (!begins(c, t->v[0], s, d, "RandomGrayscale")) return lt_ok(c);
  return lt_to_grey(c, &s->image, s->image.channels);
}

/* height, width, sigma (2). */
bool lt_step_gaussian_blur(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  double sigma = lt_random_stream_uniform(d, t->v[2], t->v[3]);
  return lt_picture_own(c, &s->image) &&
         lt_gaussian_blur(c, &s->image, (int)t->v[0], (int)t->v[1], sigma);
}

/* p. */
bool lt_step_invert(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (begins(c, t->v[0], s, d, "RandomInvert")) lt_invert(&s->image);
  return lt_ok(c);
}

/* p, bits. */
bool lt_step_posterize(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (begins(c, t->v[0], s, d, "RandomPosterize")) lt_posterize(&s->image, (int)t->v[1]);
  return lt_ok(c);
}

/* p, threshold. */
bool lt_step_solarize(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (begins(c, t->v[0], s, d, "RandomSolarize")) lt_solarize(&s->image, (float)t->v[1]);
  return lt_ok(c);
}

/* p, factor. */
bool lt_step_sharpness(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (!begins(c, t->v[0], s, d, "RandomAdjustSharpness")) return lt_ok(c);
  return lt_adjust_sharpness(c, &s->image, (float)t->v[1]);
}

/* p. */
bool lt_step_autocontrast(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (begins(c, t->v[0], s, d, "RandomAutocontrast")) lt_autocontrast(&s->image);
  return lt_ok(c);
}

/* p. */
bool lt_step_equalize(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (!begins(c, t->v[0], s, d, "RandomEqualize") || lt_equalize(&s->image)) return lt_ok(c);
  return lt_fail(c, LT_EDTYPE, "transforms.RandomEqualize: an image is u8: got f32");
}

/* scale. */
bool lt_step_to_floats(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  (void)d;
  return lt_to_floats(c, &s->image, t->v[0] != 0, NULL, NULL);
}

/* scale. */
bool lt_step_to_bytes(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  (void)d;
  return lt_to_bytes(c, &s->image, t->v[0] != 0);
}

/* n, means, deviations; one stands for all channels. */
bool lt_step_normalize(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  (void)d;
  int n = (int)t->v[0], channels = s->image.channels;
  float mean[LT_CHANNELS_MAX], deviation[LT_CHANNELS_MAX];
  if (s->image.depth != LT_DEPTH_F32)
    return lt_fail(c, LT_EDTYPE, "transforms.Normalize: an image is f32: got u8: "
                   "put ToDtype(\"f32\", {scale = true}) before it");
  if (n != 1 && n != channels)
    return lt_fail(c, LT_ESHAPE, "transforms.Normalize: %d means for %d channels", n, channels);
  for (int k = 0; k < channels; k++) {
    mean[k] = (float)t->v[1 + (n > 1 ? k : 0)];
    deviation[k] = (float)t->v[1 + n + (n > 1 ? k : 0)];
  }
  if (!lt_picture_own(c, &s->image)) return false;
  lt_normalize(&s->image, mean, deviation);
  return true;
}
