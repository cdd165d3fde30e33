/* runtime/launch/lost_peer.c: what is known of a rank whose heartbeats have ended: the warning, and
   the report of its loss. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/round.h"
#include "launch/world.h"

enum { DOUBT_S = 5 };

/* Heartbeats go out every second; a host answers them, whatever its ranks do. */
static bool is_cut(const lt_channel *ch) {
  struct tcp_info info;
  socklen_t bytes = sizeof info;
  if (ch->fd < 0 || getsockopt(ch->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
  return info.tcpi_unacked > 0;
}

static bool silence_text(const lt_peer *p, char *text, size_t size) {
  bool joined = p->link.stream, cut = joined && is_cut(&p->link);
  snprintf(text, size, "no heartbeat for %.0f s (%s)", (double)p->silent_ns / LT_SECOND,
           cut      ? "cut off? its host does not answer"
           : joined ? "stopped? its host answers"
                    : "stopped?");
  return cut;
}

void lt_peer_lost_text(lt_watchdog *d, const lt_peer *p, char *text, size_t size) {
  snprintf(text, size, "is lost: ");
  size_t used = strlen(text);
  if (silence_text(p, text + used, size - used)) d->unreachable = true;
}

/* Heartbeats come once a second, from a thread that waits for nothing else: where several are
   missing the process is stopped, the network cut, or the machine does not get to it. */
bool lt_peer_falls_silent(const lt_watchdog *d, lt_peer *p) {
  int64_t limit = lt_least((int64_t)DOUBT_S * LT_SECOND, lt_watchdog_lost_ns(d) / 2);
  if (p->doubted || lt_peer_is_heard(p) || p->silent_ns < limit) return false;
  p->doubted = true;
  return true;
}

void lt_peer_silent_text(const lt_watchdog *d, int rank, const lt_peer *p, char *text,
                         size_t size) {
  char silence[128];
  silence_text(p, silence, sizeof silence);
  snprintf(text, size, "rank %d (pid %d on %s) is waited for, and has sent %s; an error at %.0f s",
           rank, d->info->pids[rank], d->info->hosts[rank], silence,
           (double)lt_watchdog_lost_ns(d) / LT_SECOND);
}
