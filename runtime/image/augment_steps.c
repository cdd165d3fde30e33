/* runtime/image/augment_steps.c: RandAugment and TrivialAugmentWide: operations that are drawn, of
   a strength that is given or drawn.

   E. Cubuk and others, RandAugment, 2020: num_ops operations of one magnitude. S. Müller and F.
   Hutter, TrivialAugment, 2021: one operation of a drawn magnitude. Ranges, signs and bins are
   torchvision's tables. */
#include <math.h>

#include "image/chain.h"
#include "image/colour.h"

/* In torchvision's order. */
enum {
  IDENTITY, SHEAR_X, SHEAR_Y, TRANSLATE_X, TRANSLATE_Y, ROTATE, BRIGHTNESS, COLOR, CONTRAST,
  SHARPNESS, POSTERIZE, SOLARIZE, AUTOCONTRAST, EQUALIZE,
  OPERATIONS
};

/* The strongest of each operation; bin b of n has b / (n - 1) of it. */
typedef struct strengths {
  double shear, translate, rotate, colour, posterize;
  bool relative; /* translation is in widths and heights */
} strengths;

static bool shift(lt_ctx *c, const lt_step *t, lt_sample *s, int filter_at, lt_affine a) {
  a.scale = 1;
  return lt_sample_affine(c, s, &a, false, (lt_filter)t->v[filter_at], t->fill);
}

/* Shears are given as tangents (pixels a row), affine maps take angles. */
static double degrees(double tangent) { return atan(tangent) * 57.29577951308232; }

/* Shears keep the upper left corner (torchvision's centre {0, 0}), rotations the middle.
   Translations are whole pixels; rotation is counterclockwise there, clockwise in lt_affine. */
static bool move(lt_ctx *c, const lt_step *t, lt_sample *s, int filter_at, int operation, double m,
                 const strengths *most) {
  static const double corner[2] = {0, 0};
  double unit = !most->relative               ? 1
                : operation == TRANSLATE_X ? s->image.width
                                           : s->image.height;
  switch (operation) {
    case SHEAR_X:
      return shift(c, t, s, filter_at,
                   (lt_affine){.shear_x = degrees(m * most->shear), .centre = corner});
    case SHEAR_Y:
      return shift(c, t, s, filter_at,
                   (lt_affine){.shear_y = degrees(m * most->shear), .centre = corner});
    case TRANSLATE_X:
      return shift(c, t, s, filter_at, (lt_affine){.move_x = trunc(m * most->translate * unit)});
    case TRANSLATE_Y:
      return shift(c, t, s, filter_at, (lt_affine){.move_y = trunc(m * most->translate * unit)});
    default: return shift(c, t, s, filter_at, (lt_affine){.angle = -m * most->rotate});
  }
}

static bool recolour(lt_ctx *c, lt_sample *s, int operation, double m, const strengths *most) {
  lt_picture *p = &s->image;
  float factor = (float)(1 + m * most->colour);
  if (!lt_picture_own(c, p)) return false;
  switch (operation) {
    case BRIGHTNESS: lt_adjust_brightness(p, factor); break;
    case COLOR: lt_adjust_saturation(p, factor); break;
    case CONTRAST: lt_adjust_contrast(p, factor); break;
    case SHARPNESS: return lt_adjust_sharpness(c, p, factor);
    case POSTERIZE: lt_posterize(p, (int)rint(8 - m * most->posterize)); break;
    case SOLARIZE: lt_solarize(p, (float)(lt_bound(p) * (1 - m))); break;
    case AUTOCONTRAST: lt_autocontrast(p); break;
    default:
      if (!lt_equalize(p))
        return lt_fail(c, LT_EDTYPE, "transforms: RandAugment needs an image of u8: got f32");
  }
  return true;
}

/* One operation with `bin` of `bins` of its strength. */
static bool operate(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d, int filter_at,
                    int bin, int bins, const strengths *most) {
  int operation = lt_random_stream_below(d, OPERATIONS);
  double m = bins > 1 ? (double)bin / (bins - 1) : 0;
  bool is_signed = operation >= SHEAR_X && operation <= SHARPNESS;
  if (is_signed && lt_random_stream_chance(d, 0.5)) m = -m;
  if (operation == IDENTITY) return true;
  if (operation <= ROTATE) return move(c, t, s, filter_at, operation, m, most);
  return recolour(c, s, operation, m, most);
}

/* torchvision's tables of strengths are in units of u8. */
static bool fits(lt_ctx *c, const lt_sample *s, const char *name) {
  if (s->image.depth == LT_DEPTH_U8) return lt_step_colours(c, s, name);
  return lt_fail(c, LT_EDTYPE, "transforms.%s: an image is u8: got f32", name);
}

/* num_ops, magnitude, bins, filter. */
bool lt_step_rand_augment(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  static const strengths most = {0.3, 150.0 / 331, 30, 0.9, 4, true};
  bool ok = fits(c, s, "RandAugment");
  for (int k = 0; k < (int)t->v[0] && ok; k++)
    ok = operate(c, t, s, d, 3, (int)t->v[1], (int)t->v[2], &most);
  return ok;
}

/* bins, filter. */
bool lt_step_trivial_augment(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  static const strengths most = {0.99, 32, 135, 0.99, 6, false};
  if (!fits(c, s, "TrivialAugmentWide")) return false;
  int bins = (int)t->v[0];
  return operate(c, t, s, d, 1, lt_random_stream_below(d, bins), bins, &most);
}
