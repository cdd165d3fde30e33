/* lua/apps/editor.c: the prompt's editor, on libedit.

   libedit's own reader survives one interrupted read, so characters are read here: a signal ends
   the entry at once. What libedit draws goes nowhere: in front of each wait for a key the entry is
   drawn by editor_display.c. */
#include "apps/editor.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "apps/editor_display.h"
#include "apps/history.h"
#include "cli/signals.h"

/* Keys that no terminal sends: what ours pass a key on to. */
#define KEY_NEWLINE "\034"
#define KEY_PREVIOUS "\035"
#define KEY_NEXT "\036"
#define KEY_FORWARD "\037"
#define KEY_ESCAPE "\032"

enum { ESCAPE_MILLISECONDS = 50 }; /* until an escape that nothing follows is a key */

/* The terminal marks what is pasted, or not. */
#define PASTES "\033[?2004h"
#define NO_PASTES "\033[?2004l"

static struct {
  EditLine *edit;
  History *history;
  const char *prompt;
  const lt_line_helper *helper;
  char *hint;   /* what follows the text on the screen, NULL: nothing */
  char *styles; /* of the text as it was drawn last */
  bool paints, is_vi;
  char ahead;    /* a byte that was read behind an escape, 0: none */
  int back;      /* how many entries the one that is shown is before the one that is new */
  FILE *nowhere; /* where libedit draws */
} editor;

static volatile sig_atomic_t resized, continued, suspended;

static char *prompt_of(EditLine *edit) {
  (void)edit;
  return (char *)editor.prompt;
}

/* The entry as it is now. The size of the terminal is asked for each time, which costs a system
   call per key: SIGWINCH alone may be missed while the process is stopped. */
static lt_drawing drawing(void) {
  const LineInfo *line = el_line(editor.edit);
  struct winsize size = {0};
  bool known = ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return (lt_drawing){.prompt = editor.prompt,
                      .text = line->buffer,
                      .length = (size_t)(line->lastchar - line->buffer),
                      .cursor = (size_t)(line->cursor - line->buffer),
                      .columns = known ? size.ws_col : 80,
                      .rows = known ? size.ws_row : 24};
}

static void ask(lt_line_question question, const lt_drawing *d, char *answers[2]) {
  answers[0] = answers[1] = NULL;
  const lt_line_helper *h = editor.helper;
  if (h != NULL) h->ask(h->ud, question, d->text, d->length, d->cursor, answers);
}

/* Draws the entry, in colours and with a hint. Styles of a former text are kept where the helper
   has no answer, but used only if their length fits: one letter a byte. */
static void draw(const lt_drawing *d, bool hints) {
  char *answers[2] = {NULL, NULL};
  if (editor.paints) ask(LT_LINE_LOOK, d, answers);
  if (answers[0] != NULL) {
    free(editor.styles);
    editor.styles = answers[0];
  }
  bool fits = editor.styles != NULL && strlen(editor.styles) == d->length;
  bool hinted = lt_paint(d, fits ? editor.styles : NULL, hints ? answers[1] : NULL);
  free(editor.hint);
  editor.hint = hinted ? answers[1] : NULL;
  if (!hinted) free(answers[1]);
}

/* Whether a key is there already: typed ahead, or pasted. */
static bool more_waits(void) {
  struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&more, 1, 0) > 0;
}

static void paint(void) {
  if (more_waits()) return; /* when all is there */
  lt_drawing d = drawing();
  draw(&d, true);
}

static void erase_hint(void) {
  if (editor.hint == NULL) return;
  fputs("\033[K", stdout);
  fflush(stdout);
}

static void watch_terminal(bool on);

/* A handler may only set flags: everything else here is not async-signal-safe. */
static void on_change(int number) {
  if (lt_signals_forward(number)) return;
  if (number == SIGWINCH) resized = 1;
  if (number == SIGCONT) continued = 1;
  if (number == SIGTSTP) suspended = 1;
}

