/* lua/apps/editor_callbacks.h: callbacks of the prompt's editor into Lua: completion, hints,
   whether an entry is complete. */
#ifndef LT_APPS_EDITOR_CALLBACKS_H
#define LT_APPS_EDITOR_CALLBACKS_H

#include "apps/prompt_input.h"

/* For an lt_line_helper whose `ud` is the state, with the helper at 2: a table of functions
   enter, complete, look: (helper, text, position of the cursor) -> two strings or nil. */
void lt_ask_script(void *ud, lt_line_question question, const char *text, size_t length,
                   size_t cursor, char *answers[2]);

#endif
