/* lua/host/step.c: ltrain_start, ltrain_step: a call that the host runs step by step.

   It runs in a Lua thread of its own, in which the Trainer's loops yield, and, in steps that have
   a time, the hook of budget.c. What an error ends there closes its variables within a call, while
   hooks are on. */
#include <string.h>

#include "bind/core/threads.h"
#include "bind/ops/random.h"
#include "host/isolate/isolate.h"
#include "host/protected_calls.h"
#include "host/sandbox/budget.h"

static int finish_stepped(lua_State *L, int status, lua_KContext unused) {
  (void)unused;
  if (status != LUA_OK && status != LUA_YIELD) return lua_error(L);
  lt_host_check(L); /* as run_request */
  return 0;
}

/* lua_pcallk: the loops yield through it, which a plain lua_pcall forbids. */
static int run_stepped(lua_State *L) {
  int status = lua_pcallk(L, lua_gettop(L) - 1, 0, 0, 0, finish_stepped);
  return finish_stepped(L, status, 0);
}

/* The registry keeps the thread: on no stack while it is paused, it would be collected. */
static int start_named(lua_State *L) {
  lt_request *r = lua_touserdata(L, 1);
  int n = lt_push_call(L, r);
  r->l->loops_yield = true;
  lt_host_set_stepped(L, true);
  lua_State *thread = lua_newthread(L);
  lua_insert(L, -n - 2);
  lua_pushcfunction(thread, run_stepped);
  lua_xmove(L, thread, n + 1);
  lua_rawseti(L, LUA_REGISTRYINDEX, r->l->thread_ref);
  r->l->stepped = thread;
  r->l->step_arguments = n + 1;
  r->l->blamed = r->l->draws.saved = false;
  return 0;
}

bool ltrain_start(ltrain *l, const char *name, const char *format, ...) {
  if (!lt_host_named(l, "start", name, format) || !lt_isolate_permits(l, "start")) return false;
  if (strchr(format, '>') != NULL) {
    lt_host_keep_message(l,
                         "start: a call run step by step has no results: its format has no '>'");
    return false;
  }
  if (l->depth > 0) {
    lt_host_keep_message(l, "start: called from within a call of this state");
    return false;
  }
  if (l->stepped != NULL) {
    lt_host_keep_message(l, "start: the last call that was started has not ended");
    return false;
  }
  lt_request r = {.l = l, .name = name, .format = format};
  va_start(r.values.list, format);
  bool ok = lt_request_run(l, start_named, &r);
  va_end(r.values.list);
  return ok;
}

/* The thread has paused; what it gave is on its stack. */
static ltrain_state report_pause(ltrain *l, lua_State *thread, int n_results, const char **where) {
  const char *name =
      n_results > 0 && lua_type(thread, -1) == LUA_TSTRING ? lua_tostring(thread, -1) : "";
  snprintf(l->where, sizeof l->where, "%s", name);
  if (where != NULL) *where = l->where;
  lua_pop(thread, n_results);
  if (l->unpausable[0] != 0 && !l->blamed) {
    char text[256];
    snprintf(text, sizeof text,
             "step_for: paused late: %s runs within a function of C, which cannot pause (a hook of "
             "backward, a comparison of table.sort, ...)",
             l->unpausable);
    l->blamed = true;
    if (l->config.log != NULL) l->config.log(l->config.ud, LTRAIN_WARNING, text);
  }
  return LTRAIN_PAUSED;
}

/* Run the thread to its next pause: that of a Trainer's loop, or between operations. */
static int resume(ltrain *l, lua_State *thread, int *n_results) {
  lt_bind *b = l->b;
  lt_bind_return_draws(b, &l->draws);
  b->pausing = false;
  lua_State *before = lt_bind_enter_thread(b, thread);
  int status = lua_resume(thread, l->L, l->step_arguments, n_results);
  lt_bind_enter_thread(b, before);
  l->step_arguments = 0;
  if (status == LUA_YIELD && b->pausing) lt_bind_leave_draws(b, &l->draws);
  return status;
}

static ltrain_state end_call(ltrain *l, lua_State *thread, int status) {
  l->stepped = NULL;
  l->deadline = 0;
  if (status != LUA_OK) {
    if (lua_resetthread(thread) == LUA_OK) lua_pushnil(thread); /* it yielded what it had caught */
    lua_xmove(thread, l->L, 1);
    lt_host_fail(l, l->L, NULL);
  }
  lt_host_end_steps(l);
  return status == LUA_OK ? LTRAIN_FINISHED : LTRAIN_FAILED;
}

/* Within a step that has a deadline the pauses of loops before it are passed over; what must end
   while it is paused between operations ends from there. */
static ltrain_state step(ltrain *l, const char **where) {
  lua_State *thread = l->stepped;
  for (;;) {
    int n_results = 0, status = resume(l, thread, &n_results);
    bool between = status == LUA_YIELD && l->b->pausing, ended = lt_host_ended(l);
    if (status != LUA_YIELD || (ended && !between)) return end_call(l, thread, status);
    if (!ended && (between || l->deadline <= 0 || lt_host_is_due(l)))
      return report_pause(l, thread, n_results, where);
    lua_pop(thread, n_results);
  }
}

/* `seconds` NULL: to the next pause of a loop. */
static ltrain_state take_step(ltrain *l, const char *who, const double *seconds,
                              const char **where) {
  if (l == NULL) return LTRAIN_FAILED;
  if (l->stepped == NULL || l->depth > 0) {
    snprintf(l->message, sizeof l->message, "%s: %s", who,
             l->depth > 0 ? "called from within a call of this state" : "nothing was started");
    return LTRAIN_FAILED;
  }
  if (!lt_host_fits(l)) return LTRAIN_FAILED;
  void *locale = lt_host_enter(l);
  l->unpausable[0] = 0;
  if (seconds != NULL) lt_host_set_deadline(l, *seconds);
  ltrain_state state = step(l, where);
  if (state != LTRAIN_FAILED) l->message[0] = 0;
  l->deadline = 0;
  l->b->pausable = false;
  lt_host_leave(l, locale);
  return state;
}

ltrain_state ltrain_step(ltrain *l, const char **where) {
  return take_step(l, "step", NULL, where);
}

ltrain_state ltrain_step_for(ltrain *l, double seconds, const char **where) {
  return take_step(l, "step_for", &seconds, where);
}
