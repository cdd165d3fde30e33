/* spec/c/comm_test.h: N ranks as N threads over one segment of memory, each with a ctx and a
   heartbeat of its own. Included after the system headers that cmocka wants.

   A rank's function must not use cmocka's assertions (they jump out of the wrong thread): it calls
   CHECK, and the test fails with the first line that did not hold. */
#ifndef LT_SPEC_C_COMM_TEST_H
#define LT_SPEC_C_COMM_TEST_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm/comm.h"
#include "device/device.h"
#include "exhaustive.h"
#include "registry.h"

enum { MOST_RANKS = 40 };

typedef struct ranks ranks;

/* What a rank's function gets. */
typedef struct rank {
  ranks *all;
  int rank, size;
  lt_ctx *c;
  lt_heartbeat *heartbeat;
  lt_group *g;
  uint64_t random;
} rank;

struct ranks {
  int size;
  void (*fn)(rank *r);
  const void *ud;
  uint64_t seed; /* of three, one spins even where there are more ranks than cores */
  void *memory;
  size_t bytes;
  int64_t chunk; /* 0: as it is */
  lt_heartbeat *heartbeat[MOST_RANKS];
  atomic_int reports;    /* disagreements reported so far */
  atomic_bool cancel[1]; /* for ranks that point their ctx here */
  pthread_mutex_t mutex;
  char wrong[512]; /* the first CHECK that failed */
  pthread_barrier_t ends;
};

__attribute__((format(printf, 2, 3))) static inline void wrong(rank *r, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&r->all->mutex);
  if (r->all->wrong[0] == 0) vsnprintf(r->all->wrong, sizeof r->all->wrong, format, arguments);
  pthread_mutex_unlock(&r->all->mutex);
  va_end(arguments);
}
#define CHECK(r, condition) \
  ((condition) ? true : (wrong(r, "rank %d, line %d: %s", (r)->rank, __LINE__, #condition), false))

/* What a watchdog would do: the first report becomes the outcome of all. */
static inline void report_to_all(void *ud, lt_outcome_class class, const char *text) {
  ranks *all = ud;
  atomic_fetch_add(&all->reports, 1);
  for (int k = 0; k < all->size; k++)
    lt_outcome_set(&all->heartbeat[k]->outcome, class, -1, 1, text);
}

static inline uint64_t rank_random(rank *r) {
  r->random = r->random * 6364136223846793005u + 1442695040888963407u;
  return r->random >> 33;
}
/* Up to `us` microseconds, sometimes none, sometimes only a yield. */
static inline void rank_delay(rank *r, unsigned us) {
  uint64_t x = rank_random(r) % 4;
  if (x == 0) usleep((useconds_t)(rank_random(r) % us));
  if (x == 1) sched_yield();
}

static inline void *rank_main(void *argument) {
  rank *r = argument;
  ranks *all = r->all;
  char text[LT_COMM_TEXT] = "";
  r->c = lt_ctx_new(lt_registry_here(), NULL);
  r->heartbeat = all->heartbeat[r->rank];
  lt_comm_place place = {
      .rank = r->rank, .size = r->size, .memory = all->memory, .memory_bytes = all->bytes};
  lt_comm_link *link = lt_shm_ops()->open(lt_comm_host_here(), &place, text, sizeof text);
  if (CHECK(r, link != NULL)) {
    bool crowded = r->size > sysconf(_SC_NPROCESSORS_ONLN) && all->seed % 3 != 2;
    r->g = lt_group_new(r->c, lt_shm_ops(), link, r->heartbeat, crowded);
    if (all->chunk > 0) lt_group_set_chunk(r->g, all->chunk);
    lt_frame frame = lt_frame_open(r->c);
    all->fn(r);
    lt_frame_close(r->c, frame, 0, NULL);
    lt_failure f;
    if (lt_take_failure(r->c, &f)) wrong(r, "rank %d: %.400s", r->rank, f.text);
    pthread_barrier_wait(&all->ends);
    lt_group_close(r->c, r->g);
    lt_group_release(r->c, r->g);
  }
  lt_ctx_release(r->c);
  return NULL;
}

/* Run fn on `size` ranks over a segment of their own. */
static inline void run_ranks_with(int size, int64_t chunk, void (*fn)(rank *r), const void *ud,
                                  uint64_t seed) {
  alarm(600); /* whatever goes wrong, the test ends */
  lt_registry_here();
  ranks all = {.size = size,
               .fn = fn,
               .ud = ud,
               .chunk = chunk,
               .seed = seed,
               .bytes = lt_shm_bytes(size),
               .mutex = PTHREAD_MUTEX_INITIALIZER};
  all.memory = mmap(NULL, all.bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(all.memory != MAP_FAILED);
  lt_shm_init(all.memory, all.bytes, size);
  pthread_barrier_init(&all.ends, NULL, (unsigned)size);
  pthread_t thread[MOST_RANKS];
  rank r[MOST_RANKS];
  for (int k = 0; k < size; k++) {
    all.heartbeat[k] = calloc(1, sizeof(lt_heartbeat));
    assert_non_null(all.heartbeat[k]);
    *all.heartbeat[k] =
        (lt_heartbeat){.rank = k, .size = size, .report = report_to_all, .ud = &all};
  }
  for (int k = 0; k < size; k++) {
    r[k] = (rank){.all = &all, .rank = k, .size = size, .random = seed * 1000 + (uint64_t)k};
    assert_int_equal(pthread_create(&thread[k], NULL, rank_main, &r[k]), 0);
  }
  for (int k = 0; k < size; k++) pthread_join(thread[k], NULL);
  for (int k = 0; k < size; k++) free(all.heartbeat[k]);
  pthread_barrier_destroy(&all.ends);
  munmap(all.memory, all.bytes);
  if (all.wrong[0] != 0) fail_msg("%d ranks, seed %d: %s", size, (int)seed, all.wrong);
}
static inline void run_ranks(int size, void (*fn)(rank *r)) {
  run_ranks_with(size, 0, fn, NULL, 1);
}

#define HERE ((lt_origin){.file = "spec.lua", .line = __LINE__})

/* Wait for a work and drop it. */
static inline bool finish_work(rank *r, lt_work *w) {
  bool good = w != NULL && lt_work_wait(r->c, w);
  lt_work_release(r->c, w);
  return good;
}

static inline lt_tensor *rank_tensor(rank *r, lt_dtype dtype, int ndim, const int64_t *size) {
  return lt_tensor_empty(r->c, LT_CPU_DEVICE, dtype, ndim, size);
}

#endif
