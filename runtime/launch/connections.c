/* runtime/launch/connections.c: TCP between the watchdogs of joined ranks: rank 0 listens, the
   others dial.

   A link that is cut for less than `timeout` must not end the job, and after a silent cut TCP
   itself stays silent for as long again as the cut lasted (measured: 14.4 s after one of 7.2 s). So
   a rank that receives nothing for some seconds connects again, rank 0 takes the newest connection
   whose caller proves that it knows the token, and what was sent on the old one is sent again.

   A rank dials all addresses of rank 0 at once, and proves itself to the first that answers: rank 0
   has one new connection a round, and both ends take it.

   Both ends prove that they know the token without sending it: each answers random bytes of the
   other's with their HMAC (launch/handshake.c), so that neither a listener nor a recorded
   connection can join. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/world.h"

/* A round of calls is given up after DIAL_S; the system asks twice in it. */
enum { DIAL_S = 3, CROWDED_S = 1, PAUSE_MS = 200 };

/* A connection on which not both ends have proved who they are. */
typedef struct pending_connection {
  lt_channel link;
  int64_t since_ns;
  lt_handshake greeting;
  bool challenged; /* by rank 0, which proves itself first */
} pending_connection;

struct lt_connections {
  int listen_fds[LT_ADDRESSES];
  lt_endpoint endpoint;
  _Atomic bool known;                                 /* it is, and listened to */
  int64_t connected_ns;                               /* when the last round was */
  pending_connection pending[LT_PENDING_CONNECTIONS]; /* callers; elsewhere our own calls */
  bool reported;                                      /* that a connection was refused */
};

lt_connections *lt_connections_new(lt_ctx *c) {
  lt_connections *s = lt_alloc(c, sizeof *s);
  if (s == NULL) return NULL;
  for (int i = 0; i < LT_ADDRESSES; i++) s->listen_fds[i] = -1;
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) s->pending[i].link.fd = -1;
  return s;
}

static void close_pending(lt_connections *s) {
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) lt_channel_close(&s->pending[i].link);
}

void lt_connections_release(lt_ctx *c, lt_connections *s) {
  if (s == NULL) return;
  close_pending(s);
  for (int i = 0; i < LT_ADDRESSES; i++)
    if (s->listen_fds[i] >= 0) close(s->listen_fds[i]);
  lt_free(c, s, sizeof *s);
}

bool lt_connections_listen(lt_ctx *c, lt_connections *s, lt_endpoint *endpoint) {
  if (!lt_address_listen(endpoint->addresses, s->listen_fds))
    return lt_fail(c, LT_EIO, "launch: cannot listen for the control channel: %s", strerror(errno));
  if (!lt_random_bytes(endpoint->token, sizeof endpoint->token))
    return lt_fail(c, LT_EIO, "launch: cannot read random bytes: %s", strerror(errno));
  lt_connections_connect(s, endpoint);
  return true;
}

void lt_connections_connect(lt_connections *s, const lt_endpoint *endpoint) {
  s->endpoint = *endpoint;
  atomic_store(&s->known, true); /* the watchdog runs already */
}

/* Somebody at the other end is not of this job. */
static void refuse(lt_watchdog *d, pending_connection *k) {
  char from[96], text[256];
  if (!d->connections->reported && d->world->owns_process) {
    lt_address_peer_text(k->link.fd, from, sizeof from);
    snprintf(text, sizeof text,
             "%s: refused a connection %s %s: its token is not that of this job",
             d->world->what, d->info->rank == 0 ? "from" : "to", from);
    lt_watchdog_print(d, text);
    d->connections->reported = true;
  }
  lt_channel_close(&k->link);
}

static void begin(pending_connection *k, int fd, int64_t now) {
  int one = 1;
  /* Messages are small and few: waiting to fill a packet (J. Nagle's algorithm) would only delay
     them. */
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  lt_channel_close(&k->link);
  lt_channel_open(&k->link, fd, true);
  k->since_ns = now;
  k->challenged = false;
}

/* The connection is now the one to this peer. */
static void become_link(lt_peer *p, pending_connection *k) {
  lt_channel_close(&p->link);
  p->link = k->link;
  k->link.fd = -1;
  p->ended_ns = p->silent_ns = 0;
}

/* ---- rank 0 ---- */

/* A place for one more: a free one, or that of the oldest, which has had its time. */
static pending_connection *place_of(lt_connections *s, int64_t now) {
  pending_connection *oldest = &s->pending[0];
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) {
    pending_connection *k = &s->pending[i];
    if (!lt_channel_is_open(&k->link)) return k;
    if (k->since_ns < oldest->since_ns) oldest = k;
  }
  return now - oldest->since_ns > (int64_t)CROWDED_S * LT_SECOND ? oldest : NULL;
}

/* Those for which there is no slot yet wait in the kernel's queue. */
static void accept_pending(lt_connections *s, int listen_fd, int64_t now) {
  for (pending_connection *k; listen_fd >= 0 && (k = place_of(s, now)) != NULL;) {
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    begin(k, fd, now);
  }
}

/* The newest connection of a rank counts; it may have missed what went out on the old one. */
static void adopt(lt_watchdog *d, pending_connection *k) {
  int rank = k->greeting.rank;
  become_link(&d->peers[rank], k);
  if (lt_mailbox_has(d->mail, LT_NOTICE_READY)) lt_watchdog_send_kind(d, rank, LT_MESSAGE_READY);
  if (lt_mailbox_has(d->mail, LT_NOTICE_ALL_LEFT))
    lt_watchdog_send_kind(d, rank, LT_MESSAGE_ALL_LEFT);
  if (lt_heartbeat_is_over(d->heartbeat)) lt_watchdog_send(d, rank, &d->failure);
  if (lt_mailbox_has(d->mail, LT_NOTICE_ALL_DONE))
    lt_watchdog_send_kind(d, rank, LT_MESSAGE_ALL_DONE);
}

