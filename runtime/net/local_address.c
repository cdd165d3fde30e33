/* runtime/net/local_address.c: listening on this host (local_address.h).

   An address is one of this host when a socket can be bound to it. The socket that listens takes
   all addresses, since the name of a host often leads to one that others cannot reach (Debian
   writes 127.0.1.1 into /etc/hosts). */
#include "net/local_address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

static bool is_local(const struct addrinfo *a) {
  int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool local = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0; /* to any port: it is 0 */
  if (fd >= 0) close(fd);
  return local;
}

static bool is_loopback(const struct addrinfo *a) {
  const struct sockaddr_in *v4 = (const void *)a->ai_addr;
  const struct sockaddr_in6 *v6 = (const void *)a->ai_addr;
  if (a->ai_family == AF_INET) return v4->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
  return a->ai_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static int bind_at(struct sockaddr *address, socklen_t size) {
  const int kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  int on = 1, off = 0, fd = socket(address->sa_family, kind, 0);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd, address, size) == 0 && listen(fd, BACKLOG) == 0) return fd;
  int reason = errno;
  close(fd);
  errno = reason;
  return -1;
}

static int listen_everywhere(int port) {
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int fd = bind_at((struct sockaddr *)&v6, sizeof v6);
  if (fd >= 0 || errno == EADDRINUSE) return fd;
  return bind_at((struct sockaddr *)&v4, sizeof v4); /* a host without IPv6 */
}

static int listen_there(const struct addrinfo *a, int port) {
  struct sockaddr_storage address;
  memcpy(&address, a->ai_addr, a->ai_addrlen);
  if (a->ai_family == AF_INET)
    ((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)port);
  else
    ((struct sockaddr_in6 *)&address)->sin6_port = htons((uint16_t)port);
  return bind_at((struct sockaddr *)&address, a->ai_addrlen);
}

static int port_of(int fd) {
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                            : ((struct sockaddr_in6 *)&address)->sin6_port);
}

int lt_listen_at(lt_ctx *c, const char *op, const char *host, int *port) {
  struct addrinfo *all, wanted = {.ai_socktype = SOCK_STREAM};
  int status = getaddrinfo(host, NULL, &wanted, &all);
  if (status != 0) {
    lt_fail(c, LT_EIO, "%s: %s: %s", op, host, gai_strerror(status));
    return -1;
  }
  const struct addrinfo *a = all;
  while (a != NULL && !is_local(a)) a = a->ai_next;
  int fd = -1;
  if (a != NULL) {
    fd = is_loopback(a) ? listen_there(a, *port) : listen_everywhere(*port);
    if (fd < 0 && errno != EADDRINUSE)
      lt_fail(c, LT_EIO, "%s: cannot listen on port %d: %s", op, *port, strerror(errno));
  }
  if (fd >= 0) *port = port_of(fd);
  freeaddrinfo(all);
  return fd;
}
