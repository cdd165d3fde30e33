/* runtime/data/strokes.h: how digits are written: three forms each, strokes on a 100 x 100 grid. */
#ifndef LT_DATA_STROKES_H
#define LT_DATA_STROKES_H

#include <stdbool.h>
#include <stdint.h>

enum { LT_STROKE_POINTS = 12, LT_GLYPH_STROKES = 3, LT_GLYPH_FORMS = 3 };

typedef struct lt_stroke {
  bool smooth; /* a curve through its points, or straight lines */
  int8_t n;
  int8_t at[LT_STROKE_POINTS][2]; /* x to the right, y down */
} lt_stroke;

typedef struct lt_glyph {
  int8_t n;
  lt_stroke stroke[LT_GLYPH_STROKES];
} lt_glyph;

extern const lt_glyph lt_glyphs[10][LT_GLYPH_FORMS];

#endif
