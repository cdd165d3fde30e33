/* runtime/launch/join.c: the rendezvous of ranks that mpirun, srun, torchrun or a script started.

   The watchdog begins first, with nothing but the limit for coming together: the transport's own
   start blocks. Over the transport's group the ranks then exchange who and where they are,
   and the control channel, which failures go through, is dialled. */
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cores.h"
#include "launch/world.h"

/* Who and where a rank is. */
typedef struct rank_info {
  char host[LT_HOST_NAME];
  char boot[40]; /* which running kernel */
  uint64_t net;  /* which network of it */
  int32_t pid;
  uint32_t unused;
  uint64_t id; /* of rank 0: names the job */
  cpu_set_t cores;
  uint64_t seed; /* of its random numbers */
} rank_info;

static void describe_rank(lt_ctx *c, const lt_world *w, rank_info *own) {
  memset(own, 0, sizeof *own);
  snprintf(own->host, sizeof own->host, "%s", w->host);
  own->pid = (int32_t)getpid();
  own->id = w->id;
  own->seed = c->rng.seed;
  /* Names of hosts are not unique (containers, images of clouds): two ranks are on one node only if
     their kernels were also booted as one. */
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, own->boot, sizeof own->boot - 1) : 0;
  (void)n;
  if (fd >= 0) close(fd);
  struct stat net;
  if (stat("/proc/self/ns/net", &net) == 0) own->net = (uint64_t)net.st_ino;
  if (sched_getaffinity(0, sizeof own->cores, &own->cores) != 0) CPU_ZERO(&own->cores);
}

/* The boot id differs between machines with one image, and between boots. */
static bool same_node(const rank_info *a, const rank_info *b) {
  return strcmp(a->host, b->host) == 0 && strcmp(a->boot, b->boot) == 0;
}

/* Local ranks, nodes, names, pids. */
static void place_ranks(lt_world *w, const rank_info *ranks) {
  lt_world_info *i = &w->info;
  i->local_rank = i->local_size = i->nodes = 0;
  for (int r = 0; r < i->size; r++) {
    int first = 0;
    while (!same_node(&ranks[first], &ranks[r])) first++;
    bool here = same_node(&ranks[r], &ranks[i->rank]);
    if (first == r && here) i->node_rank = i->nodes;
    if (first == r) i->nodes++;
    if (here) i->local_size++;
    if (here && r < i->rank) i->local_rank++;
    memcpy(w->hosts[r], ranks[r].host, sizeof w->hosts[r]);
    w->shared->pids[r] = ranks[r].pid;
  }
}

/* Cores are shared by the ranks of a node that may use them; mpirun often gives each its own. A
   quota is shared by all ranks of the node. */
static void share_cores(lt_ctx *c, lt_world *w, const rank_info *ranks) {
  const rank_info *own = &ranks[w->info.rank];
  int cores = CPU_COUNT(&own->cores), sharers = 0;
  for (int r = 0; r < w->info.size; r++) {
    cpu_set_t both;
    CPU_AND(&both, &own->cores, &ranks[r].cores);
    if (same_node(own, &ranks[r]) && CPU_COUNT(&both) > 0) sharers++;
  }
  if (cores == 0) cores = lt_cpu_count();
  if (sharers == 0) sharers = w->info.local_size;
  int share = cores / sharers, quota = lt_quota_cores();
  if (quota / w->info.local_size < share) share = quota / w->info.local_size;
  if (c->root->threads > share) c->root->threads = share > 0 ? share : 1;
  lt_group_set_crowded(w->group, sharers > cores || w->info.local_size > quota ||
                                     (sharers > 1 && lt_waits_passively()));
}

/* Bytes of each rank (LT_COMM_ALL_GATHER) or of rank 0 (LT_COMM_BROADCAST), of the same size. */
static bool exchange(lt_ctx *c, lt_world *w, lt_comm_op op, const void *own, size_t bytes,
                     void *all) {
  lt_work *work = lt_comm_bytes(c, w->group, op, 0, own, (int64_t)bytes, NULL, NULL,
                                (lt_origin){.file = "joining the world"});
  bool good = work != NULL && lt_work_wait(c, work);
  int parts = op == LT_COMM_ALL_GATHER ? w->info.size : w->info.rank > 0 ? 1 : 0;
  for (int r = 0; good && r < parts; r++) {
    int64_t n = 0;
    const void *from = lt_work_bytes(work, r, &n);
    good = n == (int64_t)bytes ||
           lt_fail(c, LT_ERANKS, "%s: rank %d runs another build of ltrain", w->what, r);
    if (good) memcpy((char *)all + (size_t)r * bytes, from, bytes);
  }
  if (work != NULL) lt_work_release(c, work);
  return good;
}

static bool share_network(const rank_info *a, const rank_info *b) {
  return strcmp(a->boot, b->boot) == 0 && a->net == b->net;
}

/* Rank 0 listens, where the others can reach it and nowhere else, and broadcasts where. */
static bool open_connections(lt_ctx *c, lt_world *w, const rank_info *ranks, const char *network,
                             lt_endpoint *endpoint) {
  bool alone = true;
  for (int r = 1; r < w->info.size; r++) alone = alone && share_network(&ranks[0], &ranks[r]);
  memset(endpoint, 0, sizeof *endpoint);
  if (w->info.rank == 0) lt_address_find(endpoint->addresses, alone, network);
  if (w->info.rank == 0 && !lt_connections_listen(c, w->watchdog.connections, endpoint))
    return false;
  return exchange(c, w, LT_COMM_BROADCAST, endpoint, sizeof *endpoint, endpoint);
}