/* Before the prompt is seen: keys may come at once. */
static void take_terminal(void) {
  el_set(editor.edit, EL_PREP_TERM, 1);
  fputs(PASTES, stdout);
}

static void give_terminal(void) {
  erase_hint();
  lt_paint_leave();
  fputs(NO_PASTES, stdout);
  fflush(stdout);
  el_set(editor.edit, EL_PREP_TERM, 0);
}

/* After a signal: whether the wait continues. */
static bool goes_on(void) {
  if (lt_signals_pending() > 0 || lt_signals_over()) return false;
  if (suspended) { /* the shell writes below the entry */
    suspended = 0;
    give_terminal();
    watch_terminal(false);
    raise(SIGTSTP);
    watch_terminal(true);
    continued = 1;
  }
  if (continued) { /* the terminal was somebody else's */
    continued = 0;
    lt_paint_begin();
    take_terminal();
  }
  if (resized) {
    resized = 0;
    lt_paint_resized(drawing().columns);
  }
  paint();
  return true;
}

/* Waits for a key: false when a signal came, also one that came before (errno: EINTR). The signals
   are blocked while the flags are checked, and ppoll unblocks them atomically for the wait: between
   a check and a plain poll one could arrive and be noticed only with the next key. */
static bool wait_for_key(void) {
  struct pollfd key = {.fd = STDIN_FILENO, .events = POLLIN};
  sigset_t ours, before;
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGWINCH);
  sigaddset(&ours, SIGCONT);
  sigaddset(&ours, SIGTSTP);
  pthread_sigmask(SIG_BLOCK, &ours, &before);
  int n = -1;
  errno = EINTR;
  if (lt_signals_pending() == 0 && !resized && !continued && !suspended)
    n = ppoll(&key, 1, NULL, &before);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return n > 0;
}

/* The next byte: 1; 0 at the end; -1 when a signal came. */
static ssize_t next_byte(char *byte) {
  if (editor.ahead != 0) {
    *byte = editor.ahead;
    editor.ahead = 0;
    return 1;
  }
  return wait_for_key() ? read(STDIN_FILENO, byte, 1) : -1;
}

/* Whether an escape is the key, which vi's command mode begins with, and no sequence of another:
   the byte behind it is read ahead. */
static bool is_escape_key(wchar_t character) {
  struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
  if (!editor.is_vi || character != L'\033') return false;
  if (poll(&more, 1, ESCAPE_MILLISECONDS) <= 0) return true;
  if (read(STDIN_FILENO, &editor.ahead, 1) != 1) editor.ahead = 0;
  return strchr("[O\r\n", editor.ahead) == NULL;
}

/* One character, whatever the locale's encoding: 1; 0 at the end; -1 when a signal came. Byte by
   byte through mbrtowc, since a pasted text may be cut within a character at any read. */
static int read_character(EditLine *edit, wchar_t *out) {
  (void)edit;
  mbstate_t state;
  memset(&state, 0, sizeof state);
  paint();
  for (;;) {
    char byte;
    ssize_t n = next_byte(&byte);
    if (n < 0 && errno == EINTR && goes_on()) continue;
    if (n <= 0) {
      erase_hint();
      return (int)n;
    }
    size_t used = mbrtowc(out, &byte, 1, &state);
    if (used == (size_t)-2) continue;
    if (used != (size_t)-1) break;
    memset(&state, 0, sizeof state); /* not a character: left out */
  }
  if (is_escape_key(*out)) *out = KEY_ESCAPE[0];
  erase_hint();
  return 1;
}

/* Keys. */

static unsigned char press(EditLine *edit, const char *key) {
  el_push(edit, key);
  return CC_NORM;
}

/* The characters from the start of the cursor's line to it, and whether a line is above. */
static int column_of(const wchar_t *buffer, const wchar_t *cursor, bool *is_first) {
  const wchar_t *start = cursor;
  while (start > buffer && start[-1] != L'\n') start--;
  *is_first = start == buffer;
  return (int)(cursor - start);
}

