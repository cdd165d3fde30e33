/* runtime/io/metric_curves.h: the metrics of a run, read while they are being written.

   The text of a metrics.csv is fed in pieces, as it grows. Its first line names the columns: epoch,
   step, then one a metric. A row counts for the metrics that it has; a field that is not a number
   is none, and a last line without an end is left for the next piece. */
#ifndef LT_IO_METRIC_CURVES_H
#define LT_IO_METRIC_CURVES_H

#include "base/ctx.h"

typedef struct lt_curve {
  char *name;
  size_t name_size;
  int64_t count, capacity;
  double *values;
  uint32_t *rows; /* from 0 */
} lt_curve;

typedef struct lt_curves {
  lt_ctx *c;
  int n_curves; /* -1: no header yet */
  lt_curve *curves;
  int64_t n_rows, capacity;
  double *steps, *epochs;
} lt_curves;

static inline lt_curves lt_curves_begin(lt_ctx *c) { return (lt_curves){.c = c, .n_curves = -1}; }
void lt_curves_free(lt_curves *t);

/* How many bytes of the text are whole lines, which are taken; -1 with a failure. */
int64_t lt_curves_feed(lt_curves *t, const char *op, const char *text, size_t n);

/* Whether all that `before` has comes first in `t`: columns may have been added. */
bool lt_curves_extends(const lt_curves *t, const lt_curves *before);

/* The memory that it takes. */
size_t lt_curves_bytes(const lt_curves *t);

/* A range of a curve: its points whose row, step or epoch is between two, both included. */
typedef enum lt_curve_axis { LT_BY_STEP, LT_BY_EPOCH, LT_BY_ROW } lt_curve_axis;
typedef struct lt_curve_range {
  lt_curve_axis axis;
  double from, to;
} lt_curve_range;

/* The points to draw of a range, at most `most` of them (10 or more), as positions in the curve,
   ascending, into `out`; returns how many. Where there are more, of each of equal pieces the first,
   the last, the lowest, the highest and the first that is not finite. *count: all in the range. */
int64_t lt_curves_pick(const lt_curves *t, const lt_curve *curve, lt_curve_range range,
                       int64_t most, int64_t *out, int64_t *count);

#endif
