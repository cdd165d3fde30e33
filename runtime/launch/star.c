/* runtime/launch/star.c: TCP between the watchdogs of joined ranks: rank 0 listens, others dial.

   After a silent cut TCP itself stays silent for longer than the cut lasted, so a rank that hears
   nothing for some seconds dials a fresh connection every second, and rank 0 takes the newest one
   whose caller knows the token. What was said on the old one is said again.

   Several calls of a rank may get through at once, in any order, some of them given up. So calls
   are numbered, and both sides leave a connection only for a call of a higher number: in the end
   they are on the same one. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/world.h"

enum { SILENT_S = 3, STRANGER_S = 10, ENDED_PAUSE_MS = 200, BACKLOG = 256 };

struct lt_star {
  int listen_fd;
  uint64_t token[2];
  lt_address addresses[LT_ADDRESSES];
  _Atomic bool known; /* the addresses and the token are */
  unsigned round;
  int64_t dialled_ns;                 /* when the last round was */
  int32_t calls, taken;               /* the number of our last call, and of the one we are on */
  lt_channel strangers[LT_STRANGERS]; /* callers that have not said who they are; our own calls */
  int32_t numbers[LT_STRANGERS];      /* of our own calls */
  int64_t since_ns[LT_STRANGERS];
};

lt_star *lt_star_new(lt_ctx *c) {
  lt_star *s = lt_alloc(c, sizeof *s);
  if (s == NULL) return NULL;
  s->listen_fd = -1;
  for (int i = 0; i < LT_STRANGERS; i++) s->strangers[i].fd = -1;
  return s;
}

void lt_star_release(lt_ctx *c, lt_star *s) {
  if (s == NULL) return;
  for (int i = 0; i < LT_STRANGERS; i++) lt_channel_close(&s->strangers[i]);
  if (s->listen_fd >= 0) close(s->listen_fd);
  lt_free(c, s, sizeof *s);
}

/* ---- addresses ---- */

static lt_address address_of(const struct sockaddr *from, in_port_t port) {
  lt_address a = {.bytes = 0};
  if (from->sa_family == AF_INET) {
    struct sockaddr_in v4 = *(const struct sockaddr_in *)(const void *)from;
    v4.sin_port = port;
    a.bytes = sizeof v4;
    memcpy(a.address, &v4, sizeof v4);
  } else if (from->sa_family == AF_INET6) {
    struct sockaddr_in6 v6 = *(const struct sockaddr_in6 *)(const void *)from;
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return a;
    v6.sin6_port = port;
    a.bytes = sizeof v6;
    memcpy(a.address, &v6, sizeof v6);
  }
  return a;
}

/* The loopback's first, then those of the interfaces that are up. */
static void find_addresses(lt_address *addresses, in_port_t port) {
  struct sockaddr_in loop = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  memset(addresses, 0, LT_ADDRESSES * sizeof *addresses);
  addresses[0] = address_of((struct sockaddr *)&loop, port);
  struct ifaddrs *all;
  if (getifaddrs(&all) != 0) return;
  int n = 1;
  for (const struct ifaddrs *i = all; i != NULL && n < LT_ADDRESSES; i = i->ifa_next) {
    bool good = i->ifa_addr != NULL && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK);
    if (good) addresses[n] = address_of(i->ifa_addr, port);
    if (good && addresses[n].bytes > 0) n++;
  }
  freeifaddrs(all);
}

