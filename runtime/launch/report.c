/* runtime/launch/report.c: what a rank's main thread reports to the other ranks: its activity, its
   failure, its end. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "launch/world.h"

enum { REPORTED_S = 5 }; /* in which the watchdog must have an outcome */

const lt_outcome *lt_world_outcome(const lt_world *w) {
  return w != NULL && lt_heartbeat_is_over(w->heartbeat) ? &w->heartbeat->outcome : NULL;
}

lt_mark lt_world_mark(lt_mark_kind kind, const char *hook, const char *file, int line) {
  lt_mark m;
  memset(&m, 0, sizeof m);
  m.kind = (uint8_t)kind;
  m.reduce = LT_COMM_NO_REDUCE;
  m.dtype = LT_DTYPE_NONE;
  m.line = line;
  if (hook != NULL) strncpy(m.hook, hook, sizeof m.hook - 1);
  lt_mark_set_file(&m, file);
  return m;
}

void lt_world_set_activity(lt_world *w, const char *hook, const char *file, int line) {
  lt_mark m = lt_world_mark(LT_MARK_RUNNING, hook, file, line);
  lt_heartbeat_set_activity(w->heartbeat, &m);
}

void lt_world_span(lt_world *w, bool open, bool saving) {
  atomic_fetch_add(&w->heartbeat->declared, open ? 1 : -1);
  if (!saving) return;
  atomic_fetch_add(&w->mail.saving, open ? 1 : -1);
  atomic_fetch_add(&w->shared->saving, open ? 1 : -1);
}

void lt_world_raise(lt_world *w, const char *text, const char *file, int line) {
  if (lt_heartbeat_is_over(w->heartbeat)) return;
  if (file != NULL) lt_world_set_activity(w, NULL, file, line);
  char said[LT_OUTCOME_TEXT];
  snprintf(said, sizeof said, "rank %d: %s", w->info.rank, text);
  lt_world_report(w, LT_RAISED, w->info.rank, 1, said);
}

void lt_world_interrupt(lt_world *w, int number) {
  atomic_store(&w->mail.interrupt, number);
  lt_mailbox_request(&w->mail, LT_REQUEST_INTERRUPT);
}

void lt_world_stop(lt_world *w, const char *text, int status) {
  lt_world_report(w, LT_INTERRUPTED, w->info.rank, status, text);
}

bool lt_world_leave(lt_ctx *c, lt_world *w, const char *file, int line) {
  if ((atomic_load(&w->mail.requests) & LT_REQUEST_LEFT) == 0) {
    /* Others may need this rank's part of what is under way. */
    if (w->group != NULL) lt_group_finish(c, w->group);
    if (w->group != NULL && !lt_group_deliver(c, w->group)) return false;
    lt_mark m = lt_world_mark(LT_MARK_LEFT, w->what, file, line);
    lt_heartbeat_set_activity(w->heartbeat, &m);
    w->mail.left = (lt_message){.kind = LT_MESSAGE_LEFT, .rank = w->info.rank, .state.mark = m};
    lt_issued_list list;
    lt_group_issued(w->group, true, &list); /* who waits in these needs nothing more from here */
    lt_message_set_issued(&w->mail.left, &list);
    lt_mailbox_request(&w->mail, LT_REQUEST_LEFT);
  }
  lt_mailbox_wait(&w->mail, LT_NOTICE_ALL_LEFT | LT_NOTICE_OUTCOME, -1, w->c->cancel);
  const lt_outcome *v = lt_world_outcome(w);
  if (v != NULL) return lt_fail(c, LT_ERANKS, "%s", v->text);
  if (lt_mailbox_has(&w->mail, LT_NOTICE_ALL_LEFT)) return true;
  return lt_fail(c, LT_ECANCEL, "%s: cancelled while other ranks continued", w->what);
}

/* The text of a script's error may have any bytes: its further lines are indented, and other
   control characters are escaped, so that none of it looks like a line of ours. */
static void write_plain(char *to, size_t size, const char *text) {
  size_t used = 0;
  for (; *text != 0 && used + 6 < size; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte == '\n' && text[1] != ' ' && text[1] != '\t')
      used += (size_t)snprintf(to + used, 4, "\n  ");
    else if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f)
      used += (size_t)snprintf(to + used, 6, "\\%u", byte);
    else
      to[used++] = *text;
  }
  to[used] = 0;
}

void lt_world_report(lt_world *w, lt_outcome_class class, int rank, int status, const char *text) {
  if (lt_heartbeat_is_over(w->heartbeat)) return;
  char plain[LT_OUTCOME_TEXT];
  write_plain(plain, sizeof plain, text);
  if (!atomic_exchange(&w->mail.reported, true)) {
    lt_message_failure(&w->mail.report, LT_MESSAGE_REPORT, class, rank, status, plain);
    lt_mailbox_request(&w->mail, LT_REQUEST_REPORT);
  }
  int64_t grace = class == LT_INTERRUPTED ? LT_SAVE_S + REPORTED_S : REPORTED_S;
  lt_mailbox_wait(&w->mail, LT_NOTICE_OUTCOME, grace * LT_SECOND, NULL);
  if (!lt_heartbeat_is_over(w->heartbeat))
    lt_outcome_set(&w->heartbeat->outcome, class, rank, status, plain);
}

/* Of forked ranks the first that comes; of joined ones rank 0, or, if that has ended, the lowest
   that it heard from last. */
bool lt_world_may_print(lt_world *w) {
  const lt_outcome *v = lt_world_outcome(w);
  if (!w->info.forked && v != NULL) {
    bool no_first = v->rank == 0 && (v->class == LT_EXITED || v->class == LT_LOST);
    int lowest = atomic_load(&w->mail.lowest_rank);
    if (w->info.rank != (!no_first ? 0 : lowest > 0 ? lowest : 1)) return false;
  }
  return atomic_exchange(&w->shared->printed, 1) == 0;
}

/* Of those that one launcher started on this machine: who takes a name first, rank 0 before the
   others. It is held until the process ends. */
bool lt_join_may_print(const lt_world *w) {
  struct sockaddr_un name = {.sun_family = AF_UNIX}; /* its path begins with 0: no file */
  int rank = w->first_rank > 0 ? w->first_rank : 0;
  usleep((useconds_t)(rank < 20 ? rank : 20) * 50000);
  int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "ltrain.%d", (int)getppid());
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
  return bind(fd, (struct sockaddr *)&name, bytes) == 0 || errno != EADDRINUSE;
}
