/* lua/apps/editor_display.c: draws the entry that is edited: bracket matching, colours, a hint. */
#include "apps/editor_display.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { MOST_ROWS = 300, TAB = 4, LEAST_COLUMNS = 8 };

/* What a letter of `styles` looks like. */
static const struct {
  char letter;
  const char *code;
} looks[] = {
    {'k', "35"},   /* a keyword */
    {'s', "32"},   /* a string */
    {'n', "36"},   /* a number */
    {'c', "2"},    /* a comment */
    {'g', "34"},   /* a global that is there */
    {'m', "1;33"}, /* a bracket and the one that it matches */
    {'e', "31"},   /* what cannot be */
};

/* What is on the terminal: which of the entry's rows is the first there, where the cursor is below
   that, how many rows there are, and how wide. */
static struct { int top, cursor, column, rows, widths[MOST_ROWS]; } drawn;

static const char *code_of(char letter) {
  for (size_t k = 0; k < sizeof looks / sizeof *looks; k++)
    if (looks[k].letter == letter) return looks[k].code;
  return "0";
}

bool lt_paint_wanted(void) {
  const char *none = getenv("NO_COLOR");
  return none == NULL || none[0] == 0;
}

void lt_paint_begin(void) { memset(&drawn, 0, sizeof drawn); }

void lt_paint_leave(void) {
  if (drawn.rows - 1 > drawn.cursor) fprintf(stdout, "\033[%dB", drawn.rows - 1 - drawn.cursor);
  fputc('\r', stdout);
  lt_paint_begin();
}

/* A terminal breaks rows that have become too wide, and what is below moves down. */
void lt_paint_resized(int columns) {
  int more = columns > 0 ? drawn.column / columns : 0;
  for (int k = 0; columns > 0 && k < drawn.cursor; k++)
    more += drawn.widths[k] > columns ? (drawn.widths[k] - 1) / columns : 0;
  drawn.cursor += more;
  if (drawn.cursor >= MOST_ROWS) drawn.cursor = MOST_ROWS - 1;
}

/* Where a walk over the entry is: the character that starts at `at`, its bytes and columns. */
typedef struct walk {
  const lt_drawing *d;
  int margin; /* columns of the mark */
  int row, column, width;
  size_t at, bytes;
  bool is_wrapped; /* the row continues with the line of the row above */
} walk;

/* In a window that has too few rows for the whole prompt its end is enough. */
static const char *mark_of(const lt_drawing *d) {
  size_t n = strlen(d->prompt);
  return n > 2 && (int)n + LEAST_COLUMNS > d->columns ? d->prompt + n - 2 : d->prompt;
}

static walk walk_of(const lt_drawing *d) {
  int margin = (int)strlen(mark_of(d));
  return (walk){.d = d, .margin = margin, .column = margin};
}

static void next_row(walk *w, bool wraps) {
  w->row++;
  w->column = w->margin;
  w->is_wrapped = wraps;
}

/* The next character, in a new row if it does not fit into this one; false at the end. */
static bool step(walk *w) {
  wchar_t character = 0;
  mbstate_t state;
  memset(&state, 0, sizeof state);
  if (w->at >= w->d->length) return false;
  size_t n = mbrtowc(&character, w->d->text + w->at, w->d->length - w->at, &state);
  bool is_whole = n != 0 && n != (size_t)-1 && n != (size_t)-2;
  w->bytes = is_whole ? n : 1;
  w->width = is_whole ? wcwidth(character) : 1;
  if (character == L'\t') w->width = TAB - (w->column - w->margin) % TAB;
  if (w->width < 0) w->width = character == L'\n' ? 0 : 2; /* ^X */
  if (w->column + w->width > w->d->columns) next_row(w, true);
  return true;
}

static void pass(walk *w) {
  w->column += w->width;
  if (w->d->text[w->at] == '\n') next_row(w, false);
  w->at += w->bytes;
}

/* Where the cursor is, and the rows that the entry takes with it. */
static void place(const lt_drawing *d, int *row, int *column, int *rows) {
  walk w = walk_of(d);
  bool found = false;
  while (step(&w)) {
    if (!found && w.at >= d->cursor) {
      found = true;
      *row = w.row, *column = w.column;
    }
    pass(&w);
  }
  if (!found) {
    if (w.column >= d->columns) next_row(&w, true);
    *row = w.row, *column = w.column;
  }
  *rows = w.row + 1;
}

