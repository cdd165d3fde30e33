/* runtime/io/metric_curves.c: the metrics of a run as they are appended, and their reduction to as
   many points as a chart can show.

   A file that grows is read on from where the last whole line ended. Only cells with a value are
   stored, each with its row: a metric of validation costs its own rows, not those of training. */
#include "io/metric_curves.h"

#include <math.h>
#include <string.h>

#include "io/csv_number.h"

enum { MOST_CURVES = 1 << 16, LONGEST_HEADER = 1 << 22 };
enum { FIRST = 64, KEPT = 5 /* points of a piece */ };

void lt_curves_free(lt_curves *t) {
  for (int k = 0; k < t->n_curves; k++) {
    lt_curve *one = &t->curves[k];
    lt_free(t->c, one->name, one->name_size + 1);
    lt_free(t->c, one->values, (size_t)one->capacity * sizeof *one->values);
    lt_free(t->c, one->rows, (size_t)one->capacity * sizeof *one->rows);
  }
  if (t->n_curves > 0) lt_free(t->c, t->curves, (size_t)t->n_curves * sizeof *t->curves);
  lt_free(t->c, t->steps, (size_t)t->capacity * sizeof *t->steps);
  lt_free(t->c, t->epochs, (size_t)t->capacity * sizeof *t->epochs);
  *t = lt_curves_begin(t->c);
}

/* What a cache counts: the lists, without the names. */
size_t lt_curves_bytes(const lt_curves *t) {
  size_t n = 2 * (size_t)t->capacity * sizeof *t->steps;
  for (int k = 0; k < t->n_curves; k++)
    n += (size_t)t->curves[k].capacity * (sizeof(double) + sizeof(uint32_t));
  return n;
}

/* Reading. */

/* The field at *at of a line of n bytes, which ends before the next comma; quotes are taken off,
   and doubled ones halved, in place. False after the last. */
static bool next_name(char *line, size_t n, size_t *at, char **name, size_t *size) {
  if (*at > n) return false;
  char *out = *name = line + *at;
  size_t i = *at;
  if (i < n && line[i] == '"') {
    for (i++; i < n; i++) {
      if (line[i] == '"' && (i + 1 >= n || line[++i] != '"')) break;
      *out++ = line[i];
    }
  }
  while (i < n && line[i] != ',') *out++ = line[i++];
  *size = (size_t)(out - *name);
  *at = i + 1;
  return true;
}

static bool is_word(const char *word, const char *name, size_t n) {
  return strlen(word) == n && memcmp(word, name, n) == 0;
}

/* Counts the names into *n, or, with `curves`, keeps them from the third on. */
static bool read_names(lt_curves *t, char *line, size_t length, lt_curve *curves, int *n) {
  char *name;
  size_t at = 0, size;
  bool right = true;
  for (*n = 0; next_name(line, length, &at, &name, &size); ++*n) {
    if (*n < 2) right = right && is_word(*n == 0 ? "epoch" : "step", name, size);
    if (*n < 2 || curves == NULL) continue;
    lt_curve *one = &curves[*n - 2];
    one->name = lt_alloc(t->c, size + 1);
    if (one->name == NULL) return false;
    one->name_size = size;
    memcpy(one->name, name, size);
  }
  return right && *n >= 2;
}

/* Twice over a copy: the names are counted, then stored, so that the list is allocated once. */
static bool read_header(lt_curves *t, const char *op, const char *line, size_t n) {
  char *copy = lt_alloc(t->c, n + 1);
  if (copy == NULL) return false;
  int columns;
  memcpy(copy, line, n);
  bool right = read_names(t, copy, n, NULL, &columns);
  if (!right) lt_fail(t->c, LT_EIO, "%s: the columns must begin with epoch,step", op);
  if (right && (columns > MOST_CURVES || n > LONGEST_HEADER))
    right = lt_fail(t->c, LT_EIO, "%s: %d columns in %zu bytes: at most %d, in %d bytes", op,
                    columns, n, MOST_CURVES, LONGEST_HEADER);
  if (right && columns > 2) {
    t->curves = lt_alloc(t->c, (size_t)(columns - 2) * sizeof *t->curves);
    right = t->curves != NULL;
    if (right) t->n_curves = columns - 2;
    memcpy(copy, line, n);
    right = right && read_names(t, copy, n, t->curves, &columns);
  } else if (right) {
    t->n_curves = 0;
  }
  lt_free(t->c, copy, n + 1);
  return right;
}

