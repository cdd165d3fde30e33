/* runtime/base/cpu_load.c: detects other programs on the cores, and lets threads of parallel loops
   sleep instead of spin then.

   libgomp reads how its threads wait when it is loaded, and offers no call to change it. But it has
   a rule of its own: while it has more threads than there are cores, none spins for more than a
   few microseconds. A team of threads that sleeps all the time makes it so, and costs nothing. */
#include "base/cpu_load.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/threads.h"

#define LOOK_S 0.1     /* between looks */
#define TRIAL_S 0.03   /* of the first look after a shared time */
#define MUCH 0.4       /* threads that wait: the cores are shared */
enum {
  SHORT_INTERVAL = 5,  /* looks; doubled when the load is still there, ... */
  LONG_INTERVAL = 40,  /* ... up to this */
  SMALL_TEAM = 2,      /* one of them alone is faster than all that wake each other */
  MOST_LOOKED_AT = 64, /* threads whose times are read */
};

struct lt_load {
  lt_load_state state;
  double looked, next; /* seconds */
  double delay;        /* at the last look */
  lt_thread thread;    /* the first of the team that sleeps */
  int sleepers;
  pthread_mutex_t mutex;
  pthread_cond_t woken;
  bool wake;
};

/* Threads that sleep wait in queues for other reasons too: whether the load is over is seen only
   when they spin again. */
void lt_load_judge(lt_load_state *s, double waiting) {
  s->looks++;
  if (s->shared) {
    if (s->looks >= s->interval) s->shared = false, s->looks = 0;
  } else if (waiting >= MUCH) {
    int twice = 2 * s->interval;
    s->interval = twice < SHORT_INTERVAL ? SHORT_INTERVAL : twice;
    if (s->interval > LONG_INTERVAL) s->interval = LONG_INTERVAL;
    s->shared = true, s->looks = 0;
  } else if (s->looks >= LONG_INTERVAL) {
    s->interval = 0;
  }
}

/* The second number of a thread's schedstat: nanoseconds in the queue of a core. */
static double thread_delay(int tasks, const char *id) {
  char path[300], text[96];
  snprintf(path, sizeof path, "%s/schedstat", id);
  int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = 0;
  char *end = text;
  strtoull(text, &end, 10);
  return 1e-9 * (double)strtoull(end, NULL, 10);
}

double lt_load_delay(void) {
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return 0;
  double sum = 0;
  int n = 0;
  for (struct dirent *e; n < MOST_LOOKED_AT && (e = readdir(tasks)) != NULL;)
    if (e->d_name[0] != '.') sum += thread_delay(dirfd(tasks), e->d_name), n++;
  closedir(tasks);
  return sum;
}

static void sleep_in_team(void *ud) {
  lt_load *l = ud;
#pragma omp parallel num_threads(l->sleepers)
  {
    pthread_mutex_lock(&l->mutex);
    while (!l->wake) pthread_cond_wait(&l->woken, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
  }
}

static void wake_team(void *ud) {
  lt_load *l = ud;
  pthread_mutex_lock(&l->mutex);
  l->wake = true;
  pthread_cond_broadcast(&l->woken);
  pthread_mutex_unlock(&l->mutex);
}

static lt_load *load_of(lt_ctx *c) {
  if (c->root->load != NULL) return c->root->load;
  lt_load *l = lt_alloc(c->root, sizeof *l);
  if (l == NULL) return NULL;
  pthread_mutex_init(&l->mutex, NULL);
  pthread_cond_init(&l->woken, NULL);
  return c->root->load = l;
}

void lt_load_free(lt_ctx *c) {
  lt_load *l = c->load;
  if (l == NULL) return;
  lt_thread_join(c, &l->thread); /* work that was waited for last may have started it anew */
  pthread_cond_destroy(&l->woken);
  pthread_mutex_destroy(&l->mutex);
  lt_free(c, l, sizeof *l);
}

/* The user's word on how threads wait. */
static bool is_decided(void) {
  return getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL;
}

/* c's threads and the sleepers beside the first, whom libgomp did not make, must be more than the
   cores. Few threads on many cores would need too many of them. */
bool lt_load_share(lt_ctx *c, bool shared) {
  lt_load *l = load_of(c);
  if (l == NULL) return false;
  int beside = lt_cpu_count() - c->threads + 1;
  l->state.shared = shared && !is_decided() && beside <= c->threads + 1;
  if (!shared) lt_thread_join(c->root, &l->thread);
  if (!l->state.shared) return !shared;
  if (l->thread.running || beside < 1) return true;
  l->sleepers = beside + 1;
  l->wake = false;
  l->thread = (lt_thread){.name = "sleepers", .fn = sleep_in_team, .stop = wake_team, .ud = l};
  return lt_thread_start(c->root, &l->thread) || !lt_take_failure(c->root, NULL);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* one look at memory */
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void look(lt_ctx *c, lt_load *l, double now) {
  double delay = lt_load_delay();
  bool was = l->state.shared;
  if (l->next > 0) lt_load_judge(&l->state, (delay - l->delay) / (now - l->looked));
  l->delay = delay, l->looked = now;
  l->next = now + (was && !l->state.shared ? TRIAL_S : LOOK_S);
  if (was || l->state.shared) lt_load_share(c, l->state.shared);
}

int lt_load_threads(lt_ctx *c) {
  if (c->threads <= 1) return 1;
  lt_load *l = load_of(c);
  double now = seconds();
  if (l == NULL) return c->threads;
  if (now >= l->next) look(c, l, now);
  return l->state.shared && c->threads <= SMALL_TEAM ? 1 : c->threads;
}
