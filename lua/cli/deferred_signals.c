/* lua/cli/deferred_signals.c: records signals in a handler, for Lua to act on at its next safe
   point. */
#include "cli/deferred_signals.h"

#include <signal.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/core/state.h"
#include "cli/signals.h"
#include "launch/launch.h"

static const char *const names[] = {"USR1", "USR2", "HUP", "TERM", "INT", NULL};
static const int numbers[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGTERM, SIGINT};

enum { KINDS = sizeof numbers / sizeof *numbers };

static volatile sig_atomic_t arrived[KINDS]; /* how often */
static _Atomic int64_t last_ns[KINDS];
static int acted_on;

/* Two that come close together are one: see LT_SIGNAL_TWICE_MS. */
static void on_signal(int number) {
  int64_t now = lt_now_ns();
  for (int k = 0; k < KINDS; k++) {
    if (numbers[k] != number) continue;
    bool doubled = arrived[k] > 0 &&
                   now - atomic_load(&last_ns[k]) < (int64_t)LT_SIGNAL_TWICE_MS * 1000000;
    if (!doubled) arrived[k] = arrived[k] + 1;
    atomic_store(&last_ns[k], now);
  }
}

/* note_signal(name) -> its number: from now on "USR1", "USR2", "HUP", "TERM" or "INT" does nothing
   but leave a note */
static int note_signal(lua_State *L) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  int number = numbers[luaL_checkoption(L, 1, NULL, names)];
  sigaction(number, &action, NULL);
  lua_pushinteger(L, number);
  return 1;
}

/* noted(name) -> how often it has come; false: never */
static int noted(lua_State *L) {
  int count = arrived[luaL_checkoption(L, 1, NULL, names)];
  if (count > 0)
    lua_pushinteger(L, count);
  else
    lua_pushboolean(L, false);
  return 1;
}

/* interrupt(name): to the loops of a Trainer as if Ctrl-C had come, with this signal's status */
static int interrupt(lua_State *L) {
  acted_on = numbers[luaL_checkoption(L, 1, NULL, names)];
  lt_bind *b = lt_bind_get(L);
  atomic_fetch_add(&b->interrupts, 1);
  atomic_store(&b->signal, acted_on);
  return 0;
}

/* stop_by(name): from now on it ends the script as SIGTERM does */
static int stop_by(lua_State *L) {
  lt_signals_also(numbers[luaL_checkoption(L, 1, NULL, names)]);
  return 0;
}

void lt_notes_push(lua_State *L) {
  static const luaL_Reg functions[] = {{"note_signal", note_signal},
                                       {"noted", noted},
                                       {"interrupt", interrupt},
                                       {"stop_by", stop_by},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

int lt_notes_status(void) { return acted_on == 0 ? 0 : LT_STATUS_OF_SIGNAL + acted_on; }