/* Two lists of as many elements, of sizes n and m, made longer together. Both or neither: after a
   failure the lists are as they were. */
static bool grow(lt_ctx *c, void **a, size_t n, void **b, size_t m, int64_t *capacity) {
  size_t from = (size_t)*capacity, to = from > 0 ? 2 * from : FIRST;
  void *longer = lt_alloc(c, to * n), *other = lt_alloc(c, to * m);
  bool ok = longer != NULL && other != NULL;
  if (ok && from > 0) {
    memcpy(longer, *a, from * n);
    memcpy(other, *b, from * m);
  }
  lt_free(c, ok ? *a : longer, (ok ? from : to) * n);
  lt_free(c, ok ? *b : other, (ok ? from : to) * m);
  if (!ok) return false;
  *a = longer;
  *b = other;
  *capacity = (int64_t)to;
  return true;
}

static bool add_value(lt_curves *t, lt_curve *one, double value) {
  if (one->count == one->capacity &&
      !grow(t->c, (void **)&one->values, sizeof *one->values, (void **)&one->rows,
            sizeof *one->rows, &one->capacity))
    return false;
  one->rows[one->count] = (uint32_t)t->n_rows;
  one->values[one->count++] = value;
  return true;
}

static bool add_row(lt_curves *t, double epoch, double step) {
  if (t->n_rows == t->capacity &&
      !grow(t->c, (void **)&t->steps, sizeof *t->steps, (void **)&t->epochs, sizeof *t->epochs,
            &t->capacity))
    return false;
  t->steps[t->n_rows] = step;
  t->epochs[t->n_rows++] = epoch;
  return true;
}

/* An empty cell, or one that is not a number, is not a point of its curve. Cells beyond the
   header's columns are ignored. */
static bool read_row(lt_curves *t, const char *line, size_t n) {
  double epoch = 0, step = 0;
  const char *end = line + n;
  for (int k = 0; line <= end && k < t->n_curves + 2; k++) {
    const char *comma = memchr(line, ',', (size_t)(end - line));
    size_t size = (size_t)((comma != NULL ? comma : end) - line);
    double value;
    int64_t integer;
    bool is_integer;
    if (size > 0 && lt_csv_number(line, size, &value, &integer, &is_integer)) {
      if (k == 0) epoch = value;
      if (k == 1) step = value;
      if (k > 1 && !add_value(t, &t->curves[k - 2], value)) return false;
    }
    line += size + 1;
  }
  return add_row(t, epoch, step);
}

/* Whole lines only: returns how many bytes of `text` were used, so that the caller brings the rest
   again with what follows. */
int64_t lt_curves_feed(lt_curves *t, const char *op, const char *text, size_t n) {
  const char *line = text, *end = text + n, *stop;
  while (line < end && (stop = memchr(line, '\n', (size_t)(end - line))) != NULL) {
    size_t size = (size_t)(stop - line);
    if (size > 0 && line[size - 1] == '\r') size--;
    bool header = t->n_curves < 0;
    if (!header && t->n_rows >= UINT32_MAX)
      lt_fail(t->c, LT_EIO, "%s: too many rows", op);
    else if (header ? !read_header(t, op, line, size) : size > 0 && !read_row(t, line, size))
      return -1;
    if (!lt_ok(t->c)) return -1;
    line = stop + 1;
  }
  return line - text;
}

/* Looking. */

