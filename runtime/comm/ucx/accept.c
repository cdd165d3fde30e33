/* runtime/comm/ucx/accept.c: rank 0 accepts the connections of all other ranks.

   It keeps their connections until all are there: one that ends before makes its rank missing
   again. Whoever sends something else, or too slowly, takes a place among STRANGERS at most. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/ucx/bootstrap.h"

enum { STRANGERS = 64, LISTED = 8 };

/* A connection. `address` is complete once `got` covers it. */
typedef struct client {
  int fd; /* -1: none */
  lt_bootstrap_hello hello;
  char *address;
  size_t got; /* of the hello and the address */
  bool is_accepted;
} client;

typedef struct exchange {
  const lt_ucx_world *w;
  const lt_bootstrap_place *at;
  lt_bootstrap_hello own;
  int listener;
  client *clients; /* [n] */
  client **ranks;  /* [size] accepted ones, by rank */
  int missing;
  struct pollfd *polls; /* [n + 1] */
  int n;
  char refused[LT_COMM_TEXT]; /* the last one, and why */
} exchange;

static bool is_loopback(const char *host) {
  return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
         strcmp(host, "::1") == 0;
}

/* Under all addresses of the machine, unless the host's name can be reached from here alone: the
   name often has another address on the machine itself (127.0.1.1). */
