/* runtime/apps/http.c: the HTTP server of http.h, on libmicrohttpd: its connections, and the state
   of each request.

   A request is put aside ("suspended") when it has come whole, and taken up again when it is
   answered; a stream, when there is nothing to send. The library tells a client that is cut off
   (by shutdown of its socket) from others in its own time, and then forgets it through
   on_connection.

   One thread and no callbacks into the caller: libmicrohttpd runs only within lt_http_wait, which
   hands out requests one by one; answers may come at any time later, in any order. So a script
   serves without locks, and a slow client cannot stop it, since everything that waits is
   suspended.

   Limits are part of the design, as the port is open to every program of the machine: heads of so
   many bytes, so many connections, seconds to ask and to read, a buffer of so many bytes for a
   stream; who is beyond one is cut off. */
#include "apps/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "apps/microhttpd.h"

/* BACKLOG: connections that the kernel keeps while the script computes. STREAM_BLOCK: bytes that
   the library asks a stream for at once. SHARE: where all places are taken, a SHARE-th of them is
   freed. */
enum { BACKLOG = 512, STREAM_BLOCK = 16384, SHARE = 8 /* a part of the places */ };
static const double LOOK_SECONDS = 0.5; /* between looks at who is late */

typedef enum client_state { READING, ASKED, ANSWERING, STREAMING } client_state;

typedef struct client {
  lt_http *server;
  struct client *next;
  lt_mhd_connection *connection;
  int fd;
  client_state state;
  double deadline;
  bool taken;     /* the caller has the request */
  bool suspended, cut, finished;
  char *target;
  size_t target_size;
  lt_http_request request;
  lt_mhd_response *response; /* to be queued */
  int status;
  char *data; /* of a stream: data[sent..size) waits */
  size_t sent, size, capacity;
} client;

