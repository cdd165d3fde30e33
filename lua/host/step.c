/* lua/host/step.c: a call that the host takes step by step.

   It runs in a Lua thread of its own, in which the Trainer's loops yield. What an error ends
   there closes its variables within a call, while hooks are on. */
#include <string.h>

#include "base/locale.h"
#include "host/budget.h"
#include "host/request.h"

static int finish_stepped(lua_State *L, int status, lua_KContext unused) {
  (void)unused;
  if (status != LUA_OK && status != LUA_YIELD) return lua_error(L);
  lt_host_check(L); /* as run_request */
  return 0;
}

static int run_stepped(lua_State *L) {
  int status = lua_pcallk(L, lua_gettop(L) - 1, 0, 0, 0, finish_stepped);
  return finish_stepped(L, status, 0);
}

static int start_named(lua_State *L) {
  lt_request *r = lua_touserdata(L, 1);
  int n = lt_push_call(L, r);
  lt_host_set_stepped(L, true);
  lua_State *thread = lua_newthread(L);
  lua_insert(L, -n - 2);
  lua_pushcfunction(thread, run_stepped);
  lua_xmove(L, thread, n + 1);
  lua_rawseti(L, LUA_REGISTRYINDEX, r->l->thread_ref);
  r->l->stepped = thread;
  r->l->step_arguments = n + 1;
  return 0;
}

bool ltrain_start(ltrain *l, const char *name, const char *format, ...) {
  if (!lt_host_named(l, "start", name, format)) return false;
  if (strchr(format, '>') != NULL) {
    lt_host_keep_message(l,
                         "start: a call run step by step has no results: its format has no '>'");
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

static int end_steps(lua_State *L) {
  const ltrain *l = lua_touserdata(L, 1);
  lt_host_set_stepped(L, false);
  lua_pushboolean(L, false);
  lua_rawseti(L, LUA_REGISTRYINDEX, l->thread_ref);
  return 0;
}

/* The thread has paused; what it gave is on its stack. */
static ltrain_state report_pause(ltrain *l, lua_State *thread, int n_results, const char **where) {
  const char *name =
      n_results > 0 && lua_type(thread, -1) == LUA_TSTRING ? lua_tostring(thread, -1) : "";
  snprintf(l->where, sizeof l->where, "%s", name);
  if (where != NULL) *where = l->where;
  lua_pop(thread, n_results);
  return LTRAIN_PAUSED;
}

static ltrain_state step(ltrain *l, lua_State *thread, const char **where) {
  int n_results = 0;
  lt_bind *b = lt_bind_get(l->L);
  lua_State *before = lt_bind_enter_thread(b, thread);
  int status = lua_resume(thread, l->L, l->step_arguments, &n_results);
  lt_bind_enter_thread(b, before);
  l->step_arguments = 0;
  if (status == LUA_YIELD && !lt_host_ended(l)) return report_pause(l, thread, n_results, where);
  l->stepped = NULL;
  if (status != LUA_OK) {
    if (lua_resetthread(thread) == LUA_OK) lua_pushnil(thread); /* it yielded what it had caught */
    lua_xmove(thread, l->L, 1);
    lt_host_fail(l, l->L);
  }
  lua_pushcfunction(l->L, end_steps);
  lua_pushlightuserdata(l->L, l);
  if (lua_pcall(l->L, 1, 0, 0) != LUA_OK) lua_pop(l->L, 1);
  return status == LUA_OK ? LTRAIN_FINISHED : LTRAIN_FAILED;
}

ltrain_state ltrain_step(ltrain *l, const char **where) {
  if (l == NULL) return LTRAIN_FAILED;
  if (l->stepped == NULL || l->stepping) {
    lt_host_keep_message(
        l, l->stepping ? "step: called from within a step" : "step: nothing was started");
    return LTRAIN_FAILED;
  }
  void *locale = lt_host_enter(l);
  l->stepping = true;
  ltrain_state state = step(l, l->stepped, where);
  l->stepping = false;
  lt_locale_leave(locale);
  return state;
}
