/* lua/bind/core/threads.h: the current Lua thread, and its debug hooks. */
#ifndef LT_BIND_CORE_THREADS_H
#define LT_BIND_CORE_THREADS_H

#include "bind/core/state.h"

/* The Lua thread that runs now, for signal handlers: no call of Lua's. */
lua_State *lt_bind_running(const lt_bind *b);

/* Note that `thread` is about to run; returns the one before, to be put back in the same way. */
lua_State *lt_bind_enter_thread(lt_bind *b, lua_State *thread);

/* End the script because its world has failed: `ud` is the binding; for lt_launch_options.wake.
   lt_bind_calm ends that, in the frame that started the ranks. */
void lt_bind_wake(void *ud);
void lt_bind_calm(lua_State *L, lt_bind *b);

/* Note the script's line for the watchdog: `ud` is the binding; for lt_launch_options.locate. */
void lt_bind_locate(void *ud);

/* Hook a thread while lines are watched; leave it without a hook otherwise. Only lua_sethook: a
   signal handler may call it. */
void lt_stops_hook(const lt_bind *b, lua_State *thread);

#endif
