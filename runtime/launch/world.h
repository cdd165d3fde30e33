/* runtime/launch/world.h: the inside of a world, shared by the files of launch/.

   Two threads meet here. The main thread of a rank asks (`requests`, with what it wants to say in
   `report` and `left`) and sleeps on `events`; the watchdog owns everything below "the watchdog's
   own". Nothing of the watchdog's allocates. */
#ifndef LT_LAUNCH_WORLD_H
#define LT_LAUNCH_WORLD_H

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "launch/address.h"
#include "launch/handshake.h"
#include "launch/launch.h"

enum { LT_SECOND = 1000000000, LT_MS = 1000000 };
enum { LT_SILENT_S = 3 }; /* heartbeats: silent for longer, a rank may be stopped */
enum { LT_SAVE_S = 30 }; /* for a save by rank 0 that is under way when all end */
enum { LT_PENDING_CONNECTIONS = 3 * LT_ADDRESSES, LT_STDERR_LINE = 4096 };

/* What the main thread asks of the watchdog; bits that are never taken back. */
typedef enum lt_request {
  LT_REQUEST_REPORT = 1,    /* `report` is written */
  LT_REQUEST_LEFT = 2,      /* `left` is written */
  LT_REQUEST_BYE = 4,       /* nothing more to unwind: this rank's end is no failure */
  LT_REQUEST_ACK = 8,       /* unwound after a verdict */
  LT_REQUEST_STOP = 16,     /* the thread shall end */
  LT_REQUEST_INTERRUPT = 32 /* `interrupt` is written */
} lt_request;

/* What the watchdog tells the main thread; bits that are never taken back. */
typedef enum lt_event {
  LT_EVENT_READY = 1, /* all ranks are connected */
  LT_EVENT_ALL_LEFT = 2,
  LT_EVENT_ALL_ACK = 4,
  LT_EVENT_VERDICT = 8
} lt_event;

/* Memory that forked ranks share, in front of the segment of comm/: heartbeats are there so that
   rank 0 can tell what a killed rank did last. */
typedef struct lt_shared {
  _Atomic uint32_t printed; /* somebody has told the failure */
  _Atomic int32_t saving;  /* open spans of all ranks that move bytes to disk */
  int pids[LT_COMM_MAX_RANKS];
} lt_shared;

/* Another rank, as a watchdog sees it. Rank 0 has one for each; the others one, for rank 0. */
typedef struct lt_peer {
  lt_channel link;
  lt_state state;              /* what it told last */
  int64_t silent_ns;           /* nothing heard for so long, in this watchdog's ticks */
  uint64_t wait_key;           /* the wait that it was in when the clocks looked last; 0: none */
  int64_t blamed_ns, still_ns; /* in that wait: somebody was missing, all were there */
  int64_t left_ns;             /* in that wait: somebody had left */
  bool left, bye, exited, acked;
  bool reported; /* it reported a failure: its end is no other */
  bool warned;
  /* How far it has got: when it left, what it had completed; in a wait, what it has issued. */
  int n_issued; /* 0: not known */
  lt_issued issued[LT_ISSUED];
  int64_t ended_ns; /* its connection ended then: 0: not */
  int32_t call;     /* the number of the call that made it (connections.c) */
  int pidfd;        /* of a child; -1: none */
} lt_peer;

static inline bool lt_peer_is_heard(const lt_peer *p) {
  return p->silent_ns < (int64_t)LT_SILENT_S * LT_SECOND;
}

typedef struct lt_stderr lt_stderr;           /* tags.c */
typedef struct lt_connections lt_connections; /* connections.c */

struct lt_world {
  lt_world_info info;
  lt_ctx *c;
  lt_group *group;
  lt_heartbeat *heartbeat;
  char what[LT_MARK_HOOK];
  int first_rank;        /* before the transport says it: the launcher's word, -1: none */
  char host[64];
  bool owns_process;
  void (*wake)(void *ud);
  void *wake_ud;
  lt_shared *shared; /* a mapping of forked ranks; of joined ones, memory of their own */
  size_t shared_bytes;
  void *segment; /* comm/'s part of it */
  size_t segment_bytes;
  lt_heartbeat *heartbeats; /* [size] of forked ranks, in the mapping; else NULL */
  int *pairs;             /* [2 * size] while forking: both ends of rank r's at 2 r; -1: none */
  const char **hosts;     /* [size] */
  char (*host_names)[64]; /* [size] of joined ranks */
  int threads_before;
  int err_fd;   /* where failures are told: the true stderr */
  bool signals; /* this world has the reserved signal */
  struct sigaction signal_before;
  lt_stderr *child_stderr;
  lt_connections *connections; /* joined ranks */

