/* runtime/io/csv.c: one pass over the file for all columns, and one more for those whose guess from
   the first rows was wrong.

   RFC 4180: quotes are doubled within quotes, and a line break in them is part of the field. The
   kinds of columns are guessed from the first GUESS_ROWS rows, from integer over number to text; a
   later field that does not fit widens the kind and has only that column read once more, so that
   usual files take one pass. The file is in memory as a whole: fields are ranges of it, and copied
   only where quotes are undone. */
#include "io/csv.h"

#include <math.h>
#include <string.h>

#include "base/string_table.h"
#include "device/device.h"
#include "io/csv_number.h"
#include "io/file.h"

enum { GUESS_ROWS = 1000, SHOWN = 40, MAX_COLUMNS = 1 << 20 };
static const size_t MAX_FILE = (size_t)1 << 40;

typedef struct lt_column {
  lt_csv_kind kind;
  bool declared; /* kind is a must */
  bool again; /* to be read: its kind has changed */
  lt_string_table words; /* the different texts; value: id */
  void *values; /* of the tensor that is being filled; NULL while kinds are guessed */
} lt_column;

struct lt_csv {
  const char *op, *path;
  lt_csv_options o;
  char *data;
  size_t size, first; /* where the rows begin */
  int64_t file; /* bytes of the file */
  int64_t first_line;
  int n_columns;
  lt_column *column;
  lt_string_table names; /* of the columns, with a header; value: number of the column */
  char *scratch; /* a field whose quotes are undone */
  size_t scratch_size;
  bool may_miss[256]; /* first bytes of what says that a value is missing */
  bool empty_misses;
  bool quotes_text; /* a field in quotes is text, unless its column must be of numbers */
};

/* Where a pass is. */
typedef struct cursor {
  const char *at, *end;
  int64_t line;  /* of what is read next */
  int64_t began; /* line of the current row */
} cursor;

typedef struct field {
  const char *text;
  size_t n;
  bool last; /* of its row */
  bool quoted;
} field;

static bool bad_row(lt_ctx *c, const lt_csv *t, int64_t line, const char *what) {
  return lt_fail(c, LT_EIO, "%s: %s:%lld: %s", t->op, t->path, (long long)line, what);
}

/* The scratch of one field, doubled: a row is taken before the next is read. */
static bool reserve(lt_ctx *c, lt_csv *t, size_t n) {
  if (n <= t->scratch_size) return true;
  char *more = lt_realloc(c, t->scratch, t->scratch_size, 2 * n);
  if (more == NULL) return false;
  t->scratch = more;
  t->scratch_size = 2 * n;
  return true;
}

/* Past the end of a field or of its line. */
static void leave(cursor *k, field *f, char delimiter) {
  f->last = k->at == k->end || *k->at != delimiter;
  if (k->at == k->end) return;
  if (*k->at == '\r') k->at++;
  if (f->last) k->line++;
  k->at++;
}

/* A carriage return ends a field only before a line feed; alone it is text. */
static bool at_end(const cursor *k, char delimiter) {
  return k->at == k->end || *k->at == delimiter || *k->at == '\n' ||
         (*k->at == '\r' && k->at + 1 < k->end && k->at[1] == '\n');
}

/* A field in quotes, from behind the first of them. memchr runs from quote to quote: long texts are
   passed at the speed of memory. */
static bool quoted_field(lt_ctx *c, lt_csv *t, cursor *k, field *f) {
  size_t n = 0;
  for (;; k->at++) {
    const char *quote = memchr(k->at, '"', (size_t)(k->end - k->at));
    if (quote == NULL) return bad_row(c, t, k->began, "a quote in this row is never closed");
    size_t part = (size_t)(quote - k->at);
    if (!reserve(c, t, n + part + 1)) return false;
    memcpy(t->scratch + n, k->at, part);
    for (size_t i = 0; i < part; i++) k->line += k->at[i] == '\n';
    n += part;
    k->at = quote + 1;
    if (k->at == k->end || *k->at != '"') break;
    t->scratch[n++] = '"';
  }
  if (!at_end(k, t->o.delimiter))
    return bad_row(c, t, k->line, "text follows the quote that ends a field");
  *f = (field){.text = t->scratch, .n = n, .quoted = true};
  leave(k, f, t->o.delimiter);
  return true;
}

