/* tools/tsan_openmp.c: what OpenMP orders, told to ThreadSanitizer.

   libgomp wakes and waits for its threads by system calls that ThreadSanitizer does not see: all
   that a parallel loop reads would be a race with what was written before it. A build with
   LT_SANITIZE=thread has these functions before libgomp's. They say what the standard promises
   (what came before a region comes before its threads, and these before what follows it; barriers;
   critical sections) and then call libgomp's, so that races within a region are still found. */
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <stddef.h>

#define BEFORE_LIBGOMP __attribute__((visibility("default"))) /* oneDNN's calls, too */

BEFORE_LIBGOMP void GOMP_parallel(void (*fn)(void *), void *ud, unsigned threads, unsigned flags);
BEFORE_LIBGOMP void GOMP_barrier(void);
BEFORE_LIBGOMP void GOMP_loop_end(void);
BEFORE_LIBGOMP void GOMP_critical_start(void);
BEFORE_LIBGOMP void GOMP_critical_end(void);

typedef struct region {
  void (*fn)(void *ud);
  void *ud;
  char begun, met, done; /* their addresses are what is released and acquired */
} region;

static _Thread_local region *current; /* of this thread */
static char critical;
static void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
static void (*barrier)(void), (*loop_end)(void), (*critical_start)(void), (*critical_end)(void);

__attribute__((constructor)) static void look_up(void) {
  *(void **)&parallel = dlsym(RTLD_NEXT, "GOMP_parallel");
  *(void **)&barrier = dlsym(RTLD_NEXT, "GOMP_barrier");
  *(void **)&loop_end = dlsym(RTLD_NEXT, "GOMP_loop_end");
  *(void **)&critical_start = dlsym(RTLD_NEXT, "GOMP_critical_start");
  *(void **)&critical_end = dlsym(RTLD_NEXT, "GOMP_critical_end");
}

static void run(void *ud) {
  region *r = ud, *outer = current;
  __tsan_acquire(&r->begun);
  current = r;
  r->fn(r->ud);
  current = outer;
  __tsan_release(&r->done);
}

void GOMP_parallel(void (*fn)(void *), void *ud, unsigned threads, unsigned flags) {
  region r = {.fn = fn, .ud = ud};
  __tsan_release(&r.begun);
  parallel(run, &r, threads, flags);
  __tsan_acquire(&r.done);
}

static void meet(void (*wait)(void)) {
  if (current != NULL) __tsan_release(&current->met);
  wait();
  if (current != NULL) __tsan_acquire(&current->met);
}

void GOMP_barrier(void) { meet(barrier); }

void GOMP_loop_end(void) { meet(loop_end); }

void GOMP_critical_start(void) {
  critical_start();
  __tsan_acquire(&critical);
}

void GOMP_critical_end(void) {
  __tsan_release(&critical);
  critical_end();
}
