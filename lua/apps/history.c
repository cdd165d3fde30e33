/* lua/apps/history.c: the history file, $XDG_STATE_HOME/ltrain/history, in libedit's own format.

   libedit writes whole files, so that of two prompts the last to save would win: here each entry is
   added to the end of the file by one write. It is made short again when a prompt starts. Both are
   done under a lock (flock), so that of prompts that begin at once one writes the first line, and
   nothing is added to a file that has just been replaced. */
#include "apps/history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES = 1000, MOST_BYTES = 1 << 20 };

static char path[PATH_MAX]; /* "" when there is none */

/* The folder's parents are made as needed: ~/.local/state may be missing. */
static void make_folders(void) {
  for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(path, 0700);
    *slash = '/';
  }
}

static void find_path(void) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  int n = -1;
  if (state != NULL && state[0] == '/')
    n = snprintf(path, sizeof path, "%s/ltrain/history", state);
  else if (home != NULL && home[0] == '/')
    n = snprintf(path, sizeof path, "%s/.local/state/ltrain/history", home);
  if (n < 0 || n >= (int)sizeof path)
    path[0] = 0;
  else
    make_folders();
}

/* The file at the path, to be added to, locked until it is closed; -1: it cannot be written. One
   that was replaced while the lock was waited for is left. */
static int open_locked(void) {
  for (;;) {
    struct stat own, there;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    while (flock(file, LOCK_EX) != 0 && errno == EINTR) continue; /* elsewhere there are no locks */
    if (fstat(file, &own) == 0 && stat(path, &there) == 0 && own.st_ino == there.st_ino &&
        own.st_dev == there.st_dev)
      return file;
    close(file);
  }
}

/* The file as libedit writes it, whole or not at all. */
static void rewrite(History *h) {
  char beside[PATH_MAX + 16];
  HistEvent event;
  snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
  if (history(h, &event, H_SAVE, beside) < 0 || rename(beside, path) != 0) unlink(beside);
}

History *lt_history_open(void) {
  HistEvent event;
  struct stat file;
  History *h = history_init();
  if (h == NULL) return NULL;
  history(h, &event, H_SETSIZE, ENTRIES);
  history(h, &event, H_SETUNIQUE, 1);
  find_path();
  if (path[0] == 0) return h;
  bool exists = stat(path, &file) == 0;
  if (exists && !S_ISREG(file.st_mode)) { /* a pipe would be waited for */
    path[0] = 0;
    return h;
  }
  bool is_long = exists && file.st_size > MOST_BYTES;
  int lock = is_long ? open_locked() : -1;
  history(h, &event, H_LOAD, path);
  if (lock >= 0) {
    rewrite(h);
    close(lock);
  }
  return h;
}

/* The lines of a file that has this one entry: a first line that names the form, and the entry.
   libedit wants a file: one in memory. */
static FILE *file_of(const char *text) {
  HistEvent event;
  FILE *file = fdopen(memfd_create("history", MFD_CLOEXEC), "w+");
  History *one = history_init();
  if (file != NULL && one != NULL) {
    history(one, &event, H_SETSIZE, 1);
    history(one, &event, H_ENTER, text);
    history(one, &event, H_SAVE_FP, file);
    rewind(file);
  }
  if (one != NULL) history_end(one);
  return file;
}

static void append(const char *text) {
  struct stat before;
  char *line = NULL;
  size_t capacity = 0;
  FILE *entry = file_of(text);
  int file = open_locked();
  bool is_new = file >= 0 && fstat(file, &before) == 0 && before.st_size == 0;
  for (int k = 0; entry != NULL && getline(&line, &capacity, entry) > 0; k++) {
    if (k == 0 && !is_new) continue;
    ssize_t written = file >= 0 ? write(file, line, strlen(line)) : 0;
    (void)written; /* a history that cannot be kept keeps nobody from working */
  }
  if (entry != NULL) fclose(entry);
  if (file >= 0) close(file);
  free(line);
}

void lt_history_add(History *h, const char *text) {
  HistEvent event;
  if (text[strspn(text, " \t\n")] == 0) return;
  bool again = history(h, &event, H_FIRST) >= 0 && strcmp(event.str, text) == 0;
  history(h, &event, H_ENTER, text);
  if (path[0] != 0 && !again) append(text);
}