void lt_address_text(const lt_address *addresses, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < LT_ADDRESSES; i++) {
    char host[64], port[16];
    const lt_address *a = &addresses[i];
    if (a->bytes == 0 || used + 96 > size) continue;
    if (getnameinfo((const struct sockaddr *)(const void *)a->address, a->bytes, host, sizeof host,
                    port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      continue;
    used += (size_t)snprintf(text + used, size - used, "%s%s port %s", used > 0 ? ", " : "", host,
                             port);
  }
}

/* IPv6 that takes IPv4 too, or IPv4 alone where there is no IPv6. */
static int listening(in_port_t *port) {
  int off = 0, kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  socklen_t n6 = sizeof v6, n4 = sizeof v4;
  int fd = socket(AF_INET6, kind, 0);
  if (fd >= 0) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (struct sockaddr *)&v6, n6) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&v6, &n6) == 0) {
      *port = v6.sin6_port;
      return fd;
    }
    close(fd);
  }
  fd = socket(AF_INET, kind, 0);
  if (fd >= 0 && bind(fd, (struct sockaddr *)&v4, n4) == 0 && listen(fd, BACKLOG) == 0 &&
      getsockname(fd, (struct sockaddr *)&v4, &n4) == 0) {
    *port = v4.sin_port;
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

bool lt_star_listen(lt_ctx *c, lt_star *s, lt_address *addresses, uint64_t *token) {
  in_port_t port;
  s->listen_fd = listening(&port);
  if (s->listen_fd < 0)
    return lt_fail(c, LT_EIO, "launch: no port for the control channel: %s", strerror(errno));
  if (getrandom(s->token, sizeof s->token, 0) != (ssize_t)sizeof s->token)
    return lt_fail(c, LT_EIO, "launch: no random bytes: %s", strerror(errno));
  memcpy(token, s->token, sizeof s->token);
  find_addresses(addresses, port);
  return true;
}

void lt_star_dial(lt_star *s, const lt_address *addresses, const uint64_t *token) {
  memcpy(s->addresses, addresses, sizeof s->addresses);
  memcpy(s->token, token, sizeof s->token);
  atomic_store(&s->known, true);
}

/* ---- rank 0 ---- */

static void welcome_stranger(lt_star *s, int fd, int64_t now) {
  int one = 1, oldest = 0;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  for (int i = 0; i < LT_STRANGERS; i++) {
    if (!lt_channel_is_open(&s->strangers[i])) {
      oldest = i;
      break;
    }
    if (s->since_ns[i] < s->since_ns[oldest]) oldest = i;
  }
  lt_channel_close(&s->strangers[oldest]);
  lt_channel_open(&s->strangers[oldest], fd, true);
  s->since_ns[oldest] = now;
}

static void say_to(lt_world *w, lt_peer *p, lt_message_kind kind) {
  w->out = (lt_message){.kind = (uint8_t)kind};
  lt_message_size(&w->out, 0);
  lt_channel_send(&p->link, &w->out);
}

/* The newest connection of a rank counts; it may have missed what was told on the old one. */
static void adopt(lt_world *w, int rank, lt_channel *stranger) {
  lt_peer *p = &w->peers[rank];
  uint32_t news = atomic_load(&w->news);
  lt_channel_close(&p->link);
  p->link = *stranger;
  p->call = w->in.status;
  stranger->fd = -1;
  p->ended_ns = p->silent_ns = 0;
  say_to(w, p, LT_SAY_WELCOME);
  if ((news & LT_NEWS_READY) != 0) say_to(w, p, LT_SAY_READY);
  if (w->alert) say_to(w, p, LT_SAY_ALERT);
  if ((news & LT_NEWS_ALL_LEFT) != 0) say_to(w, p, LT_SAY_ALL_LEFT);
  if (lt_pulse_over(w->pulse)) lt_channel_send(&p->link, &w->best);
  if ((news & LT_NEWS_ALL_ACK) != 0) say_to(w, p, LT_SAY_ALL_ACK);
}

static void all_ready(lt_world *w) {
  if ((atomic_load(&w->news) & LT_NEWS_READY) != 0) return;
  for (int r = 1; r < w->n_peers; r++)
    if (!lt_channel_is_open(&w->peers[r].link)) return;
  w->out = (lt_message){.kind = LT_SAY_READY};
  lt_message_size(&w->out, 0);
  lt_hub_tell(w, &w->out);
  lt_news_tell(w, LT_NEWS_READY);
}

static bool is_ours(const lt_world *w, const lt_message *m) {
  const uint64_t *token = w->star->token;
  uint64_t difference = (m->token[0] ^ token[0]) | (m->token[1] ^ token[1]);
  return m->kind == LT_SAY_HELLO && difference == 0 && m->rank > 0 && m->rank < w->n_peers &&
         !w->peers[m->rank].gone && m->status > w->peers[m->rank].call;
}

static void hub_turn(lt_world *w) {
  lt_star *s = w->star;
  for (int fd; (fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
    welcome_stranger(s, fd, w->now_ns);
  for (int i = 0; i < LT_STRANGERS; i++) {
    lt_channel *ch = &s->strangers[i];
    lt_received got = lt_channel_receive(ch, &w->in);
    if (got == LT_GOT_MESSAGE && is_ours(w, &w->in))
      adopt(w, w->in.rank, ch);
    else if (got == LT_GOT_MESSAGE || w->now_ns - s->since_ns[i] > (int64_t)STRANGER_S * LT_SECOND)
      lt_channel_close(ch);
  }
  all_ready(w);
}

/* ---- the others ---- */

static void dial_one(lt_world *w, int i, const lt_address *a) {
  lt_channel *ch = &w->star->strangers[i];
  const struct sockaddr *to = (const struct sockaddr *)(const void *)a->address;
  int one = 1, fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(fd, to, a->bytes) != 0 && errno != EINPROGRESS) {
    close(fd);
    return;
  }
  lt_channel_open(ch, fd, true);
  w->star->numbers[i] = ++w->star->calls;
  w->out = (lt_message){.kind = LT_SAY_HELLO, .rank = w->info.rank, .status = w->star->numbers[i]};
  memcpy(w->out.token, w->star->token, sizeof w->out.token);
  lt_message_size(&w->out, 0);
  lt_channel_send(ch, &w->out);
}

/* All addresses at once. A call may take three rounds. */
static void dial(lt_world *w) {
  lt_star *s = w->star;
  int row = (int)(s->round++ % (LT_STRANGERS / LT_ADDRESSES)) * LT_ADDRESSES;
  s->dialled_ns = w->now_ns;
  for (int i = 0; i < LT_ADDRESSES; i++) {
    lt_channel_close(&s->strangers[row + i]);
    if (s->addresses[i].bytes > 0) dial_one(w, row + i, &s->addresses[i]);
  }
}

/* A connection that ended counts as the end of a process soon after: there is no second to lose. */
static bool shall_dial(const lt_world *w) {
  const lt_peer *hub = &w->peers[0];
  bool silent = hub->silent_ns >= (int64_t)SILENT_S * LT_SECOND;
  int64_t pause = hub->ended_ns != 0 ? (int64_t)ENDED_PAUSE_MS * LT_MS : LT_SECOND;
  return (!lt_channel_is_open(&hub->link) || silent) && w->now_ns - w->star->dialled_ns >= pause;
}

/* Older calls are in vain now; younger ones may be what rank 0 takes yet. */
static void take(lt_world *w, int i) {
  lt_star *s = w->star;
  lt_peer *hub = &w->peers[0];
  lt_channel_close(&hub->link);
  hub->link = s->strangers[i];
  s->strangers[i].fd = -1;
  s->taken = s->numbers[i];
  hub->ended_ns = hub->silent_ns = 0;
  for (int k = 0; k < LT_STRANGERS; k++)
    if (s->numbers[k] < s->taken) lt_channel_close(&s->strangers[k]);
  lt_leaf_say_again(w);
  lt_watchdog_receive(w, 0);
}

static void leaf_turn(lt_world *w) {
  lt_star *s = w->star;
  if (!atomic_load(&s->known) || w->peers[0].gone) return;
  if (shall_dial(w)) dial(w);
  for (int i = 0; i < LT_STRANGERS; i++) {
    lt_channel *ch = &s->strangers[i];
    lt_channel_flush(ch);
    if (lt_channel_receive(ch, &w->in) == LT_GOT_MESSAGE && w->in.kind == LT_SAY_WELCOME &&
        s->numbers[i] > s->taken)
      take(w, i);
  }
}

/* ---- both ---- */

void lt_star_turn(lt_world *w) {
  if (w->info.rank == 0)
    hub_turn(w);
  else
    leaf_turn(w);
}

/* Beats go out every second; a host answers them, whatever its ranks do. */
static bool is_cut(const lt_channel *ch) {
  struct tcp_info info;
  socklen_t bytes = sizeof info;
  if (ch->fd < 0 || getsockopt(ch->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
  return info.tcpi_unacked > 0;
}

const char *lt_star_lost(lt_world *w, const lt_channel *ch) {
  if (!ch->stream) return "stopped?";
  if (!is_cut(ch)) return "stopped? its host answers";
  w->cut_off = true;
  return "cut off? its host does not answer";
}

int lt_star_polls(lt_world *w, int n) {
  lt_star *s = w->star;
  if (s->listen_fd >= 0) w->polls[n++] = (struct pollfd){.fd = s->listen_fd, .events = POLLIN};
  for (int i = 0; i < LT_STRANGERS; i++) {
    const lt_channel *ch = &s->strangers[i];
    short out = lt_channel_is_full(ch) ? POLLOUT : 0;
    if (ch->fd >= 0) w->polls[n++] = (struct pollfd){.fd = ch->fd, .events = (short)(POLLIN | out)};
  }
  return n;
}
