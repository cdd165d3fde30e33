/* runtime/launch/stderr.c: stderr of children, line by line with the rank in front.

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

enum { LINE = 4096, PATIENCE_MS = 500, STACK = 1 << 18, CAPACITY = LINE + 32 };
enum { PIPE = 1 << 16 }; /* what a pipe holds */

typedef struct source {
  int child_fd; /* the child's end; -1: closed */
  size_t used;
  char line[LINE];
} source;

struct lt_stderr {
  int n, err_fd;
  pthread_t thread;
  bool runs;
  source *sources;      /* [n], for ranks 1.. */
  struct pollfd *polls; /* [n + 1]: our ends, -1: closed; the last one stops the thread */
};

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void shut_all(lt_stderr *t) {
  if (t->sources == NULL || t->polls == NULL) return;
  for (int i = 0; i < t->n; i++) shut(&t->sources[i].child_fd);
  for (int i = 0; i <= t->n; i++) shut(&t->polls[i].fd);
}

static bool open_pipe(lt_stderr *t, int i) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  t->polls[i].fd = ends[0];
  t->sources[i].child_fd = ends[1];
  return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static bool open_all(lt_stderr *t) {
  for (int i = 0; i <= t->n; i++) t->polls[i] = (struct pollfd){.fd = -1, .events = POLLIN};
  for (int i = 0; i < t->n; i++) t->sources[i].child_fd = -1;
  t->polls[t->n].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  bool good = t->polls[t->n].fd >= 0;
  for (int i = 0; good && i < t->n; i++) good = open_pipe(t, i);
  return good;
}

/* Before the fork, as pipes cannot be made for a process that runs already: each child inherits all
   ends and closes those of the others (lt_stderr_become). */
lt_stderr *lt_stderr_new(lt_ctx *c, int ranks, int err_fd) {
  lt_stderr *t = lt_alloc(c, sizeof *t);
  if (t == NULL) return NULL;
  t->err_fd = err_fd;
  t->n = ranks - 1;
  t->sources = lt_alloc(c, (size_t)t->n * sizeof *t->sources);
  t->polls = lt_alloc(c, (size_t)ranks * sizeof *t->polls);
  if (lt_ok(c) && open_all(t)) return t;
  lt_fail(c, LT_EIO, "launch: cannot open pipes for %d ranks: %s", ranks, strerror(errno));
  lt_stderr_release(c, t);
  return NULL;
}

void lt_stderr_become(lt_stderr *t, int rank) {
  dup2(t->sources[rank - 1].child_fd, STDERR_FILENO);
  shut_all(t);
}

/* A pipe that is not full takes a line of at most a page at once. */
static void put(lt_stderr *t, const char *text, size_t n) {
  struct pollfd out = {.fd = t->err_fd, .events = POLLOUT}, stop = t->polls[t->n];
  while (poll(&out, 1, PATIENCE_MS) == 0)
    if (poll(&stop, 1, 0) > 0) return; /* the other end is not read, and the world ends */
  ssize_t done = write(t->err_fd, text, n);
  (void)done;
}

/* One write a line, with the rank in front: lines of ranks that write at the same time do not mix.
   */
static void put_line(lt_stderr *t, const source *s, size_t n) {
  char text[CAPACITY];
  int head = snprintf(text, sizeof text, "[rank %d] ", (int)(s - t->sources) + 1);
  memcpy(text + head, s->line, n);
  size_t all = (size_t)head + n;
  if (text[all - 1] != '\n') text[all++] = '\n';
  put(t, text, all);
}

static void drop_front(source *s, size_t n) {
  s->used -= n;
  memmove(s->line, s->line + n, s->used);
}

/* Pass whole lines on; all there is when the buffer is full or `last`. */
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
static void drain(lt_stderr *t, int i) {
  source *s = &t->sources[i];
  for (size_t taken = 0; taken < PIPE;) {
    ssize_t n = read(t->polls[i].fd, s->line + s->used, sizeof s->line - s->used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      pass(t, s, true);
      shut(&t->polls[i].fd);
      return;
    }
    taken += (size_t)n;
    s->used += (size_t)n;
    pass(t, s, false);
  }
}

/* Ends, once asked to, when is read what children wrote: a grandchild may hold a pipe, and write
   on. */
static void *pass_on(void *ud) {
  lt_stderr *t = ud;
  for (bool stopping = false; !stopping;) {
    poll(t->polls, (nfds_t)t->n + 1, -1);
    stopping = t->polls[t->n].revents != 0;
    for (int i = 0; i < t->n; i++)
      if (t->polls[i].fd >= 0) drain(t, i);
  }
  for (int i = 0; i < t->n; i++) pass(t, &t->sources[i], true);
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
    ssize_t n = write(t->polls[t->n].fd, &one, sizeof one);
    (void)n;
    pthread_join(t->thread, NULL);
  }
  shut_all(t);
  lt_free(c, t->sources, (size_t)t->n * sizeof *t->sources);
  lt_free(c, t->polls, ((size_t)t->n + 1) * sizeof *t->polls);
  lt_free(c, t, sizeof *t);
}
