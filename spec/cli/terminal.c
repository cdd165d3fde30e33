/* spec/cli/terminal.c: runs a program on a pseudo-terminal whose screen it keeps, by a plan.

     terminal COLUMNS ROWS PROGRAM [ARGUMENT...] <plan

   Each line of the plan is a word and a text (\e \r \t \n \\ \xHH are characters):
     see TEXT      waits until a row of the screen has it
     twice TEXT    waits until two rows have it
     gone TEXT     waits until none has
     ready         waits until the cursor is behind an empty prompt
     painted TEXT  waits until a row has it with a letter in place of each coloured character
     send TEXT     keys
     size C R      another size
     screen NAME   prints the rows between "--- NAME" and "---"
     colours NAME  the same, with a letter in place of each coloured character
     end           waits for the program; prints "--- exit STATUS"
   Without a pseudo-terminal it exits with 77. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

enum { MOST = 300, PATIENCE = 30 };

typedef struct cell {
  wchar_t character; /* 0: the right half of a wide one */
  char look;
} cell;

static struct {
  cell at[MOST][MOST];
  int columns, rows, row, column, saved_row, saved_column;
  bool wraps; /* the last column is written: the next character begins a row */
  char look;
} screen;

static int master;
static pid_t child;

/* The screen. */

static void clear(int row, int from, int to) {
  for (int k = from; k < to; k++) screen.at[row][k] = (cell){L' ', ' '};
}

static void line_feed(void) {
  if (++screen.row < screen.rows) return;
  screen.row = screen.rows - 1;
  memmove(screen.at[0], screen.at[1], sizeof screen.at[0] * (size_t)(screen.rows - 1));
  clear(screen.row, 0, MOST);
}

static void put(wchar_t character) {
  int width = wcwidth(character);
  if (width <= 0) return;
  if (screen.wraps || screen.column + width > screen.columns) {
    screen.column = 0;
    line_feed();
  }
  screen.at[screen.row][screen.column] = (cell){character, screen.look};
  if (width == 2) screen.at[screen.row][screen.column + 1] = (cell){0, screen.look};
  screen.column += width;
  screen.wraps = screen.column >= screen.columns;
  if (screen.wraps) screen.column = screen.columns - 1;
}

static void move(int row, int column) {
  screen.wraps = false;
  screen.row = row < 0 ? 0 : row >= screen.rows ? screen.rows - 1 : row;
  screen.column = column < 0 ? 0 : column >= screen.columns ? screen.columns - 1 : column;
}

static void look(const int *n, int count) {
  for (int k = 0; k < count; k++) {
    if (n[k] == 0) screen.look = ' ';
    if (n[k] == 2) screen.look = 'd';
    if (n[k] >= 30 && n[k] <= 37) screen.look = "kRgybmcw"[n[k] - 30];
  }
}

static void shift(int by) {
  cell *row = screen.at[screen.row];
  int from = screen.column, n = screen.columns - from;
  if (by > n) by = n;
  if (by < -n) by = -n;
  if (by > 0) memmove(row + from + by, row + from, sizeof *row * (size_t)(n - by));
  if (by < 0) memmove(row + from, row + from - by, sizeof *row * (size_t)(n + by));
  clear(screen.row, by > 0 ? from : screen.columns + by, by > 0 ? from + by : screen.columns);
}

static void control(char final, const int *n, int count) {
  int one = n[0] > 0 ? n[0] : 1;
  switch (final) {
  case 'A': move(screen.row - one, screen.column); break;
  case 'B': move(screen.row + one, screen.column); break;
  case 'C': move(screen.row, screen.column + one); break;
  case 'D': move(screen.row, screen.column - one); break;
  case 'G': move(screen.row, one - 1); break;
  case 'd': move(one - 1, screen.column); break;
  case 'H': move(one - 1, count > 1 && n[1] > 0 ? n[1] - 1 : 0); break;
  case 'J':
    for (int r = n[0] == 2 ? 0 : screen.row + 1; r < screen.rows; r++) clear(r, 0, MOST);
    clear(screen.row, screen.column, MOST);
    break;
  case 'K': clear(screen.row, n[0] == 1 || n[0] == 2 ? 0 : screen.column,
                  n[0] == 1 ? screen.column + 1 : MOST); break;
  case 'P': shift(-one); break;
  case '@': shift(one); break;
  case 'X': clear(screen.row, screen.column, screen.column + one); break;
  case 'm': look(n, count); break;
  default: break;
  }
}

