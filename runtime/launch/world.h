/* runtime/launch/world.h: the state of a world that the main thread of a rank owns.

   A rank has two threads, the main thread and the watchdog. Each owns a record (lt_world and
   lt_watchdog) and reads of the other's only what was set before the watchdog started; everything
   else goes through the mailbox. */
#ifndef LT_LAUNCH_WORLD_H
#define LT_LAUNCH_WORLD_H

#include <signal.h>

#include "launch/watchdog.h"

/* Memory that forked ranks share, in front of the segment of comm/. */
typedef struct lt_shared {
  _Atomic uint32_t printed; /* a rank has printed the failure */
  _Atomic int32_t saving;   /* open spans of all ranks that write to disk */
  _Atomic int32_t terminal; /* 1 + the rank that asks its user; 0: none */
  _Atomic int64_t terminal_ns; /* that ranks have had it */
  int pids[LT_COMM_MAX_RANKS];
} lt_shared;

enum { LT_PROCESS_NAME = 16 };

typedef struct lt_stderr lt_stderr; /* stderr.c */

struct lt_world {
  /* Set before the watchdog starts: it reads them too. */
  lt_world_info info;
  lt_ctx *c;
  char what[LT_MARK_HOOK];
  uint64_t id;    /* random, rank 0's: names the folder of failures where nobody does */
  int first_rank; /* before the transport knows it: from the launcher, -1: not known */
  char host[LT_HOST_NAME];
  char (*hosts)[LT_HOST_NAME]; /* [size] */
  pid_t launcher;              /* of joined ranks: mpirun, orted or slurmstepd; 0: none is left */
  char launcher_name[LT_PROCESS_NAME];
  bool owns_process, may_write;
  void (*wake)(void *ud), (*locate)(void *ud);
  void *wake_ud;
  lt_shared *shared; /* a mapping of forked ranks; of joined ones, memory of their own */
  /* This rank's, in the mapping; there those of all forked ranks ([size], else NULL), so that rank
     0 can report what a killed rank did last. */
  lt_heartbeat *heartbeat, *heartbeats;
  int err_fd; /* where failures are printed: the true stderr */
  pthread_t main;
  _Atomic bool signals; /* this world has installed handlers of the reserved signals */

  /* The main thread's own. */
  lt_group *group;
  size_t shared_bytes;
  void *segment; /* comm/'s part of the mapping */
  size_t segment_bytes;
  int threads_before;
  struct sigaction signal_before, locate_before;
  lt_stderr *child_stderr;
  pthread_t thread; /* the watchdog's */
  bool watched;     /* it runs */
  int64_t terminal_ns; /* when this rank took the terminal */

  lt_mailbox mail;
  lt_watchdog watchdog; /* its thread's own */
};

/* world.c */
/* The number of seconds of an environment variable, 60 without it; 0 when it is not one. */
double lt_seconds_of(const char *variable);
lt_world *lt_world_new(lt_ctx *c, const lt_launch_options *o);
/* Set rank and size, allocate what depends on them. */
bool lt_world_size(lt_ctx *c, lt_world *w, int rank, int size);
/* Memory for `shared`, heartbeats and comm/'s segment. */
bool lt_world_map(lt_ctx *c, lt_world *w, int n_heartbeats, size_t segment_bytes);
/* For each rank (after a fork, in each): open the descriptor that wakes its watchdog; then, once
   rank and size are known, show them in its heartbeat. */
bool lt_world_wake(lt_ctx *c, lt_world *w);
void lt_world_open(lt_world *w);
void lt_peer_close(lt_peer *p);
void lt_world_free(lt_ctx *c, lt_world *w);
/* Install the handlers of the reserved signals. */
void lt_world_handle_signals(lt_world *w);
lt_mark lt_world_mark(lt_mark_kind kind, const char *hook, const char *file, int line);

