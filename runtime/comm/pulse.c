/* runtime/comm/pulse.c: what the main thread says and its watchdog reads, without locks.

   Records that both touch are copied word by word with relaxed atomics: torn copies are noticed by
   the sequence lock, and the sanitizers know that nothing else is meant. */
#include "comm/pulse.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "comm/words.h"

int64_t lt_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void lt_verdict_set(lt_verdict *v, lt_verdict_class class, int rank, int status, const char *text) {
  uint32_t none = 0;
  if (!atomic_compare_exchange_strong(&v->taken, &none, 1)) return;
  v->rank = rank;
  v->status = status;
  size_t n = strnlen(text, LT_VERDICT_TEXT - 1);
  memcpy(v->text, text, n);
  v->text[n] = 0;
  atomic_store_explicit(&v->class, class, memory_order_release);
}

void lt_pulse_do(lt_pulse *p, const lt_mark *mark) {
  uint32_t version = atomic_load_explicit(&p->doing_version, memory_order_relaxed);
  atomic_store_explicit(&p->doing_version, version + 1, memory_order_relaxed);
  lt_words_put(&p->doing, mark, sizeof *mark);
  atomic_store_explicit(&p->doing_version, version + 2, memory_order_release);
}

/* A writer that was interrupted between its two stores gets the core back by the yields; should it
   not, what was read last is good enough to be told. */
lt_mark lt_pulse_doing(const lt_pulse *p) {
  lt_mark mark;
  for (int i = 0; i < 2000; i++) {
    uint32_t before = atomic_load_explicit(&p->doing_version, memory_order_acquire);
    lt_words_get(&mark, &p->doing, sizeof mark);
    uint32_t after = atomic_load_explicit(&p->doing_version, memory_order_relaxed);
    if (before == after && before % 2 == 0) break;
    if (i >= 1000) sched_yield();
  }
  mark.file[LT_MARK_FILE - 1] = 0;
  mark.hook[LT_MARK_HOOK - 1] = 0;
  return mark;
}
