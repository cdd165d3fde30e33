/* lua/cli/line.h: lines for the prompt: edited with history on a terminal, plain elsewhere. */
#ifndef LT_CLI_LINE_H
#define LT_CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum lt_line_status { LT_LINE_READ, LT_LINE_END, LT_LINE_INTERRUPTED } lt_line_status;

/* Whether a person sits there. */
bool lt_line_is_terminal(void);

/* Print `prompt`, read a line. `*text` lives until the next call and has no newline at its end. */
lt_line_status lt_line_read(const char *prompt, const char **text, size_t *length);

/* Add a line to the history. */
void lt_line_remember(const char *text);

/* Save the history, give the terminal back. Fine without an lt_line_read before it. */
void lt_line_close(void);

#endif