/* In front of a row: "> ", "| " where a line begins, blanks where one continues. */
static void write_mark(FILE *out, const walk *w, bool colours) {
  if (colours) fputs(w->row == 0 ? "\033[1;36m" : "\033[2m", out);
  if (w->row == 0)
    fputs(mark_of(w->d), out);
  else
    fprintf(out, "%*s", w->margin, w->margin < 2 ? "" : w->is_wrapped ? "  " : "| ");
  if (colours) fputs("\033[0m", out);
}

static void write_character(FILE *out, const walk *w) {
  unsigned char first = (unsigned char)w->d->text[w->at];
  if (first == '\n') return;
  if (first == '\t')
    fprintf(out, "%*s", w->width, "");
  else if (first < ' ' || first == 127)
    fprintf(out, "^%c", first ^ 64);
  else
    fwrite(w->d->text + w->at, 1, w->bytes, out);
}

/* Rows from `from` to before `to`. What was there is erased before a row is written: behind a row
   that is full the cursor still stands on its last character. */
static void write_rows(FILE *out, const lt_drawing *d, const char *styles, bool colours, int from,
                       int to) {
  walk w = walk_of(d);
  char style = 0;
  for (int row = from - 1;;) {
    bool more = step(&w);
    if (!more && w.column >= d->columns) next_row(&w, true);
    for (; row < w.row && row + 1 < to; row++) {
      if (colours) fputs("\033[0m", out);
      fputs(row + 1 > from ? "\r\n" : "\r", out);
      fputs(row + 2 == to ? "\033[J" : "\033[K", out);
      write_mark(out, &w, colours);
      style = 0;
    }
    if (!more || w.row >= to) break;
    if (w.row >= from) {
      if (styles != NULL && styles[w.at] != style) {
        style = styles[w.at];
        fprintf(out, "\033[0;%sm", code_of(style));
      }
      write_character(out, &w);
      drawn.widths[w.row - from] = w.column + w.width;
    }
    pass(&w);
  }
  if (colours) fputs("\033[0m", out);
}

/* How many bytes of a hint fit into a row; of a note, which begins with a space, whole words. */
static size_t hint_length(const char *hint, int columns) {
  lt_drawing d = {.prompt = "", .text = hint, .length = strcspn(hint, "\n"), .columns = columns};
  walk w = walk_of(&d);
  size_t words = 0;
  bool fits = true;
  for (; step(&w) && fits; pass(&w)) {
    fits = w.row == 0 && w.column + w.width < columns;
    if (!fits) break;
    if (hint[w.at] == ' ') words = w.at;
  }
  if (fits) return d.length;
  return hint[0] == ' ' ? words : w.at;
}

/* As much of it as fits into the row. */
static bool write_hint(FILE *out, const char *hint, int columns) {
  lt_drawing d = {
      .prompt = "", .text = hint, .length = hint_length(hint, columns), .columns = columns};
  walk w = walk_of(&d);
  bool any = false;
  fputs("\033[2m", out);
  for (; step(&w) && w.row == 0 && w.column + w.width < columns; pass(&w)) {
    write_character(out, &w);
    any = true;
  }
  fputs("\033[0m", out);
  return any;
}

bool lt_paint(const lt_drawing *d, const char *styles, const char *hint) {
  int row = 0, column = 0, rows = 0;
  char *codes = NULL;
  size_t size;
  place(d, &row, &column, &rows);
  FILE *out = open_memstream(&codes, &size);
  if (out == NULL) return false;
  bool hinted = false, colours = lt_paint_wanted();
  int shown = d->rows < 1 ? 1 : d->rows < MOST_ROWS ? d->rows : MOST_ROWS;
  if (drawn.cursor >= shown) drawn.cursor = shown - 1;
  if (drawn.cursor > 0) fprintf(out, "\033[%dA", drawn.cursor);
  if (row < drawn.top) drawn.top = row;
  if (row >= drawn.top + shown) drawn.top = row - shown + 1;
  if (drawn.top + shown > rows) drawn.top = rows > shown ? rows - shown : 0;
  int end = rows < drawn.top + shown ? rows : drawn.top + shown;
  write_rows(out, d, styles, colours, drawn.top, end);
  if (hint != NULL && d->cursor == d->length && d->columns > column)
    hinted = write_hint(out, hint, d->columns - column);
  if (end - 1 > row) fprintf(out, "\033[%dA", end - 1 - row);
  fputc('\r', out);
  if (column > 0) fprintf(out, "\033[%dC", column);
  drawn.cursor = row - drawn.top, drawn.column = column, drawn.rows = end - drawn.top;
  fclose(out);
  fwrite(codes, 1, size, stdout);
  fflush(stdout);
  free(codes);
  return hinted;
}
