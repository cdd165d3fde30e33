/* runtime/comm/ucx/connect.c: the other ranks connect to rank 0, which may start later than they,
   or whose name may not be known yet. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/ucx/bootstrap.h"

enum { DIAL_MS = 2000, ANSWER_MS = 5000, FIRST_REST_MS = 20, LONGEST_REST_MS = 500 };

/* A socket that is connected, or -1 with errno. Not blocking: a host that drops packets would hold
   connect() for minutes, longer than the whole time for joining. */
static int connect_to(const struct addrinfo *a, int64_t deadline_ns) {
  int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = errno;
  if (fd < 0) return -1;
  if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) return fd;
  error = errno;
  if (error == EINPROGRESS) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t n = sizeof error;
    if (poll(&p, 1, lt_bootstrap_left(deadline_ns, DIAL_MS)) <= 0)
      error = ETIMEDOUT;
    else
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
  }
  if (error == 0) return fd;
  close(fd);
  errno = error;
  return -1;
}

static bool read_answer(int fd, lt_bootstrap_answer *answer, int64_t deadline_ns) {
  return lt_bootstrap_receive(fd, answer, sizeof *answer, deadline_ns) &&
         memcmp(answer->magic, LT_BOOTSTRAP_MAGIC, sizeof answer->magic) == 0;
}

static bool say_hello(const lt_ucx_world *w, const lt_bootstrap_place *at, int fd,
                      lt_bootstrap_answer *answer) {
  lt_bootstrap_hello hello;
  int64_t limit = lt_bootstrap_now() + (int64_t)ANSWER_MS * 1000000;
  if (limit > at->deadline_ns) limit = at->deadline_ns;
  lt_bootstrap_hello_of(w, at, &hello);
  return lt_bootstrap_send(fd, &hello, sizeof hello, limit) &&
         lt_bootstrap_send(fd, w->own, w->own_bytes, limit) && read_answer(fd, answer, limit);
}

/* One address and port. LT_PENDING: rank 0 is not there (now); `text` says what is. */
static lt_progress try_one(const lt_ucx_world *w, const lt_bootstrap_place *at,
                           const struct addrinfo *a, int port, int *out, char *text) {
  lt_bootstrap_answer answer = {.outcome = LT_BOOTSTRAP_WAIT};
  int fd = connect_to(a, at->deadline_ns);
  if (fd < 0) {
    snprintf(text, LT_COMM_TEXT, "port %d: %s", port, strerror(errno));
    return LT_PENDING;
  }
  if (!say_hello(w, at, fd, &answer)) {
    snprintf(text, LT_COMM_TEXT, "port %d: what listens there is not rank 0 of ltrain", port);
  } else if (answer.outcome == LT_BOOTSTRAP_WAIT) {
    *out = fd;
    return LT_DONE;
  } else if (answer.outcome == LT_BOOTSTRAP_STRANGER) {
    snprintf(text, LT_COMM_TEXT, "port %d: rank 0 of another job (its token differs: LTRAIN_TOKEN)",
             port);
  } else if (answer.outcome == LT_BOOTSTRAP_REFUSED && answer.bytes < LT_COMM_TEXT) {
    memset(text, 0, LT_COMM_TEXT);
    lt_bootstrap_receive(fd, text, answer.bytes, at->deadline_ns);
    close(fd);
    return LT_BROKEN;
  }
  close(fd);
  bool only = at->first == at->last && at->file == NULL;
  return answer.outcome == LT_BOOTSTRAP_STRANGER && only ? LT_BROKEN : LT_PENDING;
}

/* All addresses of the name, all ports. */
static lt_progress try_all(const lt_ucx_world *w, const lt_bootstrap_place *at, int *fd,
                           char *text) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
  lt_progress got = LT_PENDING;
  for (int port = at->first; port <= at->last && got == LT_PENDING; port++) {
    char service[8];
    snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(at->host, service, &hints, &list);
    if (error != 0) {
      snprintf(text, LT_COMM_TEXT, "%s", gai_strerror(error));
      return LT_PENDING;
    }
    for (const struct addrinfo *a = list; a != NULL && got == LT_PENDING; a = a->ai_next)
      got = try_one(w, at, a, port, fd, text);
    freeaddrinfo(list);
  }
  return got;
}

/* What the file has now: one of an earlier job may still be there, and rank 0 replaces it. */
static lt_progress try_file(const lt_ucx_world *w, const lt_bootstrap_place *at, int *fd,
                            char *text) {
  lt_bootstrap_place one = *at;
  char hosts[LT_BOOTSTRAP_HOSTS], *rest = hosts;
  lt_progress got = lt_bootstrap_file_read(at, hosts, &one.first, text);
  if (got != LT_DONE) return got;
  one.last = one.first;
  got = LT_PENDING;
  for (const char *host; got == LT_PENDING && (host = strsep(&rest, ",")) != NULL;) {
    snprintf(one.host, sizeof one.host, "%s", host);
    got = try_all(w, &one, fd, text);
  }
  return got;
}

/* Pauses double from 20 ms to half a second: ranks start within milliseconds of each other on one
   machine, and hundreds of them must not keep rank 0 busy with refusals later. */
static bool find(const lt_ucx_world *w, const lt_bootstrap_place *at, int *fd, char *text) {
  char why[LT_COMM_TEXT] = "";
  for (int rest = FIRST_REST_MS;; rest = rest * 2 < LONGEST_REST_MS ? rest * 2 : LONGEST_REST_MS) {
    lt_progress got = (at->file != NULL ? try_file : try_all)(w, at, fd, why);
    if (got == LT_DONE) return true;
    if (got == LT_BROKEN || lt_bootstrap_left(at->deadline_ns, 1) == 0) {
      snprintf(text, LT_COMM_TEXT, "rank %d cannot join rank 0 at %.64s%s: %.120s", w->rank,
               at->file != NULL ? at->file : at->host, got == LT_BROKEN ? "" : " in time", why);
      return false;
    }
    poll(NULL, 0, lt_bootstrap_left(at->deadline_ns, rest));
  }
}

bool lt_bootstrap_dial(const lt_ucx_world *w, const lt_bootstrap_place *at, char **all,
                       size_t *bytes, char *text) {
  enum { GRACE_MS = 2000 }; /* rank 0, which may have begun later, says which rank is missing */
  lt_bootstrap_answer answer;
  int fd = -1;
  if (!find(w, at, &fd, text)) return false;
  int64_t limit = at->deadline_ns + (int64_t)GRACE_MS * 1000000;
  bool ok = read_answer(fd, &answer, limit);
  if (!ok)
    snprintf(text, LT_COMM_TEXT,
             "rank 0 at %.64s, which rank %d had joined, is gone or does not "
             "answer",
             at->file != NULL ? at->file : at->host, w->rank);
  *bytes = ok ? answer.bytes : 0;
  *all = ok ? calloc(1, *bytes + 1) : NULL;
  ok = *all != NULL && lt_bootstrap_receive(fd, *all, *bytes, limit);
  close(fd);
  if (ok && answer.outcome == LT_BOOTSTRAP_ALL) return true;
  if (ok) snprintf(text, LT_COMM_TEXT, "%s", *all);
  free(*all);
  *all = NULL;
  return false;
}
