/* runtime/data/digits.h: drawn digits: a data set that needs no download.

   Each image is 28 x 28 grey values and a pure function of (seed, split, index): a digit's strokes
   with hand-like variation, slanted, scaled, moved, drawn with a pen of some width, with noise.
   Every ten images from a multiple of ten on hold each digit once, in random order. */
#ifndef LT_DATA_DIGITS_H
#define LT_DATA_DIGITS_H

#include "base/ctx.h"

enum { LT_DIGITS_SIDE = 28, LT_DIGITS_PIXELS = LT_DIGITS_SIDE * LT_DIGITS_SIDE };
enum { LT_DIGITS_TRAIN, LT_DIGITS_TEST };

/* Draw images first..first+n-1 and their labels 0..9, in parallel. */
void lt_digits_draw(lt_ctx *c, uint64_t seed, int split, int64_t first, int64_t n, uint8_t *images,
                    int64_t *labels);

#endif
