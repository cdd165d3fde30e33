/* runtime/comm/heartbeat.c: what the main thread publishes for its watchdog, without locks.

   Records that both touch are copied word by word with atomics, torn copies are noticed by a number
   that changed meanwhile. */
#include "comm/heartbeat.h"

#include <string.h>
#include <time.h>

#include "comm/atomic_copy.h"

int64_t lt_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void lt_outcome_set(lt_outcome *v, lt_outcome_class class, int rank, int status, const char *text) {
  uint32_t none = 0;
  if (!atomic_compare_exchange_strong(&v->taken, &none, 1)) return;
  v->rank = rank;
  v->status = status;
  size_t n = strnlen(text, LT_OUTCOME_TEXT - 1);
  memcpy(v->text, text, n);
  v->text[n] = 0;
  atomic_store_explicit(&v->class, class, memory_order_release);
}

/* The other of the two is written, then it becomes the last one: a writer that is interrupted in
   the middle keeps no thread from reading. */
void lt_heartbeat_set_activity(lt_heartbeat *h, const lt_mark *mark) {
  uint32_t version = atomic_load_explicit(&h->activity_version, memory_order_relaxed) + 1;
  lt_string_table_put(&h->activity[version % 2], mark, sizeof *mark);
  atomic_store_explicit(&h->activity_version, version, memory_order_release);
}

lt_mark lt_heartbeat_activity(const lt_heartbeat *h) {
  lt_mark mark;
  uint32_t before, after = atomic_load_explicit(&h->activity_version, memory_order_acquire);
  do {
    before = after;
    lt_string_table_get(&mark, &h->activity[before % 2], sizeof mark);
    after = atomic_load_explicit(&h->activity_version, memory_order_acquire);
  } while (before != after);
  mark.file[LT_MARK_FILE - 1] = 0;
  mark.hook[LT_MARK_HOOK - 1] = 0;
  return mark;
}
