/* runtime/launch/mailbox.h: all that both threads of a rank touch while they run.

   Numbers and bits are atomic. A message is written by the main thread before the request that
   hands it over, and never again. The folder has a lock. */
#ifndef LT_LAUNCH_MAILBOX_H
#define LT_LAUNCH_MAILBOX_H

#include <limits.h>
#include <pthread.h>

#include "launch/control.h"

/* What the main thread asks of the watchdog; bits that are never taken back. */
typedef enum lt_request {
  LT_REQUEST_REPORT = 1,    /* `report` is written */
  LT_REQUEST_LEFT = 2,      /* `left` is written */
  LT_REQUEST_DONE = 4,      /* nothing more to unwind: this rank's end is no failure */
  LT_REQUEST_INTERRUPT = 8, /* `interrupt` is written */
  LT_REQUEST_STOP = 16      /* the thread shall end */
} lt_request;

/* What the watchdog lets the main thread know; bits that are never taken back. */
typedef enum lt_notice {
  LT_NOTICE_READY = 1, /* all ranks are connected */
  LT_NOTICE_ALL_LEFT = 2,
  LT_NOTICE_ALL_DONE = 4,
  LT_NOTICE_VERDICT = 8
} lt_notice;

typedef struct lt_mailbox {
  /* Written by the main thread. */
  _Atomic uint32_t requests;
  int wake_fd;               /* an eventfd that the watchdog polls */
  _Atomic bool reported;     /* `report` is written, or being written */
  lt_message report, left;   /* constant from their request on */
  _Atomic int32_t interrupt; /* the signal that asked for the end */
  _Atomic bool waits_long;   /* its wait is long, and rank 0 should know; cleared when it does */
  _Atomic int32_t saving;    /* its spans that write to disk */
  _Atomic int64_t timeout_ns;
  _Atomic int64_t deadline_ns; /* to have come together, or closed; 0: none */
  _Atomic bool closing;        /* the deadline is that of an orderly end */

  /* Written by the watchdog. */
  _Atomic uint32_t notices;    /* a futex */
  _Atomic bool rank_0_saves;   /* of its last heartbeat */
  _Atomic int32_t lowest_rank; /* besides rank 0 that rank 0 heard from; 0 or less: not known */

  /* Where failures are written: set by the main thread, read by the watchdog. */
  pthread_mutex_t folder_lock;
  char folder[2 * PATH_MAX];
  bool names_folder; /* nobody gave one: it is to be ours alone */
} lt_mailbox;

void lt_mailbox_request(lt_mailbox *m, lt_request request);
void lt_mailbox_wake(lt_mailbox *m); /* the watchdog, to look at what is new */

void lt_mailbox_notify(lt_mailbox *m, lt_notice notice);
static inline bool lt_mailbox_has(const lt_mailbox *m, uint32_t notices) {
  return (atomic_load(&m->notices) & notices) != 0;
}
/* Sleep until one of `notices` is set, at most for `ns` (-1: for ever), or until *cancel where that
   is given: whether one is set. */
bool lt_mailbox_wait(lt_mailbox *m, uint32_t notices, int64_t ns, const _Atomic bool *cancel);

#endif
