/* lua/apps/editor_display.h: draws the entry that is edited: bracket matching, colours, a hint.

   libedit keeps the text and knows the keys; what it would draw itself has no marks in front of
   further lines, no colours, and loses the cursor of an entry that is taller than the window. So it
   draws into nothing, and while it waits for a key the entry is drawn here. */
#ifndef LT_APPS_EDITOR_DISPLAY_H
#define LT_APPS_EDITOR_DISPLAY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct lt_drawing {
  const char *prompt, *text; /* one line of plain characters; the entry, in the locale's encoding */
  size_t length, cursor;     /* of the text, bytes */
  int columns, rows;         /* of the terminal */
} lt_drawing;

/* Whether the terminal is to have colours. */
bool lt_paint_wanted(void);

/* Draws the entry in place of what was drawn before, as many rows of it around the cursor as the
   window has. styles: a letter a byte of the text, NULL: no colours. A hint follows the text where
   that ends in front of the cursor. Returns whether one is to be seen. */
bool lt_paint(const lt_drawing *d, const char *styles, const char *hint);

/* The next drawing begins where the terminal's cursor is. */
void lt_paint_begin(void);

/* To below the entry: what is printed next stays there. */
void lt_paint_leave(void);

/* The window has other columns: the next drawing is in place of what its rows have become. */
void lt_paint_resized(int columns);

#endif
