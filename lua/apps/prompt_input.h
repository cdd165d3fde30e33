/* lua/apps/prompt_input.h: input of the prompt: edited with history on a terminal, plain lines
   elsewhere.

   An entry may have many lines: it is edited, and remembered, as a whole. */
#ifndef LT_APPS_PROMPT_INPUT_H
#define LT_APPS_PROMPT_INPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum lt_line_status { LT_LINE_READ, LT_LINE_END, LT_LINE_INTERRUPTED } lt_line_status;

/* What the editor asks while an entry of `length` bytes is edited, with the cursor before byte
   `cursor`. The two answers are malloc'ed or NULL; the editor frees them. */
typedef enum lt_line_question {
  LT_LINE_ENTER,    /* Enter: what begins the next line, NULL: the entry is complete; how many
                       blanks the last line has too many */
  LT_LINE_COMPLETE, /* TAB: what is inserted; what is listed below */
  LT_LINE_LOOK,     /* after each key: a letter of `styles` (editor_display.c) a byte; a hint */
} lt_line_question;
typedef struct lt_line_helper {
  void (*ask)(void *ud, lt_line_question question, const char *text, size_t length, size_t cursor,
              char *answers[2]);
  void *ud;
} lt_line_helper;

/* Whether a person sits there. */
bool lt_line_is_terminal(void);

/* Whether entries are edited: a terminal that can move its cursor. */
bool lt_line_is_edited(void);

/* Print `prompt`, read an entry; `helper` may be NULL. `*text` lives until the next call and has no
   newline at its end. */
lt_line_status lt_line_read(const char *prompt, const lt_line_helper *helper, const char **text,
                            size_t *length);

/* Add an entry to the history. */
void lt_line_remember(const char *text);

/* Save the history, give the terminal back. Fine without an lt_line_read before it. */
void lt_line_close(void);

#endif
