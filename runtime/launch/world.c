/* runtime/launch/world.c: creation and destruction of a world: its memory, its signals, its
   settings. */
#include "launch/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/locale.h"

/* The world whose main thread the reserved signals are for. */
static lt_world *_Atomic signalled;

/* Handlers of the two reserved signals, by which the watchdog interrupts the main thread: only
   atomics and the callback, which must be async-signal-safe; errno belongs to the code that was
   interrupted. */
static void on_outcome(int number) {
  (void)number;
  int saved = errno;
  lt_world *w = atomic_load(&signalled);
  if (w != NULL && w->wake != NULL) w->wake(w->wake_ud);
  errno = saved;
}

static void on_locate(int number) {
  (void)number;
  int saved = errno;
  lt_world *w = atomic_load(&signalled);
  if (w != NULL && w->locate != NULL) w->locate(w->wake_ud);
  errno = saved;
}

double lt_seconds_of(const char *variable) {
  const char *text = getenv(variable);
  if (text == NULL) return 60;
  char *end;
  double s = lt_parse_double(text, &end);
  return end != text && *end == 0 && s > 0 && s < 1e9 ? s : 0;
}

/* NULL: the default folder, whose name cannot be guessed. */
void lt_world_set_folder(lt_world *w, const char *folder) {
  char here[PATH_MAX], own[64];
  if (getcwd(here, sizeof here) == NULL) snprintf(here, sizeof here, ".");
  snprintf(own, sizeof own, "ltrain_failure_%016llx", (unsigned long long)w->id);
  pthread_mutex_lock(&w->mail.folder_lock);
  w->mail.names_folder = folder == NULL;
  if (folder != NULL && folder[0] == '/')
    snprintf(w->mail.folder, sizeof w->mail.folder, "%s", folder);
  else
    snprintf(w->mail.folder, sizeof w->mail.folder, "%s/%s", here, folder != NULL ? folder : own);
  pthread_mutex_unlock(&w->mail.folder_lock);
}

static bool check_seconds(lt_ctx *c, const lt_launch_options *o, double own, const char *variable) {
  return own > 0 || lt_seconds_of(variable) > 0 ||
         lt_fail(c, LT_EARG, "%s: %s must be a number of seconds above 0: got '%.40s'",
                 o->what != NULL ? o->what : "launch", variable, getenv(variable));
}

lt_world *lt_world_new(lt_ctx *c, const lt_launch_options *o) {
  if (!check_seconds(c, o, o->timeout, "LT_TIMEOUT") ||
      !check_seconds(c, o, o->launch_timeout, "LT_LAUNCH_TIMEOUT"))
    return NULL;
  lt_world *w = lt_alloc(c, sizeof *w);
  if (w == NULL) return NULL;
  w->c = c;
  if (!lt_random_bytes(&w->id, sizeof w->id))
    w->id = (uint64_t)lt_now_ns() ^ (uint64_t)getpid() << 32;
  w->mail.wake_fd = w->err_fd = w->watchdog.launcher_fd = -1;
  pthread_mutex_init(&w->mail.folder_lock, NULL);
  snprintf(w->what, sizeof w->what, "%s", o->what != NULL ? o->what : "the script");
  if (gethostname(w->host, sizeof w->host - 1) != 0) snprintf(w->host, sizeof w->host, "localhost");
  w->owns_process = o->owns_process;
  w->wake = o->wake;
  w->locate = o->locate;
  w->wake_ud = o->wake_ud;
  w->may_write = c->root->policy.write_files;
  w->threads_before = c->root->threads;
  lt_world_set_timeout(w, o->timeout);
  lt_world_set_folder(w, o->folder);
  return w;
}

/* Rank 0's watchdog has a link to each rank, the others one to rank 0: a star, in which one process
   decides what the failure of the run was. */
bool lt_world_size(lt_ctx *c, lt_world *w, int rank, int size) {
  lt_watchdog *d = &w->watchdog;
  int n = rank == 0 ? size : 1;
  w->info.rank = w->info.local_rank = rank;
  w->info.size = w->info.local_size = size;
  w->info.nodes = 1;
  w->hosts = lt_alloc(c, (size_t)size * sizeof *w->hosts);
  if (w->hosts != NULL) d->peers = lt_alloc(c, (size_t)n * sizeof *d->peers);
  if (d->peers == NULL) return false;
  for (int r = 0; r < size; r++) memcpy(w->hosts[r], w->host, sizeof w->host);
  for (int r = 0; r < n; r++) d->peers[r].link.fd = d->peers[r].pidfd = -1;
  w->info.hosts = (const char(*)[LT_HOST_NAME])w->hosts;
  d->n_peers = n;
  return true;
}

/* Parts of the mapping begin at pages, so that what one rank writes often shares no page, and no
   cache line, with another part. */
static size_t pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

