/* lua/bind/system/supervise.c: runs mpirun, hands signals on to it and sees that all ends.

   mpirun sleeps between the signals that it ends its ranks with, as long as ranks are to have for
   saving: also when they ended long ago, and before the first signal that means anything to them.
   A signal that it handles takes one second off such a sleep. */
#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bind/system/proc.h"
#include "bind/system/process.h"
#include "launch/launch.h"

enum { LOOK_MS = 100, WAKE_MS = 2 };

/* From a gentle signal to the one that was meant; what the program left has so long to end by
   itself, and then after SIGTERM. */
static const double GENTLE_SECONDS = 40, ALONE_SECONDS = 1, ORPHAN_SECONDS = 2;

static const int FORWARDED[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

typedef struct supervisor {
  pid_t pid;
  int gentle;        /* sent in place of the first signal that wants the end; 0: none */
  int asked;         /* the last signal that wanted the end */
  double asked_at;   /* when the first one was */
  double until;      /* when `asked` follows the gentle one; 0: it has, or there is none */
  bool had_ranks; /* it has started some here; its other children are agents */
} supervisor;

/* Hand on what was asked in earnest: from here on no process waits. */
static void insist(supervisor *s) {
  s->until = 0;
  kill(s->pid, s->asked);
}

/* Look after it; returns the milliseconds until the next look. */
static int look_after(supervisor *s) {
  int n = lt_proc_alike(s->pid);
  if (n > 0) s->had_ranks = true;
  if (s->until > 0 && lt_seconds_now() > s->until) insist(s);
  bool idle = n == 0 && s->had_ranks, pressed = s->asked != 0 && s->until <= 0;
  if (!idle && !pressed) return LOOK_MS;
  kill(s->pid, SIGCHLD);
  return idle ? WAKE_MS : LOOK_MS / 4; /* ranks get a second to end for each */
}

/* Whether the program still waits for agents, which it starts and which call back: then it has no
   ranks yet that could save. */
static bool has_silent_agents(pid_t pid) {
  long children[LT_PROC_MOST];
  return lt_proc_alike(pid) == 0 && lt_proc_children(pid, children) > lt_proc_connections(pid);
}

static void hand_on(supervisor *s, int number) {
  bool first = s->asked == 0;
  if (number == SIGUSR1 || number == SIGUSR2) {
    kill(s->pid, number);
    return;
  }
  if (first) s->asked_at = lt_seconds_now();
  if (!first && lt_seconds_now() - s->asked_at < LT_SIGNAL_TWICE_MS * 1e-3) return;
  s->asked = number;
  if (!first || s->gentle == 0 || has_silent_agents(s->pid)) {
    insist(s);
    return;
  }
  s->until = lt_seconds_now() + GENTLE_SECONDS;
  kill(s->pid, s->gentle);
}

/* Wait for the child and hand on the signals that arrive at `signals`. Returns its status. */
static int attend(supervisor *s, int signals) {
  int watched = (int)syscall(SYS_pidfd_open, s->pid, 0), pause = LOOK_MS;
  struct pollfd look[2] = {{.fd = signals, .events = POLLIN}, {.fd = watched, .events = POLLIN}};
  while (watched >= 0) {
    int ready = poll(look, 2, pause);
    if (ready < 0 && errno != EINTR) break;
    struct signalfd_siginfo got;
    if (ready > 0 && (look[0].revents & POLLIN) != 0 &&
        read(signals, &got, sizeof got) == sizeof got)
      hand_on(s, (int)got.ssi_signo);
    if (ready > 0 && look[1].revents != 0) break;
    if (ready == 0) pause = look_after(s);
  }
  if (watched >= 0) close(watched);
  return lt_wait_for(s->pid);
}

/* What the program left became our children, with groups of its own (mpirun's agents have one each,
   its ranks too): end it, and what that leaves. `before`: children that we had already. */
static void end_orphans(const long *before, int n_before) {
  const struct timespec nap = {.tv_nsec = 10000000};
  double start = lt_seconds_now(), last = ALONE_SECONDS + 2 * ORPHAN_SECONDS;
  for (double passed = 0; passed < last; passed = lt_seconds_now() - start) {
    long children[LT_PROC_MOST];
    int left = 0, n = lt_proc_children(getpid(), children);
    for (int i = 0; i < n; i++) {
      bool ours = false;
      for (int k = 0; k < n_before; k++) ours = ours || before[k] == children[i];
      if (ours || waitpid((pid_t)children[i], NULL, WNOHANG) != 0) continue;
      left++;
      if (passed < ALONE_SECONDS) continue;
      kill((pid_t)children[i], passed < ALONE_SECONDS + ORPHAN_SECONDS ? SIGTERM : SIGKILL);
    }
    if (left == 0) return;
    nanosleep(&nap, NULL);
  }
}

static int run(supervisor *s, char **argv, char **env, int *error) {
  sigset_t ours, before;
  int was_reaper = 0, status = -1;
  sigemptyset(&ours);
  for (size_t k = 0; k < sizeof FORWARDED / sizeof *FORWARDED; k++) sigaddset(&ours, FORWARDED[k]);
  sigprocmask(SIG_BLOCK, &ours, &before);
  prctl(PR_GET_CHILD_SUBREAPER, &was_reaper);
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* what mpirun leaves is ours to end and reap */
  long children[LT_PROC_MOST];
  int n_children = lt_proc_children(getpid(), children);
  int signals = signalfd(-1, &ours, SFD_CLOEXEC);
  lt_child child = {.error = errno};
  const lt_child_options options = {.grace_s = LT_CHILD_GRACE_S};
  if (signals >= 0) child = lt_child_start(argv, env, &before, &options);
  *error = child.error;
  if (child.error == 0) {
    s->pid = child.pid;
    status = attend(s, signals);
    lt_guard_release(child.guard);
    lt_group_end(child.pid);
    end_orphans(children, n_children);
  }
  if (signals >= 0) close(signals);
  sigprocmask(SIG_SETMASK, &before, NULL);
  prctl(PR_SET_CHILD_SUBREAPER, was_reaper);
  return status;
}

/* process.supervise({program, ...} [, {"NAME=value", ...} [, gentle]]) -> status; nil and a reason.
   The program has our streams and gets our signals; what it started here ends with it. With
   `gentle` the first signal that wants the end is handed on as SIGUSR2, which mpirun gives to its
   ranks at once. */
int lt_process_supervise(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 3);
  supervisor s = {.gentle = lua_toboolean(L, 3) ? SIGUSR2 : 0};
  char **argv = lt_read_argv(L, 1), **env = lt_read_env(L, 2);
  if (!lt_may_start(L, b, argv[0])) return 2;
  int error = 0, status = run(&s, argv, env, &error);
  if (error != 0) return lt_not_started(L, argv[0], error);
  lua_pushinteger(L, status != 0 && s.asked != 0 ? LT_STATUS_OF_SIGNAL + s.asked : status);
  return 1;
}
