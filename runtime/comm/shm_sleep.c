/* runtime/comm/shm_sleep.c: waiting for 64-bit words in shared memory: futexes, on which ranks
   sleep until another one stores. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "comm/shm.h"

enum { LONGEST = 32 }; /* rests may be so many times as long as asked for, with many ranks */

static shm_bell *bell_of(shm_head *h, int world) {
  return (shm_bell *)((char *)h + h->bell_at) + world;
}

static long futex(_Atomic uint32_t *word, int what, uint32_t value, const struct timespec *limit) {
  return syscall(SYS_futex, word, what, value, limit, NULL, 0);
}

static void stay_awake(shm_home *home) {
  if (!home->drowsy) return;
  home->drowsy = false;
  atomic_store_explicit(&bell_of(home->head, home->rank)->asleep, 0, memory_order_relaxed);
}

/* A store of a word, then a look at `asleep`; the sleeper stores `asleep`, then looks at the word:
   with sequential consistency at least one of the two sees the other (the pattern of J. Dekker's
   algorithm). Any weaker order could lose a wake. */
static void ring(shm_head *h, int world) {
  shm_bell *bell = bell_of(h, world);
  if (atomic_load_explicit(&bell->asleep, memory_order_seq_cst) == 0) return;
  atomic_fetch_add_explicit(&bell->rings, 1, memory_order_seq_cst);
  /* The kernel compares `rings` under its own lock: a ring between the sleeper's last look and its
     sleep ends that at once (futex(2)). */
  futex(&bell->rings, FUTEX_WAKE, 1, NULL);
}

void lt_shm_publish_to(lt_comm_link *link, int peer, _Atomic uint64_t *word, uint64_t value) {
  atomic_store_explicit(word, value, memory_order_seq_cst);
  ring(link->home->head, link->world[peer]);
  stay_awake(link->home);
}

void lt_shm_publish(lt_comm_link *link, _Atomic uint64_t *word, uint64_t value) {
  atomic_store_explicit(word, value, memory_order_seq_cst);
  for (int k = 0; k < link->size; k++)
    if (k != link->rank) ring(link->home->head, link->world[k]);
  stay_awake(link->home);
}

/* With many ranks, whom the cores cannot all run, each wake costs a turn: no rank is woken before
   the last has arrived. Of several that come at once at least one sees all. */
void lt_shm_publish_all(lt_comm_link *link, _Atomic uint64_t *word, uint64_t value) {
  size_t offset = (size_t)((char *)word - (char *)shm_own(link));
  if (link->size > SHM_FEW) {
    atomic_store_explicit(word, value, memory_order_seq_cst);
    /* Beginning with the next rank: all ranks looking at rank 0 first would pass one line of the
       cache around. */
    for (int k = 1; k < link->size; k++) {
      const char *seat = (const char *)link->seat[(link->rank + k) % link->size];
      if (shm_read((const _Atomic uint64_t *)(const void *)(seat + offset)) >= value) continue;
      stay_awake(link->home);
      return;
    }
  }
  lt_shm_publish(link, word, value);
}

/* No rank begins the next round before the last of this one has released all. */
bool lt_shm_come(lt_comm_link *link, _Atomic uint64_t *word) {
  /* A counter that is never reset: round numbers follow from it by division, and no rank has to be
     last to clear it. */
  uint64_t before = atomic_fetch_add_explicit(word, 1, memory_order_seq_cst);
  stay_awake(link->home);
  return (before + 1) % (uint64_t)link->size == 0;
}

/* The first call only says that this rank is about to sleep: the caller looks again, and what was
   published before that look has been seen, and what comes after it rings. */
void lt_shm_relax(lt_comm_link *link, int64_t ns) {
  shm_home *home = link->home;
  shm_bell *bell = bell_of(home->head, home->rank);
  if (!home->drowsy) {
    home->drowsy = true;
    home->rings_seen = atomic_load_explicit(&bell->rings, memory_order_seq_cst);
    atomic_store_explicit(&bell->asleep, 1, memory_order_seq_cst);
    return;
  }
  /* The limit is for changes that ring no bell, and many ranks that look cost the others' time. */
  if (link->size > SHM_FEW) ns *= link->size < SHM_FEW * LONGEST ? link->size / SHM_FEW : LONGEST;
  struct timespec limit = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  futex(&bell->rings, FUTEX_WAIT, home->rings_seen, &limit);
  stay_awake(home);
}