/* Anonymous, so that nothing is left behind however the ranks end. */
bool lt_world_map(lt_ctx *c, lt_world *w, int n_heartbeats, size_t segment_bytes) {
  size_t front = pages(sizeof *w->shared),
         middle = pages((size_t)n_heartbeats * sizeof *w->heartbeat);
  w->segment_bytes = pages(segment_bytes);
  w->shared_bytes = front + middle + w->segment_bytes;
  void *memory = mmap(NULL, w->shared_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return lt_fail(c, LT_EMEMORY, "%s: cannot map %zu bytes of shared memory for %d ranks: %s",
                   w->what, w->shared_bytes, w->info.size, strerror(errno));
  w->shared = memory;
  w->info.pids = w->shared->pids;
  w->heartbeat = (lt_heartbeat *)((char *)memory + front);
  w->segment = (char *)memory + front + middle;
  return true;
}

/* The disagreement that comm/ found: no rank alone is to blame. */
static void on_disagreement(void *ud, lt_outcome_class class, const char *text) {
  lt_world_report(ud, class, -1, 1, text);
}

static void on_long_wait(void *ud) {
  lt_world *w = ud;
  atomic_store(&w->mail.waits_long, true);
  lt_mailbox_wake(&w->mail);
}

bool lt_world_wake(lt_ctx *c, lt_world *w) {
  w->main = pthread_self();
  w->heartbeat->report = on_disagreement;
  w->heartbeat->on_long_wait = on_long_wait;
  w->heartbeat->ud = w;
  w->watchdog.world = w;
  w->watchdog.info = &w->info;
  w->watchdog.heartbeat = w->heartbeat;
  w->watchdog.mail = &w->mail;
  w->mail.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return w->mail.wake_fd >= 0 ||
         lt_fail(c, LT_EIO, "%s: cannot make an event descriptor: %s", w->what, strerror(errno));
}

void lt_world_open(lt_world *w) {
  w->heartbeat->rank = w->info.rank;
  w->heartbeat->size = w->info.size;
  lt_world_set_activity(w, NULL, NULL, 0); /* until more is known */
}

/* SA_RESTART is absent for the first on purpose: a blocking call (read, poll) of the script ends
   with EINTR, so that the main thread notices the end of the run. Asking where it is must not
   disturb it. */
void lt_world_handle_signals(lt_world *w) {
  if (w->wake == NULL) return;
  struct sigaction action = {.sa_handler = on_outcome};
  sigemptyset(&action.sa_mask);
  atomic_store(&signalled, w);
  sigaction(lt_outcome_signal(), &action, &w->signal_before);
  action.sa_handler = on_locate;
  action.sa_flags = SA_RESTART;
  sigaction(lt_locate_signal(), &action, &w->locate_before);
  w->signals = true;
}

void lt_peer_close(lt_peer *p) {
  lt_channel_close(&p->link);
  if (p->pidfd >= 0) close(p->pidfd);
  p->pidfd = -1;
}

void lt_world_free(lt_ctx *c, lt_world *w) {
  if (w->signals) sigaction(lt_outcome_signal(), &w->signal_before, NULL);
  if (w->signals) sigaction(lt_locate_signal(), &w->locate_before, NULL);
  lt_world *self = w;
  atomic_compare_exchange_strong(&signalled, &self, NULL);
  if (c->root->slot[LT_SLOT_LAUNCH] == w) c->root->slot[LT_SLOT_LAUNCH] = NULL;
  lt_watchdog *d = &w->watchdog;
  for (int r = 0; r < d->n_peers; r++) lt_peer_close(&d->peers[r]);
  lt_free(c, d->peers, (size_t)d->n_peers * sizeof *d->peers);
  lt_connections_release(c, d->connections);
  if (d->launcher_fd >= 0) close(d->launcher_fd);
  if (w->mail.wake_fd >= 0) close(w->mail.wake_fd);
  if (w->err_fd >= 0) close(w->err_fd);
  lt_free(c, w->hosts, (size_t)w->info.size * sizeof *w->hosts);
  if (w->shared != NULL) munmap(w->shared, w->shared_bytes);
  pthread_mutex_destroy(&w->mail.folder_lock);
  lt_free(c, w, sizeof *w);
}

lt_world *lt_world_current(const lt_ctx *c) { return c->root->slot[LT_SLOT_LAUNCH]; }
const lt_world_info *lt_world_describe(const lt_world *w) { return &w->info; }
lt_group *lt_world_group(lt_world *w) { return w->group; }
lt_heartbeat *lt_world_heartbeat(lt_world *w) { return w->heartbeat; }

void lt_world_set_timeout(lt_world *w, double seconds) {
  w->info.timeout = seconds > 0 ? seconds : lt_seconds_of("LT_TIMEOUT");
  atomic_store(&w->mail.timeout_ns, (int64_t)(w->info.timeout * LT_SECOND));
}
