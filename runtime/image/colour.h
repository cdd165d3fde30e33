/* runtime/image/colour.h: the values of pictures: light and colour, levels, blur.

   Pictures are u8, or f32 in 0..1, of 1 or 3 channels; the formulas are torchvision's. All work in
   place, on a picture that owns its memory (lt_picture_own). */
#ifndef LT_IMAGE_COLOUR_H
#define LT_IMAGE_COLOUR_H

#include "image/picture.h"

/* Factors: 1 changes nothing. The hue is turned by -0.5 to 0.5 of the circle. */
void lt_adjust_brightness(lt_picture *p, float factor);
void lt_adjust_contrast(lt_picture *p, float factor);
void lt_adjust_saturation(lt_picture *p, float factor);
void lt_adjust_hue(lt_picture *p, float turn);

/* One channel of three; `channels` 3: three times the same. */
bool lt_to_grey(lt_ctx *c, lt_picture *p, int channels);

void lt_invert(lt_picture *p);
void lt_solarize(lt_picture *p, float threshold);
void lt_posterize(lt_picture *p, int bits);
void lt_autocontrast(lt_picture *p);
bool lt_equalize(lt_picture *p); /* u8 only */

/* Means with neighbours; 0: no smoothing, above: sharper than it was. */
bool lt_adjust_sharpness(lt_ctx *c, lt_picture *p, float factor);
bool lt_gaussian_blur(lt_ctx *c, lt_picture *p, int height, int width, double sigma);

/* u8 as f32 (divided by 255 if `scale`), and back; f32 less a mean, by a deviation, of a channel.
   `mean` NULL: values are not moved. Any view may come in; what comes out owns its memory. */
bool lt_to_floats(lt_ctx *c, lt_picture *p, bool scale, const float *mean, const float *deviation);
bool lt_to_bytes(lt_ctx *c, lt_picture *p, bool scale);
void lt_normalize(lt_picture *p, const float *mean, const float *deviation);

/* Elements that lie side by side. */
static inline int64_t lt_plane(const lt_picture *p) { return (int64_t)p->height * p->width; }

/* The most that a value can be. */
static inline float lt_bound(const lt_picture *p) { return p->depth == LT_DEPTH_U8 ? 255 : 1; }

#endif