/* An unquoted field: bytes up to a delimiter or the end of the line, quotes in its middle
   included. */
static bool read_field(lt_ctx *c, lt_csv *t, cursor *k, field *f) {
  if (k->at < k->end && *k->at == '"') {
    k->at++;
    return quoted_field(c, t, k, f);
  }
  const char *from = k->at, *p = from, *end = k->end;
  char delimiter = t->o.delimiter;
  while (p < end && *p != delimiter && *p != '\n') p++;
  if (p < end && *p == '\n' && p > from && p[-1] == '\r') p--;
  *f = (field){.text = from, .n = (size_t)(p - from)};
  k->at = p;
  leave(k, f, delimiter);
  return true;
}

/* Past blank lines; whether a row follows. */
static bool next_row(cursor *k) {
  while (k->at < k->end) {
    size_t blank = *k->at == '\n' ? 1 : k->end - k->at > 1 && memcmp(k->at, "\r\n", 2) == 0 ? 2 : 0;
    if (blank == 0) break;
    k->at += blank;
    k->line++;
  }
  k->began = k->line;
  return k->at < k->end;
}

/* The first byte decides for most fields that they are none of the texts that stand for a missing
   value. */
static bool is_missing(const lt_csv *t, const field *f) {
  if (f->n == 0) return t->empty_misses;
  if (f->quoted && t->quotes_text) return false;
  if (!t->may_miss[(unsigned char)f->text[0]]) return false;
  for (int k = 0; k < t->o.n_missing; k++)
    if (t->o.missing[k].n == f->n && memcmp(t->o.missing[k].text, f->text, f->n) == 0) return true;
  return false;
}

static bool bad_field(lt_ctx *c, const lt_csv *t, const cursor *k, int number, const field *f,
                      const char *wanted) {
  lt_csv_text name = lt_csv_name(t, number);
  int shown = f->n < SHOWN ? (int)f->n : SHOWN;
  return lt_fail(c, LT_EIO, "%s: %s:%lld: column %d%s%.*s%s contains '%.*s', which is not %s",
                 t->op, t->path, (long long)k->began, number + 1, name.n > 0 ? " (" : "",
                 (int)name.n, name.text, name.n > 0 ? ")" : "", shown, f->text, wanted);
}

/* The column cannot be what it was taken for: it is read once more as `kind`. */
static void change(lt_column *of, lt_csv_kind kind) {
  if (of->kind < kind) of->kind = kind;
  of->again = true;
}

/* An integer column takes no missing value, since i64 has no NaN: it becomes a number. So does one
   with a fraction or an exponent. */
static bool take_number(lt_ctx *c, const lt_csv *t, const cursor *k, int number, const field *f,
                        int64_t row) {
  lt_column *of = &t->column[number];
  double value = (double)NAN;
  int64_t integer = 0;
  bool is_integer = false, missing = is_missing(t, f);
  if (f->quoted && t->quotes_text && f->n > 0 && !of->declared) {
    change(of, LT_CSV_TEXT);
    return true;
  }
  if (!missing && !lt_csv_number(f->text, f->n, &value, &integer, &is_integer)) {
    if (of->declared)
      return bad_field(c, t, k, number, f, of->kind == LT_CSV_INTEGER ? "an integer" : "a number");
    change(of, LT_CSV_TEXT);
    return true;
  }
  if (of->kind == LT_CSV_INTEGER && !is_integer) {
    if (of->declared) return bad_field(c, t, k, number, f, "an integer");
    change(of, LT_CSV_NUMBER);
    return true;
  }
  if (of->values == NULL) return true;
  if (of->kind == LT_CSV_INTEGER)
    ((int64_t *)of->values)[row] = integer;
  else
    ((double *)of->values)[row] = value;
  return true;
}

