/* runtime/launch/lost_peer.c: what is known of a rank whose heartbeats have ended. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "launch/world.h"

/* Heartbeats go out every second; a host answers them, whatever its ranks do. */
static bool is_cut(const lt_channel *ch) {
  struct tcp_info info;
  socklen_t bytes = sizeof info;
  if (ch->fd < 0 || getsockopt(ch->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
  return info.tcpi_unacked > 0;
}

void lt_peer_lost_text(lt_watchdog *d, const lt_peer *p, char *text, size_t size) {
  bool joined = p->link.stream, cut = joined && is_cut(&p->link);
  if (cut) d->unreachable = true;
  snprintf(text, size, "is lost: no heartbeat for %.0f s (%s)", (double)p->silent_ns / LT_SECOND,
           cut      ? "cut off? its host does not answer"
           : joined ? "stopped? its host answers"
                    : "stopped?");
}
