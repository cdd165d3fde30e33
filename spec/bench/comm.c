/* spec/bench/comm.c: all_reduce over shm between forked ranks, and what it is made of.

   Prints, for 4 B, 64 KB, 1 MB and 64 MB of f32, the median and the best time of one all_reduce;
   for 64 MB also the time of three passes over so many bytes at the bandwidth that as many
   processes have at once (STREAM's triad), which is the bound that we measure against. Of more than
   16 ranks it measures 4 B alone: see comm/shm_small.c. comm.sh adds MPI_Allreduce on the same
   machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/comm.h"
#include "comm/ring.h"
#include "device/device.h"
#include "registry.h"

enum { MOST = 2000, MANY = 16 };

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

typedef struct times {
  double median, best; /* microseconds */
} times;

static times of(double *us, int n) {
  qsort(us, (size_t)n, sizeof *us, by_value);
  return (times){us[n / 2], us[0]};
}

typedef struct bench {
  lt_ctx *c;
  lt_group *g;
  lt_heartbeat *heartbeat;
} bench;

static void run(bench *b, lt_work *w) {
  lt_failure f;
  if (w != NULL) lt_work_wait(b->c, w);
  if (lt_take_failure(b->c, &f)) fprintf(stderr, "%s\n", f.text), exit(1);
  lt_work_release(b->c, w);
}

static times all_reduce(bench *b, int64_t bytes, int repeats) {
  static double us[MOST];
  int64_t n = bytes / 4;
  lt_frame frame = lt_frame_open(b->c);
  lt_tensor *t = lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_F32, 1, &n);
  memset(lt_data(t), 0, (size_t)bytes);
  for (int k = -repeats / 10 - 1; k < repeats; k++) {
    run(b, lt_comm_barrier(b->c, b->g, (lt_origin){0}));
    int64_t start = lt_now_ns();
    run(b, lt_comm_all_reduce(b->c, b->g, t, t, LT_COMM_SUM, (lt_origin){0}));
    if (k >= 0) us[k] = (double)(lt_now_ns() - start) / 1e3;
  }
  lt_frame_close(b->c, frame, 0, NULL);
  return of(us, repeats);
}

static times barrier(bench *b, int repeats) {
  static double us[MOST];
  for (int k = 0; k < repeats; k++) {
    int64_t start = lt_now_ns();
    run(b, lt_comm_barrier(b->c, b->g, (lt_origin){0}));
    us[k] = (double)(lt_now_ns() - start) / 1e3;
  }
  return of(us, repeats);
}

/* Bytes a second of one process while all do the same: a[i] = b[i] + 3 c[i]. */
static double stream(bench *b, int64_t bytes) {
  enum { PASSES = 9 };
  int64_t n = bytes / 4;
  float *x = malloc((size_t)bytes), *y = malloc((size_t)bytes), *z = malloc((size_t)bytes);
  double best = 1e30;
  for (int64_t i = 0; i < n; i++) x[i] = 0, y[i] = (float)i, z[i] = 1;
  for (int k = 0; k < PASSES; k++) {
    run(b, lt_comm_barrier(b->c, b->g, (lt_origin){0}));
    int64_t start = lt_now_ns();
    for (int64_t i = 0; i < n; i++) x[i] = y[i] + 3 * z[i];
    double s = (double)(lt_now_ns() - start) * 1e-9;
    best = s < best ? s : best;
    y[k] = x[n - 1 - k];
  }
  free(x), free(y), free(z);
  return 3 * (double)bytes / best;
}

static void row(int ranks, const char *what, times t) {
  printf("shm %d ranks %6s  median %10.1f us  best %10.1f us\n", ranks, what, t.median, t.best);
}