static lt_csv_text text_of(const lt_string_table *w, int64_t id) {
  return (lt_csv_text){lt_string_text(w, &w->word[id]), w->word[id].n};
}

/* The id of a text, the next one where it is new; -1 on failure. */
static int64_t id_of(lt_ctx *c, lt_string_table *w, const char *text, size_t n) {
  uint64_t hash = lt_string_hash(text, n);
  const lt_string_entry *word = lt_string_table_find(w, text, n, hash);
  if (word == NULL) word = lt_string_table_add(c, w, text, n, hash, w->count);
  return word != NULL ? word->value : -1;
}

/* Texts become ids of a table, in the order of their first occurrence; -1 is a missing one. */
static bool take(lt_ctx *c, const lt_csv *t, const cursor *k, int number, const field *f,
                 int64_t row) {
  lt_column *of = &t->column[number];
  if (of->kind != LT_CSV_TEXT) return take_number(c, t, k, number, f, row);
  if (of->values == NULL) return true;
  int64_t id = is_missing(t, f) ? -1 : id_of(c, &of->words, f->text, f->n);
  ((int64_t *)of->values)[row] = id;
  return lt_ok(c);
}

static bool bad_count(lt_ctx *c, const lt_csv *t, const cursor *k, int64_t fields, bool more) {
  return lt_fail(c, LT_EIO, "%s: %s:%lld: a row of %s%lld field%s: the first row has %d", t->op,
                 t->path, (long long)k->began, more ? "more than " : "", (long long)fields,
                 fields == 1 ? "" : "s", t->n_columns);
}

/* Rows up to `most`, of columns that are `wanted`; returns how many, -1 on failure. */
static int64_t pass(lt_ctx *c, lt_csv *t, const bool *wanted, int64_t most) {
  cursor k = {.at = t->data + t->first, .end = t->data + t->size, .line = t->first_line};
  int64_t row = 0;
  for (; row < most && next_row(&k); row++) {
    field f = {.last = false};
    int number = 0;
    for (; !f.last; number++) {
      if (number == t->n_columns) return bad_count(c, t, &k, number, true), -1;
      if (!read_field(c, t, &k, &f)) return -1;
      if (wanted[number] && !take(c, t, &k, number, &f, row)) return -1;
    }
    if (number < t->n_columns) return bad_count(c, t, &k, number, false), -1;
  }
  return row;
}

static bool add_column(lt_ctx *c, lt_csv *t, const field *f) {
  int n = t->n_columns;
  if (n == MAX_COLUMNS) return bad_row(c, t, 1, "there are too many columns");
  if ((n & (n - 1)) == 0) { /* capacity grows by powers of two */
    size_t capacity = n == 0 ? 1 : 2 * (size_t)n, had = n == 0 ? 0 : (size_t)n;
    lt_column *more = lt_realloc(c, t->column, had * sizeof *more, capacity * sizeof *more);
    if (more == NULL) return false;
    t->column = more;
  }
  if (t->o.header) {
    int64_t id = id_of(c, &t->names, f->text, f->n);
    if (id < 0) return false;
    if (id < n)
      return lt_fail(c, LT_EIO, "%s: %s: two columns are called '%.*s'", t->op, t->path, (int)f->n,
                     f->text);
  }
  t->column[t->n_columns++] = (lt_column){.kind = LT_CSV_GUESS};
  return true;
}

static bool begins_with_mark(const char *text, size_t n) {
  return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
}

/* Whether a field is in quotes that it does not need: a program has quoted all then. */
static bool quoted_for_nothing(const lt_csv *t, const field *f) {
  if (!f->quoted || f->n == 0 || f->text[0] == ' ' || f->text[f->n - 1] == ' ') return false;
  for (size_t i = 0; i < f->n; i++)
    if (strchr("\"\r\n", f->text[i]) != NULL || f->text[i] == t->o.delimiter) return false;
  return !begins_with_mark(f->text, f->n);
}

