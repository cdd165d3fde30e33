/* runtime/launch/address.c: addresses of this host: finding them, listening there, naming them.

   Loopback comes first, for ranks of this host; then every interface that is up, as rank 0 cannot
   know which of them other hosts reach. Link-local addresses of IPv6 are left out: they mean
   nothing without the name of an interface. */
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

#include "comm/heartbeat.h"

enum { BACKLOG = 256 };

/* None of other families, nor where only this link knows it. */
static lt_address address_of(const struct sockaddr *from) {
  lt_address a = {.bytes = 0};
  const struct sockaddr_in6 *v6 = (const void *)from;
  if (from->sa_family == AF_INET) a.bytes = sizeof(struct sockaddr_in);
  if (from->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) a.bytes = sizeof *v6;
  memcpy(a.address, from, a.bytes);
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
  if (i->ifa_netmask == NULL) return false;
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
    if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK)) continue;
    lt_address a = address_of(i->ifa_addr);
    if (a.bytes > 0 && (network == NULL || has_one_of(i, network))) addresses[n++] = a;
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

/* Add an address to a text; false when it has no name. */
static bool add_name(const void *address, socklen_t bytes, char *text, size_t size) {
  char host[64], port[16];
  int status = getnameinfo(address, bytes, host, sizeof host, port, sizeof port,
                           NI_NUMERICHOST | NI_NUMERICSERV);
  if (status == 0) lt_text_add(text, size, "%s%s port %s", *text != 0 ? ", " : "", host, port);
  return status == 0;
}

void lt_address_text(const lt_address addresses[LT_ADDRESSES], char *text, size_t size) {
  text[0] = 0;
  for (int i = 0; i < LT_ADDRESSES; i++)
    if (addresses[i].bytes > 0) add_name(addresses[i].address, addresses[i].bytes, text, size);
}

void lt_address_peer_text(int fd, char *text, size_t size) {
  struct sockaddr_storage peer;
  socklen_t bytes = sizeof peer;
  text[0] = 0;
  if (getpeername(fd, (struct sockaddr *)&peer, &bytes) != 0 || !add_name(&peer, bytes, text, size))
    lt_text_add(text, size, "an unknown address");
}
