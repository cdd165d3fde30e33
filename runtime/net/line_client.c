/* runtime/net/line_client.c: connecting to a server of lines (line_client.h). */
#include "net/line_client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/line_link.h"

enum { LINE_BYTES = 1 << 26 };

struct lt_line_client {
  lt_line_link link;
  const char *op;
  char name[300]; /* of the server */
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Whether the socket is ready before the deadline; false with errno, EINTR at a signal. */
static bool wait_for(int fd, short events, double deadline) {
  struct pollfd p = {.fd = fd, .events = events};
  double ms = (deadline - now()) * 1e3;
  int timeout = ms <= 0 ? 0 : ms > INT_MAX - 1 ? INT_MAX - 1 : (int)ms + 1;
  int n = poll(&p, 1, timeout);
  if (n == 0) errno = ETIMEDOUT;
  return n > 0;
}

static bool is_connected(int fd, double deadline) {
  int error = 0;
  socklen_t size = sizeof error;
  while (!wait_for(fd, POLLOUT, deadline))
    if (errno != EINTR) return false;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return false;
  errno = error;
  return error == 0;
}

/* A socket connected to one of the addresses; -1 with errno of the last. In the order of
   getaddrinfo (RFC 6724), one after the other: a host often has an IPv6 address that leads nowhere,
   so one that refuses is not the end. All share one deadline. */
static int dial(const struct addrinfo *all, double deadline) {
  int reason = EHOSTUNREACH;
  for (const struct addrinfo *a = all; a != NULL; a = a->ai_next) {
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0 ||
        (errno == EINPROGRESS && is_connected(fd, deadline)))
      return fd;
    reason = errno;
    close(fd);
  }
  errno = reason;
  return -1;
}

lt_line_client *lt_line_client_open(lt_ctx *c, const char *op, const char *host, int port,
                                    double seconds) {
  char service[16];
  struct addrinfo *all, wanted = {.ai_socktype = SOCK_STREAM};
  snprintf(service, sizeof service, "%d", port);
  int status = getaddrinfo(host, service, &wanted, &all);
  if (status != 0) {
    lt_fail(c, LT_EIO, "%s: %s: %s", op, host, gai_strerror(status));
    return NULL;
  }
  int fd = dial(all, now() + seconds);
  freeaddrinfo(all);
  if (fd < 0) {
    lt_fail(c, LT_EIO, "%s: cannot connect to %s:%d: %s", op, host, port, strerror(errno));
    return NULL;
  }
  lt_line_client *k = lt_alloc(c, sizeof *k);
  if (k == NULL) {
    close(fd);
    return NULL;
  }
  lt_line_link_open(&k->link, fd);
  k->op = op;
  snprintf(k->name, sizeof k->name, "%s:%d", host, port);
  return k;
}

void lt_line_client_close(lt_ctx *c, lt_line_client *k) {
  if (k == NULL) return;
  lt_line_link_close(c, &k->link);
  lt_free(c, k, sizeof *k);
}

static bool fail(lt_ctx *c, const lt_line_client *k, const char *why) {
  return lt_ok(c) && lt_fail(c, LT_EIO, "%s: %s: %s", k->op, k->name, why);
}

bool lt_line_client_send(lt_ctx *c, lt_line_client *k, const char *line, size_t n,
                         double seconds) {
  double deadline = now() + seconds;
  if (!lt_line_link_send(c, &k->link, line, n, LINE_BYTES))
    return fail(c, k, "the connection has ended");
  while (lt_line_buffer_left(&k->link.out) > 0) {
    if (!wait_for(k->link.fd, POLLOUT, deadline) && errno != EINTR)
      return fail(c, k, strerror(errno));
    if (!lt_line_link_flush(&k->link)) return fail(c, k, "the connection has ended");
  }
  return true;
}

/* NULL without a failure at the deadline, and at a signal too: the caller decides whether it goes
   on to wait, and a script can be interrupted. */
const char *lt_line_client_receive(lt_ctx *c, lt_line_client *k, double seconds, size_t *n) {
  double deadline = now() + seconds;
  for (;;) {
    const char *line = lt_line_buffer_take(&k->link.in, n);
    if (line != NULL) return line;
    if (!wait_for(k->link.fd, POLLIN, deadline)) return NULL;
    if (lt_line_link_read(c, &k->link, LINE_BYTES)) continue;
    fail(c, k, "the connection has ended");
    return NULL;
  }
}