static int listen_at(const char *host, int port) {
  enum { BACKLOG = 1024 };
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  bool is_six = is_loopback(host) ? strcmp(host, "::1") == 0 : true;
  int off = 0, on = 1, fd = -1;
  if (is_loopback(host)) {
    six.sin6_addr = in6addr_loopback;
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  if (is_six) fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  is_six = fd >= 0;
  if (!is_six) fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (is_six) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int bound = is_six ? bind(fd, (const struct sockaddr *)&six, sizeof six)
                     : bind(fd, (const struct sockaddr *)&four, sizeof four);
  if (bound == 0 && listen(fd, BACKLOG) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

/* The first bytes of sockaddr_in and sockaddr_in6 (family, port) are laid out alike. */
static int port_of(int fd) {
  struct sockaddr_in6 name = {.sin6_family = AF_UNSPEC}; /* of IPv4 the port is in the same place */
  socklen_t n = sizeof name;
  return getsockname(fd, (struct sockaddr *)&name, &n) == 0 ? ntohs(name.sin6_port) : 0;
}

/* On any port, which goes to the file. */
static int open_for_file(const lt_bootstrap_place *at, char *text) {
  int fd = listen_at("", 0);
  if (fd < 0) snprintf(text, LT_COMM_TEXT, "rank 0 cannot listen: %s", strerror(errno));
  if (fd < 0 || lt_bootstrap_file_write(at, port_of(fd), text)) return fd;
  close(fd);
  return -1;
}

static int listen_on_first_free(const lt_bootstrap_place *at, char *text) {
  int fd = -1;
  if (at->file != NULL) return open_for_file(at, text);
  for (int port = at->first; fd < 0 && port <= at->last; port++) fd = listen_at(at->host, port);
  if (fd >= 0) return fd;
  snprintf(text, LT_COMM_TEXT, "rank 0 cannot listen on port %d (MASTER_PORT): %s%s", at->first,
           strerror(errno), errno == EADDRINUSE ? ": choose another one" : "");
  return -1;
}

static bool answer(int fd, lt_bootstrap_outcome outcome, const void *bytes, size_t n) {
  enum { SLOW_MS = 10000 };
  lt_bootstrap_answer a = {.outcome = outcome, .bytes = (uint32_t)n};
  int64_t limit = lt_bootstrap_now() + (int64_t)SLOW_MS * 1000000;
  memcpy(a.magic, LT_BOOTSTRAP_MAGIC, sizeof a.magic);
  return lt_bootstrap_send(fd, &a, sizeof a, limit) &&
         (n == 0 || lt_bootstrap_send(fd, bytes, n, limit));
}

static void drop_client(exchange *x, client *v) {
  if (v->fd >= 0) close(v->fd);
  free(v->address);
  if (v->is_accepted) x->ranks[v->hello.rank] = NULL;
  if (v->is_accepted) x->missing++;
  *v = (client){.fd = -1};
}

/* Why this rank is refused; NULL: it is accepted. */
static const char *problem_of(const exchange *x, const lt_bootstrap_hello *h,
                              char text[LT_COMM_TEXT]) {
  enum { N = LT_COMM_TEXT };
  int size = x->w->size;
  const client *same = h->rank >= 0 && h->rank < size ? x->ranks[h->rank] : NULL;
  if (h->size != size)
    snprintf(text, N,
             "rank %d of %.64s was started as one of %d ranks, rank 0 as one of %d "
             "(WORLD_SIZE)",
             h->rank, h->host, h->size, size);
  else if (h->rank == 0)
    snprintf(text, N, "a second rank 0 was started, on %.64s (RANK)", h->host);
  else if (h->rank < 0 || h->rank >= size)
    snprintf(text, N, "%.64s has a rank %d, of %d ranks (RANK)", h->host, h->rank, size);
  else if (same != NULL)
    snprintf(text, N,
             "rank %d was started twice (RANK): process %d of %.64s, and process %d of "
             "%.64s",
             h->rank, same->hello.pid, same->hello.host, h->pid, h->host);
  else
    return NULL;
  return text;
}

/* Accepts or refuses a client that has sent its hello and its address. The token is checked first:
   another job learns nothing of this one, and its rank tries the next port. */
static void check_hello(exchange *x, client *v) {
  char why[LT_COMM_TEXT];
  lt_bootstrap_hello *h = &v->hello;
  if (h->token != x->own.token) {
    snprintf(x->refused, sizeof x->refused,
             "a rank %d of %.64s has another token "
             "(LTRAIN_TOKEN)",
             h->rank, h->host);
    answer(v->fd, LT_BOOTSTRAP_STRANGER, NULL, 0);
    drop_client(x, v);
  } else if (problem_of(x, h, why) != NULL) {
    memcpy(x->refused, why, sizeof why);
    answer(v->fd, LT_BOOTSTRAP_REFUSED, why, strlen(why));
    drop_client(x, v);
  } else if (answer(v->fd, LT_BOOTSTRAP_WAIT, NULL, 0)) {
    v->is_accepted = true;
    x->ranks[h->rank] = v;
    x->missing--;
  } else {
    drop_client(x, v);
  }
}

/* The hello first, which says how long the address is. False: it is not a hello, or the client
   has closed the connection. */
static bool receive_part(client *v) {
  size_t head = sizeof v->hello, n = head;
  if (v->is_accepted) return false; /* it has said all: that it is readable means that it is gone */
  if (v->got >= head) n += v->hello.address_bytes;
  char *to = v->got < head ? (char *)&v->hello + v->got : v->address + (v->got - head);
  ssize_t k = recv(v->fd, to, n - v->got, 0);
  if (k <= 0) return k < 0 && (errno == EAGAIN || errno == EINTR);
  v->got += (size_t)k;
  if (v->got != head || v->address != NULL) return true;
  v->hello.host[LT_BOOTSTRAP_HOST - 1] = '\0';
  if (memcmp(v->hello.magic, LT_BOOTSTRAP_MAGIC, sizeof v->hello.magic) != 0 ||
      v->hello.address_bytes == 0 || v->hello.address_bytes > LT_BOOTSTRAP_ADDRESS)
    return false;
  v->address = calloc(1, v->hello.address_bytes);
  return v->address != NULL;
}

static bool is_complete(const client *v) {
  return v->address != NULL && v->got == sizeof v->hello + v->hello.address_bytes;
}

static void accept_client(exchange *x) {
  int fd = accept4(x->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  for (int k = 0; k < x->n; k++) {
    if (x->clients[k].fd >= 0) continue;
    x->clients[k].fd = fd;
    return;
  }
  close(fd); /* it comes again */
}

/* Serves what has come within `ms`. */
static void poll_once(exchange *x, int ms) {
  x->polls[x->n] = (struct pollfd){.fd = x->listener, .events = POLLIN};
  for (int k = 0; k < x->n; k++)
    x->polls[k] = (struct pollfd){.fd = x->clients[k].fd, .events = POLLIN};
  if (poll(x->polls, (nfds_t)x->n + 1, ms) <= 0) return;
  for (int k = 0; k < x->n; k++) {
    client *v = &x->clients[k];
    if (x->polls[k].revents == 0 || v->fd < 0) continue;
    if (!receive_part(v))
      drop_client(x, v);
    else if (is_complete(v))
      check_hello(x, v);
  }
  if (x->polls[x->n].revents != 0) accept_client(x);
}

/* "ranks 2, 5 of 8 have not come in time (LT_LAUNCH_TIMEOUT); a rank 1 of b has another token". */
static void format_missing(const exchange *x, char *text) {
  char list[128] = "";
  int n = x->missing, listed = 0;
  for (int r = 1; r < x->w->size && listed < LISTED; r++)
    if (x->ranks[r] == NULL)
      snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", listed++ > 0 ? ", " : "",
               r);
  snprintf(text, LT_COMM_TEXT, "%s %.80s%s of %d %s not come in time (LT_LAUNCH_TIMEOUT)%s%.80s",
           n == 1 ? "rank" : "ranks", list, n > listed ? ", .." : "", x->w->size,
           n == 1 ? "has" : "have", x->refused[0] != '\0' ? "; " : "", x->refused);
}

/* A length and an address for each rank, in the order of ranks: what every rank needs to open its
   endpoints (UCX worker addresses have no fixed length). */
static bool make_list(const exchange *x, char **all, size_t *bytes) {
  const lt_ucx_world *w = x->w;
  size_t n = (size_t)w->size * sizeof(uint32_t) + w->own_bytes, at = 0;
  for (int r = 1; r < w->size; r++) n += x->ranks[r]->hello.address_bytes;
  char *list = malloc(n);
  if (list == NULL) return false;
  for (int r = 0; r < w->size; r++) {
    const client *v = r > 0 ? x->ranks[r] : NULL;
    uint32_t length = v != NULL ? v->hello.address_bytes : (uint32_t)w->own_bytes;
    memcpy(list + at, &length, sizeof length);
    memcpy(list + at + sizeof length, v != NULL ? v->address : (const char *)w->own, length);
    at += sizeof length + length;
  }
  *all = list;
  *bytes = n;
  return true;
}

/* To all accepted clients. */
static void answer_all(exchange *x, lt_bootstrap_outcome outcome, const void *bytes, size_t n) {
  for (int k = 0; k < x->n; k++)
    if (x->clients[k].is_accepted) answer(x->clients[k].fd, outcome, bytes, n);
}

/* All or none: as long as one is missing no rank starts, and at the deadline those that wait get
   the reason, instead of each timing out by itself. */
static bool run_exchange(exchange *x, char **all, size_t *bytes, char *text) {
  while (x->missing > 0) {
    int ms = lt_bootstrap_left(x->at->deadline_ns, 1000);
    if (ms == 0) {
      format_missing(x, text);
      answer_all(x, LT_BOOTSTRAP_REFUSED, text, strlen(text));
      return false;
    }
    poll_once(x, ms);
  }
  if (!make_list(x, all, bytes)) {
    snprintf(text, LT_COMM_TEXT, "out of memory for the addresses of %d ranks", x->w->size);
    return false;
  }
  answer_all(x, LT_BOOTSTRAP_ALL, *all, *bytes);
  return true;
}

bool lt_bootstrap_collect(const lt_ucx_world *w, const lt_bootstrap_place *at, char **all,
                          size_t *bytes, char *text) {
  exchange x = {.w = w, .at = at, .n = w->size + STRANGERS, .missing = w->size - 1};
  lt_bootstrap_hello_of(w, at, &x.own);
  x.listener = listen_on_first_free(at, text);
  if (x.listener < 0) return false;
  x.clients = calloc((size_t)x.n, sizeof *x.clients);
  x.polls = calloc((size_t)x.n + 1, sizeof *x.polls);
  x.ranks = calloc((size_t)w->size, sizeof(client *));
  bool ok = x.clients != NULL && x.polls != NULL && x.ranks != NULL;
  if (!ok) snprintf(text, LT_COMM_TEXT, "out of memory for %d ranks", w->size);
  bool has_memory = ok;
  for (int k = 0; ok && k < x.n; k++) x.clients[k].fd = -1;
  ok = ok && run_exchange(&x, all, bytes, text);
  for (int k = 0; has_memory && k < x.n; k++) drop_client(&x, &x.clients[k]);
  free(x.ranks);
  free(x.clients);
  free(x.polls);
  if (at->file != NULL) lt_bootstrap_file_remove(at, port_of(x.listener));
  close(x.listener);
  return ok;
}