  pthread_t main, thread;
  bool watched; /* the thread runs */
  int wake_fd;
  _Atomic uint32_t requests, events;
  _Atomic int32_t saving; /* this rank's spans that move bytes to disk */
  _Atomic int64_t timeout_ns;
  _Atomic int64_t launch_deadline_ns; /* 0: come together */
  _Atomic bool rank_0_saves;          /* rank 0 said so with its last heartbeat */
  _Atomic bool closing;               /* the deadline is that of an orderly end */
  pthread_mutex_t folder_mutex;
  char folder[2 * PATH_MAX];
  bool names_folder; /* nobody gave one: it is to be ours alone */
  bool may_write;
  lt_message report, left;
  _Atomic bool waits_long;   /* the main thread's wait does, and rank 0 is to hear it */
  _Atomic int32_t interrupt; /* the signal that asked for the end */

  /* The watchdog's own. */
  uint32_t requests_done;
  int64_t now_ns, heartbeat_ns; /* of this turn; when the next heartbeat is due */
  int64_t timeouts_ns;          /* when the clocks looked last */
  bool alert;                   /* somebody left: heartbeats ten times a second */
  bool look;               /* rank 0: a wait that lasts was said, look for deadlocks */
  int n_peers;             /* size at rank 0, 1 elsewhere */
  lt_peer *peers;
  lt_mark *marks; /* [size] of a table */
  int *ranks;     /* [size] */
  int *kept;      /* [size] of ranks, while some are left out */
  lt_message in, out, best;
  lt_message notice;        /* of `interrupt` */
  const lt_message *failed; /* elsewhere: what was reported last, NULL: nothing */
  bool collecting; /* rank 0: since collect_ns `best` is a failure, told at decide_ns */
  int64_t collect_ns, decide_ns;
  int64_t fallback_ns;  /* elsewhere: judge alone then; 0: no */
  int64_t unwinding_ns; /* ticks since the verdict */
  bool unreachable;     /* joined: the host of a lost rank does not answer */
  bool stuck;           /* joined: the main thread did not unwind in time */
  int64_t signalled_ns; /* when the main thread was signalled last */
  int n_polls;          /* enough for all there is */
  struct pollfd *polls;
};

/* world.c */
lt_world *lt_world_new(lt_ctx *c, const lt_launch_options *o);
bool lt_world_size(lt_ctx *c, lt_world *w, int rank, int size);
/* The folder of failures by default, ./ltrain_failure_<id>: nobody can guess its name. */
uint64_t lt_world_random_id(void);
void lt_world_name_job(lt_world *w, uint64_t id);
/* Memory for `shared`, heartbeats and comm/'s segment. */
bool lt_world_map(lt_ctx *c, lt_world *w, int n_heartbeats, size_t segment_bytes);
/* What each rank needs for itself (after a fork, in each): what its watchdog cannot do without;
   then peers, once the size is known. */
bool lt_world_wake(lt_ctx *c, lt_world *w);
bool lt_world_open(lt_ctx *c, lt_world *w);
void lt_world_free(lt_ctx *c, lt_world *w);
/* Put it into the ctx and take the reserved signal. */
void lt_world_install(lt_ctx *c, lt_world *w);
void lt_world_signal(lt_world *w); /* wake the main thread's script */
lt_mark lt_world_mark(lt_mark_kind kind, const char *hook, const char *file, int line);
/* Tell a failure and wait for the verdict. Once a rank. */
void lt_world_report(lt_world *w, lt_verdict_class class, int rank, int status, const char *text);
void lt_world_request(lt_world *w, lt_request request);
/* Sleep until one of `events` is set, at most for `ns` (-1: for ever); false when none is, which
   an interruption (lt_cancel) may cause too where `interrupts` is set. */
bool lt_world_wait(lt_world *w, uint32_t events, int64_t ns, bool interrupts);
void lt_world_notify(lt_world *w, lt_event event);

/* thread.c: a thread with all signals blocked; 0, or the number of an error. */
int lt_launch_thread(pthread_t *thread, size_t stack, void *(*fn)(void *ud), void *ud);

/* watchdog.c */
bool lt_watchdog_start(lt_ctx *c, lt_world *w);
void lt_watchdog_stop(lt_world *w);
/* This rank's verdict, unless it has one: for the main thread, files, peers. */
void lt_watchdog_verdict(lt_world *w, lt_verdict_class class, int rank, int status,
                         const char *text);
void lt_heartbeat_state(const lt_heartbeat *p, lt_state *s);
void lt_watchdog_state(lt_world *w, lt_state *s);
/* What this rank does, with the last line of the script that is known. */
lt_mark lt_watchdog_activity(const lt_world *w);
/* The state of a forked rank, whose heartbeat lies open; lines are known from its messages. */
void lt_peer_refresh(lt_peer *p, const lt_heartbeat *heartbeat);
/* How long a rank may be silent: `timeout`, at least some pauses between heartbeats. */
int64_t lt_watchdog_lost_ns(const lt_world *w);
void lt_watchdog_receive(lt_world *w, int peer);
void lt_watchdog_send(lt_world *w, lt_message_kind kind); /* to rank 0 */
/* Say the verdict's text on stderr, once in the world; say any line there. */
void lt_watchdog_print_verdict(lt_world *w);
void lt_watchdog_print(lt_world *w, const char *text);
/* End the process with the verdict's status. */
_Noreturn void lt_watchdog_exit(lt_world *w);