struct lt_http {
  lt_ctx *c;
  const lt_microhttpd *library;
  lt_mhd_daemon *daemon;
  lt_http_options options;
  client *clients;
  int n_clients, epoll, port;
  int64_t next_id;
  double next_look;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What the library calls. */

static client *client_of(lt_http *h, lt_mhd_connection *connection) {
  void *const *context = h->library->connection_info(connection, LT_MHD_OF_CONTEXT);
  return context != NULL ? *context : NULL;
}

static void forget_request(client *k) {
  lt_ctx *c = k->server->c;
  if (k->response != NULL) k->server->library->release(k->response);
  lt_free(c, k->target, k->target_size);
  lt_free(c, k->data, k->capacity);
  k->response = NULL;
  k->target = k->data = NULL;
  k->target_size = k->sent = k->size = k->capacity = 0;
  k->taken = k->finished = false;
  k->request = (lt_http_request){0};
}

/* A client without memory gets none: on_request ends the connection then. */
static void on_connection(void *ud, lt_mhd_connection *connection, void **context, int what) {
  lt_http *h = ud;
  if (what == LT_MHD_STARTED) {
    client *k = lt_alloc(h->c, sizeof *k);
    *context = k;
    if (k == NULL) return;
    const int *fd = h->library->connection_info(connection, LT_MHD_OF_FD);
    *k = (client){.server = h, .next = h->clients, .connection = connection, .fd = *fd,
                  .deadline = now() + h->options.ask_seconds};
    h->clients = k;
    h->n_clients++;
    return;
  }
  client *k = *context;
  if (k == NULL) return;
  for (client **at = &h->clients; *at != NULL; at = &(*at)->next) {
    if (*at != k) continue;
    *at = k->next;
    h->n_clients--;
    break;
  }
  forget_request(k);
  lt_free(h->c, k, sizeof *k);
  *context = NULL;
}

/* The target as it came: what the handler is given later has been decoded. */
static void *on_target(void *ud, const char *target, lt_mhd_connection *connection) {
  client *k = client_of(ud, connection);
  if (k == NULL) return NULL;
  forget_request(k);
  k->target_size = strlen(target) + 1;
  k->target = lt_alloc(k->server->c, k->target_size);
  if (k->target != NULL) memcpy(k->target, target, k->target_size);
  return NULL;
}

static int add_field(void *ud, int kind, const char *name, const char *value) {
  (void)kind;
  lt_http_request *r = ud;
  if (r->n_fields < LT_HTTP_FIELDS)
    r->fields[r->n_fields] = (lt_http_field){name, value != NULL ? value : ""};
  r->n_fields++;
  return LT_MHD_YES;
}

/* Requests with a body are refused: nothing here takes uploads, and without bodies there is no
   state between a head and its answer, nor a way to smuggle a second request in one. */
static bool has_body(const lt_http_request *r) {
  for (int i = 0; i < r->n_fields && i < LT_HTTP_FIELDS; i++) {
    const lt_http_field *f = &r->fields[i];
    if (strcasecmp(f->name, "transfer-encoding") == 0) return true;
    if (strcasecmp(f->name, "content-length") == 0 && strcmp(f->value, "0") != 0) return true;
  }
  return false;
}

/* For what is not a request that the caller should see; the connection ends with it. */
static int refuse(client *k, unsigned status) {
  const lt_microhttpd *m = k->server->library;
  lt_mhd_response *response = m->from_buffer(0, NULL, LT_MHD_MUST_COPY);
  if (response == NULL) return !LT_MHD_YES;
  m->header(response, "Connection", "close");
  int done = m->queue(k->connection, status, response);
  m->release(response);
  k->state = ANSWERING;
  return done;
}

/* A suspended connection is not polled: it costs nothing until it is taken up again. take_up may be
   called for one that is not suspended. */
static void put_aside(client *k) {
  k->server->library->suspend(k->connection);
  k->suspended = true;
}

static void take_up(client *k) {
  if (k->suspended) k->server->library->resume(k->connection);
  k->suspended = false;
}

static int queue(client *k) {
  const lt_microhttpd *m = k->server->library;
  int done = m->queue(k->connection, (unsigned)k->status, k->response);
  m->release(k->response);
  k->response = NULL;
  k->deadline = now() + k->server->options.read_seconds;
  if (k->state == ASKED) k->state = ANSWERING;
  return done;
}

/* Called when the head of a request is there, when all of it is, and when it is taken up again. */
static int on_request(void *ud, lt_mhd_connection *connection, const char *url,
                      const char *method, const char *version, const char *upload,
                      size_t *upload_size, void **of_request) {
  (void)url;
  (void)upload;
  client *k = client_of(ud, connection);
  if (k == NULL || k->cut || k->target == NULL) return !LT_MHD_YES;
  if (*of_request == NULL) {
    *of_request = k;
    lt_http_request *r = &k->request;
    *r = (lt_http_request){.method = method, .target = k->target, .version = version};
    k->server->library->values(connection, LT_MHD_HEADERS, add_field, r);
    if (r->n_fields > LT_HTTP_FIELDS) return refuse(k, 431);
    return has_body(r) ? refuse(k, 413) : LT_MHD_YES;
  }
  if (*upload_size != 0) return !LT_MHD_YES;
  if (k->response != NULL) return queue(k);
  if (k->state != READING) return !LT_MHD_YES;
  k->request.id = ++k->server->next_id;
  k->state = ASKED;
  put_aside(k);
  return LT_MHD_YES;
}

static void on_completed(void *ud, lt_mhd_connection *connection, void **of_request, int why) {
  (void)of_request;
  (void)why;
  client *k = client_of(ud, connection);
  if (k == NULL) return;
  forget_request(k);
  k->state = READING;
  k->deadline = now() + k->server->options.ask_seconds;
}

/* 0 bytes would make the library ask again at once; suspending the connection first makes it wait
   for lt_http_send. */
static ssize_t read_stream(void *ud, uint64_t position, char *out, size_t n) {
  (void)position;
  client *k = ud;
  size_t waiting = k->size - k->sent;
  if (k->cut) return LT_MHD_STREAM_FAILS;
  if (waiting == 0) {
    if (k->finished) return LT_MHD_STREAM_ENDS;
    put_aside(k);
    return 0;
  }
  if (n > waiting) n = waiting;
  memcpy(out, k->data + k->sent, n);
  k->sent += n;
  if (k->sent == k->size) k->sent = k->size = 0;
  return (ssize_t)n;
}

/* Opening and closing. */

/* Loopback only. Who wants it from elsewhere uses an SSH tunnel, which brings encryption and
   authentication that a server here would lack. */
static int listen_here(lt_ctx *c, const char *op, int port, int *chosen) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof a;
  bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, BACKLOG) == 0 &&
            getsockname(fd, (struct sockaddr *)&a, &size) == 0;
  if (ok) {
    *chosen = ntohs(a.sin_port);
    return fd;
  }
  if (errno == EADDRINUSE)
    lt_fail(c, LT_EIO, "%s: port %d of 127.0.0.1 is in use", op, port);
  else
    lt_fail(c, LT_EIO, "%s: cannot listen on port %d of 127.0.0.1: %s", op, port, strerror(errno));
  if (fd >= 0) close(fd);
  return -1;
}

