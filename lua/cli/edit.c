/* lua/cli/edit.c: entries edited with libedit.

   libedit's own reader survives one interrupted read, so characters are read here: a signal ends
   the entry at once. In front of each wait for a key the entry is painted (paint.c). */
#include "cli/edit.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "cli/history.h"
#include "cli/paint.h"
#include "cli/signals.h"

/* Keys that no terminal sends: what ours pass a key on to. */
#define KEY_NEWLINE "\034"
#define KEY_PREVIOUS "\035"
#define KEY_NEXT "\036"
#define KEY_FORWARD "\037"

/* The terminal marks what is pasted, or not. */
#define PASTES "\033[?2004h"
#define NO_PASTES "\033[?2004l"

static struct {
  EditLine *edit;
  History *history;
  const char *prompt;
  const lt_line_helper *helper;
  char *hint;  /* what follows the text on the screen, NULL: nothing */
  bool paints;
} editor;

static volatile sig_atomic_t resized;

static char *prompt_of(EditLine *edit) {
  (void)edit;
  return (char *)editor.prompt;
}

/* What stands on the screen. */
static lt_drawing drawing(void) {
  const LineInfo *line = el_line(editor.edit);
  lt_drawing d = {.prompt = editor.prompt,
                  .text = line->buffer,
                  .length = (size_t)(line->lastchar - line->buffer),
                  .cursor = (size_t)(line->cursor - line->buffer),
                  .columns = 80,
                  .rows = 24};
  el_get(editor.edit, EL_GETTC, "co", &d.columns);
  el_get(editor.edit, EL_GETTC, "li", &d.rows);
  return d;
}

static void ask(lt_line_question question, const lt_drawing *d, char *answers[2]) {
  answers[0] = answers[1] = NULL;
  const lt_line_helper *h = editor.helper;
  if (h != NULL) h->ask(h->ud, question, d->text, d->length, d->cursor, answers);
}

/* Colours and a hint. */

static void paint(void) {
  struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
  if (!editor.paints || poll(&more, 1, 0) > 0) return; /* pasted: when all is there */
  lt_drawing d = drawing();
  char *answers[2];
  ask(LT_LINE_LOOK, &d, answers);
  bool fits = answers[0] != NULL && strlen(answers[0]) == d.length;
  bool hinted = lt_paint(&d, fits ? answers[0] : NULL, answers[1]);
  free(answers[0]);
  if (!hinted) {
    free(answers[1]);
    answers[1] = NULL;
  }
  free(editor.hint);
  editor.hint = answers[1];
}

static void erase_hint(void) {
  if (editor.hint == NULL) return;
  fputs("\033[K", stdout);
  fflush(stdout);
}

/* A window of another size, or the terminal was somebody else's: all is drawn again. */
static void draw_again(void) {
  lt_place place;
  el_resize(editor.edit);
  lt_drawing d = drawing();
  place = lt_paint_place(&d);
  fputs("\r", stdout);
  if (place.row > 0) fprintf(stdout, "\033[%dA", place.row);
  fputs("\033[J", stdout);
  fflush(stdout);
  el_set(editor.edit, EL_PREP_TERM, 1);
  el_set(editor.edit, EL_REFRESH);
}

static void on_resize(int number) {
  (void)number;
  resized = 1;
}

/* Waits for a key: false when a signal came, also one that came before (errno: EINTR). */
static bool wait_for_key(void) {
  struct pollfd key = {.fd = STDIN_FILENO, .events = POLLIN};
  sigset_t ours, before;
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGWINCH);
  sigaddset(&ours, SIGCONT);
  pthread_sigmask(SIG_BLOCK, &ours, &before);
  int n = -1;
  errno = EINTR;
  if (lt_signals_pending() == 0 && !resized) n = ppoll(&key, 1, NULL, &before);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return n > 0;
}

/* One character, whatever the locale's encoding: 1; 0 at the end; -1 when a signal came. */
static int read_character(EditLine *edit, wchar_t *out) {
  (void)edit;
  mbstate_t state;
  memset(&state, 0, sizeof state);
  paint();
  for (;;) {
    char byte;
    ssize_t n = wait_for_key() ? read(STDIN_FILENO, &byte, 1) : -1;
    if (n < 0 && (resized || errno == EINTR) && lt_signals_pending() == 0 &&
        !lt_signals_over()) {
      bool draws = resized && editor.paints;
      resized = 0;
      if (draws) draw_again();
      paint();
      continue;
    }
    if (n <= 0) {
      erase_hint();
      return (int)n;
    }
    size_t used = mbrtowc(out, &byte, 1, &state);
    if (used == (size_t)-2) continue;
    if (used != (size_t)-1) break;
    memset(&state, 0, sizeof state); /* not a character: left out */
  }
  erase_hint();
  return 1;
}

/* Keys. */

static unsigned char press(EditLine *edit, const char *key) {
  el_push(edit, key);
  return CC_NORM;
}