/* join.c: ranks that have not come together cannot agree on who tells it: whether this one does. */
bool lt_join_may_print(const lt_world *w);

/* worker.c: the others' part of the watchdog. */
void lt_worker_receive(lt_world *w, const lt_message *m);
void lt_worker_disconnected(lt_world *w); /* the channel */
void lt_worker_turn(lt_world *w, int64_t tick);
/* A fresh connection knows nothing of what the old one may have swallowed. */
void lt_worker_resend(lt_world *w);

/* coordinator.c: rank 0's part of the watchdog. */
void lt_coordinator_report(lt_world *w, int rank, lt_verdict_class class, int status,
                           const char *text);
void lt_coordinator_receive(lt_world *w, int rank, const lt_message *m);
void lt_coordinator_left(lt_world *w, int rank, const lt_message *m);
void lt_coordinator_acked(lt_world *w, int rank);
void lt_coordinator_exited(lt_world *w, int rank, int status, const char *how);
void lt_coordinator_turn(lt_world *w); /* decide when it is time */
void lt_coordinator_broadcast(lt_world *w, const lt_message *m);

/* timeouts.c */
void lt_timeouts_turn(lt_world *w, int64_t elapsed_ns);

/* deadlock.c */
bool lt_peer_is_waiting(const lt_peer *p);
bool lt_peer_waits_for(const lt_peer *waiter, int rank);
/* Whether another rank has come to what rank `waiter` waits for, as far as it is known. */
typedef enum lt_come { LT_COME_NOT, LT_COME, LT_COME_UNKNOWN } lt_come;
lt_come lt_peer_come(const lt_world *w, int waiter, int rank);
/* Report ranks that wait for each other. */
void lt_deadlock_look(lt_world *w);
/* Add " in the group of ranks 0, 1", in which a rank waits, to a text ("in another group" than that
   of rank `before`, of the same ranks; -1: none); nothing for the group of all. */
void lt_peer_add_group(const lt_world *w, int rank, int before, char *text, size_t size);

/* reap.c: children of rank 0; nothing where there are none. */
void lt_children_turn(lt_world *w);
void lt_children_kill(lt_world *w, int rank);
/* Main thread: wait for their ends, killing those that are late; then, without a watchdog that
   might signal them, take their statuses. */
void lt_children_wait(lt_world *w, int64_t patience_ns);
void lt_children_reap(lt_world *w);

/* files.c */
void lt_files_write(lt_world *w);

/* child.c */
bool lt_child_set_up(lt_ctx *c, lt_world *w);

/* daemons.c: before the last act of a joined rank that is cut off: mpirun, or its daemon here. */
void lt_daemons_end(const lt_world *w);

/* end.c */
void lt_world_drop(lt_ctx *c, void *world); /* the ctx ends while ranks run */
void lt_world_guard(lt_world *w);           /* in a child: exit() is a failure from now on */

/* fork_safety.c: whether this process may be forked: helpers joined, nobody else at work. */
bool lt_fork_prepare(lt_ctx *c, const lt_launch_options *o);

/* stderr.c: stderr of children, tagged with their rank. */
lt_stderr *lt_stderr_new(lt_ctx *c, int ranks);
/* In a child: its own end becomes its stderr. In the parent: the thread begins. */
void lt_stderr_become(lt_stderr *t, int rank);
bool lt_stderr_start(lt_ctx *c, lt_stderr *t);
void lt_stderr_release(lt_ctx *c, lt_stderr *t);

/* connections.c: TCP between joined ranks. Rank 0 listens, the others dial. */
lt_connections *lt_connections_new(lt_ctx *c);
void lt_connections_release(lt_ctx *c, lt_connections *s);
/* Where rank 0 listens, and what callers have to know. */
typedef struct lt_endpoint {
  lt_address addresses[LT_ADDRESSES];
  unsigned char token[LT_TOKEN_BYTES];
} lt_endpoint;
/* Rank 0: listen under the card's addresses, fill in their ports and the token. */
bool lt_connections_listen(lt_ctx *c, lt_connections *s, lt_endpoint *card);
/* Elsewhere: dial these from now on. */
void lt_connections_dial(lt_connections *s, const lt_endpoint *card);
void lt_connections_turn(lt_world *w);
int lt_connections_polls(lt_world *w, int n);
/* Why the rank at the other end may be lost; sets unreachable. */
const char *lt_connections_lost(lt_world *w, const lt_channel *ch);

#endif