/* What only rank 0 measures, alone. */
static void parts_of_a_call(bench *b) {
  enum { N = 100000 };
  lt_mark mark = {.kind = LT_MARK_CALL};
  int64_t start = lt_now_ns();
  for (int k = 0; k < N; k++) {
    uint64_t number = lt_ring_issue(b->heartbeat, &mark, 4);
    lt_ring_arrived(b->heartbeat, number);
    lt_ring_done(b->heartbeat, number, 4);
  }
  printf("a record in the ring, with its three times: %.0f ns\n",
         (double)(lt_now_ns() - start) / N);
  lt_group *self = lt_group_self(b->c, b->heartbeat);
  lt_tensor *t = lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_F32, 0, NULL);
  bench alone = {b->c, self, b->heartbeat};
  start = lt_now_ns();
  for (int k = 0; k < N; k++)
    run(&alone, lt_comm_all_reduce(b->c, self, t, t, LT_COMM_SUM, (lt_origin){0}));
  printf("an all_reduce among one rank (queue, mark, ring, no other): %.0f ns\n",
         (double)(lt_now_ns() - start) / N);
  lt_group_close(b->c, self);
  lt_group_release(b->c, self);
}

static void measure_many(bench *b, int rank, int ranks) {
  times empty = barrier(b, MOST / 8);
  times small = all_reduce(b, 4, MOST / 8);
  if (rank != 0) return;
  row(ranks, "0 B", empty);
  row(ranks, "4 B", small);
}

static void measure(bench *b, int rank, int ranks) {
  times empty = barrier(b, MOST);
  times small = all_reduce(b, 4, MOST);
  times middle = all_reduce(b, 64 << 10, MOST), large = all_reduce(b, 1 << 20, 500);
  times huge = all_reduce(b, 64 << 20, 30);
  double bytes = stream(b, 64 << 20);
  if (rank != 0) return;
  row(ranks, "4 B", small);
  row(ranks, "64 KB", middle);
  row(ranks, "1 MB", large);
  row(ranks, "64 MB", huge);
  printf("shm %d ranks: the fingerprint alone (a barrier) %.1f us; a barrier and 4 B of data %.1f "
         "us\n",
         ranks, empty.median, small.median);
  double bound = 3 * (double)(64 << 20) / bytes * 1e6;
  printf("stream %d ranks at once: %.1f GB/s each; 3 x 64 MB: %.1f us; all_reduce is %.2f times "
         "that (best %.2f)\n",
         ranks, bytes * 1e-9, bound, huge.median / bound, huge.best / bound);
  if (ranks == 2) parts_of_a_call(b);
}

static void rank_main(void *memory, size_t bytes, int rank, int ranks) {
  bench b = {.c = lt_ctx_new(lt_registry_here(), NULL),
             .heartbeat = calloc(1, sizeof(lt_heartbeat))};
  char text[LT_COMM_TEXT] = "";
  lt_comm_place place = {.rank = rank, .size = ranks, .memory = memory, .memory_bytes = bytes};
  lt_comm_link *link = lt_shm_ops()->open(lt_comm_host_here(), &place, text, sizeof text);
  b.c->threads = 1;
  b.g = lt_group_new(b.c, lt_shm_ops(), link, b.heartbeat, ranks > sysconf(_SC_NPROCESSORS_ONLN));
  if (ranks > MANY)
    measure_many(&b, rank, ranks);
  else
    measure(&b, rank, ranks);
  lt_group_close(b.c, b.g);
  lt_group_release(b.c, b.g);
  lt_ctx_release(b.c);
  free(b.heartbeat);
}

static void fork_ranks(int ranks) {
  size_t bytes = lt_shm_bytes(ranks);
  void *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  lt_shm_init(memory, bytes, ranks);
  fflush(stdout);
  for (int k = 1; k < ranks; k++)
    if (fork() == 0) {
      rank_main(memory, bytes, k, ranks);
      _exit(0);
    }
  rank_main(memory, bytes, 0, ranks);
  while (wait(NULL) > 0) continue;
  munmap(memory, bytes);
}

int main(int argc, char **argv) {
  alarm(300);
  if (argc > 1) {
    for (int k = 1; k < argc; k++) fork_ranks(atoi(argv[k]));
    return 0;
  }
  fork_ranks(2);
  fork_ranks(4);
  return 0;
}
