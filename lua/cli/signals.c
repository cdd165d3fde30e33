/* lua/cli/signals.c: SIGINT and SIGTERM in the binary. */
#include "cli/signals.h"

#include <signal.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/state.h"

enum {
  STATUS_OF_SIGNAL = 128,
  STOP_EVENTS = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT
};

/* The one state of the process, and its binding: NULL when it is closing. */
static lua_State *signalled;
static lt_bind *binding;
static volatile sig_atomic_t pending, last, reading, stopped;

/* Runs in the script, at its next call or line; in each thread that was hooked. Loops of the
   Trainer look at `interrupts` themselves, and clear it when they have acted. */
static void stop(lua_State *L, lua_Debug *ar) {
  (void)ar;
  lua_sethook(L, NULL, 0, 0);
  if (binding->collect.depth > 0 || atomic_load(&binding->interrupts) == 0) return;
  atomic_store(&binding->interrupts, 0);
  stopped = 1;
  luaL_error(L, "interrupted");
}

/* lua_sethook may be called from a handler: lua.c does the same. */
static void on_signal(int number) {
  last = number;
  pending = pending + 1;
  if (reading) return;
  if (pending > 1) {
    signal(number, SIG_DFL);
    raise(number); /* delivered when the handler returns */
    return;
  }
  if (signalled == NULL) return;
  atomic_store(&binding->interrupts, pending);
  lua_sethook(signalled, stop, STOP_EVENTS, 1);
  if (binding->L != signalled) lua_sethook(binding->L, stop, STOP_EVENTS, 1); /* a coroutine */
}

static void install(int number, bool restart) {
  struct sigaction before, action;
  if (sigaction(number, NULL, &before) != 0 || before.sa_handler == SIG_IGN) return; /* nohup */
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = restart ? SA_RESTART : 0;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, NULL);
}

void lt_signals_install(lua_State *L) {
  binding = lt_bind_get(L);
  signalled = L;
  install(SIGINT, true);
  install(SIGTERM, true);
}

void lt_signals_release(void) { signalled = NULL; }

void lt_signals_reading(bool on) {
  reading = on;
  install(SIGINT, !on);
  install(SIGTERM, !on);
}

int lt_signals_pending(void) { return pending; }

void lt_signals_clear(void) {
  pending = 0;
  stopped = 0;
}

int lt_signals_status(void) { return last == 0 ? 0 : STATUS_OF_SIGNAL + last; }

bool lt_signals_stopped(void) { return stopped != 0; }
