/* runtime/launch/connections.c: TCP between the watchdogs of joined ranks: rank 0 listens, the
   others dial.

   After a silent cut TCP itself stays silent for longer than the cut lasted, so a rank that hears
   nothing for some seconds dials a fresh connection every second, and rank 0 takes the newest one
   whose caller proves that it knows the token. What was said on the old one is said again.

   Several calls of a rank may get through at once, in any order, some of them given up. So calls
   are numbered, and both sides leave a connection only for a call of a higher number: in the end
   they are on the same one. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/world.h"

enum { SILENT_S = 3, HANDSHAKE_S = 10, CROWDED_S = 1, ENDED_PAUSE_MS = 200 };

/* A connection on which not both ends have proved who they are. */
typedef struct pending_connection {
  lt_channel link;
  int64_t since_ns;
  lt_handshake greeting;
  bool challenged; /* by rank 0, which of two ends proves itself first */
} pending_connection;

struct lt_connections {
  int listen_fds[LT_ADDRESSES];
  lt_endpoint card;
  _Atomic bool known; /* the card is, and where rank 0 listens */
  unsigned round;
  int64_t dialled_ns;   /* when the last round was */
  int32_t calls, taken; /* the number of our last call, and of the one we are on */
  pending_connection pending[LT_PENDING_CONNECTIONS]; /* callers; elsewhere our own calls */
  bool reported;                                      /* that somebody was refused */
};

lt_connections *lt_connections_new(lt_ctx *c) {
  lt_connections *s = lt_alloc(c, sizeof *s);
  if (s == NULL) return NULL;
  for (int i = 0; i < LT_ADDRESSES; i++) s->listen_fds[i] = -1;
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) s->pending[i].link.fd = -1;
  return s;
}

void lt_connections_release(lt_ctx *c, lt_connections *s) {
  if (s == NULL) return;
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) lt_channel_close(&s->pending[i].link);
  for (int i = 0; i < LT_ADDRESSES; i++)
    if (s->listen_fds[i] >= 0) close(s->listen_fds[i]);
  lt_free(c, s, sizeof *s);
}

bool lt_connections_listen(lt_ctx *c, lt_connections *s, lt_endpoint *card) {
  if (!lt_address_listen(card->addresses, s->listen_fds))
    return lt_fail(c, LT_EIO, "launch: no port for the control channel: %s", strerror(errno));
  if (!lt_random_bytes(card->token, sizeof card->token))
    return lt_fail(c, LT_EIO, "launch: no random bytes: %s", strerror(errno));
  s->card = *card;
  atomic_store(&s->known, true); /* the watchdog runs already */
  return true;
}

void lt_connections_dial(lt_connections *s, const lt_endpoint *card) {
  s->card = *card;
  atomic_store(&s->known, true);
}

/* Somebody at the other end is not of this job. */
static void refuse(lt_watchdog *d, pending_connection *who) {
  char from[96], text[256];
  if (!d->connections->reported && d->world->owns_process) {
    lt_address_peer_text(who->link.fd, from, sizeof from);
    snprintf(text, sizeof text,
             "%s: refused a connection %s %s: it does not know the token of this job",
             d->world->what, d->info->rank == 0 ? "from" : "to", from);
    lt_watchdog_print(d, text);
    d->connections->reported = true;
  }
  lt_channel_close(&who->link);
}

/* ---- rank 0 ---- */

/* A place for one more: a free one, or that of the one that has said nothing for long. */
static pending_connection *place_of(lt_connections *s, int64_t now) {
  pending_connection *oldest = &s->pending[0];
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) {
    pending_connection *k = &s->pending[i];
    if (!lt_channel_is_open(&k->link)) return k;
    if (k->since_ns < oldest->since_ns) oldest = k;
  }
  return now - oldest->since_ns > (int64_t)CROWDED_S * LT_SECOND ? oldest : NULL;
}

/* Those for whom there is no place yet wait where they are. */
static void accept_pending(lt_connections *s, int listen_fd, int64_t now) {
  int one = 1;
  for (pending_connection *k; listen_fd >= 0 && (k = place_of(s, now)) != NULL;) {
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    lt_channel_close(&k->link);
    lt_channel_open(&k->link, fd, true);
    k->since_ns = now;
    k->challenged = false;
  }
}