static unsigned char on_enter(EditLine *edit, int key) {
  (void)key;
  lt_drawing d = drawing();
  char *answers[2];
  ask(LT_LINE_ENTER, &d, answers);
  unsigned char result = CC_REFRESH;
  if (answers[0] == NULL || el_insertstr(edit, answers[0]) != 0) result = press(edit, KEY_NEWLINE);
  free(answers[0]);
  free(answers[1]);
  return result;
}

void lt_edit_leave(void) {
  lt_drawing d = drawing();
  lt_place place = lt_paint_place(&d);
  if (place.is_known && editor.paints && place.last_row > place.row)
    fprintf(stdout, "\033[%dB", place.last_row - place.row);
}

static unsigned char on_tab(EditLine *edit, int key) {
  (void)key;
  lt_drawing d = drawing();
  char *answers[2];
  ask(LT_LINE_COMPLETE, &d, answers);
  unsigned char result = answers[0] == NULL ? CC_ERROR : CC_REFRESH;
  if (answers[0] != NULL && answers[0][0] != 0) el_insertstr(edit, answers[0]);
  if (answers[1] != NULL) {
    lt_edit_leave();
    fprintf(stdout, "\n%s\n", answers[1]);
    result = CC_REDISPLAY;
  }
  free(answers[0]);
  free(answers[1]);
  return result;
}

/* The characters from the start of the cursor's line to it, and whether a line is above. */
static int column_of(const wchar_t *buffer, const wchar_t *cursor, bool *is_first) {
  const wchar_t *start = cursor;
  while (start > buffer && start[-1] != L'\n') start--;
  *is_first = start == buffer;
  return (int)(cursor - start);
}

/* Within an entry to the line above; from its first line to the entry before. */
static unsigned char on_up(EditLine *edit, int key) {
  (void)key;
  const LineInfoW *line = el_wline(edit);
  bool is_first, unused;
  int column = column_of(line->buffer, line->cursor, &is_first);
  if (is_first) return press(edit, KEY_PREVIOUS);
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
  if (end == line->lastchar) return press(edit, KEY_NEXT);
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
    text[n++] = character == L'\r' ? L'\n' : character == L'\t' ? L' ' : character;
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
    {"ltrain-complete", {"\t"}, on_tab},
    {"ltrain-up", {"\033[A", "\033OA"}, on_up},
    {"ltrain-down", {"\033[B", "\033OB"}, on_down},
    {"ltrain-right", {"\033[C", "\033OC"}, on_right},
    {"ltrain-home", {"\001", "\033[H", "\033OH", "\033[1~"}, on_home},
    {"ltrain-end", {"\005", "\033[F", "\033OF", "\033[4~"}, on_end},
    {"ltrain-paste", {"\033[200~"}, on_paste},
};

static void bind_keys(EditLine *edit) {
  el_set(edit, EL_EDITOR, "emacs");
  el_source(edit, NULL); /* ~/.editrc: may say vi */
  el_set(edit, EL_BIND, KEY_NEWLINE, "ed-newline", NULL);
  el_set(edit, EL_BIND, KEY_PREVIOUS, "ed-prev-history", NULL);
  el_set(edit, EL_BIND, KEY_NEXT, "ed-next-history", NULL);
  el_set(edit, EL_BIND, KEY_FORWARD, "ed-next-char", NULL);
  el_set(edit, EL_BIND, "\022", "em-inc-search-prev", NULL);
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

bool lt_edit_open(void) {
  if (editor.edit != NULL) return true;
  take_locale();
  editor.edit = el_init("ltrain", stdin, stdout, stderr);
  if (editor.edit == NULL) return false;
  el_set(editor.edit, EL_PROMPT, prompt_of);
  el_set(editor.edit, EL_GETCFN, read_character);
  bind_keys(editor.edit);
  editor.history = lt_history_open();
  if (editor.history != NULL) el_set(editor.edit, EL_HIST, history, editor.history);
  editor.paints = lt_paint_wanted();
  return true;
}

/* While an entry is edited a window of another size ends the wait for a key. */
static void watch_window(bool on) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on ? on_resize : SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(SIGWINCH, &action, NULL);
  sigaction(SIGCONT, &action, NULL);
}

const char *lt_edit_read(const char *prompt, const lt_line_helper *helper, int *length) {
  editor.prompt = prompt;
  editor.helper = helper;
  el_resize(editor.edit); /* while something else ran the window may have changed */
  resized = 0;
  watch_window(true);
  el_set(editor.edit, EL_PREP_TERM, 1); /* before the prompt is seen: keys may come at once */
  if (editor.paints) fputs(PASTES, stdout);
  const char *text = el_gets(editor.edit, length);
  if (editor.paints) fputs(NO_PASTES, stdout);
  fflush(stdout);
  watch_window(false);
  editor.helper = NULL;
  free(editor.hint);
  editor.hint = NULL;
  return text;
}

void lt_edit_remember(const char *text) {
  if (editor.history != NULL) lt_history_add(editor.history, text);
}

void lt_edit_close(void) {
  if (editor.history != NULL) history_end(editor.history);
  if (editor.edit != NULL) el_end(editor.edit);
  memset(&editor, 0, sizeof editor);
}
