/* runtime/comm/pulse.h: what a rank's main thread and whoever watches it tell each other.

   One a rank, in its own memory. The main thread writes `doing` (what the rank does now) and reads
   `verdict`; the watchdog of launch/ reads the one and writes the other. comm/ knows no more of
   failure than this: a wait ends when there is a verdict, and a disagreement that a compare found
   is handed to `report`. Specs drive it from plain threads. */
#ifndef LT_COMM_PULSE_H
#define LT_COMM_PULSE_H

#include <stdatomic.h>

#include "base/ctx.h"
#include "ltrain/comm.h"

enum { LT_VERDICT_TEXT = LT_FAILURE_TEXT, LT_RING = 1000 };

/* Classes of failure, the gravest first: of several that come together the first is told. */
typedef enum lt_verdict_class {
  LT_NO_VERDICT,
  LT_INTERRUPTED, /* by a signal: whatever comes of it is no failure of its own */
  LT_RAISED,    /* an error of a script, or a disagreement */
  LT_EXITED,    /* a process ended by exit or signal */
  LT_LOST,      /* no heartbeat */
  LT_LATE,      /* alive, but not where others wait */
  LT_STALLED    /* all are there and nothing completes */
} lt_verdict_class;

typedef struct lt_verdict {
  _Atomic uint32_t taken; /* somebody writes it, or has */
  _Atomic uint32_t class; /* lt_verdict_class; the fields below are written before it */
  int32_t rank;           /* who is named, -1: nobody alone */
  int32_t status;         /* exit status of a job that ends of it: 1, or 128 + n */
  char text[LT_VERDICT_TEXT];
} lt_verdict;

/* One entry of the ring. */
typedef struct lt_ring_entry {
  lt_mark mark;
  int64_t issued_ns, arrived_ns, done_ns; /* CLOCK_MONOTONIC; 0: not yet */
  int64_t bytes;
} lt_ring_entry;

typedef struct lt_pulse {
  int rank, size;             /* in the world */
  lt_verdict verdict;
  /* What the rank does: said `doing_version` times, the last one in doing[version % 2]. */
  _Atomic uint32_t doing_version;
  lt_mark doing[2];
  _Atomic int64_t waiting_since_ns; /* in a wait of comm/ since then, 0: not waiting */
  /* Whom the wait is for, a bit a world rank, written before waiting_since_ns: members of a smaller
     group, or the peer of send and recv. All zero: every rank. */
  _Atomic uint64_t waiting_for[LT_COMM_MAX_RANKS / 64];
  _Atomic uint64_t progress;  /* grows whenever a collective completes or a move gets on */
  _Atomic int64_t waited_ns;  /* in all waits so far, for the straggler report */
  _Atomic int32_t declared;   /* declared spans that are open: no late clock (launch/) */
  /* The last LT_RING collectives; entry k of n stands at (k - 1) % LT_RING. */
  _Atomic uint64_t ring_count;
  lt_ring_entry ring[LT_RING];
  /* The main thread found that ranks disagree: `text` is the whole table. Returns when the verdict
     is set (by the watchdog, or by this very call in specs). */
  void (*report)(void *ud, lt_verdict_class class, const char *text);
  void *ud;
} lt_pulse;

static inline bool lt_pulse_over(const lt_pulse *p) {
  return atomic_load_explicit(&p->verdict.class, memory_order_acquire) != LT_NO_VERDICT;
}

/* Nanoseconds of CLOCK_MONOTONIC, as all times of a pulse. */
int64_t lt_now_ns(void);

/* Set the verdict unless there is one; from any thread, no allocation. */
void lt_verdict_set(lt_verdict *v, lt_verdict_class class, int rank, int status, const char *text);

/* Say what the rank does now (main thread); read it (any thread, never blocks long). */
void lt_pulse_do(lt_pulse *p, const lt_mark *mark);
lt_mark lt_pulse_doing(const lt_pulse *p);

/* "rank 0: all_gather [8, 10] f32 at model.lua:31 (validation_step)". Writes at most `size` bytes
   with the final 0, returns the length wanted as snprintf does. No allocation, for watchdogs. */
int lt_mark_text(const lt_mark *mark, int rank, char *text, size_t size);

/* "ranks disagree at collective 1,204: rank 0: ...; rank 1: ..." from the marks of n ranks; world
   rank of entry k is ranks[k] (NULL: k). Where the room ends before, "..." is the end. */
int lt_disagreement_text(const lt_mark *marks, const int *ranks, int n, char *text, size_t size);

/* The ring as JSON lines, oldest first, written to a descriptor with write(2) alone (watchdogs). */
bool lt_ring_write(const lt_pulse *p, int fd);

#endif