/* One byte of what the program writes. */
static void feed(unsigned char byte) {
  static enum { PLAIN, ESCAPE, CONTROL, TITLE, CHARSET } state;
  static int numbers[16], count;
  static mbstate_t characters;
  if (state == ESCAPE) {
    state = byte == '[' ? CONTROL : byte == ']' ? TITLE : byte == '(' ? CHARSET : PLAIN;
    memset(numbers, 0, sizeof numbers);
    count = 1;
    if (byte == '7') screen.saved_row = screen.row, screen.saved_column = screen.column;
    if (byte == '8') move(screen.saved_row, screen.saved_column);
  } else if (state == CONTROL) {
    if (byte >= '0' && byte <= '9') numbers[count - 1] = 10 * numbers[count - 1] + byte - '0';
    if (byte == ';' && count < 16) count++;
    if (byte < '@') return;
    control((char)byte, numbers, count);
    state = PLAIN;
  } else if (state == TITLE || state == CHARSET) {
    if (state == CHARSET || byte == 7) state = PLAIN;
  } else if (byte == 27) {
    state = ESCAPE;
  } else if (byte == '\r') {
    move(screen.row, 0);
  } else if (byte == '\n') {
    screen.wraps = false;
    line_feed();
  } else if (byte == '\b') {
    move(screen.row, screen.column - 1);
  } else if (byte == '\t') {
    move(screen.row, (screen.column / 8 + 1) * 8);
  } else if (byte >= ' ') {
    wchar_t character;
    if (mbrtowc(&character, (char *)&byte, 1, &characters) <= 1) put(character);
  }
}

/* Row `r` as text, of characters or looks, without blanks at its end. */
static void row_text(int r, bool looks, char *out, size_t size) {
  size_t n = 0, last = 0;
  for (int k = 0; k < screen.columns && n + 8 < size; k++) {
    const cell *c = &screen.at[r][k];
    if (c->character == 0) continue;
    wchar_t shown = looks && c->look != ' ' ? (wchar_t)c->look : c->character;
    int used = wctomb(out + n, shown);
    n += used > 0 ? (size_t)used : 0;
    if (shown != L' ') last = n;
  }
  out[last] = 0;
}

/* How many rows have a text. */
static int rows_with(const char *text, bool looks) {
  char row[4 * MOST + 8];
  int n = 0;
  for (int r = 0; r < screen.rows; r++) {
    row_text(r, looks, row, sizeof row);
    n += strstr(row, text) != NULL;
  }
  return n;
}

static void print(const char *name, bool looks) {
  char row[4 * MOST + 8];
  printf("--- %s\n", name);
  for (int r = 0, blank = 0; r < screen.rows; r++) {
    row_text(r, looks, row, sizeof row);
    if (row[0] == 0) {
      blank++;
      continue;
    }
    for (; blank > 0; blank--) putchar('\n');
    puts(row);
  }
  puts("---");
}

/* The program. */

/* What it writes within some milliseconds; false at its end. */
static bool listen(int milliseconds) {
  struct pollfd more = {.fd = master, .events = POLLIN};
  unsigned char bytes[4096];
  if (poll(&more, 1, milliseconds) <= 0) return true;
  ssize_t n = read(master, bytes, sizeof bytes);
  for (ssize_t k = 0; k < n; k++) feed(bytes[k]);
  return n > 0 || (n < 0 && errno == EINTR);
}

static bool is_ready(void) {
  char row[4 * MOST + 8];
  row_text(screen.row, false, row, sizeof row);
  return screen.column == 2 && strcmp(row, ">") == 0;
}

static void wait_until_ready(void) {
  time_t until = time(NULL) + PATIENCE;
  while (!is_ready() && time(NULL) < until)
    if (!listen(50)) break;
  if (is_ready()) return;
  puts("--- never ready");
  print("screen", false);
  kill(child, SIGKILL);
  exit(1);
}

