/* runtime/image/resize.h: resizing and geometric resampling of images.

   Resizing is antialiased: a pixel is the weighted mean of all that it covers, as PIL computes it,
   in two passes with integers for u8. */
#ifndef LT_IMAGE_RESIZE_H
#define LT_IMAGE_RESIZE_H

#include "image/picture.h"

typedef enum lt_filter { LT_NEAREST, LT_BILINEAR, LT_BICUBIC } lt_filter;

/* The picture in height x width; *p is replaced. i32 takes LT_NEAREST only. */
bool lt_picture_resize(lt_ctx *c, lt_picture *p, int height, int width, lt_filter filter);

/* Where the pixels of another picture come from: column x and row y of the output is at
   (m0 x + m1 y + m2) / w, (m3 x + m4 y + m5) / w of the input, w = m6 x + m7 y + m8. */
typedef struct lt_projection {
  double m[9];
} lt_projection;

/* Outside of the input is fill[channel]; *p is replaced. */
bool lt_picture_warp(lt_ctx *c, lt_picture *p, const lt_projection *from, int height, int width,
                     lt_filter filter, const float fill[LT_CHANNELS_MAX]);

typedef enum lt_padding {
  LT_PAD_CONSTANT, LT_PAD_EDGE, LT_PAD_REFLECT, LT_PAD_SYMMETRIC
} lt_padding;

/* More pixels around it (negative: fewer); *p is replaced. */
bool lt_picture_pad(lt_ctx *c, lt_picture *p, const int sides[4], lt_padding mode,
                    const float fill[LT_CHANNELS_MAX]);

/* Which element of 0..n-1 stands at `at` outside of them. */
int lt_pad_index(int at, int n, lt_padding mode);

#endif
