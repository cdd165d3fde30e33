/* runtime/launch/mailbox.h: state that the main thread and the watchdog of a rank share.

   Numbers and bits are atomic. A message is written by the main thread before the request that
   hands it over, and never again. The folder has a lock. */
#ifndef LT_LAUNCH_MAILBOX_H
#define LT_LAUNCH_MAILBOX_H

#include <limits.h>
#include <pthread.h>

#include "launch/control.h"

/* What the main thread asks of the watchdog; bits that are never cleared. */
typedef enum lt_request {
  LT_REQUEST_REPORT = 1,    /* `report` is written */
  LT_REQUEST_LEFT = 2,      /* `left` is written */
  LT_REQUEST_DONE = 4,      /* unwound: from now on the end of this process is not a failure */
  LT_REQUEST_INTERRUPT = 8, /* `interrupt` is written */
  LT_REQUEST_STOP = 16      /* end the thread */
} lt_request;

/* What the watchdog reports to the main thread; bits that are never cleared. */
typedef enum lt_notice {
  LT_NOTICE_READY = 1, /* all ranks are connected */
  LT_NOTICE_ALL_LEFT = 2,
  LT_NOTICE_ALL_DONE = 4,
  LT_NOTICE_OUTCOME = 8
} lt_notice;

typedef struct lt_mailbox {
  /* Written by the main thread. */
  _Atomic uint32_t requests;
  int wake_fd;               /* an eventfd that the watchdog polls */
  _Atomic bool reported;     /* `report` is written, or being written */
  lt_message report, left;   /* not written after their request */
  _Atomic int32_t interrupt; /* the signal that asked for the end */
  _Atomic bool waits_long;   /* its wait is long, to be sent to rank 0; cleared when it was */
  _Atomic int32_t saving;    /* its spans that write to disk */
  _Atomic int64_t timeout_ns;
  _Atomic int64_t deadline_ns; /* to be connected, or closed; 0: none */
  _Atomic bool closing;        /* the deadline is that of closing, not of connecting */

  /* Written by the watchdog. */
  _Atomic uint32_t notices;    /* a futex */
  _Atomic bool rank_0_saves;   /* of its last heartbeat */
  _Atomic int32_t lowest_rank; /* that rank 0 receives from, besides itself; 0 or less: not known */

  /* Where failures are written: set by the main thread, read by the watchdog. */
  pthread_mutex_t folder_lock;
  char folder[2 * PATH_MAX];
  bool names_folder; /* `folder` is the default: it must belong to this user */
} lt_mailbox;

void lt_mailbox_request(lt_mailbox *m, lt_request request);
void lt_mailbox_wake(lt_mailbox *m); /* make the watchdog look at requests */

void lt_mailbox_notify(lt_mailbox *m, lt_notice notice);
static inline bool lt_mailbox_has(const lt_mailbox *m, uint32_t notices) {
  return (atomic_load(&m->notices) & notices) != 0;
}
/* Sleep until one of `notices` is set, for at most `ns` (-1: no limit), or until *cancel is true
   (NULL: none). Returns whether one is set. */
bool lt_mailbox_wait(lt_mailbox *m, uint32_t notices, int64_t ns, const _Atomic bool *cancel);

#endif