/* Until at least `wanted` rows have the text; 0: until none has. */
static bool is_there(const char *text, int wanted, bool looks) {
  int n = rows_with(text, looks);
  return wanted == 0 ? n == 0 : n >= wanted;
}

static void wait_for(const char *text, int wanted, bool looks) {
  time_t until = time(NULL) + PATIENCE;
  bool goes_on = true;
  while (!is_there(text, wanted, looks) && goes_on && time(NULL) < until) goes_on = listen(50);
  if (is_there(text, wanted, looks)) return;
  printf("--- never %s: %s\n", wanted > 0 ? "seen" : "gone", text);
  print("screen", looks);
  kill(child, SIGKILL);
  exit(1);
}

static void send_keys(const char *text) {
  for (size_t n = strlen(text); n > 0;) {
    ssize_t written = write(master, text, n);
    if (written <= 0) return;
    text += written;
    n -= (size_t)written;
  }
}

static void set_size(int columns, int rows) {
  struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
  while (screen.row >= rows) { /* the rows at the top leave */
    memmove(screen.at[0], screen.at[1], sizeof screen.at[0] * (MOST - 1));
    screen.row--;
  }
  screen.columns = columns;
  screen.rows = rows;
  move(screen.row, screen.column);
  ioctl(master, TIOCSWINSZ, &size);
}

/* \e and the like become characters, in place. */
static void unescape(char *text) {
  static const char letters[] = "ertn\\", meant[] = "\033\r\t\n\\";
  char *out = text;
  for (; *text != 0; text++, out++) {
    const char *letter = *text == '\\' && text[1] != 0 ? strchr(letters, text[1]) : NULL;
    *out = *text;
    if (letter != NULL) {
      *out = meant[letter - letters];
      text++;
    } else if (*text == '\\' && text[1] == 'x') {
      char hex[3] = {text[2], text[3], 0};
      *out = (char)strtol(hex, NULL, 16);
      text += 3;
    }
  }
  *out = 0;
}

static void follow(char *line) {
  char *text = strchr(line, ' ');
  int columns, rows, status;
  if (text != NULL) *text++ = 0;
  else text = line + strlen(line);
  if (strcmp(line, "size") == 0 && sscanf(text, "%d %d", &columns, &rows) == 2)
    set_size(columns, rows);
  unescape(text);
  if (strcmp(line, "ready") == 0) wait_until_ready();
  if (strcmp(line, "see") == 0) wait_for(text, 1, false);
  if (strcmp(line, "twice") == 0) wait_for(text, 2, false);
  if (strcmp(line, "gone") == 0) wait_for(text, 0, false);
  if (strcmp(line, "painted") == 0) wait_for(text, 1, true);
  if (strcmp(line, "send") == 0) send_keys(text);
  if (strcmp(line, "screen") == 0) print(text, false);
  if (strcmp(line, "colours") == 0) print(text, true);
  if (strcmp(line, "end") != 0) return;
  for (time_t until = time(NULL) + PATIENCE; listen(50) && time(NULL) < until;) continue;
  if (waitpid(child, &status, 0) == child)
    printf("--- exit %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(int argc, char **argv) {
  char line[4096];
  struct winsize size = {0};
  if (argc < 4) return 2;
  setlocale(LC_CTYPE, "C.UTF-8");
  screen.columns = atoi(argv[1]);
  screen.rows = atoi(argv[2]);
  screen.look = ' ';
  for (int r = 0; r < MOST; r++) clear(r, 0, MOST);
  size.ws_col = (unsigned short)screen.columns;
  size.ws_row = (unsigned short)screen.rows;
  child = forkpty(&master, NULL, NULL, &size);
  if (child < 0) return 77;
  if (child == 0) {
    signal(SIGINT, SIG_DFL);
    execvp(argv[3], argv + 3);
    _exit(127);
  }
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (line[0] != 0) follow(line);
  }
  kill(child, SIGKILL);
  puts("--- followed");
  return 0;
}
