/* runtime/launch/send.c: messages and reports that a watchdog sends and prints, and the failure
   that ends its world. */
#include <stdio.h>
#include <unistd.h>

#include "base/round.h"
#include "launch/world.h"

enum { LOCATED_MS = 50 };

int64_t lt_watchdog_lost_ns(const lt_watchdog *d) {
  int64_t timeout = atomic_load(&d->mail->timeout_ns), shortest = (int64_t)LT_SILENT_S * LT_SECOND;
  return timeout > shortest ? timeout : shortest;
}

void lt_watchdog_print_outcome(lt_watchdog *d) {
  if (d->world->err_fd < 0 || !lt_world_may_print(d->world)) return;
  lt_watchdog_print(d, d->heartbeat->outcome.text);
}

/* One write, so that lines of others do not cut it. */
void lt_watchdog_print(const lt_watchdog *d, const char *text) {
  static const char name[] = "ltrain: ";
  char line[LT_OUTCOME_TEXT + sizeof name + 1];
  int n = snprintf(line, sizeof line, "%s%s\n", name, text);
  if (n >= (int)sizeof line) n = (int)sizeof line - 1;
  ssize_t done = write(d->world->err_fd, line, (size_t)n);
  (void)done;
}

void lt_watchdog_outcome(lt_watchdog *d, const lt_message *m) {
  if (lt_heartbeat_is_over(d->heartbeat)) return;
  lt_outcome_class class = (lt_outcome_class)m->class;
  lt_outcome_set(&d->heartbeat->outcome, class, m->rank, m->status, m->text);
  d->unwinding_ns = 0;
  d->fallback_ns = 0;
  d->signalled_ns = d->now_ns;
  lt_world_signal(d->world);
  lt_mailbox_notify(d->mail, LT_NOTICE_OUTCOME);
  lt_files_write(d);
}

void lt_watchdog_send(lt_watchdog *d, int rank, const lt_message *m) {
  if (rank == d->info->rank)
    d->receive(d, rank, m);
  else
    lt_channel_send(&d->peers[rank].link, m);
}

void lt_watchdog_send_kind(lt_watchdog *d, int rank, lt_message_kind kind) {
  d->out = (lt_message){.kind = (uint8_t)kind, .rank = d->info->rank};
  lt_message_size(&d->out, 0);
  lt_watchdog_send(d, rank, &d->out);
}

void lt_watchdog_judge(lt_watchdog *d, lt_outcome_class class, int rank, int status,
                       const char *text) {
  if (lt_heartbeat_is_over(d->heartbeat)) return;
  lt_message *m = d->info->rank == 0 ? &d->out : &d->failure;
  lt_message_failure(m, LT_MESSAGE_OUTCOME, class, rank, status, text);
  lt_watchdog_send(d, 0, m);
  if (d->info->rank != 0) lt_watchdog_outcome(d, m);
}

/* The line is there at the script's next instruction, for the heartbeat that follows. */
void lt_watchdog_locate(lt_watchdog *d) {
  lt_world_locate(d->world);
  d->heartbeat_ns = lt_least(d->heartbeat_ns, d->now_ns + (int64_t)LOCATED_MS * LT_MS);
}
