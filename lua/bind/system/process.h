/* lua/bind/system/process.h: children of this process that run other programs. */
#ifndef LT_BIND_SYSTEM_PROCESS_H
#define LT_BIND_SYSTEM_PROCESS_H

#include <signal.h>
#include <sys/types.h>

#include "bind/core/state.h"

/* Seconds on CLOCK_MONOTONIC. */
double lt_seconds_now(void);

/* Milliseconds from now to `deadline` for poll(2), at least 0. */
int lt_poll_until(double deadline);

/* Wait for a child of ours; its exit status, 128 + n for a signal. */
int lt_wait_for(pid_t pid);

/* Whether this state may start processes; otherwise pushes nil and a reason. */
bool lt_may_start(lua_State *L, lt_bind *b, const char *who);

/* A process that ends a child of ours, and what that has started, when this one ends in any way
   before lt_guard_release: at once, or `seconds` after the child was asked to end. A pid of 0: none
   could be started, and the other functions do nothing. (guard_process.c) */
typedef struct lt_guard {
  pid_t pid, owner;
  int fd;
} lt_guard;
lt_guard lt_guard_start(int seconds);
void lt_guard_this(lt_guard g); /* in the child, after vfork too */
void lt_guard_release(lt_guard g); /* the child has ended */

typedef struct lt_child {
  pid_t pid;
  lt_guard guard;
  int output; /* what it writes on both streams, -1: it has ours */
  int error;  /* errno when it could not be started */
} lt_child;

/* The list of words at `index`, and the environment with the list of "NAME=value" at `index` (or
   nothing) before ours, so that they win: in memory of Lua's, which is pushed. */
char **lt_read_argv(lua_State *L, int index);
char **lt_read_env(lua_State *L, int index);

enum { LT_CHILD_GRACE_S = 40 };

typedef struct lt_child_options {
  bool captured; /* we read what it writes on both streams; its standard input is empty */
  bool no_input; /* its standard input is empty */
  int grace_s;   /* from SIGTERM to SIGKILL when this process ends; 0: SIGKILL at once */
  const int *fds; /* [n_fds] descriptors that it inherits, under the same numbers */
  int n_fds;
} lt_child_options;

/* Fork and exec argv, in a process group of its own, with the signal mask `mask`. When this process
   ends, the child gets SIGTERM, and after a grace SIGKILL. Whoever waits for it releases its guard.
 */
lt_child lt_child_start(char **argv, char **env, const sigset_t *mask, const lt_child_options *o);

/* SIGTERM, then SIGKILL to what is left of a group. */
void lt_group_end(pid_t group);

/* Push nil and why a program could not be started. */
int lt_not_started(lua_State *L, const char *name, int reason);

/* runtime.process.supervise (supervise.c) */
int lt_process_supervise(lua_State *L);

/* Add runtime.process: a part of the runtime's table (system.c). */
void lt_bind_process(lua_State *L, lt_bind *b);

/* Jobs (jobs.c): runtime.process.start, wait_any, signal, lock */
int lt_job_start(lua_State *L);
int lt_job_wait_any(lua_State *L);
int lt_job_signal(lua_State *L);
int lt_job_lock(lua_State *L);

/* Make the type of locks. */
void lt_bind_jobs(lua_State *L, lt_bind *b);

/* runtime.process.probe (probe_hosts.c) */
int lt_process_probe(lua_State *L);

/* runtime.process.local_address (local_address.c) */
int lt_process_local_address(lua_State *L);

#endif