static bool same(const void *a, const void *b, int64_t n, size_t size) {
  return n == 0 || memcmp(a, b, (size_t)n * size) == 0;
}

/* Whether the file has only grown since `before` was read: a resumed run may have cut it and
   written other values. Bytes are compared, so that NaN equals itself. */
bool lt_curves_extends(const lt_curves *t, const lt_curves *before) {
  int64_t n = before->n_rows;
  if (t->n_curves < before->n_curves || t->n_rows < n || !same(t->steps, before->steps, n, 8) ||
      !same(t->epochs, before->epochs, n, 8))
    return false;
  for (int k = 0; k < before->n_curves; k++) {
    const lt_curve *a = &t->curves[k], *b = &before->curves[k];
    if (a->name_size != b->name_size || memcmp(a->name, b->name, a->name_size) != 0 ||
        a->count < b->count || !same(a->values, b->values, b->count, sizeof *a->values) ||
        !same(a->rows, b->rows, b->count, sizeof *a->rows))
      return false;
  }
  return true;
}

static double place(const lt_curves *t, const lt_curve *curve, lt_curve_axis axis, int64_t i) {
  uint32_t row = curve->rows[i];
  return axis == LT_BY_ROW ? (double)row : axis == LT_BY_STEP ? t->steps[row] : t->epochs[row];
}

static bool inside(const lt_curves *t, const lt_curve *curve, lt_curve_range r, int64_t i) {
  double x = place(t, curve, r.axis, i);
  return x >= r.from && x <= r.to;
}

/* What is kept of a piece, so far. First, last, lowest and highest value of each piece of a curve:
   the line that a chart of that many pixels draws through them is the one through all (U. Jugel and
   others, M4: A Visualization-Oriented Time Series Data Aggregation, 2014). A mean would hide the
   peaks. `odd`: the first that is NaN or infinite, which a chart must show, too. */
typedef struct piece {
  int64_t first, last, low, high, odd; /* -1: none */
} piece;

/* The points kept, in the order of rows, each once: an insertion sort of five. */
static int64_t close_piece(const piece *p, int64_t *out) {
  int64_t kept[KEPT] = {p->first, p->low, p->high, p->odd, p->last}, n = 0;
  for (int i = 1; i < KEPT; i++) {
    int64_t item = kept[i];
    int j = i;
    for (; j > 0 && kept[j - 1] > item; j--) kept[j] = kept[j - 1];
    kept[j] = item;
  }
  for (int i = 0; i < KEPT; i++)
    if (kept[i] >= 0 && (n == 0 || out[n - 1] != kept[i])) out[n++] = kept[i];
  return n;
}

/* Two passes, O(n): how many points are in range, then pieces of equal numbers of points. At most
   KEPT points a piece, so at most `most`. */
int64_t lt_curves_pick(const lt_curves *t, const lt_curve *curve, lt_curve_range range,
                       int64_t most, int64_t *out, int64_t *count) {
  int64_t n = 0, all = 0, seen = 0, k = 0, pieces = most / KEPT;
  for (int64_t i = 0; i < curve->count; i++) all += inside(t, curve, range, i);
  *count = all;
  piece p = {-1, -1, -1, -1, -1};
  for (int64_t i = 0; i < curve->count; i++) {
    if (!inside(t, curve, range, i)) continue;
    if (all <= most) {
      out[n++] = i;
      continue;
    }
    double y = curve->values[i];
    if (p.first < 0) p.first = i;
    p.last = i;
    if (!isfinite(y)) {
      if (p.odd < 0) p.odd = i;
    } else {
      if (p.low < 0 || y < curve->values[p.low]) p.low = i;
      if (p.high < 0 || y > curve->values[p.high]) p.high = i;
    }
    if (++seen < (k + 1) * all / pieces) continue;
    n += close_piece(&p, out + n);
    p = (piece){-1, -1, -1, -1, -1};
    k++;
  }
  return n;
}
