/* lua/cli/line.c: lines for the prompt, with libedit where there is a terminal.

   libedit's own reader survives one interrupted read, so characters are read here: a signal ends
   the line at once. */
#include "cli/line.h"

#include <errno.h>
#include <histedit.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include "cli/signals.h"

enum { HISTORY_LINES = 1000 };

static struct {
  EditLine *edit;
  History *history;
  char path[PATH_MAX]; /* of the history, "" when there is none */
  const char *prompt;
  char *plain; /* the line read without a terminal */
  size_t capacity;
} reader;

bool lt_line_is_terminal(void) { return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO); }

/* The folder's parents are made as needed: ~/.local/state may be missing. */
static void make_folders(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(path, 0700);
    *slash = '/';
  }
}

static void find_history(void) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  int n = -1;
  if (state != NULL && state[0] == '/')
    n = snprintf(reader.path, sizeof reader.path, "%s/ltrain/history", state);
  else if (home != NULL && home[0] == '/')
    n = snprintf(reader.path, sizeof reader.path, "%s/.local/state/ltrain/history", home);
  if (n < 0 || n >= (int)sizeof reader.path) {
    reader.path[0] = 0;
    return;
  }
  make_folders(reader.path);
}

static char *prompt_of(EditLine *edit) {
  (void)edit;
  return (char *)reader.prompt;
}

/* One character, whatever the locale's encoding: 1; 0 at the end; -1 when a signal came. */
static int read_character(EditLine *edit, wchar_t *out) {
  (void)edit;
  mbstate_t state;
  memset(&state, 0, sizeof state);
  for (;;) {
    char byte;
    ssize_t n = read(STDIN_FILENO, &byte, 1);
    if (n < 0 && errno == EINTR && lt_signals_pending() == 0) continue; /* SIGWINCH, SIGCONT */
    if (n <= 0) return (int)n;
    size_t used = mbrtowc(out, &byte, 1, &state);
    if (used == (size_t)-2) continue;
    if (used != (size_t)-1) return 1;
    memset(&state, 0, sizeof state); /* not a character: left out */
  }
}

static bool open_editor(void) {
  HistEvent event;
  setlocale(LC_CTYPE, "");
  reader.edit = el_init("ltrain", stdin, stdout, stderr);
  if (reader.edit == NULL) return false;
  el_set(reader.edit, EL_PROMPT, prompt_of);
  el_set(reader.edit, EL_EDITOR, "emacs");
  el_set(reader.edit, EL_GETCFN, read_character);
  reader.history = history_init();
  if (reader.history != NULL) {
    history(reader.history, &event, H_SETSIZE, HISTORY_LINES);
    history(reader.history, &event, H_SETUNIQUE, 1);
    el_set(reader.edit, EL_HIST, history, reader.history);
    find_history();
    if (reader.path[0] != 0) history(reader.history, &event, H_LOAD, reader.path);
  }
  el_source(reader.edit, NULL); /* ~/.editrc */
  return true;
}

/* The line with its newline, or NULL. */
static const char *read_edited(const char *prompt, int *length) {
  reader.prompt = prompt;
  return el_gets(reader.edit, length);
}

static const char *read_plain(const char *prompt, int *length) {
  fputs(prompt, stdout);
  fflush(stdout);
  ssize_t n = getline(&reader.plain, &reader.capacity, stdin);
  if (n < 0) clearerr(stdin);
  *length = (int)n;
  return n < 0 ? NULL : reader.plain;
}

lt_line_status lt_line_read(const char *prompt, const char **text, size_t *length) {
  locale_t before = uselocale(LC_GLOBAL_LOCALE); /* whose characters the terminal has */
  if (reader.edit == NULL && lt_line_is_terminal() && !open_editor()) reader.edit = NULL;
  int n = 0;
  lt_signals_clear();
  lt_signals_reading(true);
  const char *line = reader.edit != NULL ? read_edited(prompt, &n) : read_plain(prompt, &n);
  uselocale(before);
  bool interrupted = lt_signals_pending() > 0;
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
  HistEvent event;
  if (reader.history == NULL || text[strspn(text, " \t")] == 0) return;
  history(reader.history, &event, H_ENTER, text);
  if (reader.path[0] != 0) history(reader.history, &event, H_SAVE, reader.path);
}

void lt_line_close(void) {
  if (reader.history != NULL) history_end(reader.history);
  if (reader.edit != NULL) el_end(reader.edit);
  free(reader.plain);
  memset(&reader, 0, sizeof reader);
}