/* On rank 0's own machine the loopback's address is enough; elsewhere it leads astray. */
static void connect_to_coordinator(lt_world *w, const rank_info *ranks, lt_endpoint endpoint) {
  lt_address none = {.bytes = 0};
  bool here = share_network(&ranks[w->info.rank], &ranks[0]);
  for (int i = 0; i < LT_ADDRESSES; i++)
    if (here != (i == 0)) endpoint.addresses[i] = none;
  lt_connections_connect(w->watchdog.connections, &endpoint);
}

static bool connect_all(lt_ctx *c, lt_world *w, const rank_info *ranks,
                        const lt_endpoint *endpoint) {
  if (w->info.rank > 0) connect_to_coordinator(w, ranks, *endpoint);
  lt_mailbox_wait(&w->mail, LT_NOTICE_READY | LT_NOTICE_OUTCOME, -1, w->c->cancel);
  if (lt_mailbox_has(&w->mail, LT_NOTICE_READY)) return true;
  const lt_outcome *v = lt_world_outcome(w);
  char to[512];
  lt_address_text(endpoint->addresses, to, sizeof to);
  return lt_fail(c, LT_ERANKS, "%s: cannot open a control channel to rank 0 on %s (%s): %s",
                 w->what, ranks[0].host, to, v != NULL ? v->text : "cancelled");
}

/* All of a rank's part in one gather, then rank 0's address in one broadcast: two rounds, whatever
   the number of ranks. */
static bool meet(lt_ctx *c, lt_world *w, const lt_launch_options *o) {
  size_t bytes = (size_t)w->info.size * sizeof(rank_info);
  rank_info *ranks = lt_alloc(c, bytes);
  rank_info own;
  lt_endpoint endpoint;
  describe_rank(c, w, &own);
  bool good = lt_ok(c) && exchange(c, w, LT_COMM_ALL_GATHER, &own, sizeof own, ranks);
  if (good) {
    w->id = ranks[0].id;
    lt_world_set_folder(w, o->folder);
    if (o->takes_seed) c->rng.seed = ranks[0].seed;
    place_ranks(w, ranks);
    share_cores(c, w, ranks);
    good =
        open_connections(c, w, ranks, o->network, &endpoint) && connect_all(c, w, ranks, &endpoint);
  }
  lt_free(c, ranks, bytes);
  return good;
}

static bool open_link(lt_ctx *c, lt_world *w, const lt_comm_ops *ops, const lt_comm_place *place,
                      lt_comm_link **link) {
  char text[LT_COMM_TEXT] = "no reason given";
  if (!lt_watchdog_start(c, w)) return false;
  *link = ops->open(lt_comm_host_here(), place, text, sizeof text);
  lt_watchdog_stop(w);
  if (*link != NULL) w->first_rank = ops->rank(*link);
  if (*link == NULL) return lt_fail(c, LT_EIO, "%s: %s: %s", w->what, ops->name, text);
  int rank = ops->rank(*link), size = ops->ranks(*link);
  if (size > LT_COMM_MAX_RANKS)
    return lt_fail(c, LT_EARG, "%s: at most %d ranks: %d", w->what, LT_COMM_MAX_RANKS, size);
  if (!lt_world_size(c, w, rank, size)) return false;
  lt_world_open(w);
  return true;
}

static bool join(lt_ctx *c, lt_world *w, const lt_comm_ops *ops, const lt_comm_place *place,
                 const lt_launch_options *o) {
  double limit = o->launch_timeout > 0 ? o->launch_timeout : lt_seconds_of("LT_LAUNCH_TIMEOUT");
  atomic_store(&w->mail.deadline_ns, lt_now_ns() + (int64_t)(limit * LT_SECOND));
  w->err_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  w->first_rank = place->rank;
  lt_launcher_find(w);
  lt_comm_link *link = NULL;
  lt_comm_place at = *place;
  at.limit_s = limit * 0.9; /* a backend that says which rank is missing is before the watchdog */
  if (!lt_world_map(c, w, 1, 0) || !lt_world_wake(c, w)) return false;
  if (!open_link(c, w, ops, &at, &link)) return false;
  w->info.backend = ops->name;
  w->watchdog.connections = lt_connections_new(c);
  w->group = lt_group_new(c, ops, link, w->heartbeat, true);
  if (!lt_ok(c) || !lt_watchdog_start(c, w) || !meet(c, w, o)) return false;
  lt_group_begin(w->group);
  atomic_store(&w->mail.deadline_ns, 0);
  lt_world_install(c, w);
  if (w->owns_process) lt_world_guard(w);
  return true;
}

lt_world *lt_world_join(lt_ctx *c, const lt_comm_ops *ops, const lt_comm_place *place,
                        const lt_launch_options *o) {
  if (!lt_ok(c)) return NULL;
  if (lt_world_current(c) != NULL) {
    lt_fail(c, LT_EARG, "join: this process already belongs to a world");
    return NULL;
  }
  lt_world *w = lt_world_new(c, o);
  if (w == NULL) return NULL;
  if (join(c, w, ops, place, o)) return w;
  if (w->heartbeat != NULL)
    lt_outcome_set(&w->heartbeat->outcome, LT_RAISED, -1, 1, c->failure.text);
  lt_world_drop(c, w);
  return NULL;
}
