/* lua/cli/signals.c: SIGINT and SIGTERM in the binary.

   A handler may run between any two instructions, and can raise no error there: it sets flags and
   a hook, and the script ends at its next line or call, where Lua can unwind it. A signal that
   comes again while the first is pending ends the process as if there were no handler (but at a
   prompt). */
#include "cli/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/core/current_line.h"
#include "bind/core/threads.h"
#include "bind/debugger/debugger.h"
#include "bind/dist/dist.h"

enum { STOP_EVENTS = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT };
enum { CATCHERS = 2 };

/* The one state of the process, and its binding: NULL when it is closing. */
static lua_State *signalled;
static lt_bind *binding;
static volatile sig_atomic_t pending, last, reading, stopped;
static _Atomic int64_t first_ns; /* when the first of the pending ones came */
static pthread_t owner; /* the thread that runs the state */
static volatile sig_atomic_t prompts, insists; /* a prompt is there; see `insist` */

/* Where the error of a SIGTERM was raised: frames of the thread from `cleans` up belong to its way
   out, to the function that catches it. NULL: not raised, or caught. */
static lua_State *thrower;
static int cleans;
static lua_CFunction catchers[CATCHERS]; /* pcall, xpcall */

static void stop(lua_State *L, lua_Debug *ar);

/* A Trainer is running. It looks at `interrupts` between batches itself, and says with
   stdlib/core/interrupt.lua where the script may end sooner: at a line of its own, never in one
   of ours. */
static void stop_run(lua_State *L, lua_Debug *ar) {
  int top = lua_gettop(L);
  lt_push_require(L);
  lua_pushliteral(L, "ltrain.core.interrupt");
  if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_istable(L, -1)) {
    lua_getfield(L, -1, "at_line");
    lua_getinfo(L, "Sl", ar);
    lua_pushstring(L, ar->source);
    lua_pushfstring(L, "%s:%d: ", ar->short_src, ar->currentline);
    lua_call(L, 2, 1);
    if (lua_type(L, -1) == LUA_TTABLE) lua_error(L);
    if (lua_toboolean(L, -1)) lua_sethook(L, stop, STOP_EVENTS, 1); /* not yet */
  }
  lua_settop(L, top);
}

/* The second Ctrl-C at a prompt: the script has caught the first, with pcall in a loop. Until the
   prompt is there each line of the script is one where it ends. */
static void insist(lua_State *L, lua_Debug *ar) {
  lua_sethook(L, stop, STOP_EVENTS, 1);
  lua_getinfo(L, "Sl", ar);
  if (ar->currentline <= 0 || lt_source_is_ours(ar->source)) return;
  atomic_store(&binding->interrupts, 0);
  stopped = 1;
  lua_pushfstring(L, "%s:%d: interrupted", ar->short_src, ar->currentline);
  lua_error(L);
}

/* The depth of the innermost pcall or xpcall of a thread; 0: none. */
static int catch_depth(lua_State *L) {
  lua_Debug at;
  int level = 0;
  for (; lua_getstack(L, level, &at) != 0; level++) {
    lua_getinfo(L, "f", &at);
    lua_CFunction fn = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    for (int k = 0; k < CATCHERS; k++)
      if (fn != NULL && fn == catchers[k]) return lt_frame_depth(L) - level;
  }
  return 0;
}

/* SIGTERM ends the script also when it catches the error: at its next line it is raised again, and
   so on. What closes variables on the way out is not disturbed. Returns whether to raise it. */
static bool terminates(lua_State *L, lua_Debug *ar) {
  lua_sethook(L, stop, STOP_EVENTS, 1);
  bool again = stopped != 0;
  if (thrower == L && lt_frame_depth(L) >= cleans) return false;
  thrower = NULL; /* caught */
  lua_getinfo(L, "Sl", ar);
  if (again && (ar->currentline <= 0 || lt_source_is_ours(ar->source))) return false;
  for (const lt_resumed *r = binding->resumed; r != NULL; r = r->outer)
    lua_sethook(r->thread, stop, STOP_EVENTS, 1);
  thrower = L;
  cleans = catch_depth(L) + 1;
  return true;
}

