/* runtime/launch/world.c: the life of a world, and what its main thread says and asks. */
#include "launch/world.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/locale.h"

enum { REPORTED_S = 5 }; /* until a watchdog that was asked has its verdict */

/* The world whose main thread the reserved signal is for. */
static lt_world *_Atomic signalled;

/* One of the real-time signals, which nobody else sends: a verdict is there. */
static int reserved_signal(void) { return SIGRTMIN + 6; }

static void on_verdict(int number) {
  (void)number;
  int saved = errno;
  lt_world *w = atomic_load(&signalled);
  if (w != NULL && w->wake != NULL) w->wake(w->wake_ud);
  errno = saved;
}

/* LT_TIMEOUT, 60 without it; 0 when it is no number of seconds. */
static double default_timeout(void) {
  const char *text = getenv("LT_TIMEOUT");
  if (text == NULL) return 60;
  char *end;
  double s = lt_parse_double(text, &end);
  return end != text && *end == 0 && s > 0 && s < 1e9 ? s : 0;
}

static int64_t ns_of(double seconds) { return (int64_t)(seconds * LT_SECOND); }

static void wake_watchdog(lt_world *w) {
  uint64_t one = 1;
  ssize_t n = write(w->wake_fd, &one, sizeof one);
  (void)n; /* full means that it is awake */
}

/* What a script says may have any bytes: its further lines are indented, and other control
   characters are said, so that none of it looks like a line of ours. */
static void write_plain(char *to, size_t size, const char *text) {
  size_t used = 0;
  for (; *text != 0 && used + 6 < size; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte == '\n' && text[1] != ' ' && text[1] != '\t')
      used += (size_t)snprintf(to + used, 4, "\n  ");
    else if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f)
      used += (size_t)snprintf(to + used, 6, "\\%u", byte);
    else
      to[used++] = *text;
  }
  to[used] = 0;
}

void lt_world_report(lt_world *w, lt_verdict_class class, int rank, int status, const char *text) {
  if (lt_heartbeat_is_over(w->heartbeat)) return;
  char plain[LT_VERDICT_TEXT];
  write_plain(plain, sizeof plain, text);
  w->report = (lt_message){
      .kind = LT_MESSAGE_REPORT, .class = (uint8_t) class, .rank = rank, .status = status};
  lt_message_text(&w->report, plain);
  lt_world_request(w, LT_REQUEST_REPORT);
  int64_t patience = class == LT_INTERRUPTED ? LT_SAVE_S + REPORTED_S : REPORTED_S;
  lt_world_wait(w, LT_EVENT_VERDICT, patience * LT_SECOND, false);
  if (!lt_heartbeat_is_over(w->heartbeat))
    lt_verdict_set(&w->heartbeat->verdict, class, rank, status, plain);
}

/* The disagreement that comm/ found: no rank alone is to blame. */
static void report(void *ud, lt_verdict_class class, const char *text) {
  lt_world_report(ud, class, -1, 1, text);
}

static void on_long_wait(void *ud) {
  lt_world *w = ud;
  atomic_store(&w->waits_long, true);
  wake_watchdog(w);
}

uint64_t lt_world_random_id(void) {
  uint64_t id;
  if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
    id = (uint64_t)lt_now_ns() ^ (uint64_t)getpid() << 32;
  return id;
}

/* NULL: a folder that nobody can guess, by the number. */
static void name_folder(lt_world *w, const char *folder, uint64_t id) {
  char here[PATH_MAX], own[64];
  if (getcwd(here, sizeof here) == NULL) snprintf(here, sizeof here, ".");
  snprintf(own, sizeof own, "ltrain_failure_%016llx", (unsigned long long)id);
  w->names_folder = folder == NULL;
  if (folder != NULL && folder[0] == '/')
    snprintf(w->folder, sizeof w->folder, "%s", folder);
  else
    snprintf(w->folder, sizeof w->folder, "%s/%s", here, folder != NULL ? folder : own);
}

