/* runtime/launch/address.c: finding this host's addresses, listening under them, naming them. */
#include "launch/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 256 };

static lt_address address_of(const struct sockaddr *from) {
  lt_address a = {.bytes = 0};
  if (from->sa_family == AF_INET) {
    struct sockaddr_in v4 = *(const struct sockaddr_in *)(const void *)from;
    v4.sin_port = 0;
    a.bytes = sizeof v4;
    memcpy(a.address, &v4, sizeof v4);
  } else if (from->sa_family == AF_INET6) {
    struct sockaddr_in6 v6 = *(const struct sockaddr_in6 *)(const void *)from;
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return a;
    v6.sin6_port = 0;
    a.bytes = sizeof v6;
    memcpy(a.address, &v6, sizeof v6);
  }
  return a;
}

/* The bytes of an address of IPv4 or IPv6. */
static const unsigned char *bytes_of(const struct sockaddr *a) {
  if (a->sa_family == AF_INET)
    return (const void *)&((const struct sockaddr_in *)(const void *)a)->sin_addr;
  return (const void *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
}

/* Whether the network of an interface has one of the addresses. */
static bool has_one_of(const struct ifaddrs *i, const char *network) {
  if (network == NULL || i->ifa_netmask == NULL) return false;
  int family = i->ifa_addr->sa_family;
  size_t bytes = family == AF_INET ? 4 : 16;
  const unsigned char *own = bytes_of(i->ifa_addr), *mask = bytes_of(i->ifa_netmask);
  for (const char *at = network; *at != 0;) {
    char text[INET6_ADDRSTRLEN];
    unsigned char wanted[16];
    size_t n = strcspn(at, ",");
    bool fits = n < sizeof text, same = fits;
    snprintf(text, sizeof text, "%.*s", fits ? (int)n : 0, at);
    if (!fits || inet_pton(family, text, wanted) != 1) same = false;
    for (size_t k = 0; same && k < bytes; k++) same = ((own[k] ^ wanted[k]) & mask[k]) == 0;
    if (same) return true;
    at += n + (at[n] == ',');
  }
  return false;
}

/* Those of interfaces that are up, from addresses[1] on; with `network` only those in it. */
static int add_interfaces(lt_address *addresses, const struct ifaddrs *all, const char *network) {
  int n = 1;
  for (const struct ifaddrs *i = all; i != NULL && n < LT_ADDRESSES; i = i->ifa_next) {
    bool good = i->ifa_addr != NULL && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK);
    if (good) addresses[n] = address_of(i->ifa_addr);
    if (!good || addresses[n].bytes == 0) continue;
    if (network == NULL || has_one_of(i, network))
      n++;
    else
      addresses[n].bytes = 0;
  }
  return n;
}

void lt_address_find(lt_address addresses[LT_ADDRESSES], bool alone, const char *network) {
  struct sockaddr_in loop = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct ifaddrs *all;
  memset(addresses, 0, LT_ADDRESSES * sizeof *addresses);
  addresses[0] = address_of((struct sockaddr *)&loop);
  if (alone || getifaddrs(&all) != 0) return;
  if (network == NULL || add_interfaces(addresses, all, network) == 1)
    add_interfaces(addresses, all, NULL);
  freeifaddrs(all);
}

/* -1 when it cannot be had. */
static int listen_at(lt_address *a) {
  struct sockaddr *at = (struct sockaddr *)(void *)a->address;
  socklen_t n = a->bytes;
  int on = 1, fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (at->sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(fd, at, n) == 0 && listen(fd, BACKLOG) == 0 && getsockname(fd, at, &n) == 0) return fd;
  close(fd);
  return -1;
}

bool lt_address_listen(lt_address addresses[LT_ADDRESSES], int fds[LT_ADDRESSES]) {
  bool any = false;
  for (int i = 0; i < LT_ADDRESSES; i++) {
    fds[i] = addresses[i].bytes > 0 ? listen_at(&addresses[i]) : -1;
    if (fds[i] < 0) addresses[i].bytes = 0;
    any = any || fds[i] >= 0;
  }
  return any;
}

/* The length of the text; 0 when it has none. */
static size_t name(const void *address, socklen_t bytes, char *text, size_t size) {
  char host[64], port[16];
  if (getnameinfo(address, bytes, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return 0;
  return (size_t)snprintf(text, size, "%s port %s", host, port);
}

void lt_address_text(const lt_address addresses[LT_ADDRESSES], char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < LT_ADDRESSES; i++) {
    const lt_address *a = &addresses[i];
    if (a->bytes == 0 || used + 2 + 96 > size) continue;
    size_t comma = used > 0 ? 2 : 0, n = name(a->address, a->bytes, text + used + comma, 96);
    if (n == 0) continue;
    if (comma > 0) memcpy(text + used, ", ", comma);
    used += comma + n;
  }
}

void lt_address_peer_text(int fd, char *text, size_t size) {
  struct sockaddr_storage peer;
  socklen_t bytes = sizeof peer;
  if (getpeername(fd, (struct sockaddr *)&peer, &bytes) != 0 || name(&peer, bytes, text, size) == 0)
    snprintf(text, size, "an unknown address");
}
