/* runtime/comm/ring.c: the ring buffer of the last LT_RING collectives, always on, for the report
   of a failure.

   One writer, the rank; readers are the watchdog and whoever reports, in other threads or
   processes. Entries are copied word by word (comm/atomic_copy.h), so that a reader sees old or
   new words and never a data race; an entry that was being overwritten is only a line of a
   report that is mixed. */
#include "comm/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/write_all.h"
#include "comm/comm.h"
#include "comm/atomic_copy.h"
#include "tensor/dtype.h"

static lt_ring_entry *entry_of(lt_heartbeat *h, uint64_t number) {
  uint64_t count = atomic_load_explicit(&h->ring_count, memory_order_relaxed);
  return count - number < LT_RING ? &h->ring[(number - 1) % LT_RING] : NULL;
}

uint64_t lt_ring_issue(lt_heartbeat *h, const lt_mark *mark, int64_t bytes) {
  uint64_t number = atomic_load_explicit(&h->ring_count, memory_order_relaxed) + 1;
  lt_ring_entry entry = {.mark = *mark, .issued_ns = lt_now_ns(), .bytes = bytes};
  lt_string_table_put(&h->ring[(number - 1) % LT_RING], &entry, sizeof entry);
  /* Release: who reads this count sees the entry that it counts. */
  atomic_store_explicit(&h->ring_count, number, memory_order_release);
  return number;
}

void lt_ring_arrived(lt_heartbeat *h, uint64_t number) {
  lt_ring_entry *e = entry_of(h, number);
  int64_t now = lt_now_ns();
  if (e != NULL) lt_string_table_put(&e->arrived_ns, &now, sizeof now);
}

void lt_ring_done(lt_heartbeat *h, uint64_t number, int64_t bytes) {
  lt_ring_entry *e = entry_of(h, number);
  int64_t now = lt_now_ns();
  if (e == NULL) return;
  lt_string_table_put(&e->bytes, &bytes, sizeof bytes);
  lt_string_table_put(&e->done_ns, &now, sizeof now);
}

enum { LINE = 1024 };

/* As a JSON string; other bytes than printable ASCII as "\u00xx", which is enough for a name. */
static size_t quote(char *to, const char *text, size_t most) {
  size_t n = 0;
  to[n++] = '"';
  for (size_t i = 0; i < most && text[i] != 0; i++) {
    unsigned char b = (unsigned char)text[i];
    if (b < 0x20 || b == '"' || b == '\\')
      n += (size_t)snprintf(to + n, 7, "\\u%04x", b);
    else
      to[n++] = (char)b;
  }
  to[n++] = '"';
  to[n] = 0;
  return n;
}

static size_t line_of(const lt_heartbeat *h, uint64_t number, const lt_ring_entry *e, char *to) {
  const lt_mark *m = &e->mark;
  char file[6 * LT_MARK_FILE + 3], hook[6 * LT_MARK_HOOK + 3];
  quote(file, m->file, LT_MARK_FILE);
  quote(hook, m->hook, LT_MARK_HOOK);
  int n =
      snprintf(to, LINE,
               "{\"rank\":%d,\"number\":%" PRIu64 ",\"group\":%u,\"seq\":%" PRIu64
               ",\"hash\":\"%016" PRIx64 "\",\"op\":\"%s\",\"reduce\":\"%s\",\"dtype\":\"%s\""
               ",\"root\":%d,\"shape\":[",
               h->rank, number, m->group, m->seq, m->hash, lt_comm_op_name(m->op),
               lt_comm_reduce_name(m->reduce),
               m->dtype >= 0 && m->dtype < LT_DTYPE_COUNT ? lt_dtype_name(m->dtype) : "", m->root);
  for (int d = 0; d < m->ndim && d < LT_MARK_DIMS; d++)
    n += snprintf(to + n, (size_t)(LINE - n), "%s%" PRId64, d > 0 ? "," : "", m->size[d]);
  n += snprintf(to + n, (size_t)(LINE - n),
                "],\"form\":%d,\"file\":%s,\"line\":%d,\"hook\":%s,\"bytes\":%" PRId64
                ",\"issued_ns\":%" PRId64 ",\"arrived_ns\":%" PRId64 ",\"done_ns\":%" PRId64 "}\n",
                m->form, file, m->line, hook, e->bytes, e->issued_ns, e->arrived_ns, e->done_ns);
  return (size_t)(n < LINE ? n : LINE - 1);
}

bool lt_ring_write(const lt_heartbeat *h, int fd) {
  uint64_t count = atomic_load_explicit(&h->ring_count, memory_order_acquire);
  /* The oldest one is left out: it is the next to be overwritten. */
  for (uint64_t k = count > LT_RING ? count - LT_RING + 1 : 1; k <= count; k++) {
    lt_ring_entry entry;
    char line[LINE];
    lt_string_table_get(&entry, &h->ring[(k - 1) % LT_RING], sizeof entry);
    /* By write(2), without a buffer: the process may be about to end. */
    if (!lt_write_all(fd, line, line_of(h, k, &entry, line))) return false;
  }
  return true;
}
