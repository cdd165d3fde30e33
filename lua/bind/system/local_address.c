/* lua/bind/system/local_address.c: the address under which other machines reach this one.

   A datagram socket that is connected sends nothing, but has been given the address of the
   interface that leads there. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bind/system/process.h"

/* Reserved for documentation: whatever way goes there is the default one. */
static const char ELSEWHERE[] = "192.0.2.1";

enum { MOST_ADDRESS = 64 };

static bool name_of(const struct sockaddr *a, socklen_t bytes, char *text) {
  return getnameinfo(a, bytes, text, MOST_ADDRESS, NULL, 0, NI_NUMERICHOST) == 0;
}

static bool towards(const struct addrinfo *to, char *text) {
  struct sockaddr_storage own;
  socklen_t bytes = sizeof own;
  int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bool found = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
               getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 &&
               name_of((struct sockaddr *)&own, bytes, text);
  if (fd >= 0) close(fd);
  return found;
}

/* Of the first interface that is up and leads off this machine. */
static bool of_interface(char *text) {
  struct ifaddrs *all;
  bool found = false;
  if (getifaddrs(&all) != 0) return false;
  for (const struct ifaddrs *i = all; i != NULL && !found; i = i->ifa_next) {
    if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK)) continue;
    if (i->ifa_addr->sa_family == AF_INET)
      found = name_of(i->ifa_addr, sizeof(struct sockaddr_in), text);
  }
  freeifaddrs(all);
  return found;
}

/* process.local_address([host]) -> the address of this machine on the way to a host, or by default
   to other networks ("127.0.0.1" where it is in none); nil and why the host has no address. May
   wait for a name server: ask process.probe first. */
int lt_process_local_address(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *host = luaL_optstring(L, 1, ELSEWHERE);
  if (!lt_may_start(L, b, "local_address")) return 2;
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM}, *found = NULL;
  int wrong = getaddrinfo(host, "9", &hints, &found);
  if (wrong != 0) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s: no such host (%s)", host, gai_strerror(wrong));
    return 2;
  }
  char text[MOST_ADDRESS] = "";
  bool known = false;
  for (const struct addrinfo *a = found; a != NULL && !known; a = a->ai_next)
    known = towards(a, text);
  freeaddrinfo(found);
  if (!known && !of_interface(text)) snprintf(text, sizeof text, "127.0.0.1");
  lua_pushstring(L, text);
  return 1;
}
