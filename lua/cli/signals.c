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

static lua_State *signalled; /* the one state of the process */
static volatile sig_atomic_t pending, last, reading, stopped;

/* Runs in the script, at its next call or line. A loop of the Trainer only has to be told. */
static void stop(lua_State *L, lua_Debug *ar) {
  (void)ar;
  lua_sethook(L, NULL, 0, 0);
  if (pending == 0) return;
  lt_bind *b = lt_bind_get(L);
  if (b != NULL && b->collect.depth > 0) {
    atomic_store(&b->interrupts, pending);
    return;
  }
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
  lua_sethook(signalled, stop, STOP_EVENTS, 1);
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
  signalled = L;
  install(SIGINT, true);
  install(SIGTERM, true);
}

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
