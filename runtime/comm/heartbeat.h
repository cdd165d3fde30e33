/* runtime/comm/heartbeat.h: the state that a rank's main thread and its watchdog share.

   One a rank, in its own memory. The main thread writes what the rank does and reads the outcome;
   the watchdog of launch/ reads the one, sends it to rank 0 as a heartbeat, and writes the other.
   comm/ knows no more of failure than this: a wait ends when there is an outcome, and a
   disagreement that a compare found is handed to `report`. Specs drive it from plain threads. */
#ifndef LT_COMM_HEARTBEAT_H
#define LT_COMM_HEARTBEAT_H

#include <stdatomic.h>

#include "base/ctx.h"
#include "ltrain/comm.h"

enum { LT_OUTCOME_TEXT = LT_FAILURE_TEXT, LT_RING = 1000 };

/* Classes of failure, the gravest first: of several that come together the first is reported. */
typedef enum lt_outcome_class {
  LT_NO_OUTCOME,
  LT_INTERRUPTED, /* by a signal: its consequences are not failures of their own */
  LT_RAISED,      /* an error of a script, or a disagreement */
  LT_EXITED,      /* a process ended by exit or signal */
  LT_LOST,        /* no heartbeat */
  LT_LATE,        /* alive, but not where others wait */
  LT_STALLED      /* all are there and nothing completes */
} lt_outcome_class;

typedef struct lt_outcome {
  _Atomic uint32_t taken; /* a thread writes it, or has */
  _Atomic uint32_t class; /* lt_outcome_class; the fields below are written before it */
  int32_t rank;           /* that is named; -1: none alone */
  int32_t status;         /* exit status of a job that ends of it: 1, or 128 + n */
  char text[LT_OUTCOME_TEXT];
} lt_outcome;

/* One entry of the ring. */
typedef struct lt_ring_entry {
  lt_mark mark;
  int64_t issued_ns, arrived_ns, done_ns; /* CLOCK_MONOTONIC; 0: not yet */
  int64_t bytes;
} lt_ring_entry;

/* How far a rank has got: in a group's collectives (peer -1), or in the messages that it sends to
   or receives from a peer there. */
typedef struct lt_issued {
  uint32_t group;
  int16_t peer; /* world rank */
  uint8_t op;   /* LT_COMM_SEND, LT_COMM_RECV; LT_COMM_BARRIER: collectives, of all kinds */
  uint8_t unused;
  uint64_t seq; /* of the last one */
} lt_issued;

enum { LT_ISSUED = 512 };

/* Collectives that have completed, and bytes: of the whole that was reduced, gathered or scattered,
   before it is divided among the ranks. */
typedef struct lt_traffic {
  int64_t calls, bytes;
} lt_traffic;

/* What the rank has issued, all of it, as the wait that began at `since_ns` found it: a rank that
   waits issues nothing. */
typedef struct lt_issued_list {
  int64_t since_ns; /* written last; 0: none */
  int64_t n;        /* 0: more than fit */
  lt_issued entries[LT_ISSUED];
} lt_issued_list;

typedef struct lt_heartbeat {
  int rank, size; /* in the world */

  /* Written once, by the first caller of lt_outcome_set, mostly the watchdog. */
  lt_outcome outcome;

  /* Written by the main thread alone.
     What the rank does: set `activity_version` times, the last one in activity[version % 2]. */
  _Atomic uint32_t activity_version;
  lt_mark activity[2];
  _Atomic uint32_t line;            /* of the script, an id of lt_line_text; 0: not known */
  _Atomic int64_t waiting_since_ns; /* in a wait of comm/ since then, 0: not waiting */
  /* The members of the group that the wait is in, a bit a world rank, written before
     waiting_since_ns; none for the group of all. */
  _Atomic uint64_t waiting_for[LT_COMM_MAX_RANKS / 64];
  _Atomic uint64_t progress; /* grows whenever a collective completes or a move advances */
  _Atomic int64_t waited_ns; /* in all waits so far, for the report of slow ranks */
  _Atomic int32_t declared;  /* declared spans that are open: never late (launch/) */
  /* The last LT_RING collectives; entry k of n stands at (k - 1) % LT_RING. */
  _Atomic uint64_t ring_count;
  lt_ring_entry ring[LT_RING];
  lt_issued_list issued;
  lt_traffic traffic[LT_COMM_OP_COUNT]; /* of the main thread, by lt_comm_op */

  /* Set before the main thread's first collective.
     The main thread found that ranks disagree: `text` is the whole table. Returns when the outcome
     is set (by the watchdog, or by this very call in specs). */
  void (*report)(void *ud, lt_outcome_class class, const char *text);
  /* The main thread's wait has lasted for a while: `issued` is written. (optional) */
  void (*on_long_wait)(void *ud);
  void *ud;
} lt_heartbeat;

static inline bool lt_heartbeat_is_over(const lt_heartbeat *h) {
  return atomic_load_explicit(&h->outcome.class, memory_order_acquire) != LT_NO_OUTCOME;
}

/* Nanoseconds of CLOCK_MONOTONIC, as all times of a heartbeat. */
int64_t lt_now_ns(void);

/* Set the outcome unless there is one; from any thread, no allocation. */
void lt_outcome_set(lt_outcome *v, lt_outcome_class class, int rank, int status, const char *text);

/* What the rank does now: written by the main thread, read by any, which never blocks long. */
void lt_heartbeat_set_activity(lt_heartbeat *h, const lt_mark *mark);
lt_mark lt_heartbeat_activity(const lt_heartbeat *h);

/* What the rank has issued, written by the main thread in the wait that it names; read by any:
   false when another wait has begun. */
void lt_heartbeat_set_issued(lt_heartbeat *h, const lt_issued_list *list);
bool lt_heartbeat_issued(const lt_heartbeat *h, int64_t since_ns, lt_issued_list *list);

/* "rank 0: all_gather [8, 10] f32 at model.lua:31 (validation_step)". Writes at most `size` bytes
   with the final 0, returns the length wanted as snprintf does. No allocation, for watchdogs. */
int lt_mark_text(const lt_mark *mark, int rank, char *text, size_t size);

/* "rank 3", "ranks 0, 2", "ranks 0-62, 64": in the order of `ranks`. */
int lt_ranks_text(const int *ranks, int n, char *text, size_t size);

/* Add to a text that ends in 0, as far as it fits. */
__attribute__((format(printf, 3, 4))) void lt_text_add(char *text, size_t size, const char *format,
                                                       ...);

/* "ranks 0-62: all_reduce ...; rank 63: barrier ...": those of equal marks together. */
int lt_marks_text(const lt_mark *marks, const int *ranks, int n, char *text, size_t size);

/* Set the file; of a long name the end and a little of the beginning. */
void lt_mark_set_file(lt_mark *mark, const char *file);

/* "ranks disagree at collective 1,204: rank 0: ...; rank 1: ..." from the marks of n ranks; world
   rank of entry k is ranks[k] (NULL: k). Ends in "..." if it does not fit. */
int lt_disagreement_text(const lt_mark *marks, const int *ranks, int n, char *text, size_t size);

/* The ring as JSON lines, oldest first, written to a descriptor with write(2) alone (watchdogs). */
bool lt_ring_write(const lt_heartbeat *h, int fd);

#endif
