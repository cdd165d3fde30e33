/* lua/cli/paint.c: colours and hints over what libedit has drawn. */
#include "cli/paint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

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

static const char *code_of(char letter) {
  for (size_t k = 0; k < sizeof looks / sizeof *looks; k++)
    if (looks[k].letter == letter) return looks[k].code;
  return "0";
}

bool lt_paint_wanted(void) {
  const char *none = getenv("NO_COLOR");
  return none == NULL || none[0] == 0;
}

/* One character of the text: its bytes, and the columns that libedit gives it; false for what it
   draws otherwise: control characters. */
static bool next_character(const char *at, size_t left, size_t *bytes, int *width) {
  mbstate_t state;
  wchar_t character;
  memset(&state, 0, sizeof state);
  size_t n = mbrtowc(&character, at, left, &state);
  if (n == 0 || n == (size_t)-1 || n == (size_t)-2) return false;
  *bytes = n;
  *width = character == L'\n' ? 0 : wcwidth(character);
  return *width >= 0;
}

typedef struct walk {
  const lt_drawing *d;
  int row, column;
  size_t at, bytes; /* the character that starts here */
  bool is_known;
} walk;

/* Where the next character goes: a wide one never over the margin. */
static bool step(walk *w) {
  int width;
  w->bytes = 0;
  if (w->at >= w->d->length) return false;
  w->is_known = next_character(w->d->text + w->at, w->d->length - w->at, &w->bytes, &width);
  if (!w->is_known) return false;
  if (w->column + width > w->d->columns) {
    w->column = 0;
    w->row++;
  }
  return true;
}

static void pass(walk *w) {
  int width;
  next_character(w->d->text + w->at, w->bytes, &w->bytes, &width);
  w->column += width;
  if (w->d->text[w->at] == '\n' || w->column >= w->d->columns) {
    w->column = 0;
    w->row++;
  }
  w->at += w->bytes;
}

lt_place lt_paint_place(const lt_drawing *d) {
  walk w = {.d = d, .column = (int)strlen(d->prompt), .is_known = true};
  lt_place place = {.is_known = true};
  bool found = false;
  while (step(&w)) {
    if (w.at >= d->cursor && !found) {
      place.row = w.row;
      place.column = w.column;
      found = true;
    }
    pass(&w);
  }
  if (!found) {
    place.row = w.row;
    place.column = w.column;
  }
  place.last_row = w.row;
  place.is_known = w.is_known && d->columns > place.column && (int)strlen(d->prompt) < d->columns &&
                   w.row < d->rows;
  return place;
}

/* The text, in the colours of its styles. It begins where its first character stands. */
static void write_text(FILE *out, const lt_drawing *d, const char *styles) {
  walk w = {.d = d, .column = (int)strlen(d->prompt), .is_known = true};
  char style = 0;
  for (int row = 0; step(&w); pass(&w)) {
    if (w.row > row) fputs("\r\n", out);
    row = w.row;
    if (styles != NULL && styles[w.at] != style) {
      style = styles[w.at];
      fprintf(out, "\033[0;%sm", code_of(style));
    }
    if (d->text[w.at] != '\n') fwrite(d->text + w.at, 1, w.bytes, out);
  }
  fputs("\033[0m", out);
}

/* As much of it as the line has room for. */
static bool write_hint(FILE *out, const char *hint, int room) {
  size_t left = strlen(hint), n;
  int width;
  bool any = false;
  fputs("\033[2m", out);
  for (; left > 0 && next_character(hint, left, &n, &width) && *hint != '\n'; hint += n) {
    room -= width;
    if (room <= 0) break;
    fwrite(hint, 1, n, out);
    left -= n;
    any = true;
  }
  fputs("\033[0m", out);
  return any;
}

bool lt_paint(const lt_drawing *d, const char *styles, const char *hint) {
  lt_place place = lt_paint_place(d);
  if (!place.is_known) return false;
  char *codes = NULL;
  size_t size;
  FILE *out = open_memstream(&codes, &size);
  if (out == NULL) return false;
  bool hinted = false;
  fputs("\0337\r", out);
  if (place.row > 0) fprintf(out, "\033[%dA", place.row);
  fprintf(out, "\033[1;36m%s\033[0m", d->prompt);
  write_text(out, d, styles);
  fputs("\0338", out);
  if (hint != NULL && d->cursor == d->length) {
    hinted = write_hint(out, hint, d->columns - place.column);
    fputs("\0338", out);
  }
  fclose(out);
  fwrite(codes, 1, size, stdout);
  fflush(stdout);
  free(codes);
  return hinted;
}