static void fill(lt_ctx *c, lt_world *w, const lt_launch_options *o) {
  w->c = c;
  w->wake_fd = w->err_fd = -1;
  pthread_mutex_init(&w->folder_mutex, NULL);
  snprintf(w->what, sizeof w->what, "%s", o->what != NULL ? o->what : "the script");
  if (gethostname(w->host, sizeof w->host - 1) != 0) snprintf(w->host, sizeof w->host, "localhost");
  w->owns_process = o->owns_process;
  w->wake = o->wake;
  w->wake_ud = o->wake_ud;
  w->may_write = c->root->policy.write_files;
  w->threads_before = c->root->threads;
  lt_world_set_timeout(w, o->timeout);
  name_folder(w, o->folder, lt_world_random_id());
}

bool lt_world_size(lt_ctx *c, lt_world *w, int rank, int size) {
  w->hosts = lt_alloc(c, (size_t)size * sizeof *w->hosts);
  if (w->hosts == NULL) return false;
  for (int r = 0; r < size; r++) w->hosts[r] = w->host;
  w->info = (lt_world_info){.rank = rank,
                            .size = size,
                            .local_rank = rank,
                            .local_size = size,
                            .nodes = 1,
                            .hosts = w->hosts,
                            .pids = w->info.pids,
                            .forked = w->info.forked,
                            .timeout = w->info.timeout};
  return true;
}

lt_world *lt_world_new(lt_ctx *c, const lt_launch_options *o) {
  if (o->timeout <= 0 && default_timeout() <= 0) {
    lt_fail(c, LT_EARG, "%s: LT_TIMEOUT must be a number of seconds above 0: got '%.40s'",
            o->what != NULL ? o->what : "launch", getenv("LT_TIMEOUT"));
    return NULL;
  }
  lt_world *w = lt_alloc(c, sizeof *w);
  if (w != NULL) fill(c, w, o);
  return w;
}

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
    return lt_fail(c, LT_EMEMORY, "%s: no %zu bytes of memory for %d ranks: %s", w->what,
                   w->shared_bytes, w->info.size, strerror(errno));
  w->shared = memory;
  w->info.pids = w->shared->pids;
  w->heartbeat = (lt_heartbeat *)((char *)memory + front);
  w->segment = (char *)memory + front + middle;
  return true;
}

bool lt_world_wake(lt_ctx *c, lt_world *w) {
  w->main = pthread_self();
  w->heartbeat->report = report;
  w->heartbeat->on_long_wait = on_long_wait;
  w->heartbeat->ud = w;
  w->n_polls = 1;
  w->polls = lt_alloc(c, sizeof *w->polls);
  w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (w->wake_fd < 0)
    return lt_fail(c, LT_EIO, "%s: no event descriptor: %s", w->what, strerror(errno));
  return lt_ok(c);
}

bool lt_world_open(lt_ctx *c, lt_world *w) {
  int n = w->info.rank == 0 ? w->info.size : 1;
  w->heartbeat->rank = w->info.rank;
  w->heartbeat->size = w->info.size;
  w->n_peers = n;
  w->peers = lt_alloc(c, (size_t)n * sizeof *w->peers);
  lt_free(c, w->polls, (size_t)w->n_polls * sizeof *w->polls);
  w->n_polls = 2 * n + 1 + LT_ADDRESSES + LT_PENDING_CONNECTIONS;
  w->polls = lt_alloc(c, (size_t)w->n_polls * sizeof *w->polls);
  w->marks = lt_alloc(c, (size_t)n * sizeof *w->marks);
  w->ranks = lt_alloc(c, (size_t)n * sizeof *w->ranks);
  w->kept = lt_alloc(c, (size_t)n * sizeof *w->kept);
  for (int r = 0; r < n && w->peers != NULL; r++) w->peers[r].link.fd = w->peers[r].pidfd = -1;
  lt_world_set_activity(w, NULL, NULL, 0); /* until it says more */
  return lt_ok(c);
}

