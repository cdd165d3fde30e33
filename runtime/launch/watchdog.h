/* runtime/launch/watchdog.h: what the watchdog of a rank owns, and the files that run in it.

   Functions that take an lt_watchdog run in its thread. They read of the world what was set before
   the thread started, meet the main thread in the mailbox alone, and never allocate. */
#ifndef LT_LAUNCH_WATCHDOG_H
#define LT_LAUNCH_WATCHDOG_H

#include "launch/address.h"
#include "launch/handshake.h"
#include "launch/launch.h"
#include "launch/mailbox.h"

enum { LT_SECOND = 1000000000, LT_MS = 1000000 };
enum { LT_SILENT_S = 3 }; /* without a heartbeat for longer, a rank may be stopped */
enum { LT_SAVE_S = 30 };  /* for rank 0 to finish a save when all end */
enum { LT_PENDING_CONNECTIONS = 3 * LT_ADDRESSES };
/* The mailbox, the launcher, each peer's link and process, what listens, what connects. */
enum { LT_POLLS = 2 + 2 * LT_COMM_MAX_RANKS + LT_ADDRESSES + LT_PENDING_CONNECTIONS };

/* Another rank, as seen by a watchdog. Rank 0 has one of each rank; the others have one, of rank
   0. */
typedef struct lt_peer {
  lt_channel link;
  int pidfd;         /* of a child; -1: none */
  int64_t ended_ns;  /* when the link ended; 0: it did not */
  lt_state state;    /* of its last heartbeat */
  int64_t silent_ns; /* time since the last message, in this watchdog's ticks */
  bool left, done, exited;
  bool doubted;  /* it is silent, and was named */
  bool reported; /* it reported a failure: its end is not another one */
  /* Its progress: after it left, what it had completed; in a wait, what it has issued. */
  int n_issued; /* 0: not known */
  lt_issued issued[LT_ISSUED];
  /* Its wait, for the timeouts. */
  uint64_t wait_key;                    /* the wait that it was in at the last look; 0: none */
  int64_t blamed_ns, still_ns, left_ns; /* since one was missing, all came, one left */
  bool warned;
} lt_peer;

static inline bool lt_peer_is_heard(const lt_peer *p) {
  return p->silent_ns < (int64_t)LT_SILENT_S * LT_SECOND;
}

typedef struct lt_connections lt_connections; /* connections.c */

typedef struct lt_watchdog {
  /* Set before the thread starts. */
  lt_world *world;
  const lt_world_info *info;
  lt_heartbeat *heartbeat;
  lt_mailbox *mail;
  lt_connections *connections; /* of joined ranks; NULL: all are forked */
  int launcher_fd;             /* of the process that launched joined ranks; -1: none */
  /* Takes what rank 0 sends itself (coordinator.c). */
  void (*receive)(struct lt_watchdog *d, int peer, const lt_message *m);
  int n_peers;                 /* size at rank 0, 1 elsewhere */
  lt_peer *peers;

  uint32_t requests_done;
  int64_t now_ns, heartbeat_ns; /* now, and when the next heartbeat is due */
  uint64_t sent_place;          /* where this rank was at its last heartbeat (watchdog.c) */
  lt_message in, out;
  /* At rank 0 the gravest failure so far, then the outcome; elsewhere what this rank reported or
     judged, sent again on a new connection. `bytes` 0: none. */
  lt_message failure;
  int64_t unwinding_ns; /* ticks since the outcome */
  int64_t signalled_ns; /* when the main thread was signalled last */
  bool unreachable;     /* joined: the host of a lost rank does not answer */
  bool stuck;           /* joined: the main thread did not unwind in time */

  struct pollfd polls[LT_POLLS];

  /* At rank 0. */
  bool collecting; /* there is a failure since collect_ns, to be decided at decide_ns */
  int64_t collect_ns, decide_ns;
  int64_t timeouts_ns;              /* ticks since the last look at the timeouts */
  bool look;                        /* a rank has waited long: look for deadlocks */
  bool alert;                       /* a rank left: look ten times a second */
  lt_mark marks[LT_COMM_MAX_RANKS]; /* of a table */
  int ranks[LT_COMM_MAX_RANKS], kept[LT_COMM_MAX_RANKS]; /* of it; while some are left out */

  /* Elsewhere. */
  int64_t fallback_ns; /* when to decide alone; 0: never */
} lt_watchdog;

/* state.c */
void lt_watchdog_state(lt_watchdog *d, lt_state *s); /* this rank's */
/* Read the state of a forked rank from its heartbeat in shared memory; its lines come by
   message. */
void lt_peer_refresh(lt_peer *p, const lt_heartbeat *heartbeat);