/* report.c: report a failure and wait for the outcome. Only the first of a rank counts. */
void lt_world_report(lt_world *w, lt_outcome_class class, int rank, int status, const char *text);

/* For both threads: wake the main thread's script; have it note its line; say what this rank does
   ("rank 1: running, last known line ..."; state.c). */
void lt_world_signal(lt_world *w);
void lt_world_locate(lt_world *w);
void lt_world_activity_text(const lt_world *w, char *text, size_t size);

/* watchdog.c */
bool lt_watchdog_start(lt_ctx *c, lt_world *w);
void lt_watchdog_stop(lt_world *w);

/* Real-time signals, used by nothing else: an outcome is there; the script's line is asked for,
   after which calls that wait for a file or a child are restarted. */
static inline int lt_outcome_signal(void) { return SIGRTMIN + 6; }
static inline int lt_locate_signal(void) { return SIGRTMIN + 7; }

/* A thread with all signals blocked; 0, or the number of an error. */
int lt_launch_thread(pthread_t *thread, size_t stack, void *(*fn)(void *ud), void *ud);

/* reap.c. Main thread: wait until the children end, kill them when that takes too long; take their
   statuses, once the watchdog is stopped, which might signal them. Both threads: kill. */
void lt_children_await(const lt_world *w, int64_t grace_ns);
void lt_children_reap(const lt_world *w);
void lt_children_kill(const lt_world *w, int rank);
void lt_children_kill_all(const lt_world *w);
/* A descriptor of a process, -1 where the system has none, and a signal to it: never to another
   process that has got the number since; by the number where there is no descriptor. */
int lt_process_open(pid_t pid);
bool lt_process_signal(int pidfd, pid_t pid, int number);
/* How a signal ended a process, for messages; how a child ended (si_pid 0: unknown), and the status
   that the run ends with. */
void lt_signal_text(const siginfo_t *info, char *how, size_t size);
int lt_end_text(const lt_world *w, const siginfo_t *info, char *how, size_t size);

/* join.c: whether this rank prints, decided alone: ranks that are not connected cannot agree. */
bool lt_join_may_print(const lt_world *w);

/* launcher.c: find the process that launched joined ranks; end it, as the last step of a rank that
   cannot reach rank 0. */
void lt_launcher_find(lt_world *w);
void lt_launcher_end(const lt_world *w);

/* fork_safety.c: whether this process may be forked: our threads joined, no other thread running;
   child.c: set up a child, redirect a descriptor to /dev/null; exit.c: set the world in the ctx,
   which ends it when it ends while ranks run; exit() is a failure from now on. */
bool lt_fork_prepare(lt_ctx *c, const lt_launch_options *o);

/* End the threads of OpenMP; the next parallel region makes new ones, in a child too. */
void lt_fork_end_team(void);

/* What is in buffers is written, that a child may not write it again. While another thread waits
   for standard input, which all streams would wait for with it: what is printed alone. */
void lt_fork_flush(void);
bool lt_child_set_up(lt_ctx *c, lt_world *w, const lt_launch_options *o);
void lt_child_silence(int fd);
void lt_child_keep_terminal(const lt_world *w); /* terminal.c: before its streams are its own */
bool lt_child_reopen(lt_ctx *c); /* files that it reads get a position of their own */
void lt_world_install(lt_ctx *c, lt_world *w);
void lt_world_drop(lt_ctx *c, void *world);
void lt_world_guard(lt_world *w);
void lt_world_forked_worker(void); /* in a worker: its exit is not that of the rank */

/* stderr.c: stderr of children, each line with its rank in front, into err_fd. */
lt_stderr *lt_stderr_new(lt_ctx *c, int ranks, int err_fd);
/* In a child: its own end becomes its stderr. In the parent: the thread begins. */
void lt_stderr_become(lt_stderr *t, int rank);
bool lt_stderr_start(lt_ctx *c, lt_stderr *t);
void lt_stderr_release(lt_ctx *c, lt_stderr *t);

#endif
