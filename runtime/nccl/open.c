/* runtime/nccl/open.c: NCCL as ltrain's link between NVIDIA's devices: joining and leaving.

   Communicators do not block: a rank that another one waits for, or that has died, is ltrain's to
   notice, on the host's link. What never ends is ended by ncclCommAbort, which frees the kernels
   that a device is stuck in. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/library.h"
#include "nccl/link.h"

/* MESSAGE_BLOCKS: of a receive, which keeps its multiprocessors until the sender comes. */
enum { OLDEST = 21800, CLOSE_MS = 3000, MESSAGE_BLOCKS = 4 };

_Static_assert(sizeof(ncclUniqueId) == LT_COMM_ID, "an id of NCCL is one of ltrain's");

/* ---- joining ---- */

static bool make_id(char id[LT_COMM_ID], char *text, size_t text_size) {
  char why[LT_COMM_TEXT];
  ncclUniqueId made;
  if (!lt_nccl_ok(NULL, lt_nccl.ncclGetUniqueId(&made), "ncclGetUniqueId", why)) {
    snprintf(text, text_size, "%s", why);
    return false;
  }
  memcpy(id, &made, sizeof made);
  return true;
}

/* ltrain has made the place's device that of this thread. Returns at once: the first movement waits
   until all have joined. ncclCommInitRankConfig with blocking = 0 (NCCL 2.14): a blocking init
   would block this thread until all ranks have come, and the watchdog could not end it. */
static lt_comm_link *open_link(const lt_comm_host *host, const lt_comm_place *place, char *text,
                               size_t text_size) {
  lt_comm_link *l = calloc(1, sizeof *l);
  if (l == NULL) {
    snprintf(text, text_size, "out of memory");
    return NULL;
  }
  *l = (lt_comm_link){.host = host, .rank = place->rank, .size = place->size};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (place->messages) config.maxCTAs = MESSAGE_BLOCKS;
  ncclUniqueId id;
  memcpy(&id, place->id, sizeof id);
  ncclResult_t r = lt_nccl.ncclCommInitRankConfig(&l->comm, l->size, id, l->rank, &config);
  char why[LT_COMM_TEXT];
  if (lt_nccl_ok(l, r, "ncclCommInitRankConfig", why)) return l;
  snprintf(text, text_size, "%s", why);
  free(l);
  return NULL;
}

/* ---- leaving ---- */

/* ncclCommAbort returns when the kernels of its communicator have ended. One of another may be
   stuck before them on the stream: so each is aborted by a thread of its own, none of which is
   waited for until the process ends, and then not long. */
typedef struct aborting {
  struct aborting *next;
  pthread_t thread;
} aborting;
static aborting *aborted;

static void *abort_link(void *ud) {
  lt_comm_link *l = ud;
  lt_nccl.ncclCommAbort(l->comm);
  free(l);
  return NULL;
}

static void join_aborted(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += CLOSE_MS / 1000;
  for (aborting *a = aborted; a != NULL; a = a->next)
    pthread_timedjoin_np(a->thread, NULL, &until);
}

static bool begin_abort(lt_comm_link *l) {
  sigset_t all, before;
  aborting *a = malloc(sizeof *a);
  if (a == NULL || (aborted == NULL && atexit(join_aborted) != 0)) {
    free(a);
    return false;
  }
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* which are for the threads of ltrain */
  bool ok = pthread_create(&a->thread, NULL, abort_link, l) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!ok) {
    free(a);
    return false;
  }
  a->next = aborted;
  aborted = a;
  return true;
}

static void abandon_link(lt_comm_link *l) {
  if (!begin_abort(l)) abort_link(l);
}

/* What this rank has issued is done. Other ranks may still need what is on its way to them: NCCL
   says when that is over; it is not waited for long. */
static void close_link(lt_comm_link *l) {
  char text[LT_COMM_TEXT];
  struct timespec nap = {.tv_nsec = 1000000};
  lt_progress p = LT_BROKEN;
  if (l->is_ready && lt_nccl_ok(l, lt_nccl.ncclCommFinalize(l->comm), "ncclCommFinalize", text))
    for (int k = 0; k < CLOSE_MS && (p = lt_nccl_progress(l, text)) == LT_PENDING; k++)
      nanosleep(&nap, NULL);
  if (p != LT_DONE) {
    abandon_link(l);
    return;
  }
  lt_nccl.ncclCommDestroy(l->comm);
  free(l);
}

static int link_rank(const lt_comm_link *l) { return l->rank; }
static int link_ranks(const lt_comm_link *l) { return l->size; }

static lt_progress check_link(lt_comm_link *l, char *text, size_t text_size) {
  char why[LT_COMM_TEXT];
  lt_progress p = lt_nccl_progress(l, why);
  if (p == LT_BROKEN) snprintf(text, text_size, "%s", why);
  return p;
}

/* ---- the tables ---- */

static const lt_comm_ops ops = {
    .size = sizeof(lt_comm_ops),
    .version = LT_COMM_VERSION,
    .name = "nccl",
    .device = "cuda",
    .make_id = make_id,
    .open = open_link,
    .close = close_link,
    .abandon = abandon_link,
    .rank = link_rank,
    .ranks = link_ranks,
    .move = lt_nccl_move,
    .reduces = lt_nccl_reduces,
    .check = check_link,
};

static bool open_library(char *text, char *about, size_t about_size) {
  static const char *const names[] = {"libnccl.so.2", NULL};
  static lt_cuda_library nccl = {"NCCL", "nvidia-nccl-cu13", names, NULL, false, ""};
  int version = 0;
  if (lt_cuda_library_open(&nccl)) {
#define LT_NCCL(name) *(void **)&lt_nccl.name = lt_cuda_library_find(&nccl, #name);
#include "nccl/functions.def"
  }
  if (nccl.why[0] == '\0') lt_nccl.ncclGetVersion(&version);
  if (nccl.why[0] == '\0' && version < OLDEST)
    snprintf(nccl.why, sizeof nccl.why, "NCCL %d.%d is too old: %d.%d or later is needed",
             version / 10000, version % 10000 / 100, OLDEST / 10000, OLDEST % 10000 / 100);
  snprintf(text, LT_BACKEND_TEXT, "%s", nccl.why);
  snprintf(about, about_size, "NCCL %d.%d.%d", version / 10000, version % 10000 / 100,
           version % 100);
  return nccl.why[0] == '\0';
}

LT_API bool lt_backend_open(const lt_host *h, lt_backend *out) {
  static char about[64];
  out->version = LT_BACKEND_VERSION;
  if (h->version != LT_BACKEND_VERSION) return true; /* ltrain reports it, with both numbers */
  if (!open_library(out->text, about, sizeof about)) return false;
  out->about = about;
  out->comm = &ops;
  return true;
}