static void all_ready(lt_watchdog *d) {
  if (lt_mailbox_has(d->mail, LT_NOTICE_READY)) return;
  for (int r = 1; r < d->n_peers; r++)
    if (!lt_channel_is_open(&d->peers[r].link)) return;
  lt_coordinator_broadcast(d, LT_MESSAGE_READY);
  lt_mailbox_notify(d->mail, LT_NOTICE_READY);
}

static void challenge(lt_watchdog *d, pending_connection *k) {
  lt_handshake *h = &k->greeting;
  if (!lt_handshake_read(&d->in, LT_MESSAGE_HELLO, h, NULL) || h->rank <= 0 ||
      h->rank >= d->n_peers) {
    refuse(d, k);
  } else if (d->peers[h->rank].exited || !lt_random_bytes(h->coordinator, LT_CHALLENGE_BYTES)) {
    lt_channel_close(&k->link);
  } else {
    lt_handshake_write(&d->out, LT_MESSAGE_CHALLENGE, h, d->connections->endpoint.token);
    lt_channel_send(&k->link, &d->out);
    k->challenged = true;
  }
}

static void receive_pending(lt_watchdog *d, pending_connection *k) {
  lt_channel_flush(&k->link);
  if (lt_channel_receive(&k->link, &d->in) != LT_GOT_MESSAGE) return;
  const unsigned char *token = d->connections->endpoint.token;
  if (!k->challenged)
    challenge(d, k);
  else if (lt_handshake_read(&d->in, LT_MESSAGE_PROOF, &k->greeting, token))
    adopt(d, k);
  else
    refuse(d, k);
}

static void coordinator_turn(lt_watchdog *d) {
  lt_connections *s = d->connections;
  for (int i = 0; i < LT_ADDRESSES; i++) accept_pending(s, s->listen_fds[i], d->now_ns);
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) receive_pending(d, &s->pending[i]);
  all_ready(d);
}

/* ---- the others; both ---- */

static void connect_one(lt_watchdog *d, pending_connection *k, const lt_address *a) {
  const struct sockaddr *to = (const struct sockaddr *)(const void *)a->address;
  lt_handshake *h = &k->greeting;
  int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  *h = (lt_handshake){.rank = d->info->rank};
  if (!lt_random_bytes(h->worker, sizeof h->worker) ||
      (connect(fd, to, a->bytes) != 0 && errno != EINPROGRESS)) {
    close(fd);
    return;
  }
  begin(k, fd, d->now_ns);
  lt_handshake_write(&d->out, LT_MESSAGE_HELLO, h, NULL);
  lt_channel_send(&k->link, &d->out);
}

static bool is_connecting(const lt_connections *s) {
  for (int i = 0; i < LT_ADDRESSES; i++)
    if (lt_channel_is_open(&s->pending[i].link)) return true;
  return false;
}

static bool shall_connect(const lt_watchdog *d) {
  const lt_peer *coordinator = &d->peers[0];
  if (lt_channel_is_open(&coordinator->link) && lt_peer_is_heard(coordinator)) return false;
  int64_t pause = is_connecting(d->connections) ? (int64_t)DIAL_S * LT_SECOND : PAUSE_MS * LT_MS;
  return d->now_ns - d->connections->connected_ns >= pause;
}

static void connect_all(lt_watchdog *d) {
  lt_connections *s = d->connections;
  close_pending(s);
  s->connected_ns = d->now_ns;
  for (int i = 0; i < LT_ADDRESSES; i++)
    if (s->endpoint.addresses[i].bytes > 0)
      connect_one(d, &s->pending[i], &s->endpoint.addresses[i]);
}

static void receive_challenge(lt_watchdog *d, pending_connection *k) {
  lt_connections *s = d->connections;
  lt_channel_flush(&k->link);
  if (lt_channel_receive(&k->link, &d->in) != LT_GOT_MESSAGE) return;
  if (!lt_handshake_read(&d->in, LT_MESSAGE_CHALLENGE, &k->greeting, s->endpoint.token)) {
    refuse(d, k);
    return;
  }
  lt_handshake_write(&d->out, LT_MESSAGE_PROOF, &k->greeting, s->endpoint.token);
  lt_channel_send(&k->link, &d->out);
  become_link(&d->peers[0], k);
  close_pending(s);
  lt_worker_resend(d);
}

static void worker_turn(lt_watchdog *d) {
  if (d->peers[0].exited) return;
  if (shall_connect(d)) connect_all(d);
  for (int i = 0; i < LT_ADDRESSES; i++) receive_challenge(d, &d->connections->pending[i]);
}

void lt_connections_turn(lt_watchdog *d) {
  if (!atomic_load(&d->connections->known)) return;
  if (d->info->rank == 0)
    coordinator_turn(d);
  else
    worker_turn(d);
}

int lt_connections_polls(lt_watchdog *d, int n) {
  lt_connections *s = d->connections;
  bool fits = atomic_load(&s->known) && place_of(s, d->now_ns) != NULL;
  for (int i = 0; i < LT_ADDRESSES && fits; i++)
    d->polls[n++] = (struct pollfd){.fd = s->listen_fds[i], .events = POLLIN};
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++)
    d->polls[n++] = lt_channel_poll(&s->pending[i].link);
  return n;
}
