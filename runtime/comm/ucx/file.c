/* runtime/comm/ucx/file.c: the file in which rank 0 writes where it listens, on a file system that
   all ranks share.

   One line: a mark, the hash of the token, the port, and all addresses of rank 0's machine, of
   which the others try each: it cannot know which of them they reach. The file appears whole, by
   its name's change, and is read again before each try, so that what an earlier job has left does
   no harm. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/ucx/bootstrap.h"

enum { LINE = LT_BOOTSTRAP_HOSTS + 64, PATH = 4096 };

/* Addresses of IPv6 that mean nothing without the name of an interface are left out. */
static bool is_usable(const struct ifaddrs *i, bool loopback) {
  const struct sockaddr_in6 *six = (const void *)i->ifa_addr;
  if (i->ifa_addr == NULL || (i->ifa_flags & IFF_UP) == 0) return false;
  if (((i->ifa_flags & IFF_LOOPBACK) != 0) != loopback) return false;
  return i->ifa_addr->sa_family == AF_INET ||
         (i->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

static void add_addresses(const struct ifaddrs *all, bool loopback,
                          char hosts[LT_BOOTSTRAP_HOSTS]) {
  for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
    char host[INET6_ADDRSTRLEN];
    size_t n = strlen(hosts);
    if (!is_usable(i, loopback)) continue;
    bool six = i->ifa_addr->sa_family == AF_INET6;
    if (getnameinfo(i->ifa_addr, six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
                    host, sizeof host, NULL, 0, NI_NUMERICHOST) == 0 &&
        n + strlen(host) + 2 <= LT_BOOTSTRAP_HOSTS)
      snprintf(hosts + n, LT_BOOTSTRAP_HOSTS - n, "%s%s", n > 0 ? "," : "", host);
  }
}

/* Loopback last: it serves ranks of the same machine. */
static void list_addresses(char hosts[LT_BOOTSTRAP_HOSTS]) {
  struct ifaddrs *all = NULL;
  hosts[0] = '\0';
  if (getifaddrs(&all) != 0) return;
  add_addresses(all, false, hosts);
  add_addresses(all, true, hosts);
  freeifaddrs(all);
}

static bool fail(const lt_bootstrap_place *at, char *text) {
  snprintf(text, LT_COMM_TEXT, "rank 0 cannot write %.150s (MASTER_ADDR): %s", at->file,
           strerror(errno));
  return false;
}

bool lt_bootstrap_file_write(const lt_bootstrap_place *at, int port, char *text) {
  char hosts[LT_BOOTSTRAP_HOSTS], line[LINE], path[PATH];
  list_addresses(hosts);
  int n = snprintf(line, sizeof line, "ltrain2 %016" PRIx64 " %d %s\n", lt_ucx_hash(at->token),
                   port, hosts);
  if (snprintf(path, sizeof path, "%s.%d.part", at->file, (int)getpid()) >= (int)sizeof path) {
    errno = ENAMETOOLONG;
    return fail(at, text);
  }
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return fail(at, text);
  bool ok = write(fd, line, (size_t)n) == n && fsync(fd) == 0;
  ok = close(fd) == 0 && ok;
  if (ok && rename(path, at->file) == 0) return true;
  fail(at, text);
  unlink(path);
  return false;
}

/* The file's line; false with errno. */
static bool read_line(const lt_bootstrap_place *at, char line[LINE]) {
  int fd = open(at->file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, line, LINE - 1);
  int error = errno;
  close(fd);
  errno = error;
  line[n > 0 ? n : 0] = '\0';
  return n >= 0;
}

lt_progress lt_bootstrap_file_read(const lt_bootstrap_place *at, char hosts[LT_BOOTSTRAP_HOSTS],
                                   int *port, char *text) {
  char line[LINE];
  uint64_t token = 0;
  int end = 0;
  if (!read_line(at, line)) {
    snprintf(text, LT_COMM_TEXT, "rank 0 has not written this file: %s", strerror(errno));
    return LT_PENDING;
  }
  if (sscanf(line, "ltrain2 %" SCNx64 " %d %n", &token, port, &end) < 2 || end == 0) {
    snprintf(text, LT_COMM_TEXT, "the file was not written by a rank 0 of ltrain");
    return LT_PENDING;
  }
  if (token != lt_ucx_hash(at->token)) {
    snprintf(text, LT_COMM_TEXT,
             "the file is that of another job (its token differs: LTRAIN_TOKEN)");
    return LT_PENDING;
  }
  snprintf(hosts, LT_BOOTSTRAP_HOSTS, "%.*s", (int)strcspn(line + end, "\n"), line + end);
  return LT_DONE;
}

/* Unless another job's rank 0 has replaced it meanwhile. */
void lt_bootstrap_file_remove(const lt_bootstrap_place *at, int port) {
  char hosts[LT_BOOTSTRAP_HOSTS], text[LT_COMM_TEXT];
  int written;
  if (lt_bootstrap_file_read(at, hosts, &written, text) == LT_DONE && written == port)
    unlink(at->file);
}
