/* runtime/net/line_server.c: many connections of lines in one thread (line_server.h).

   A client's number is its place in the table and how often that was used before, so that an answer
   to one that has gone reaches nobody else. */
#include "net/line_server.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/line_link.h"
#include "net/local_address.h"

enum { EVENTS = 64, FIRST_CLIENTS = 64, LISTENER = -1 };

typedef struct client {
  lt_line_link link; /* fd -1: a free place */
  int64_t uses;
  bool cut; /* reads too slowly: an event says so next */
} client;

struct lt_line_server {
  const char *op;
  int epoll, fd, port;
  lt_line_limits limits;
  client *clients;
  int64_t n, capacity; /* places that have been used, and that there are */
  int64_t current;     /* may have more lines; -1: none */
  struct epoll_event events[EVENTS];
  int n_events, next_event;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* As many descriptors as this process may have: each client is one. */
static void allow_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static bool watch(const lt_line_server *s, int how, int fd, int64_t place, uint32_t events) {
  struct epoll_event e = {.events = events, .data.u64 = (uint64_t)place};
  return epoll_ctl(s->epoll, how, fd, &e) == 0;
}

lt_line_server *lt_line_server_open(lt_ctx *c, const char *op, const char *host, int port,
                                    lt_line_limits limits) {
  int fd = lt_listen_at(c, op, host, &port);
  if (fd < 0) return NULL;
  lt_line_server *s = lt_alloc(c, sizeof *s);
  if (s == NULL) {
    close(fd);
    return NULL;
  }
  s->op = op;
  s->fd = fd;
  s->port = port;
  s->limits = limits;
  s->current = -1;
  s->epoll = epoll_create1(EPOLL_CLOEXEC);
  allow_descriptors();
  if (s->epoll >= 0 && watch(s, EPOLL_CTL_ADD, fd, LISTENER, EPOLLIN)) return s;
  lt_fail(c, LT_EIO, "%s: no descriptors are left for a server", op);
  lt_line_server_close(c, s);
  return NULL;
}

void lt_line_server_close(lt_ctx *c, lt_line_server *s) {
  if (s == NULL) return;
  for (int64_t k = 0; k < s->n; k++) lt_line_link_close(c, &s->clients[k].link);
  lt_free(c, s->clients, (size_t)s->capacity * sizeof *s->clients);
  if (s->epoll >= 0) close(s->epoll);
  close(s->fd);
  lt_free(c, s, sizeof *s);
}

int lt_line_server_port(const lt_line_server *s) { return s->port; }

/* ---- places ---- */

/* A free place; -1 without memory. */
static int64_t find_place(lt_ctx *c, lt_line_server *s) {
  for (int64_t k = 0; k < s->n; k++)
    if (s->clients[k].link.fd < 0) return k;
  if (s->n == s->capacity) {
    int64_t capacity = s->capacity == 0 ? FIRST_CLIENTS : 2 * s->capacity;
    size_t old = (size_t)s->capacity * sizeof *s->clients;
    size_t new = (size_t)capacity * sizeof *s->clients;
    client *clients = s->clients == NULL ? lt_alloc(c, new) : lt_realloc(c, s->clients, old, new);
    if (clients == NULL) return -1;
    s->clients = clients;
    s->capacity = capacity;
  }
  s->clients[s->n] = (client){.link.fd = -1};
  return s->n++;
}

/* 20 bits for the place (a million clients), the rest for how often it was used: the number of a
   client that has gone is never that of its successor. */
static int64_t number_of(const lt_line_server *s, int64_t place) {
  return (s->clients[place].uses << 20) + place;
}

/* NULL when it has gone. */
static client *client_of(lt_line_server *s, int64_t number) {
  int64_t place = number & ((1 << 20) - 1);
  bool here = number >= 0 && place < s->n && s->clients[place].link.fd >= 0 &&
              number_of(s, place) == number;
  return here ? &s->clients[place] : NULL;
}

/* One for each event: epoll is level-triggered, so that those still waiting wake the next wait, and
   a flood of new clients does not starve those that are there. */
static void accept_one(lt_ctx *c, lt_line_server *s) {
  int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  int64_t place = find_place(c, s);
  if (place < 0 || place >= 1 << 20 || !watch(s, EPOLL_CTL_ADD, fd, place, EPOLLIN)) {
    close(fd);
    return;
  }
  client *k = &s->clients[place];
  lt_line_link_open(&k->link, fd);
  k->cut = false;
}

/* ---- events ---- */

static void say_gone(lt_ctx *c, lt_line_server *s, int64_t place, lt_line_event *event) {
  *event = (lt_line_event){.client = number_of(s, place)};
  lt_line_link_close(c, &s->clients[place].link);
  s->clients[place].uses++;
}

/* All lines of one client before the next event: they came in one read, and epoll reports only what
   is still in the socket. */
static bool take(lt_line_server *s, lt_line_event *event) {
  if (s->current < 0) return false;
  client *k = &s->clients[s->current];
  event->line = k->link.fd < 0 ? NULL : lt_line_buffer_take(&k->link.in, &event->size);
  event->client = number_of(s, s->current);
  if (event->line == NULL) s->current = -1;
  return event->line != NULL;
}

/* Whether *event is set: a client has gone. Lines come by `current`. */
static bool serve(lt_ctx *c, lt_line_server *s, const struct epoll_event *e, lt_line_event *event) {
  int64_t place = (int64_t)e->data.u64;
  if (place == LISTENER) {
    accept_one(c, s);
    return false;
  }
  client *k = &s->clients[place];
  if (k->link.fd < 0) return false;
  bool ok = !k->cut;
  if (ok && (e->events & EPOLLOUT)) {
    ok = lt_line_link_flush(&k->link);
    if (ok && lt_line_buffer_left(&k->link.out) == 0)
      watch(s, EPOLL_CTL_MOD, k->link.fd, place, EPOLLIN);
  }
  if (ok && (e->events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
    ok = lt_line_link_read(c, &k->link, s->limits.line_bytes);
  if (ok)
    s->current = place;
  else
    say_gone(c, s, place, event);
  return !ok;
}

bool lt_line_server_wait(lt_ctx *c, lt_line_server *s, double seconds, lt_line_event *event) {
  double deadline = now() + seconds;
  for (;;) {
    if (take(s, event)) return true;
    if (s->next_event < s->n_events) {
      if (serve(c, s, &s->events[s->next_event++], event)) return true;
      continue;
    }
    double ms = (deadline - now()) * 1e3;
    int timeout = ms <= 0 ? 0 : ms > INT_MAX - 1 ? INT_MAX - 1 : (int)ms + 1;
    s->n_events = epoll_wait(s->epoll, s->events, EVENTS, timeout);
    s->next_event = 0;
    if (s->n_events > 0) continue;
    s->n_events = 0;
    return false;
  }
}

/* Never waits: what the socket does not take is kept, up to a limit, and EPOLLOUT asked for. Beyond
   it the client is cut off, as one that does not read must not hold up the others. */
bool lt_line_server_send(lt_ctx *c, lt_line_server *s, int64_t number, const char *line,
                         size_t n) {
  client *k = client_of(s, number);
  if (k == NULL || k->cut) return false;
  int64_t place = k - s->clients;
  bool waited = lt_line_buffer_left(&k->link.out) > 0;
  if (lt_line_link_send(c, &k->link, line, n, s->limits.unread_bytes)) {
    if (!waited && lt_line_buffer_left(&k->link.out) > 0)
      watch(s, EPOLL_CTL_MOD, k->link.fd, place, EPOLLIN | EPOLLOUT);
    return true;
  }
  k->cut = true; /* the end of its socket wakes the next wait, which says that it has gone */
  shutdown(k->link.fd, SHUT_RDWR);
  return false;
}
