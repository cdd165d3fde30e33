/* lua/apps/history.h: the history of the prompt, kept in a file. */
#ifndef LT_APPS_HISTORY_H
#define LT_APPS_HISTORY_H

#include <histedit.h>

/* A history with what the file of the user has; NULL without memory. */
History *lt_history_open(void);

/* Adds an entry, to the file as well: prompts of other terminals add theirs to the same. */
void lt_history_add(History *h, const char *text);

#endif