/* Runs in the script, at its next call or line; in each thread that was hooked. */
static void stop(lua_State *L, lua_Debug *ar) {
  lt_stops_hook(binding, L);
  if (insists) {
    insist(L, ar);
    return;
  }
  if (atomic_load(&binding->interrupts) == 0) return;
  if (binding->collect.depth > binding->stops.floor) {
    stop_run(L, ar);
    return;
  }
  if (last == SIGTERM && !prompts) {
    if (!terminates(L, ar)) return;
  } else {
    atomic_store(&binding->interrupts, 0);
  }
  stopped = 1;
  lua_getinfo(L, "Sl", ar);
  if (ar->currentline > 0 && !lt_source_is_ours(ar->source))
    lua_pushfstring(L, "%s:%d: ", ar->short_src, ar->currentline);
  else
    lt_push_where(L); /* the script's line, where one of ours runs */
  lua_pushliteral(L, "interrupted");
  lua_concat(L, 2);
  lua_error(L);
}

/* One of several ranks: its watchdog ends them all, wherever they are. A Trainer's ranks agree on
   where first. */
static bool ends_ranks(int number) {
  lt_world *w = binding->c != NULL ? lt_world_current(binding->c) : NULL;
  if (w == NULL || binding->collect.depth > 0 || binding->stops.sessions > 0) return false;
  int before = errno;
  lt_world_interrupt(w, number);
  errno = before;
  return true;
}

/* Another rank asks the user, who presses Ctrl-C there. */
static bool is_for_other_rank(void) {
  const lt_world *w = signalled != NULL && binding->c != NULL ? lt_world_current(binding->c) : NULL;
  return w != NULL && lt_world_terminal_is_elsewhere(w);
}

bool lt_signals_forward(int number) {
  return !pthread_equal(pthread_self(), owner) && pthread_kill(owner, number) == 0;
}

/* lua_sethook may be called from a handler: lua.c does the same. */
static void hook_script(void) {
  lua_sethook(signalled, stop, STOP_EVENTS, 1);
  lua_State *running = lt_bind_running(binding); /* a coroutine */
  if (running != signalled) lua_sethook(running, stop, STOP_EVENTS, 1);
}

/* A launcher's signal often comes twice: to the process, and to its group. */
static bool is_doubled(void) {
  int64_t now = lt_now_ns();
  if (pending > 0) return now - atomic_load(&first_ns) < (int64_t)LT_SIGNAL_TWICE_MS * 1000000;
  atomic_store(&first_ns, now);
  return false;
}

static void on_signal(int number) {
  if (lt_signals_forward(number)) return;
  if (number == SIGINT && is_for_other_rank()) return;
  if (is_doubled() && !prompts) return;
  last = number;
  pending = pending + 1;
  if (reading) return;
  if (pending == 2 && number == SIGINT && prompts && signalled != NULL &&
      binding->collect.depth <= binding->stops.floor) {
    insists = 1;
    hook_script();
    return;
  }
  if (pending > 1) {
    signal(number, SIG_DFL);
    raise(number); /* delivered when the handler returns */
    return;
  }
  if (signalled == NULL) return;
  atomic_store(&binding->signal, number);
  if (ends_ranks(number)) return;
  atomic_store(&binding->interrupts, pending);
  hook_script();
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
  owner = pthread_self();
  binding->takes_signals = true;
  static const char *const names[CATCHERS] = {"pcall", "xpcall"};
  for (int k = 0; k < CATCHERS; k++) {
    lua_getglobal(L, names[k]);
    catchers[k] = lua_tocfunction(L, -1);
    lua_pop(L, 1);
  }
  install(SIGINT, true);
  install(SIGTERM, true);
}

void lt_signals_also(int number) { install(number, true); }

void lt_signals_release(void) { signalled = NULL; }

void lt_signals_reading(bool on) {
  reading = on;
  prompts = 1;
  install(SIGINT, !on);
  install(SIGTERM, !on);
}

int lt_signals_pending(void) { return pending; }

bool lt_signals_over(void) {
  const lt_world *w = binding != NULL && binding->c != NULL ? lt_world_current(binding->c) : NULL;
  return w != NULL && lt_world_outcome(w) != NULL;
}

void lt_signals_clear(void) {
  pending = 0;
  insists = 0;
  stopped = 0;
  atomic_store(&binding->signal, 0);
}

int lt_signals_end(int status) {
  return status == 0 && stopped && last == SIGTERM && !prompts ? lt_signals_status() : status;
}

int lt_signals_status(void) { return last == 0 ? 0 : LT_STATUS_OF_SIGNAL + last; }

bool lt_signals_stopped(void) { return stopped != 0; }