void lt_world_install(lt_ctx *c, lt_world *w) {
  c->root->slot[LT_SLOT_LAUNCH] = w;
  c->root->slot_drop[LT_SLOT_LAUNCH] = lt_world_drop;
  if (w->wake == NULL) return;
  struct sigaction action = {.sa_handler = on_verdict};
  sigemptyset(&action.sa_mask);
  atomic_store(&signalled, w);
  w->signals = sigaction(reserved_signal(), &action, &w->signal_before) == 0;
}

void lt_world_signal(lt_world *w) {
  if (w->signals) pthread_kill(w->main, reserved_signal());
}

void lt_world_free(lt_ctx *c, lt_world *w) {
  if (w->signals) sigaction(reserved_signal(), &w->signal_before, NULL);
  lt_world *self = w;
  atomic_compare_exchange_strong(&signalled, &self, NULL);
  if (c->root->slot[LT_SLOT_LAUNCH] == w) c->root->slot[LT_SLOT_LAUNCH] = NULL;
  for (int r = 0; r < w->n_peers && w->peers != NULL; r++) {
    lt_channel_close(&w->peers[r].link);
    if (w->peers[r].pidfd >= 0) close(w->peers[r].pidfd);
  }
  if (w->wake_fd >= 0) close(w->wake_fd);
  if (w->err_fd >= 0) close(w->err_fd);
  lt_connections_release(c, w->connections);
  size_t n = (size_t)w->info.size, peers = (size_t)w->n_peers;
  lt_free(c, w->peers, peers * sizeof *w->peers);
  lt_free(c, w->polls, (size_t)w->n_polls * sizeof *w->polls);
  lt_free(c, w->marks, peers * sizeof *w->marks);
  lt_free(c, w->ranks, peers * sizeof *w->ranks);
  lt_free(c, w->kept, peers * sizeof *w->kept);
  lt_free(c, w->hosts, n * sizeof *w->hosts);
  lt_free(c, w->host_names, n * sizeof *w->host_names);
  if (w->shared != NULL) munmap(w->shared, w->shared_bytes);
  pthread_mutex_destroy(&w->folder_mutex);
  lt_free(c, w, sizeof *w);
}

/* ---- between the two threads ---- */

void lt_world_request(lt_world *w, lt_request request) {
  atomic_fetch_or(&w->requests, request);
  wake_watchdog(w);
}