/* The first blanks of the cursor's line, at the end of the text, that are `n` too many. */
static void outdent(EditLine *edit, int n) {
  const LineInfoW *line = el_wline(edit);
  bool unused;
  int column = column_of(line->buffer, line->cursor, &unused);
  if (n <= 0 || n > column) return;
  el_cursor(edit, n - column);
  el_deletestr(edit, n);
  el_cursor(edit, column - n);
}

/* The entry ends, or continues in a line that is indented as its block is. */
static unsigned char on_enter(EditLine *edit, int key) {
  (void)key;
  lt_drawing d = drawing();
  char *answers[2];
  ask(LT_LINE_ENTER, &d, answers);
  unsigned char result = CC_REFRESH;
  bool typed = !more_waits(); /* what is pasted has its own indents */
  if (typed && answers[1] != NULL && d.cursor == d.length) outdent(edit, atoi(answers[1]));
  if (answers[0] == NULL || el_insertstr(edit, typed ? answers[0] : "\n") != 0)
    result = press(edit, KEY_NEWLINE);
  free(answers[0]);
  free(answers[1]);
  return result;
}

static unsigned char on_new_line(EditLine *edit, int key) {
  (void)key;
  el_insertstr(edit, "\n");
  return CC_REFRESH;
}

static unsigned char on_clear(EditLine *edit, int key) {
  (void)edit;
  (void)key;
  fputs("\033[H\033[2J", stdout);
  lt_paint_begin();
  return CC_REFRESH;
}

static unsigned char on_tab(EditLine *edit, int key) {
  (void)key;
  lt_drawing d = drawing();
  char *answers[2];
  ask(LT_LINE_COMPLETE, &d, answers);
  draw(&d, false); /* what was typed ahead was not seen yet */
  if (answers[0] == NULL) fputc('\a', stdout);
  if (answers[0] != NULL && answers[0][0] != 0) el_insertstr(edit, answers[0]);
  if (answers[1] != NULL) {
    lt_paint_leave();
    fprintf(stdout, "\n%s\n", answers[1]);
  }
  free(answers[0]);
  free(answers[1]);
  return CC_REFRESH;
}

/* Within an entry to the line above; from its first line to the entry before. */
static unsigned char on_up(EditLine *edit, int key) {
  (void)key;
  const LineInfoW *line = el_wline(edit);
  bool is_first, unused;
  int column = column_of(line->buffer, line->cursor, &is_first);
  if (is_first) {
    HistEvent event = {.num = 0};
    if (editor.history != NULL) history(editor.history, &event, H_GETSIZE);
    if (editor.back >= event.num) return CC_NORM;
    editor.back++;
    return press(edit, KEY_PREVIOUS);
  }
  int above = column_of(line->buffer, line->cursor - column - 1, &unused);
  el_cursor(edit, -(column + 1 + (above > column ? above - column : 0)));
  return CC_CURSOR;
}

static unsigned char on_down(EditLine *edit, int key) {
  (void)key;
  const LineInfoW *line = el_wline(edit);
  bool unused;
  int column = column_of(line->buffer, line->cursor, &unused), below = 0;
  const wchar_t *end = line->cursor;
  while (end < line->lastchar && *end != L'\n') end++;
  if (end == line->lastchar) {
    if (editor.back == 0) return CC_NORM; /* libedit would leave nothing of what is new */
    editor.back--;
    return press(edit, KEY_NEXT);
  }
  while (end + 1 + below < line->lastchar && end[1 + below] != L'\n' && below < column) below++;
  el_cursor(edit, (int)(end - line->cursor) + 1 + below);
  return CC_CURSOR;
}

/* To the ends of the cursor's line. */
static unsigned char on_home(EditLine *edit, int key) {
  (void)key;
  const LineInfoW *line = el_wline(edit);
  bool unused;
  el_cursor(edit, -column_of(line->buffer, line->cursor, &unused));
  return CC_CURSOR;
}

