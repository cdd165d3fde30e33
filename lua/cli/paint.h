/* lua/cli/paint.h: colours and hints over what libedit has drawn.

   libedit draws plain characters and knows where each stands. While it waits for a key the same
   characters are written again in colour, and the cursor goes back to where it was. */
#ifndef LT_CLI_PAINT_H
#define LT_CLI_PAINT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct lt_drawing {
  const char *prompt, *text; /* one line of plain characters; the entry, in the locale's encoding */
  size_t length, cursor;     /* of the text, bytes */
  int columns, rows;         /* of the terminal */
} lt_drawing;

typedef struct lt_place {
  int row, column, last_row; /* of the cursor, from where the prompt begins; of the text's end */
  bool is_known;             /* false: the text has what libedit draws in a way of its own */
} lt_place;

/* Where libedit has its cursor. */
lt_place lt_paint_place(const lt_drawing *d);

/* Whether the terminal is to have colours. */
bool lt_paint_wanted(void);

/* Paints prompt and text; styles: a letter a byte of the text, NULL: none. A hint follows the text
   where that ends in front of the cursor. Returns whether one is to be seen. */
bool lt_paint(const lt_drawing *d, const char *styles, const char *hint);

#endif