/* The newest connection of a rank counts; it may have missed what was told on the old one. */
static void adopt(lt_watchdog *d, pending_connection *who) {
  int rank = who->greeting.rank;
  lt_peer *p = &d->peers[rank];
  uint32_t notices = atomic_load(&d->mail->notices);
  lt_channel_close(&p->link);
  p->link = who->link;
  p->call = who->greeting.call;
  who->link.fd = -1;
  p->ended_ns = p->silent_ns = 0;
  lt_watchdog_send_kind(d, rank, LT_MESSAGE_WELCOME);
  if ((notices & LT_NOTICE_READY) != 0) lt_watchdog_send_kind(d, rank, LT_MESSAGE_READY);
  if ((notices & LT_NOTICE_ALL_LEFT) != 0) lt_watchdog_send_kind(d, rank, LT_MESSAGE_ALL_LEFT);
  if (lt_heartbeat_is_over(d->heartbeat)) lt_watchdog_send(d, rank, &d->best);
  if ((notices & LT_NOTICE_ALL_DONE) != 0) lt_watchdog_send_kind(d, rank, LT_MESSAGE_ALL_DONE);
}

static void all_ready(lt_watchdog *d) {
  if (lt_mailbox_has(d->mail, LT_NOTICE_READY)) return;
  for (int r = 1; r < d->n_peers; r++)
    if (!lt_channel_is_open(&d->peers[r].link)) return;
  lt_coordinator_broadcast(d, LT_MESSAGE_READY);
  lt_mailbox_notify(d->mail, LT_NOTICE_READY);
}

static bool is_wanted(const lt_watchdog *d, const lt_handshake *h) {
  return !d->peers[h->rank].exited && h->call > d->peers[h->rank].call;
}

static void challenge(lt_watchdog *d, pending_connection *who) {
  lt_handshake *h = &who->greeting;
  if (!lt_hello_read(&d->in, h) || h->rank <= 0 || h->rank >= d->n_peers) {
    refuse(d, who);
    return;
  }
  if (!is_wanted(d, h) || !lt_random_bytes(h->coordinator, sizeof h->coordinator)) {
    lt_channel_close(&who->link);
    return;
  }
  lt_challenge_write(&d->out, h, d->connections->card.token);
  lt_channel_send(&who->link, &d->out);
  who->challenged = true;
}

static void receive_pending(lt_watchdog *d, pending_connection *who) {
  lt_channel_flush(&who->link);
  if (lt_channel_receive(&who->link, &d->in) == LT_GOT_MESSAGE) {
    if (!who->challenged)
      challenge(d, who);
    else if (!lt_proof_read(&d->in, &who->greeting, d->connections->card.token))
      refuse(d, who);
    else if (is_wanted(d, &who->greeting))
      adopt(d, who);
    else
      lt_channel_close(&who->link);
  } else if (d->now_ns - who->since_ns > (int64_t)HANDSHAKE_S * LT_SECOND) {
    lt_channel_close(&who->link);
  }
}

static void coordinator_turn(lt_watchdog *d) {
  lt_connections *s = d->connections;
  if (!atomic_load(&s->known)) return;
  for (int i = 0; i < LT_ADDRESSES; i++) accept_pending(s, s->listen_fds[i], d->now_ns);
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) receive_pending(d, &s->pending[i]);
  all_ready(d);
}

/* ---- the others ---- */

static void dial_one(lt_watchdog *d, pending_connection *call, const lt_address *a) {
  const struct sockaddr *to = (const struct sockaddr *)(const void *)a->address;
  lt_handshake *h = &call->greeting;
  int one = 1, fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  *h = (lt_handshake){.rank = d->info->rank, .call = ++d->connections->calls};
  if (!lt_random_bytes(h->worker, sizeof h->worker) ||
      (connect(fd, to, a->bytes) != 0 && errno != EINPROGRESS)) {
    close(fd);
    return;
  }
  lt_channel_open(&call->link, fd, true);
  call->challenged = false;
  lt_hello_write(&d->out, h);
  lt_channel_send(&call->link, &d->out);
}

