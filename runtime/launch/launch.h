/* runtime/launch/launch.h: how ranks are started, watched and ended.

   A world is the ranks of one job: forked by this process, or launched by mpirun or srun, joined.
   Each rank has a watchdog thread with a control channel to rank 0's, the coordinator. Whatever
   fails anywhere becomes one outcome, the same on all ranks; waits and the script end with it. */
#ifndef LT_LAUNCH_LAUNCH_H
#define LT_LAUNCH_LAUNCH_H

#include "comm/comm.h"

enum { LT_STATUS_OF_SIGNAL = 128 }; /* a process that signal n ended has 128 + n */
enum { LT_SIGNAL_TWICE_MS = 200 };  /* signals that come so close together are one */

typedef struct lt_world lt_world;

typedef struct lt_launch_options {
  int ranks;
  double timeout;         /* seconds until a rank counts as lost or late; 0: LT_TIMEOUT or 60 */
  double launch_timeout;  /* seconds until all ranks must be connected; 0:
                             LT_LAUNCH_TIMEOUT or 60 */
  const char *what;       /* "fit", "lt.dist.launch": named in messages */
  const char *folder;     /* for failure.rank<N>.txt; NULL: ./ltrain_failure_<id>/, made late */
  bool fork_with_threads; /* fork although the process has other threads, at its own risk */
  bool owns_process;      /* an outcome may end this process (joined ranks, `ltrain run`) */
  bool stays;             /* forked ranks continue the script after a loop that ended well */
  const char *network;    /* addresses of the launcher's, with commas; NULL: not known (joined) */
  bool takes_signals;     /* the process's handler of SIGINT asks all ranks to end: they keep it */
  bool takes_seed;        /* the ctx's seed was not set: rank 0's replaces it (joined ranks) */
  /* Runs in the rank's main thread as a signal handler when an outcome is there: makes the script
     end soon. (optional) */
  void (*wake)(void *ud);
  /* The same while others wait for this rank: notes the script's line, which the failure report
     names. (optional) */
  void (*locate)(void *ud);
  void *wake_ud;
  /* Called after the fork in each child, for what lives above the runtime. (optional) */
  void (*in_child)(void *ud, int rank);
  void *child_ud;
} lt_launch_options;

/* Fork ranks - 1 children; returns in each of them and in the parent, which is rank 0. NULL with a
   failure, and no child, when it could not. One world at a time a process. */
lt_world *lt_world_fork(lt_ctx *c, const lt_launch_options *o);

/* The loop that ranks with `stays` were forked for has ended well on this one, and it continues as
   a joined rank does, until the script's end (lt_world_exit). A child writes nothing to its
   standard output from here on. */
void lt_world_stay(lt_world *w);

/* Join the world that launched this process over a backend that knows it ("mpi"). */
lt_world *lt_world_join(lt_ctx *c, const lt_comm_ops *ops, const lt_comm_place *place,
                        const lt_launch_options *o);

/* The world that this process belongs to, or NULL. */
lt_world *lt_world_current(const lt_ctx *c);

enum { LT_HOST_NAME = 64 };

typedef struct lt_world_info {
  const char *backend; /* "shm", "mpi" */
  int rank, size, local_rank, local_size, node_rank, nodes;
  bool forked, in_child;
  bool stays; /* forked, but its ranks end with the script, as joined ones do */
  const char (*hosts)[LT_HOST_NAME]; /* [size] */
  const int *pids;                   /* [size] */
  double timeout;
} lt_world_info;
const lt_world_info *lt_world_describe(const lt_world *w);
lt_group *lt_world_group(lt_world *w);
lt_heartbeat *lt_world_heartbeat(lt_world *w);
const lt_outcome *lt_world_outcome(const lt_world *w); /* NULL: all is well, or no world */
void lt_world_set_timeout(lt_world *w, double seconds);
void lt_world_set_folder(lt_world *w, const char *folder);

/* Set what the main thread does, a hook and a line of the script, for the reports of other ranks.
   Cheap. */
void lt_world_set_activity(lt_world *w, const char *hook, const char *file, int line);

/* Begin or end a declared span: while one is open this rank is never reported as late. `saving`: it
   writes to disk, and a rank that unwinds has 30 s for it. */
void lt_world_span(lt_world *w, bool open, bool saving);

/* This rank asks its user, and the others wait, each for its turn: nobody is late meanwhile. False
   when the world has failed before it had its turn; true: lt_world_give_terminal follows. The
   streams of a forked child are its parent's in between. `fails`: it reports a failure next, and
   nobody has a turn after it. */
bool lt_world_take_terminal(lt_world *w);
void lt_world_give_terminal(lt_world *w, bool fails);

/* Whether another rank has it, so that Ctrl-C is for that one. Safe in a signal handler. */
bool lt_world_terminal_is_elsewhere(const lt_world *w);

/* How long ranks have had it: of forked ranks all, else this one. */
int64_t lt_world_terminal_ns(const lt_world *w);

/* This rank's script raised: report it, and return once the outcome is there (at most ~1 s). The
   outcome may name another rank whose failure came first. */
void lt_world_raise(lt_world *w, const char *text, const char *file, int line);

/* A signal was received: every rank ends with status 128 + number. Safe to call in a signal
   handler: returns at once. */
void lt_world_interrupt(lt_world *w, int number);

/* This rank's script ends because of a signal, at a step where all ranks agreed to stop; `status`
   is 128 + n, or 1 when not known. Returns when rank 0 has saved and the outcome (rank 0's text)
   has arrived. */
void lt_world_stop(lt_world *w, const char *text, int status);

/* The main thread has left the loop (or the script, when joined): peers that wait for it fail at
   once. Then waits until all have left or an outcome comes: true in the first case. */
bool lt_world_leave(lt_ctx *c, lt_world *w, const char *file, int line);

/* The stack is unwound to the frame that started the ranks. A forked child flushes and calls _exit
   here, and does not return. The parent reaps its children, kills those that do not end in time,
   and frees the world. That of a joined rank lasts until lt_world_exit. */
void lt_world_end(lt_ctx *c, lt_world *w);

/* The last call of a rank's process: lt_world_end, and then, for a joined rank: when all have left,
   closes the link, frees the world and returns `status`. After an outcome it waits until all ranks
   acknowledge it (at most 5 s, 30 s while rank 0 saves) and calls _exit with its status, or returns
   the status if the process belongs to another program. */
int lt_world_exit(lt_ctx *c, lt_world *w, int status);

/* Whether this rank is the one that prints the failure on stderr: true once in the whole world. */
bool lt_world_may_print(lt_world *w);

#endif
