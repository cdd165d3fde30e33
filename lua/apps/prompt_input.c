/* lua/apps/prompt_input.c: input of the prompt: edited on a terminal, plain lines elsewhere.

   Without a terminal, or with TERM=dumb, lines are read plainly: input may be a pipe, a file or the
   shell of an editor, where escape sequences would be garbage. */
#include "apps/prompt_input.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/editor.h"
#include "cli/signals.h"

static struct {
  bool edits;
  char *plain; /* the line read without an editor */
  size_t capacity;
} reader;

bool lt_line_is_terminal(void) { return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO); }

bool lt_line_is_edited(void) {
  const char *term = getenv("TERM");
  return lt_line_is_terminal() && term != NULL && term[0] != 0 && strcmp(term, "dumb") != 0;
}

/* What one of several ranks reads ahead would be lost to the others. Ranks share one standard
   input, and stdio reads it in blocks. Once some is buffered it is too late: setvbuf would drop
   it. */
static void read_nothing_ahead(void) {
  if (stdin->_IO_read_ptr == stdin->_IO_read_end) setvbuf(stdin, NULL, _IONBF, 0);
}

/* The end of input (Ctrl-D) is sticky in stdio: it is cleared, since a terminal may go on after
   it. */
static const char *read_plain(const char *prompt, int *length) {
  fputs(prompt, stdout);
  fflush(stdout);
  read_nothing_ahead();
  ssize_t n = getline(&reader.plain, &reader.capacity, stdin);
  if (n < 0) clearerr(stdin);
  *length = (int)n;
  return n < 0 ? NULL : reader.plain;
}

/* Signals are cleared before and after: one that ended a computation must not end the entry that
   follows it, and one that ended the entry must not end the next computation. */
lt_line_status lt_line_read(const char *prompt, const lt_line_helper *helper, const char **text,
                            size_t *length) {
  locale_t before = uselocale(LC_GLOBAL_LOCALE); /* whose characters the terminal has */
  reader.edits = lt_line_is_edited() && lt_edit_open();
  int n = 0;
  lt_signals_clear();
  lt_signals_reading(true);
  const char *line = reader.edits ? lt_edit_read(prompt, helper, &n) : read_plain(prompt, &n);
  bool interrupted = lt_signals_pending() > 0;
  uselocale(before);
  lt_signals_reading(false);
  lt_signals_clear();
  if (interrupted) {
    fputs("^C\n", stdout);
    return lt_signals_status() == 130 ? LT_LINE_INTERRUPTED : LT_LINE_END;
  }
  if (line == NULL || n <= 0) return LT_LINE_END;
  if (line[n - 1] == '\n') n--;
  *text = line;
  *length = (size_t)n;
  return LT_LINE_READ;
}

void lt_line_remember(const char *text) {
  locale_t before = uselocale(LC_GLOBAL_LOCALE);
  if (reader.edits) lt_edit_remember(text);
  uselocale(before);
}

/* The terminal gets its own settings back, also when the process ends by an error. */
void lt_line_close(void) {
  lt_edit_close();
  free(reader.plain);
  memset(&reader, 0, sizeof reader);
}
