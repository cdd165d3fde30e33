/* lua/bind/process.h: children of this process that run other programs. */
#ifndef LT_BIND_PROCESS_H
#define LT_BIND_PROCESS_H

#include <sys/types.h>

#include "bind/state.h"

/* Seconds on CLOCK_MONOTONIC. */
double lt_seconds_now(void);

/* Milliseconds from now to `deadline` for poll(2), at least 0. */
int lt_poll_until(double deadline);

/* Wait for a child of ours; its exit status, 128 + n for a signal. */
int lt_wait_for(pid_t pid);

/* Whether this state may start processes; otherwise pushes nil and a reason. */
bool lt_may_start(lua_State *L, lt_bind *b, const char *who);

/* Add runtime.process: a part of the runtime's table (system.c). */
void lt_bind_process(lua_State *L, lt_bind *b);

/* runtime.process.dial (dial.c) */
int lt_process_dial(lua_State *L);

#endif
