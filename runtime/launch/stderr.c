/* runtime/launch/stderr.c: what children write to stderr comes out with their rank in front.

   Above all their last words (an allocator's complaint, an assertion, a sanitizer's report), which
   otherwise could not be attributed. Each child's stderr is a pipe; a thread of the parent, apart
   from the watchdog because it may have to wait for a slow terminal, passes whole lines on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "launch/world.h"

enum { LINE = 4096, PATIENCE_MS = 500, STACK = 1 << 18, ROOM = LINE + 32 };
enum { PIPE = 1 << 16 }; /* what a pipe holds */

typedef struct source {
  int fd, child_fd; /* our end and the child's; -1: closed */
  int rank;
  size_t used;
  char line[LINE];
} source;

struct lt_stderr {
  int n, stop_fd, err_fd;
  pthread_t thread;
  bool runs;
  source *sources;      /* [n], for ranks 1.. */
  struct pollfd *polls; /* [n + 1] */
};

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void shut_all(lt_stderr *t) {
  for (int i = 0; t->sources != NULL && i < t->n; i++) {
    shut(&t->sources[i].fd);
    shut(&t->sources[i].child_fd);
  }
  shut(&t->stop_fd);
  shut(&t->err_fd);
}

static bool open_pipe(source *s, int rank) {
  int ends[2];
  *s = (source){.fd = -1, .child_fd = -1, .rank = rank};
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  s->fd = ends[0];
  s->child_fd = ends[1];
  return fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0;
}

lt_stderr *lt_stderr_new(lt_ctx *c, int ranks) {
  lt_stderr *t = lt_alloc(c, sizeof *t);
  if (t == NULL) return NULL;
  t->stop_fd = t->err_fd = -1;
  t->n = ranks - 1;
  t->sources = lt_alloc(c, (size_t)t->n * sizeof *t->sources);
  t->polls = lt_alloc(c, (size_t)ranks * sizeof *t->polls);
  for (int i = 0; lt_ok(c) && i < t->n; i++) t->sources[i] = (source){.fd = -1, .child_fd = -1};
  bool good = lt_ok(c);
  for (int i = 0; good && i < t->n; i++) good = open_pipe(&t->sources[i], i + 1);
  if (good) t->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (good) t->err_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (good && t->stop_fd >= 0 && t->err_fd >= 0) return t;
  lt_fail(c, LT_EIO, "launch: cannot open pipes for %d ranks: %s", ranks, strerror(errno));
  lt_stderr_release(c, t);
  return NULL;
}

void lt_stderr_become(lt_stderr *t, int rank) {
  dup2(t->sources[rank - 1].child_fd, STDERR_FILENO);
  shut_all(t);
}

/* A pipe that has room takes a line of at most a page at once. */
static void put(lt_stderr *t, const char *text, size_t n) {
  struct pollfd out = {.fd = t->err_fd, .events = POLLOUT}, stop = {.fd = t->stop_fd};
  stop.events = POLLIN;
  while (poll(&out, 1, PATIENCE_MS) == 0)
    if (poll(&stop, 1, 0) > 0) return; /* the other end is not read, and the world ends */
  ssize_t done = write(t->err_fd, text, n);
  (void)done;
}

static void put_line(lt_stderr *t, const source *s, size_t n) {
  char text[ROOM];
  int head = snprintf(text, sizeof text, "[rank %d] ", s->rank);
  memcpy(text + head, s->line, n);
  size_t all = (size_t)head + n;
  if (text[all - 1] != '\n') text[all++] = '\n';
  put(t, text, all);
}

static void drop_front(source *s, size_t n) {
  s->used -= n;
  memmove(s->line, s->line + n, s->used);
}

/* Pass whole lines on; all there is when the room is full or `last`. */
static void pass(lt_stderr *t, source *s, bool last) {
  for (char *end; s->used > 0 && (end = memchr(s->line, '\n', s->used)) != NULL;) {
    size_t n = (size_t)(end - s->line) + 1;
    put_line(t, s, n);
    drop_front(s, n);
  }
  if (s->used == 0 || (!last && s->used < sizeof s->line)) return;
  put_line(t, s, s->used);
  s->used = 0;
}

/* What is there, but not forever: a process that never stops writing must not keep the thread. */
static void drain(lt_stderr *t, source *s) {
  for (size_t taken = 0; taken < PIPE;) {
    ssize_t n = read(s->fd, s->line + s->used, sizeof s->line - s->used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      pass(t, s, true);
      shut(&s->fd);
      return;
    }
    taken += (size_t)n;
    s->used += (size_t)n;
    pass(t, s, false);
  }
}

/* Ends when all pipes have, or, once asked to, when is read what children wrote: a grandchild may
   hold a pipe, and write on. */
static void *pass_on(void *ud) {
  lt_stderr *t = ud;
  for (bool stopping = false; !stopping;) {
    int n = 0;
    for (int i = 0; i < t->n; i++)
      if (t->sources[i].fd >= 0)
        t->polls[n++] = (struct pollfd){.fd = t->sources[i].fd, .events = POLLIN};
    if (n == 0) break;
    t->polls[n] = (struct pollfd){.fd = t->stop_fd, .events = POLLIN};
    poll(t->polls, (nfds_t)n + 1, -1);
    stopping = t->polls[n].revents != 0;
    for (int i = 0; i < t->n; i++)
      if (t->sources[i].fd >= 0) drain(t, &t->sources[i]);
  }
  for (int i = 0; i < t->n; i++)
    if (t->sources[i].fd >= 0) pass(t, &t->sources[i], true);
  return NULL;
}

bool lt_stderr_start(lt_ctx *c, lt_stderr *t) {
  for (int i = 0; i < t->n; i++) shut(&t->sources[i].child_fd);
  int status = lt_launch_thread(&t->thread, STACK, pass_on, t);
  t->runs = status == 0;
  return t->runs ||
         lt_fail(c, LT_EMEMORY, "launch: cannot start a thread for stderr: %s", strerror(status));
}

void lt_stderr_release(lt_ctx *c, lt_stderr *t) {
  if (t == NULL) return;
  if (t->runs) {
    uint64_t one = 1;
    ssize_t n = write(t->stop_fd, &one, sizeof one);
    (void)n;
    pthread_join(t->thread, NULL);
  }
  shut_all(t);
  lt_free(c, t->sources, (size_t)t->n * sizeof *t->sources);
  lt_free(c, t->polls, ((size_t)t->n + 1) * sizeof *t->polls);
  lt_free(c, t, sizeof *t);
}