/* The first row: names, or how many columns there are. */
static bool read_names(lt_ctx *c, lt_csv *t) {
  bool marked = begins_with_mark(t->data, t->size);
  cursor k = {.at = t->data + (marked ? 3 : 0), .end = t->data + t->size, .line = 1};
  if (marked && begins_with_mark(k.at, t->size - 3))
    return lt_fail(c, LT_EIO, "%s: %s begins with two byte order marks", t->op, t->path);
  if (!next_row(&k)) return lt_fail(c, LT_EIO, "%s: %s is empty", t->op, t->path);
  size_t first = (size_t)(k.at - t->data);
  t->first_line = k.line;
  t->quotes_text = t->o.header;
  for (field f = {.last = false}; !f.last;) {
    if (!read_field(c, t, &k, &f) || !add_column(c, t, &f)) return false;
    t->quotes_text = t->quotes_text && !quoted_for_nothing(t, &f);
  }
  if (t->o.header) first = (size_t)(k.at - t->data), t->first_line = k.line;
  t->first = first;
  return true;
}

/* How many of n bytes are whole rows; n where none is. Counting quotes is enough: a doubled quote
   toggles twice. */
static size_t whole_rows(const char *data, size_t n) {
  size_t whole = 0;
  bool in_quotes = false;
  for (size_t i = 0; i < n; i++) {
    if (data[i] == '"') in_quotes = !in_quotes;
    if (data[i] == '\n' && !in_quotes) whole = i + 1;
  }
  return whole > 0 ? whole : n;
}

/* The rows that end within the first o.most bytes, where the file has more. */
static bool load_part(lt_ctx *c, lt_csv *t) {
  int fd = lt_file_open(c, t->op, t->path, &t->file);
  if (fd < 0) return false;
  bool is_part = t->file > t->o.most;
  size_t n = (size_t)t->o.most;
  char *data = is_part ? lt_alloc(c, n + 1) : NULL;
  if (data != NULL && lt_file_read_at(c, t->op, t->path, fd, data, n, 0)) {
    t->size = whole_rows(data, n);
    t->data = lt_realloc(c, data, n + 1, t->size + 1);
    if (t->data != NULL) t->data[t->size] = 0;
  }
  if (data != NULL && t->data == NULL) lt_free(c, data, n + 1);
  lt_file_close(c, fd);
  return lt_ok(c);
}

static bool load(lt_ctx *c, lt_csv *t) {
  if (t->o.most > 0 && !load_part(c, t)) return false;
  if (t->data != NULL) return true;
  t->data = lt_file_load(c, t->op, t->path, MAX_FILE, &t->size);
  t->file = (int64_t)t->size;
  return t->data != NULL;
}

lt_csv *lt_csv_open(lt_ctx *c, const char *op, const char *path, const lt_csv_options *o) {
  lt_csv *t = lt_alloc(c, sizeof *t);
  if (t == NULL) return NULL;
  *t = (lt_csv){.op = op, .path = path, .o = *o};
  for (int k = 0; k < o->n_missing; k++) {
    if (o->missing[k].n == 0) t->empty_misses = true;
    else t->may_miss[(unsigned char)o->missing[k].text[0]] = true;
  }
  if (load(c, t) && read_names(c, t)) return t;
  lt_csv_free(c, t);
  return NULL;
}

void lt_csv_free(lt_ctx *c, lt_csv *t) {
  for (int k = 0; k < t->n_columns; k++) lt_string_table_free(c, &t->column[k].words);
  size_t capacity = 1;
  while (capacity < (size_t)t->n_columns) capacity *= 2;
  lt_free(c, t->column, t->n_columns > 0 ? capacity * sizeof *t->column : 0);
  lt_string_table_free(c, &t->names);
  lt_free(c, t->scratch, t->scratch_size);
  if (t->data != NULL) lt_free(c, t->data, t->size + 1);
  lt_free(c, t, sizeof *t);
}

