/* runtime/device/fake_recorder.c: memory of the fake device where it records (LT_FAKE_RECORDS=1),
   as a device that compiles whole batches does (backend.h, whole_storages).

   Addresses are of a range that nobody can read or write, so that whatever takes one for memory is
   killed where it does; the values are elsewhere, and tasks find them when they run. An address is
   never given twice: whoever keeps one beyond its storage's end does not find another's values. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/fake_queue.h"

enum { ALIGNED = 64, FEWEST = 1024 };
static const size_t RANGE = (size_t)1 << 40;

/* A storage, from when it is made to when all that was recorded before its end has run. */
typedef struct kept {
  char *address;
  size_t bytes;
  char *values; /* NULL: ended */
} kept;

static char *range;
static size_t used;
static kept *list; /* by address, which only grow */
static size_t n_list, n_ended, capacity;

static bool is_ours(const void *address) {
  const char *at = address;
  return range != NULL && at >= range && at < range + RANGE;
}

/* The last that begins at or before the address. */
static kept *find(const char *address) {
  size_t low = 0, high = n_list;
  while (high - low > 1) {
    size_t middle = (low + high) / 2;
    if (list[middle].address <= address)
      low = middle;
    else
      high = middle;
  }
  return &list[low];
}

void *lt_fake_values(const void *address) {
  if (!is_ours(address)) return (void *)(uintptr_t)address;
  const kept *k = find(address);
  size_t offset = (size_t)((const char *)address - k->address);
  return k->values != NULL && offset <= k->bytes ? k->values + offset : NULL;
}

static bool reserve(void) {
  if (range == NULL) {
    void *at = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    range = at != MAP_FAILED ? at : NULL;
  }
  if (n_list < capacity) return range != NULL;
  size_t wanted = capacity > 0 ? 2 * capacity : FEWEST;
  kept *longer = realloc(list, wanted * sizeof *list);
  if (longer == NULL) return false;
  list = longer;
  capacity = wanted;
  return range != NULL;
}

/* The caller has the lock. Kernels, which run on values, get memory of theirs. */
void *lt_fake_record_alloc(size_t bytes) {
  size_t rounded = (bytes + ALIGNED) / ALIGNED * ALIGNED; /* one byte more at least: all differ */
  char *values = aligned_alloc(ALIGNED, rounded);
  if (values == NULL) return NULL;
  memset(values, 0xff, rounded);
  if (lt_fake_in_kernel()) return values;
  if (!reserve() || rounded > RANGE - used) {
    free(values);
    return NULL;
  }
  list[n_list] = (kept){range + used, bytes, values};
  used += rounded;
  return list[n_list++].address;
}

static void forget_ended(void) {
  size_t n = 0;
  for (size_t k = 0; k < n_list; k++)
    if (list[k].values != NULL) list[n++] = list[k];
  n_list = n;
  n_ended = 0;
}

static void end(void *address) {
  kept *k = find(address);
  free(k->values);
  k->values = NULL;
  if (++n_ended > FEWEST && n_ended > n_list / 2) forget_ended();
}

static void run_end(lt_ctx *c, lt_fake_task *t) {
  (void)c;
  end(t->dst);
}

/* What was recorded before still needs the values. */
void lt_fake_record_free(int index, void *address) {
  lt_stream *s = lt_fake_only_stream(index);
  lt_fake_task *t = NULL;
  if (!is_ours(address)) {
    free(address);
  } else if (s == NULL || s->done == s->issued) {
    end(address);
  } else if ((t = calloc(1, sizeof *t)) != NULL) {
    *t = (lt_fake_task){.run = run_end, .dst = address, .ends = true};
    lt_fake_append(s, t);
  }
}
