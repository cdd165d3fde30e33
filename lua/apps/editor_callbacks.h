/* lua/apps/ask.h: what the editor of entries asks a helper written in Lua. */
#ifndef LT_APPS_ASK_H
#define LT_APPS_ASK_H

#include "apps/line.h"

/* For an lt_line_helper whose `ud` is the state, with the helper at 2: a table of functions
   enter, complete, look: (helper, text, position of the cursor) -> two strings or nil. */
void lt_ask_script(void *ud, lt_line_question question, const char *text, size_t length,
                   size_t cursor, char *answers[2]);

#endif
