/* runtime/image/sample.h: what belongs to one sample and moves together: an image, a mask of ids,
   boxes. Each change of geometry is done to all; ids are never mixed. */
#ifndef LT_IMAGE_SAMPLE_H
#define LT_IMAGE_SAMPLE_H

#include "image/random_stream.h"
#include "image/resize.h"

typedef struct lt_sample {
  lt_picture image;
  lt_picture mask; /* no channels: there is none */
  int64_t n_boxes;
  float *boxes; /* [n, 4] x1 y1 x2 y2, changed in place */
} lt_sample;

/* Rows and columns from (top, left) on, within the image. */
void lt_sample_crop(lt_sample *s, int top, int left, int height, int width);
void lt_sample_mirror(lt_sample *s, bool upright);

/* Rows become columns. */
void lt_sample_transpose(lt_sample *s);

bool lt_sample_resize(lt_ctx *c, lt_sample *s, int height, int width, lt_filter filter);

/* sides: left, top, right, bottom. The mask gets zeros where the mode is constant. */
bool lt_sample_pad(lt_ctx *c, lt_sample *s, const int sides[4], lt_padding mode,
                   const float fill[LT_CHANNELS_MAX]);

/* See lt_picture_warp. */
bool lt_sample_warp(lt_ctx *c, lt_sample *s, const lt_projection *from, int height, int width,
                    lt_filter filter, const float fill[LT_CHANNELS_MAX]);

void lt_sample_free(lt_ctx *c, lt_sample *s);

#endif