static unsigned char on_end(EditLine *edit, int key) {
  (void)key;
  const LineInfoW *line = el_wline(edit);
  const wchar_t *end = line->cursor;
  while (end < line->lastchar && *end != L'\n') end++;
  el_cursor(edit, (int)(end - line->cursor));
  return CC_CURSOR;
}

/* To the right; at the end of the text the hint is taken as text. */
static unsigned char on_right(EditLine *edit, int key) {
  (void)key;
  const LineInfo *line = el_line(edit);
  if (editor.hint == NULL || line->cursor != line->lastchar) return press(edit, KEY_FORWARD);
  el_insertstr(edit, editor.hint);
  return CC_REFRESH;
}

/* What is pasted is text, of several lines too: no key in it does anything. */
static unsigned char on_paste(EditLine *edit, int key) {
  static const wchar_t end[] = L"\033[201~";
  enum { END = sizeof end / sizeof *end - 1 };
  (void)key;
  wchar_t *text = NULL, character;
  size_t n = 0, capacity = 0;
  while (n < END || wmemcmp(text + n - END, end, END) != 0) {
    if (n + 1 >= capacity) {
      wchar_t *more = realloc(text, (capacity + 4096) * sizeof *text);
      if (more == NULL) break;
      text = more;
      capacity += 4096;
    }
    if (el_wgetc(edit, &character) != 1) break;
    text[n++] = character == L'\r' ? L'\n' : character;
  }
  if (n >= END) n -= END;
  while (n > 0 && text[n - 1] == L'\n') n--;
  if (text != NULL) text[n] = 0;
  if (n > 0) el_winsertstr(edit, text);
  free(text);
  return CC_REFRESH;
}

static const struct {
  const char *name, *keys[6];
  unsigned char (*fn)(EditLine *edit, int key);
} bindings[] = {
    {"ltrain-enter", {"\r", "\n"}, on_enter},
    {"ltrain-new-line", {"\033\r", "\033\n"}, on_new_line},
    {"ltrain-clear", {"\014"}, on_clear},
    {"ltrain-complete", {"\t"}, on_tab},
    {"ltrain-up", {"\033[A", "\033OA", "\020"}, on_up},
    {"ltrain-down", {"\033[B", "\033OB", "\016"}, on_down},
    {"ltrain-right", {"\033[C", "\033OC"}, on_right},
    {"ltrain-home", {"\001", "\033[H", "\033OH", "\033[1~"}, on_home},
    {"ltrain-end", {"\005", "\033[F", "\033OF", "\033[4~"}, on_end},
    {"ltrain-paste", {"\033[200~"}, on_paste},
};

/* Keys that libedit has functions for, but no binding. */
static const char *const usual[][2] = {
    {"\022", "em-inc-search-prev"},     /* Ctrl-R */
    {"\033[3~", "ed-delete-next-char"}, /* Delete */
    {"\033[1;5C", "em-next-word"},      /* Ctrl-right */
    {"\033[1;5D", "ed-prev-word"},      /* Ctrl-left */
    {"\033[1;3C", "em-next-word"},      /* Alt-right */
    {"\033[1;3D", "ed-prev-word"},      /* Alt-left */
};