/* watchdog.c */
/* Set this rank's outcome, unless it has one; notify the main thread, write the files. */
void lt_watchdog_outcome(lt_watchdog *d, const lt_message *m);
/* How long a rank may be silent: `timeout`, and never less than LT_SILENT_S. */
int64_t lt_watchdog_lost_ns(const lt_watchdog *d);
/* Decide alone, and report that to rank 0. */
void lt_watchdog_judge(lt_watchdog *d, lt_outcome_class class, int rank, int status,
                       const char *text);
/* Send to another rank, or to this one if it is rank 0; the second, a message without a text. */
void lt_watchdog_send(lt_watchdog *d, int rank, const lt_message *m);
void lt_watchdog_send_kind(lt_watchdog *d, int rank, lt_message_kind kind);
/* Ask this rank's main thread for the line of its script. */
void lt_watchdog_locate(lt_watchdog *d);
/* Print the outcome's text on stderr, once in the world; print any line there. */
void lt_watchdog_print_outcome(lt_watchdog *d);
void lt_watchdog_print(const lt_watchdog *d, const char *text);
/* End the process with the outcome's status. */
_Noreturn void lt_watchdog_exit(lt_watchdog *d);

/* worker.c: ranks other than 0. */
void lt_worker_receive(lt_watchdog *d, const lt_message *m);
void lt_worker_disconnected(lt_watchdog *d);
void lt_worker_turn(lt_watchdog *d, int64_t tick);
/* Send again what the old connection may have lost. */
void lt_worker_resend(lt_watchdog *d);

/* coordinator.c: rank 0. */
void lt_coordinator_report(lt_watchdog *d, int rank, lt_outcome_class class, int status,
                           const char *text);
/* The same of a rank alone: `what` continues "rank 1 (pid 4711 on a) ...". */
void lt_coordinator_report_rank(lt_watchdog *d, int rank, lt_outcome_class class, int status,
                                const char *what);
void lt_coordinator_receive(lt_watchdog *d, int rank, const lt_message *m);
void lt_coordinator_exited(lt_watchdog *d, int rank, int status, const char *how);
void lt_coordinator_turn(lt_watchdog *d); /* decide when it is time */
void lt_coordinator_broadcast(lt_watchdog *d, lt_message_kind kind);

/* deadlock.c: rank 0. */
bool lt_peer_is_waiting(const lt_peer *p);
bool lt_peer_waits_for(const lt_peer *waiter, int rank);
/* Whether another rank has reached what rank `waiter` waits for, as far as it is known. */
typedef enum lt_come { LT_COME_NOT, LT_COME, LT_COME_UNKNOWN } lt_come;
lt_come lt_peer_come(const lt_watchdog *d, int waiter, int rank);
/* Report ranks that wait for each other. */
void lt_deadlock_look(lt_watchdog *d);
/* Add the group in which a rank waits to a text, as " in the group of ranks 0, 1"; "in another
   group" if rank `before` (-1: none) waits in one of the same ranks; nothing for the group of
   all. */
void lt_peer_add_group(const lt_watchdog *d, int rank, int before, char *text, size_t size);

/* timeouts.c: rank 0; launcher.c and files.c: all ranks. */
void lt_timeouts_turn(lt_watchdog *d, int64_t tick);
void lt_launcher_turn(lt_watchdog *d);
void lt_files_write(lt_watchdog *d);

/* connections.c: TCP between joined ranks. Rank 0 listens, the others connect. The main thread
   makes it, sets where rank 0 listens, and releases it. */
typedef struct lt_endpoint {
  lt_address addresses[LT_ADDRESSES];
  unsigned char token[LT_TOKEN_BYTES];
} lt_endpoint;
lt_connections *lt_connections_new(lt_ctx *c);
void lt_connections_release(lt_ctx *c, lt_connections *s);
/* Rank 0: listen under the endpoint's addresses, fill in their ports and the token. */
bool lt_connections_listen(lt_ctx *c, lt_connections *s, lt_endpoint *endpoint);
/* Other ranks: connect to it from now on. */
void lt_connections_connect(lt_connections *s, const lt_endpoint *endpoint);
void lt_connections_turn(lt_watchdog *d);
int lt_connections_polls(lt_watchdog *d, int n);
/* lost_peer.c */
/* Whether a rank has been silent for so long that it is to be named, once. */
bool lt_peer_falls_silent(const lt_watchdog *d, lt_peer *p);
void lt_peer_silent_text(const lt_watchdog *d, int rank, const lt_peer *p, char *text, size_t size);
/* "is lost: ..." and why that may be; sets `unreachable`. */
void lt_peer_lost_text(lt_watchdog *d, const lt_peer *p, char *text, size_t size);

#endif
