/* runtime/launch/mailbox.c: wake-ups between the main thread and the watchdog of a rank.

   Two directions. To the watchdog: bits and an eventfd that its poll watches, safe in a signal
   handler. To the main thread: bits and a futex, since it waits for nothing else then; LOOK_MS is
   how often it reads `cancel`, which comes without a wake-up. */
#include "launch/mailbox.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 10 };

void lt_mailbox_wake(lt_mailbox *m) {
  uint64_t one = 1;
  ssize_t n = write(m->wake_fd, &one, sizeof one);
  (void)n; /* full means that it is awake */
}

void lt_mailbox_request(lt_mailbox *m, lt_request request) {
  atomic_fetch_or(&m->requests, request);
  lt_mailbox_wake(m);
}

void lt_mailbox_notify(lt_mailbox *m, lt_notice notice) {
  atomic_fetch_or(&m->notices, notice);
  syscall(SYS_futex, &m->notices, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
}

bool lt_mailbox_wait(lt_mailbox *m, uint32_t notices, int64_t ns, const _Atomic bool *cancel) {
  int64_t start = lt_now_ns();
  for (;;) {
    uint32_t seen = atomic_load(&m->notices);
    if ((seen & notices) != 0) return true;
    if (cancel != NULL && atomic_load(cancel)) return false;
    if (ns >= 0 && lt_now_ns() - start >= ns) return false;
    struct timespec t = {.tv_nsec = LOOK_MS * 1000000};
    syscall(SYS_futex, &m->notices, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, seen, &t, NULL, 0);
  }
}