lt_http *lt_http_open(lt_ctx *c, const char *op, const lt_http_options *o) {
  const lt_microhttpd *m = lt_microhttpd_open(c, op);
  if (m == NULL) return NULL;
  lt_http *h = lt_alloc(c, sizeof *h);
  if (h == NULL) return NULL;
  *h = (lt_http){.c = c, .library = m, .options = *o, .epoll = -1};
  int fd = listen_here(c, op, o->port, &h->port);
  if (fd < 0) goto failed;
  h->daemon = m->start(LT_MHD_EPOLL | LT_MHD_SUSPEND, 0, NULL, NULL, on_request, h,
                       LT_MHD_LISTEN_SOCKET, fd, LT_MHD_MEMORY_LIMIT, o->head_bytes,
                       LT_MHD_CONNECTIONS, (unsigned)o->connections, LT_MHD_URI_LOG, on_target, h,
                       LT_MHD_COMPLETED, on_completed, h, LT_MHD_NOTIFY_CONNECTION, on_connection,
                       h, LT_MHD_STRICT, 1, LT_MHD_END);
  if (h->daemon == NULL) {
    close(fd);
    lt_fail(c, LT_EIO, "%s: cannot start libmicrohttpd: %s", op, strerror(errno));
    goto failed;
  }
  h->epoll = *(const int *)m->daemon_info(h->daemon, LT_MHD_OF_EPOLL);
  return h;

failed:
  lt_free(c, h, sizeof *h);
  return NULL;
}

/* shutdown, not close: the descriptor belongs to the library, which notices the end and calls
   on_connection. */
static void cut(client *k) {
  k->cut = true;
  shutdown(k->fd, SHUT_RDWR);
  take_up(k);
}

void lt_http_close(lt_ctx *c, lt_http *h) {
  if (h == NULL) return;
  for (client *k = h->clients; k != NULL; k = k->next) cut(k);
  h->library->run(h->daemon);
  h->library->stop(h->daemon);
  lt_free(c, h, sizeof *h);
}

int lt_http_port(const lt_http *h) { return h->port; }

/* Serving. */

static bool is_late(const client *k, double time) {
  return !k->cut && (k->state == READING || k->state == ANSWERING) && k->deadline < time;
}

/* The connection that has been open longest without a request; NULL: all have made one. */
static client *idlest(lt_http *h) {
  client *found = NULL;
  for (client *k = h->clients; k != NULL; k = k->next)
    if (!k->cut && k->state == READING && (found == NULL || k->deadline < found->deadline))
      found = k;
  return found;
}

/* Who is late is cut off; where all places are taken, some of those that ask nothing. Whether any
   was: it is to be forgotten, and who waits for a place let in, without waiting for more. */
static bool look(lt_http *h) {
  double time = now();
  bool full = h->n_clients >= h->options.connections, any = false;
  if (time < h->next_look && !full) return false;
  h->next_look = time + LOOK_SECONDS;
  for (client *k = h->clients; k != NULL; k = k->next) {
    if (!is_late(k, time)) continue;
    cut(k);
    any = true;
  }
  for (int i = 0; full && i <= h->options.connections / SHARE; i++) {
    client *k = idlest(h);
    if (k == NULL) break;
    cut(k);
    any = true;
  }
  return any;
}

