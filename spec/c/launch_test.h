/* spec/c/launch_test.h: what tests of launch/ share: tests in processes of their own with a limit,
   and ranks that are threads of this process. */
#ifndef LT_SPEC_C_LAUNCH_TEST_H
#define LT_SPEC_C_LAUNCH_TEST_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/world.h"
#include "registry.h"

/* In a process of a test: print what is wrong, and end. */
#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      dprintf(2, "%s:%d: %s is not so\n", __FILE__, __LINE__, #condition); \
      _exit(99);                                                           \
    }                                                                      \
  } while (0)

#define CHECK_TEXT(text, part)                                                    \
  do {                                                                            \
    if (strstr(text, part) == NULL) {                                             \
      dprintf(2, "%s:%d: no \"%s\" in \"%s\"\n", __FILE__, __LINE__, part, text); \
      _exit(99);                                                                  \
    }                                                                             \
  } while (0)

static inline void pause_ms(int ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * LT_MS}, NULL);
}

static inline double seconds_since(int64_t start) {
  return (double)(lt_now_ns() - start) / LT_SECOND;
}

/* What a test's process said and how it ended. */
typedef struct outcome {
  int status; /* as waitpid gives it; -1: it had to be killed */
  double seconds;
  char said[1 << 16];
} outcome;

/* A test's process, which leads a session of its own. */
typedef struct apart {
  pid_t pid;
  int fd; /* stdout and stderr of all its processes */
  int64_t start;
  double limit; /* seconds */
} apart;

static inline apart start_apart(void (*fn)(void), double limit) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  apart a = {.pid = fork(), .fd = ends[0], .start = lt_now_ns(), .limit = limit};
  assert_true(a.pid >= 0);
  if (a.pid == 0) {
    setsid();
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    alarm((unsigned)limit + 5);
    fn();
    _exit(0);
  }
  close(ends[1]);
  return a;
}

/* Read until the last of its processes has ended; they are killed after the limit. */
static inline outcome end_apart(apart a) {
  static outcome o;
  size_t used = 0;
  o = (outcome){.status = -1};
  for (;;) {
    double left = a.limit - seconds_since(a.start);
    struct pollfd p = {.fd = a.fd, .events = POLLIN};
    if (left <= 0 || poll(&p, 1, (int)(left * 1000) + 1) == 0) {
      kill(-a.pid, SIGKILL);
      waitpid(a.pid, NULL, 0);
      break;
    }
    ssize_t n = read(a.fd, o.said + used, sizeof o.said - 1 - used);
    if (n > 0) used += (size_t)n;
    if (n <= 0) {
      waitpid(a.pid, &o.status, 0);
      break;
    }
  }
  close(a.fd);
  o.seconds = seconds_since(a.start);
  o.said[used] = 0;
  return o;
}

static inline outcome run_apart(void (*fn)(void), double limit) {
  return end_apart(start_apart(fn, limit));
}

static inline void expect_end(const outcome *o, int status) {
  if (o->status == -1 || !WIFEXITED(o->status) || WEXITSTATUS(o->status) != status)
    fail_msg("status %x after %.1f s: %s", (unsigned)o->status, o->seconds, o->said);
}

static inline void expect_said(const outcome *o, const char *part) {
  if (strstr(o->said, part) == NULL) fail_msg("no \"%s\" in \"%s\"", part, o->said);
}

static inline int count_of(const char *text, const char *part) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) n++;
  return n;
}

/* For failure files, from the beginning to the end of a group of tests. */
static char folder[64];

static inline int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/launch_test_XXXXXX");
  return mkdtemp(folder) != NULL ? 0 : -1;
}

static inline int drop_folder(void **state) {
  (void)state;
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
    if (e->d_name[0] != '.') unlinkat(dirfd(d), e->d_name, 0);
  if (d != NULL) closedir(d);
  return rmdir(folder);
}

static inline bool has_file(const char *name, const char *part) {
  char path[256], text[1 << 14];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  int fd = open(path, O_RDONLY);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  return strstr(text, part) != NULL;
}

static inline lt_ctx *fresh(void) {
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  c->threads = 1;
  c->policy = (lt_policy){.read_files = true, .write_files = true, .fork = true};
  return c;
}

#endif
