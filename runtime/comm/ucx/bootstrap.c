/* runtime/comm/ucx/bootstrap.c: the exchange of all ranks' addresses, by rank 0's address or by
   a file that all of them share. */
#include "comm/ucx/bootstrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "file:///shared/job1" */
static bool read_file(const char *address, lt_bootstrap_place *at, char *text) {
  const char *path = strncmp(address, "file:///", 8) == 0 ? address + 7 : "/";
  at->file = path;
  if (path[strlen(path) - 1] != '/') return true;
  snprintf(text, LT_COMM_TEXT,
           "not the absolute path of a file, file:///shared/job1 "
           "(MASTER_ADDR): %.150s",
           address);
  return false;
}

/* "host:29500", "[fd00::2]:29500", "host:29501-29516" */
static bool read_address(const char *address, lt_bootstrap_place *at, char *text) {
  const char *colon = strrchr(address, ':');
  size_t n = colon != NULL ? (size_t)(colon - address) : 0;
  char *end = NULL;
  if (colon != NULL && address[0] == '[' && n > 1 && address[n - 1] == ']') {
    address++;
    n -= 2;
  }
  if (n > 0 && n < sizeof at->host) {
    snprintf(at->host, sizeof at->host, "%.*s", (int)n, address);
    at->first = at->last = (int)strtol(colon + 1, &end, 10);
    if (*end == '-') at->last = (int)strtol(end + 1, &end, 10);
  }
  if (end != NULL && *end == '\0' && at->first > 0 && at->last >= at->first && at->last < 65536)
    return true;
  snprintf(text, LT_COMM_TEXT, "not an address with a port (MASTER_ADDR, MASTER_PORT): %.150s",
           address);
  return false;
}

/* The list of LT_BOOTSTRAP_ALL: w keeps it. */
static bool take(lt_ucx_world *w, char *all, size_t bytes, char *text) {
  size_t at = 0;
  w->addresses = all;
  for (int r = 0; r < w->size; r++) {
    uint32_t n = 0;
    bool ok = at + sizeof n <= bytes;
    if (ok) memcpy(&n, all + at, sizeof n);
    at += sizeof n;
    if (!ok || n > bytes - at || n < LT_UCX_MACHINE) {
      snprintf(text, LT_COMM_TEXT, "rank 0 sent an invalid list of addresses");
      return false;
    }
    w->peers[r].is_here = memcmp(all + at, w->own, LT_UCX_MACHINE) == 0;
    w->peers[r].address = (const ucp_address_t *)(all + at + LT_UCX_MACHINE);
    at += n;
  }
  return true;
}

bool lt_ucx_meet(lt_ucx_world *w, const lt_comm_place *place, int64_t began_ns, char *text) {
  double limit = place->limit_s > 0 ? place->limit_s : 60;
  lt_bootstrap_place at = {.deadline_ns = began_ns + (int64_t)(limit * 1e9),
                           .token = place->token != NULL ? place->token : ""};
  char *all = NULL;
  size_t bytes = 0;
  bool is_file = strncmp(place->main_address, "file:", 5) == 0;
  if (!(is_file ? read_file : read_address)(place->main_address, &at, text)) return false;
  bool met = (w->rank == 0 ? lt_bootstrap_collect : lt_bootstrap_dial)(w, &at, &all, &bytes, text);
  return met && take(w, all, bytes, text);
}
