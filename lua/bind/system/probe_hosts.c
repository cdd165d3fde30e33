/* lua/bind/system/probe_hosts.c: probes many hosts at once for an answer, within a time limit.

   A name that does not resolve may keep getaddrinfo for half a minute, and nothing ends it; so each
   host is asked by a child process, which is killed when the time is over. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bind/system/process.h"

enum { MOST_HOSTS = 1024, MOST_TEXT = 256 };

typedef struct asked_host {
  const char *name;
  char port[16];
  pid_t pid;
  int answer; /* -1: over */
  char text[MOST_TEXT];
} asked_host;

/* An address that a socket can be bound to is one of this machine's. Comparing names would miss
   aliases and interfaces; binding asks the kernel itself. Port 0: any free one. */
static bool is_here(const struct addrinfo *a) {
  int fd = socket(a->ai_family, SOCK_STREAM, 0);
  struct sockaddr_storage address;
  memcpy(&address, a->ai_addr, a->ai_addrlen);
  ((struct sockaddr_in *)&address)->sin_port = 0; /* at the same place in sockaddr_in6 */
  bool here = fd >= 0 && bind(fd, (struct sockaddr *)&address, a->ai_addrlen) == 0;
  if (fd >= 0) close(fd);
  return here;
}

/* In the child: "" when the host answers, "=" when it is this machine, else what is wrong. */
static void ask(const char *host, const char *port, char *text) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
  int wrong = getaddrinfo(host, port, &hints, &found);
  if (wrong != 0) {
    snprintf(text, MOST_TEXT, "no such host (%s)", gai_strerror(wrong));
    return;
  }
  for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) {
    if (is_here(a)) {
      strcpy(text, "=");
      return;
    }
  }
  for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) {
    int fd = socket(a->ai_family, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
      text[0] = 0;
      return;
    }
    snprintf(text, MOST_TEXT, "port %s: %s", port, strerror(errno));
    if (fd >= 0) close(fd);
  }
}

static void call_up(asked_host *one) {
  int ends[2];
  one->answer = -1;
  one->pid = -1;
  strcpy(one->text, "no process could be started");
  if (pipe(ends) != 0) return;
  one->pid = fork();
  if (one->pid == 0) {
    char text[MOST_TEXT] = "";
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    ask(one->name, one->port, text);
    ssize_t n = write(ends[1], text, sizeof text);
    _exit(n == sizeof text ? 0 : 1);
  }
  close(ends[1]);
  if (one->pid < 0)
    close(ends[0]);
  else
    one->answer = ends[0];
}

/* Hear all until the deadline; who is silent then is ended. One after the other, but all children
   run already: the waits overlap, and the total is bounded by the deadline. */
static void receive(asked_host *hosts, size_t n, double seconds, double deadline) {
  for (size_t k = 0; k < n; k++) {
    asked_host *one = &hosts[k];
    if (one->answer < 0) continue;
    struct pollfd look = {.fd = one->answer, .events = POLLIN};
    int ready;
    while ((ready = poll(&look, 1, lt_poll_until(deadline))) < 0 && errno == EINTR) continue;
    char text[MOST_TEXT];
    if (ready > 0 && read(one->answer, text, sizeof text) == sizeof text)
      memcpy(one->text, text, sizeof text);
    else
      snprintf(one->text, MOST_TEXT, "no answer within %g s", seconds);
    kill(one->pid, SIGKILL);
    lt_wait_for(one->pid);
    close(one->answer);
  }
}

/* The {host, port} on top of the stack. */
static void read_host(lua_State *L, asked_host *out) {
  luaL_checktype(L, -1, LUA_TTABLE);
  lt_raw_geti(L, -1, 1);
  lt_raw_geti(L, -2, 2);
  out->name = luaL_checkstring(L, -2); /* the table keeps it */
  snprintf(out->port, sizeof out->port, "%d", (int)luaL_checkinteger(L, -1));
  lua_pop(L, 2);
}

/* process.probe({{host, port}, ...}, seconds) -> a list: "" for a host that answers, "=" for this
   machine, else what is wrong; nil and a reason when the state may not. */
int lt_process_probe(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  double seconds = luaL_checknumber(L, 2);
  size_t n = (size_t)lt_raw_length(L, 1);
  luaL_argcheck(L, n <= MOST_HOSTS, 1, "more than 1,024 hosts");
  if (!lt_may_start(L, b, "probe")) return 2;
  if (!b->c->policy.network) {
    lua_pushnil(L);
    lua_pushliteral(L, "probe: this state may not use the network (LTRAIN_NETWORK)");
    return 2;
  }
  asked_host *hosts = lua_newuserdatauv(L, n * sizeof *hosts + 1, 0);
  for (size_t k = 0; k < n; k++) {
    lt_raw_geti(L, 1, (lua_Integer)k + 1);
    read_host(L, &hosts[k]);
    lua_pop(L, 1);
  }
  double deadline = lt_seconds_now() + seconds;
  for (size_t k = 0; k < n; k++) call_up(&hosts[k]);
  receive(hosts, n, seconds, deadline);
  lua_createtable(L, (int)n, 0);
  for (size_t k = 0; k < n; k++) {
    lua_pushstring(L, hosts[k].text);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  return 1;
}