/* All addresses at once. A call may take three rounds. */
static void dial(lt_watchdog *d) {
  lt_connections *s = d->connections;
  pending_connection *row =
      s->pending + s->round++ % (LT_PENDING_CONNECTIONS / LT_ADDRESSES) * LT_ADDRESSES;
  s->dialled_ns = d->now_ns;
  for (int i = 0; i < LT_ADDRESSES; i++) {
    lt_channel_close(&row[i].link);
    if (s->card.addresses[i].bytes > 0) dial_one(d, &row[i], &s->card.addresses[i]);
  }
}

/* A connection that ended counts as the end of a process soon after: there is no second to lose. */
static bool shall_dial(const lt_watchdog *d) {
  const lt_peer *coordinator = &d->peers[0];
  bool silent = coordinator->silent_ns >= (int64_t)SILENT_S * LT_SECOND;
  int64_t pause = coordinator->ended_ns != 0 ? (int64_t)ENDED_PAUSE_MS * LT_MS : LT_SECOND;
  return (!lt_channel_is_open(&coordinator->link) || silent) &&
         d->now_ns - d->connections->dialled_ns >= pause;
}

/* Older calls are in vain now; younger ones may be what rank 0 takes yet. */
static void take(lt_watchdog *d, pending_connection *call) {
  lt_connections *s = d->connections;
  lt_peer *coordinator = &d->peers[0];
  lt_channel_close(&coordinator->link);
  coordinator->link = call->link;
  call->link.fd = -1;
  s->taken = call->greeting.call;
  coordinator->ended_ns = coordinator->silent_ns = 0;
  for (int k = 0; k < LT_PENDING_CONNECTIONS; k++)
    if (s->pending[k].greeting.call < s->taken) lt_channel_close(&s->pending[k].link);
  lt_worker_resend(d);
  lt_watchdog_receive(d, 0);
}

static void receive_call(lt_watchdog *d, pending_connection *call) {
  lt_channel_flush(&call->link);
  if (lt_channel_receive(&call->link, &d->in) != LT_GOT_MESSAGE) return;
  if (!call->challenged) {
    if (!lt_challenge_read(&d->in, &call->greeting, d->connections->card.token)) {
      refuse(d, call);
      return;
    }
    call->challenged = true;
    lt_proof_write(&d->out, &call->greeting, d->connections->card.token);
    lt_channel_send(&call->link, &d->out);
  } else if (d->in.kind == LT_MESSAGE_WELCOME && call->greeting.call > d->connections->taken) {
    take(d, call);
  }
}

static void worker_turn(lt_watchdog *d) {
  lt_connections *s = d->connections;
  if (!atomic_load(&s->known) || d->peers[0].exited) return;
  if (shall_dial(d)) dial(d);
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) receive_call(d, &s->pending[i]);
}

/* ---- both ---- */

void lt_connections_turn(lt_watchdog *d) {
  if (d->info->rank == 0)
    coordinator_turn(d);
  else
    worker_turn(d);
}

/* Heartbeats go out every second; a host answers them, whatever its ranks do. */
static bool is_cut(const lt_channel *ch) {
  struct tcp_info info;
  socklen_t bytes = sizeof info;
  if (ch->fd < 0 || getsockopt(ch->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
  return info.tcpi_unacked > 0;
}

const char *lt_connections_lost(lt_watchdog *d, const lt_channel *ch) {
  if (!ch->stream) return "stopped?";
  if (!is_cut(ch)) return "stopped? its host answers";
  d->unreachable = true;
  return "cut off? its host does not answer";
}

int lt_connections_polls(lt_watchdog *d, int n) {
  lt_connections *s = d->connections;
  bool room = atomic_load(&s->known) && place_of(s, d->now_ns) != NULL;
  for (int i = 0; i < LT_ADDRESSES && room; i++)
    if (s->listen_fds[i] >= 0)
      d->polls[n++] = (struct pollfd){.fd = s->listen_fds[i], .events = POLLIN};
  for (int i = 0; i < LT_PENDING_CONNECTIONS; i++) {
    const lt_channel *ch = &s->pending[i].link;
    short out = lt_channel_is_full(ch) ? POLLOUT : 0;
    if (ch->fd >= 0) d->polls[n++] = (struct pollfd){.fd = ch->fd, .events = (short)(POLLIN | out)};
  }
  return n;
}