int64_t lt_csv_bytes(const lt_csv *t) { return (int64_t)t->size; }
int64_t lt_csv_file_bytes(const lt_csv *t) { return t->file; }

int lt_csv_columns(const lt_csv *t) { return t->n_columns; }
lt_csv_text lt_csv_name(const lt_csv *t, int column) {
  return t->o.header ? text_of(&t->names, column) : (lt_csv_text){"", 0};
}
lt_csv_kind lt_csv_kind_of(const lt_csv *t, int column) { return t->column[column].kind; }
int64_t lt_csv_words(const lt_csv *t, int column) { return t->column[column].words.count; }
lt_csv_text lt_csv_word(const lt_csv *t, int column, int64_t id) {
  return text_of(&t->column[column].words, id);
}

void lt_csv_set_kind(lt_csv *t, int column, lt_csv_kind kind) {
  t->column[column].kind = kind;
  t->column[column].declared = kind != LT_CSV_GUESS;
}

/* At most so many rows follow: lines. Line breaks, so that tensors are allocated once; quoted ones
   make the bound larger than needed. */
static int64_t count_lines(const lt_csv *t) {
  int64_t n = 1;
  const char *end = t->data + t->size;
  for (const char *p = t->data + t->first; p < end && (p = memchr(p, '\n', (size_t)(end - p)));
       p++)
    n++;
  return n;
}

/* Tensors for the columns that are to be read; their words begin anew. */
static bool make_tensors(lt_ctx *c, lt_csv *t, const bool *wanted, int64_t rows, lt_tensor **out) {
  for (int k = 0; k < t->n_columns; k++) {
    if (!wanted[k]) continue;
    lt_column *of = &t->column[k];
    lt_dtype dtype = of->kind == LT_CSV_NUMBER ? LT_F64 : LT_I64;
    out[k] = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, 1, &rows);
    if (out[k] == NULL) return false;
    of->values = lt_data(out[k]);
    lt_string_table_free(c, &of->words);
  }
  return true;
}

/* The first `rows` values alone: there were blank lines, or lines within quotes. */
static lt_tensor *cut(lt_ctx *c, lt_tensor *x, int64_t rows) {
  lt_tensor *y = lt_tensor_empty(c, LT_CPU_DEVICE, (lt_dtype)x->dtype, 1, &rows);
  if (y != NULL && rows > 0)
    memcpy(lt_data(y), lt_data(x), (size_t)rows * lt_dtype_size((lt_dtype)x->dtype));
  return y;
}

static bool read_all(lt_ctx *c, lt_csv *t, bool *wanted, lt_tensor **out) {
  int64_t rows = count_lines(t);
  for (int k = 0; k < t->n_columns; k++) wanted[k] = true;
  for (int k = 0; k < t->n_columns; k++)
    if (t->column[k].kind == LT_CSV_GUESS) t->column[k].kind = LT_CSV_INTEGER;
  int64_t found = pass(c, t, wanted, GUESS_ROWS);
  for (bool again = found >= 0; again;) {
    for (int k = 0; k < t->n_columns; k++) t->column[k].again = false;
    if (!make_tensors(c, t, wanted, rows, out)) return false;
    found = pass(c, t, wanted, INT64_MAX);
    again = false;
    for (int k = 0; k < t->n_columns && found >= 0; k++)
      again |= wanted[k] = t->column[k].again;
  }
  for (int k = 0; k < t->n_columns && found >= 0 && found != rows; k++)
    if ((out[k] = cut(c, out[k], found)) == NULL) return false;
  return found >= 0;
}

bool lt_csv_read(lt_ctx *c, lt_csv *t, lt_tensor **out) {
  bool *wanted = lt_alloc(c, (size_t)t->n_columns * sizeof *wanted);
  if (wanted == NULL) return false;
  bool ok = read_all(c, t, wanted, out);
  lt_free(c, wanted, (size_t)t->n_columns * sizeof *wanted);
  return ok;
}