static void bind_keys(EditLine *edit) {
  el_set(edit, EL_EDITOR, "emacs");
  el_source(edit, NULL); /* ~/.editrc: may say vi */
  const char *mode = NULL;
  editor.is_vi = el_get(edit, EL_EDITOR, &mode) == 0 && mode != NULL && strcmp(mode, "vi") == 0;
  if (editor.is_vi) el_set(edit, EL_BIND, KEY_ESCAPE, "vi-command-mode", NULL);
  el_set(edit, EL_BIND, KEY_NEWLINE, "ed-newline", NULL);
  el_set(edit, EL_BIND, KEY_PREVIOUS, "ed-prev-history", NULL);
  el_set(edit, EL_BIND, KEY_NEXT, "ed-next-history", NULL);
  el_set(edit, EL_BIND, KEY_FORWARD, "ed-next-char", NULL);
  for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
    el_set(edit, EL_BIND, usual[k][0], usual[k][1], NULL);
  for (size_t k = 0; k < sizeof bindings / sizeof *bindings; k++) {
    el_set(edit, EL_ADDFN, bindings[k].name, "of ltrain", bindings[k].fn);
    for (int i = 0; bindings[k].keys[i] != NULL; i++)
      el_set(edit, EL_BIND, bindings[k].keys[i], bindings[k].name, NULL);
  }
}

/* Where nothing says which characters the terminal has, they are those of UTF-8. */
static void take_locale(void) {
  const char *name = setlocale(LC_CTYPE, "");
  if (name == NULL || strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0)
    setlocale(LC_CTYPE, "C.UTF-8");
}

/* Where libedit draws to. */
static FILE *nowhere(void) {
  return fopencookie(NULL, "w", (cookie_io_functions_t){.write = NULL});
}

bool lt_edit_open(void) {
  if (editor.edit != NULL) return true;
  take_locale();
  editor.nowhere = nowhere();
  if (editor.nowhere == NULL) return false;
  editor.edit = el_init_fd("ltrain", stdin, editor.nowhere, editor.nowhere, STDIN_FILENO,
                           STDOUT_FILENO, STDERR_FILENO);
  if (editor.edit == NULL) return false;
  el_set(editor.edit, EL_PROMPT, prompt_of);
  /* The window that it draws into. It is never made smaller: a cursor that is outside then writes
     beyond libedit's memory. */
  el_set(editor.edit, EL_SETTC, "co", "500", NULL);
  el_set(editor.edit, EL_SETTC, "li", "400", NULL);
  el_set(editor.edit, EL_GETCFN, read_character);
  bind_keys(editor.edit);
  editor.history = lt_history_open();
  if (editor.history != NULL) el_set(editor.edit, EL_HIST, history, editor.history);
  editor.paints = lt_paint_wanted();
  return true;
}

/* While an entry is edited a window of another size, and Ctrl-Z, end the wait for a key. */
static void watch_terminal(bool on) {
  static const int signals[] = {SIGWINCH, SIGCONT, SIGTSTP};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on ? on_change : SIG_DFL;
  sigemptyset(&action.sa_mask);
  for (size_t k = 0; k < sizeof signals / sizeof *signals; k++)
    sigaction(signals[k], &action, NULL);
}

const char *lt_edit_read(const char *prompt, const lt_line_helper *helper, int *length) {
  editor.prompt = prompt;
  editor.helper = helper;
  resized = continued = suspended = 0;
  editor.back = 0;
  watch_terminal(true);
  take_terminal();
  lt_paint_begin();
  const char *text = el_gets(editor.edit, length);
  bool is_read = text != NULL && *length > 0;
  lt_drawing d = drawing();
  if (is_read) d.text = text, d.length = (size_t)*length - (text[*length - 1] == '\n');
  d.cursor = d.length; /* what is printed next stands behind the entry */
  draw(&d, false);
  if (is_read) fputs("\r\n", stdout);
  fputs(NO_PASTES, stdout);
  fflush(stdout);
  watch_terminal(false);
  free(editor.hint);
  free(editor.styles);
  editor.hint = editor.styles = NULL;
  editor.helper = NULL;
  return text;
}

void lt_edit_remember(const char *text) {
  if (editor.history != NULL) lt_history_add(editor.history, text);
}

void lt_edit_close(void) {
  if (editor.history != NULL) history_end(editor.history);
  if (editor.edit != NULL) el_end(editor.edit);
  if (editor.nowhere != NULL) fclose(editor.nowhere);
  memset(&editor, 0, sizeof editor);
}
