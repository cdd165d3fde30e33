/* runtime/comm/ucx/meet.c: the addresses of all ranks, from wherever they come together. */
#include "comm/ucx/meet.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t lt_meet_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int lt_meet_left(int64_t deadline_ns, int most) {
  int64_t ms = (deadline_ns - lt_meet_now() + 999999) / 1000000;
  return ms <= 0 ? 0 : ms < most ? (int)ms : most;
}

/* FNV-1a, 64 bits. */
static uint64_t hash(const char *text) {
  uint64_t h = 14695981039346656037u;
  for (; *text != '\0'; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
  return h;
}

void lt_meet_hello_of(const lt_ucx_world *w, const lt_meet_place *at, lt_meet_hello *out) {
  *out = (lt_meet_hello){.token = hash(at->token),
                         .rank = w->rank,
                         .size = w->size,
                         .pid = (int32_t)getpid(),
                         .address_bytes = (uint32_t)w->own_bytes};
  memcpy(out->magic, LT_MEET_MAGIC, sizeof out->magic);
  if (gethostname(out->host, sizeof out->host - 1) != 0) snprintf(out->host, 2, "?");
}

/* What a call of a nonblocking socket returned: whether to try again. */
static bool wait_for(int fd, short events, int64_t deadline_ns) {
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return false;
  int ms = lt_meet_left(deadline_ns, 1000);
  if (ms == 0) return false;
  struct pollfd p = {.fd = fd, .events = events};
  return poll(&p, 1, ms) >= 0 || errno == EINTR;
}

bool lt_meet_send(int fd, const void *bytes, size_t n, int64_t deadline_ns) {
  for (const char *at = bytes; n > 0;) {
    ssize_t k = send(fd, at, n, MSG_NOSIGNAL);
    if (k < 0 && !wait_for(fd, POLLOUT, deadline_ns)) return false;
    if (k < 0) continue;
    at += k;
    n -= (size_t)k;
  }
  return true;
}

bool lt_meet_receive(int fd, void *bytes, size_t n, int64_t deadline_ns) {
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

/* "host:29500", "[fd00::2]:29500", "host:29501-29516". */
static bool read_address(const char *address, lt_meet_place *at, char *text) {
  const char *colon = strrchr(address, ':');
  size_t n = colon != NULL ? (size_t)(colon - address) : 0;
  char *end = NULL;
  if (colon != NULL && address[0] == '[' && n > 1 && address[n - 1] == ']') {
    address++;
    n -= 2;
  }
  if (n > 0 && n < sizeof at->host) {
    snprintf(at->host, sizeof at->host, "%.*s", (int)n, address);
    at->first = at->last = (int)strtol(colon + 1, &end, 10);
    if (*end == '-') at->last = (int)strtol(end + 1, &end, 10);
  }
  if (end != NULL && *end == '\0' && at->first > 0 && at->last >= at->first && at->last < 65536)
    return true;
  snprintf(text, LT_COMM_TEXT, "not an address with a port (MASTER_ADDR, MASTER_PORT): %.150s",
           address);
  return false;
}

/* The list of LT_MEET_ALL: w keeps it. */
static bool take(lt_ucx_world *w, char *all, size_t bytes, char *text) {
  size_t at = 0;
  w->addresses = all;
  for (int r = 0; r < w->size; r++) {
    uint32_t n = 0;
    bool ok = at + sizeof n <= bytes;
    if (ok) memcpy(&n, all + at, sizeof n);
    at += sizeof n;
    if (!ok || n > bytes - at) {
      snprintf(text, LT_COMM_TEXT, "rank 0 sent an invalid list of addresses");
      return false;
    }
    w->peers[r].address = (const ucp_address_t *)(all + at);
    at += n;
  }
  return true;
}

bool lt_ucx_meet(lt_ucx_world *w, const lt_comm_place *place, char *text) {
  double limit = place->limit_s > 0 ? place->limit_s : 60;
  lt_meet_place at = {.deadline_ns = lt_meet_now() + (int64_t)(limit * 1e9),
                      .token = place->token != NULL ? place->token : ""};
  char *all = NULL;
  size_t bytes = 0;
  if (!read_address(place->main_address, &at, text)) return false;
  bool met = (w->rank == 0 ? lt_meet_collect : lt_meet_dial)(w, &at, &all, &bytes, text);
  return met && take(w, all, bytes, text);
}