void lt_world_notify(lt_world *w, lt_event event) {
  atomic_fetch_or(&w->events, event);
  syscall(SYS_futex, &w->events, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
}

bool lt_world_wait(lt_world *w, uint32_t events, int64_t ns, bool interrupts) {
  int64_t start = lt_now_ns();
  for (;;) {
    uint32_t seen = atomic_load(&w->events);
    if ((seen & events) != 0) return true;
    if (interrupts && atomic_load(w->c->cancel)) return false;
    if (ns >= 0 && lt_now_ns() - start >= ns) return false;
    struct timespec t = {.tv_nsec = 10 * LT_MS};
    syscall(SYS_futex, &w->events, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, seen, &t, NULL, 0);
  }
}

/* ---- what the main thread says ---- */

lt_world *lt_world_current(const lt_ctx *c) { return c->root->slot[LT_SLOT_LAUNCH]; }
const lt_world_info *lt_world_describe(const lt_world *w) { return &w->info; }
lt_group *lt_world_group(lt_world *w) { return w->group; }
lt_heartbeat *lt_world_heartbeat(lt_world *w) { return w->heartbeat; }

const lt_verdict *lt_world_verdict(const lt_world *w) {
  return w != NULL && lt_heartbeat_is_over(w->heartbeat) ? &w->heartbeat->verdict : NULL;
}

void lt_world_set_timeout(lt_world *w, double seconds) {
  w->info.timeout = seconds > 0 ? seconds : default_timeout();
  atomic_store(&w->timeout_ns, ns_of(w->info.timeout));
}

void lt_world_name_job(lt_world *w, uint64_t id) {
  pthread_mutex_lock(&w->folder_mutex);
  name_folder(w, NULL, id);
  pthread_mutex_unlock(&w->folder_mutex);
}

void lt_world_set_folder(lt_world *w, const char *folder) {
  pthread_mutex_lock(&w->folder_mutex);
  name_folder(w, folder, lt_world_random_id());
  pthread_mutex_unlock(&w->folder_mutex);
}

lt_mark lt_world_mark(lt_mark_kind kind, const char *hook, const char *file, int line) {
  lt_mark m;
  memset(&m, 0, sizeof m);
  m.kind = (uint8_t)kind;
  m.reduce = LT_COMM_NO_REDUCE;
  m.dtype = LT_DTYPE_NONE;
  m.line = line;
  if (hook != NULL) strncpy(m.hook, hook, sizeof m.hook - 1);
  lt_mark_set_file(&m, file);
  return m;
}

void lt_world_set_activity(lt_world *w, const char *hook, const char *file, int line) {
  lt_mark m = lt_world_mark(LT_MARK_RUNNING, hook, file, line);
  lt_heartbeat_set_activity(w->heartbeat, &m);
}

void lt_world_span(lt_world *w, bool open, bool saving) {
  atomic_fetch_add(&w->heartbeat->declared, open ? 1 : -1);
  if (!saving) return;
  atomic_fetch_add(&w->saving, open ? 1 : -1);
  atomic_fetch_add(&w->shared->saving, open ? 1 : -1);
}

void lt_world_raise(lt_world *w, const char *text, const char *file, int line) {
  if (lt_heartbeat_is_over(w->heartbeat)) return;
  if (file != NULL) lt_world_set_activity(w, NULL, file, line);
  char said[LT_VERDICT_TEXT];
  snprintf(said, sizeof said, "rank %d: %s", w->info.rank, text);
  lt_world_report(w, LT_RAISED, w->info.rank, 1, said);
}

void lt_world_interrupt(lt_world *w, int number) {
  atomic_store(&w->interrupt, number);
  lt_world_request(w, LT_REQUEST_INTERRUPT);
}

void lt_world_stop(lt_world *w, const char *text, int status) {
  lt_world_report(w, LT_INTERRUPTED, w->info.rank, status, text);
}

bool lt_world_leave(lt_ctx *c, lt_world *w, const char *file, int line) {
  if ((atomic_load(&w->requests) & LT_REQUEST_LEFT) == 0) {
    lt_mark m = lt_world_mark(LT_MARK_LEFT, w->what, file, line);
    lt_heartbeat_set_activity(w->heartbeat, &m);
    w->left = (lt_message){.kind = LT_MESSAGE_LEFT, .rank = w->info.rank, .state.mark = m};
    lt_issued_list
        list; /* peers that still wait in what is complete need nothing more of this rank */
    lt_group_issued(w->group, true, &list);
    lt_message_set_issued(&w->left, &list);
    lt_world_request(w, LT_REQUEST_LEFT);
  }
  lt_world_wait(w, LT_EVENT_ALL_LEFT | LT_EVENT_VERDICT, -1, true);
  const lt_verdict *v = lt_world_verdict(w);
  if (v != NULL) return lt_fail(c, LT_ERANKS, "%s", v->text);
  if ((atomic_load(&w->events) & LT_EVENT_ALL_LEFT) != 0) return true;
  return lt_fail(c, LT_ECANCEL, "%s: cancelled while other ranks went on", w->what);
}

bool lt_world_may_print(lt_world *w) {
  const lt_verdict *v = lt_world_verdict(w);
  if (!w->info.forked && v != NULL) {
    bool no_first = v->rank == 0 && (v->class == LT_EXITED || v->class == LT_LOST);
    int speaker = no_first ? w->peers[0].state.lowest : 0;
    if (w->info.rank != (speaker > 0 || !no_first ? speaker : 1)) return false;
  }
  return atomic_exchange(&w->shared->printed, 1) == 0;
}