/* By id, in order of arrival: no client waits for ever behind others. Lists are walked, since
   connections are few (options.connections). */
static client *first_asked(lt_http *h) {
  client *first = NULL;
  for (client *k = h->clients; k != NULL; k = k->next) {
    if (k->state == ASKED && !k->taken && !k->cut &&
        (first == NULL || k->request.id < first->request.id))
      first = k;
  }
  return first;
}

/* It returns at least each LOOK_SECONDS to look for late clients; a signal ends the wait, so that
   Ctrl-C is noticed. */
const lt_http_request *lt_http_wait(lt_http *h, double seconds) {
  double deadline = now() + seconds;
  for (;;) {
    h->library->run(h->daemon);
    for (int i = 0; i < 2 && look(h); i++) h->library->run(h->daemon);
    client *k = first_asked(h);
    if (k != NULL) {
      k->taken = true;
      return &k->request;
    }
    double left = deadline - now();
    if (left <= 0) return NULL;
    if (left > LOOK_SECONDS) left = LOOK_SECONDS;
    unsigned long long most;
    if (h->library->timeout(h->daemon, &most) == LT_MHD_YES && (double)most * 1e-3 < left)
      left = (double)most * 1e-3;
    struct pollfd p = {.fd = h->epoll, .events = POLLIN};
    if (poll(&p, 1, (int)(left * 1e3 + 0.999)) < 0 && errno == EINTR) return NULL;
  }
}

static client *find(lt_http *h, int64_t id, client_state state) {
  for (client *k = h->clients; k != NULL; k = k->next)
    if (k->request.id == id && k->state == state && !k->cut) return k;
  return NULL;
}

/* Takes the response. */
static bool respond(client *k, int status, int n, const lt_http_field *fields,
                    lt_mhd_response *response) {
  if (response == NULL) {
    cut(k);
    return false;
  }
  for (int i = 0; i < n; i++)
    k->server->library->header(response, fields[i].name, fields[i].value);
  k->response = response;
  k->status = status;
  take_up(k);
  return true;
}

bool lt_http_answer(lt_http *h, int64_t id, int status, int n, const lt_http_field *fields,
                    const void *data, size_t size) {
  client *k = find(h, id, ASKED);
  if (k == NULL) return false;
  return respond(k, status, n, fields,
                 h->library->from_buffer(size, (void *)(uintptr_t)data, LT_MHD_MUST_COPY));
}

bool lt_http_stream(lt_http *h, int64_t id, int status, int n, const lt_http_field *fields) {
  client *k = find(h, id, ASKED);
  if (k == NULL) return false;
  k->state = STREAMING;
  return respond(k, status, n, fields,
                 h->library->from_reader(LT_MHD_UNKNOWN_SIZE, STREAM_BLOCK, read_stream, k, NULL));
}

/* What does not fit into the buffer means a client that does not read: it is cut off, as waiting
   for it would stop all others, and dropping parts would break its stream. */
bool lt_http_send(lt_http *h, int64_t id, const void *data, size_t size) {
  client *k = find(h, id, STREAMING);
  if (k == NULL) return false;
  size_t waiting = k->size - k->sent;
  if (size > h->options.stream_bytes - waiting) {
    cut(k);
    return false;
  }
  if (k->sent > 0) memmove(k->data, k->data + k->sent, waiting);
  k->sent = 0;
  k->size = waiting;
  if (waiting + size > k->capacity) {
    size_t capacity = 2 * (waiting + size);
    char *grown = lt_realloc(h->c, k->data, k->capacity, capacity);
    if (grown == NULL) {
      cut(k);
      return false;
    }
    k->data = grown;
    k->capacity = capacity;
  }
  memcpy(k->data + waiting, data, size);
  k->size += size;
  if (k->response == NULL) take_up(k);
  return true;
}

void lt_http_finish(lt_http *h, int64_t id) {
  client *k = find(h, id, STREAMING);
  if (k == NULL) return;
  k->finished = true;
  take_up(k);
}
