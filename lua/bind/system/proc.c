/* lua/bind/system/proc.c: reads facts of other processes from /proc.

   Used to recognise what a launcher has started. Everything here may be wrong by the time it is
   used, since processes come and go: callers ask again, or treat it as a hint. Where there is no
   /proc the answers are -1, 0 or false. */
#include "bind/system/proc.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int lt_proc_children(pid_t pid, long children[LT_PROC_MOST]) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return -1;
  int n = 0;
  while (n < LT_PROC_MOST && fscanf(file, "%ld", &children[n]) == 1) n++;
  fclose(file);
  return n;
}

/* Whether a process is there and no zombie. The name in parentheses may contain spaces and
   parentheses itself: fields are counted from the last one. */
static bool is_alive(long pid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  size_t n = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[n] = 0;
  const char *state = strrchr(text, ')'); /* behind the program's name */
  return state != NULL && state[1] == ' ' && state[2] != 'Z' && state[2] != 'X';
}

static bool runs_our_program(long pid) {
  char path[64], own[PATH_MAX], other[PATH_MAX];
  snprintf(path, sizeof path, "/proc/%ld/exe", pid);
  ssize_t n = readlink("/proc/self/exe", own, sizeof own);
  return n > 0 && readlink(path, other, sizeof other) == n && memcmp(own, other, (size_t)n) == 0;
}

int lt_proc_alike(pid_t pid) {
  long children[LT_PROC_MOST];
  int alike = 0, n = lt_proc_children(pid, children);
  for (int i = 0; i < n; i++) alike += is_alive(children[i]) && runs_our_program(children[i]);
  return n < 0 ? n : alike;
}

/* The inodes of a process's sockets. */
static int sockets_of(pid_t pid, unsigned long inodes[LT_PROC_MOST]) {
  char path[64], to[64];
  snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  DIR *all = opendir(path);
  if (all == NULL) return 0;
  int n = 0;
  for (struct dirent *e; n < LT_PROC_MOST && (e = readdir(all)) != NULL;) {
    ssize_t bytes = readlinkat(dirfd(all), e->d_name, to, sizeof to - 1);
    to[bytes > 0 ? bytes : 0] = 0;
    n += sscanf(to, "socket:[%lu]", &inodes[n]) == 1;
  }
  closedir(all);
  return n;
}

/* Sockets of the process are matched with the established connections of its network namespace by
   inode, as netstat does. */
int lt_proc_connections(pid_t pid) {
  enum { ESTABLISHED = 1 };
  unsigned long inodes[LT_PROC_MOST], inode;
  int n = sockets_of(pid, inodes), found = 0;
  for (int v = 0; v < 2; v++) {
    char path[64], line[512];
    unsigned state;
    snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, v == 0 ? "tcp" : "tcp6");
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
      if (sscanf(line, "%*d: %*s %*s %x %*s %*s %*s %*s %*s %lu", &state, &inode) != 2) continue;
      for (int i = 0; i < n && state == ESTABLISHED; i++) found += inodes[i] == inode;
    }
    if (file != NULL) fclose(file);
  }
  return found;
}
