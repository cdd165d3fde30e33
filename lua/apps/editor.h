/* lua/apps/editor.h: the prompt's editor: several lines, completion, hints, colours. */
#ifndef LT_APPS_EDITOR_H
#define LT_APPS_EDITOR_H

#include "apps/prompt_input.h"

/* Takes the terminal; false where there is none that can be edited on. */
bool lt_edit_open(void);

/* An entry with a newline at its end, or NULL at the end of the input and when a signal came. */
const char *lt_edit_read(const char *prompt, const lt_line_helper *helper, int *length);

void lt_edit_remember(const char *text);
void lt_edit_close(void);

#endif
