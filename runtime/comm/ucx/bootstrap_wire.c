/* runtime/comm/ucx/bootstrap_wire.c: the messages of the exchange of addresses (bootstrap.h), over
   sockets that do not block, until a deadline. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "comm/ucx/bootstrap.h"

int64_t lt_bootstrap_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int lt_bootstrap_left(int64_t deadline_ns, int most) {
  int64_t ms = (deadline_ns - lt_bootstrap_now() + 999999) / 1000000;
  return ms <= 0 ? 0 : ms < most ? (int)ms : most;
}

/* FNV-1a, 64 bits. */
uint64_t lt_ucx_hash(const char *text) {
  uint64_t h = 14695981039346656037u;
  for (; *text != '\0'; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
  return h;
}

void lt_bootstrap_hello_of(const lt_ucx_world *w, const lt_bootstrap_place *at,
                           lt_bootstrap_hello *out) {
  *out = (lt_bootstrap_hello){.token = lt_ucx_hash(at->token),
                              .rank = w->rank,
                              .size = w->size,
                              .pid = (int32_t)getpid(),
                              .address_bytes = (uint32_t)w->own_bytes};
  memcpy(out->magic, LT_BOOTSTRAP_MAGIC, sizeof out->magic);
  if (gethostname(out->host, sizeof out->host - 1) != 0) snprintf(out->host, 2, "?");
}

/* What a call of a nonblocking socket returned: whether to try again. */
static bool wait_for(int fd, short events, int64_t deadline_ns) {
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return false;
  int ms = lt_bootstrap_left(deadline_ns, 1000);
  if (ms == 0) return false;
  struct pollfd p = {.fd = fd, .events = events};
  return poll(&p, 1, ms) >= 0 || errno == EINTR;
}

bool lt_bootstrap_send(int fd, const void *bytes, size_t n, int64_t deadline_ns) {
  for (const char *at = bytes; n > 0;) {
    ssize_t k = send(fd, at, n, MSG_NOSIGNAL);
    if (k < 0 && !wait_for(fd, POLLOUT, deadline_ns)) return false;
    if (k < 0) continue;
    at += k;
    n -= (size_t)k;
  }
  return true;
}

bool lt_bootstrap_receive(int fd, void *bytes, size_t n, int64_t deadline_ns) {
  for (char *at = bytes; n > 0;) {
    ssize_t k = recv(fd, at, n, 0);
    if (k == 0) return false;
    if (k < 0 && !wait_for(fd, POLLIN, deadline_ns)) return false;
    if (k < 0) continue;
    at += k;
    n -= (size_t)k;
  }
  return true;
}
