/* lua/bind/dist/launch.c: lt.dist.launch: forks ranks, runs a function on them, reports failures,
   and ends them.

   stdlib calls them in this order, in every rank: fork; run the function (which reports errors);
   leave; finish, in which a child ends. Between run and finish no function of the script runs. */
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/option_fields.h"
#include "bind/core/raise.h"
#include "bind/core/threads.h"
#include "bind/core/types.h"
#include "bind/dist/dist.h"
#include "device/device.h"
#include "launch/worker_pool.h"

#define SPAN_NAME "ltrain.Span"

/* What dist.run's message handler knows. */
typedef struct raised {
  lt_bind *b;
  bool reported; /* all ranks know of the error */
} raised;

static lt_world *check_world(lua_State *L, lt_bind *b, const char *who) {
  lt_world *w = lt_world_current(b->c);
  if (w == NULL) lt_raise(L, b, LT_EINTERNAL, "internal: dist.%s: no world", who);
  return w;
}

lt_launch_options lt_check_launch(lua_State *L, lt_bind *b, int index) {
  luaL_checktype(L, index, LUA_TTABLE);
  lua_pushvalue(L, index);
  lua_setfield(L, LUA_REGISTRYINDEX, "ltrain.launch");
  return (lt_launch_options){.timeout = lt_field_number(L, index, "timeout"),
                             .launch_timeout = lt_field_number(L, index, "launch_timeout"),
                             .what = lt_field_text(L, index, "what"),
                             .folder = lt_field_text(L, index, "folder"),
                             .fork_with_threads = lt_field_flag(L, index, "fork_with_threads"),
                             .wake = lt_bind_wake,
                             .locate = lt_bind_locate,
                             .wake_ud = b};
}

/* Whether ranks that run on the device of options[2].device stay when their loop has ended: a
   process that has used some devices has no children that can use them, so there is one fork. */
static bool check_stays(lua_State *L, lt_bind *b, const char *what, lua_Integer n) {
  const char *text = lt_field_text(L, 2, "device");
  lt_device d;
  if (text == NULL) return false;
  if (!lt_device_parse(b->c, text, &d)) lt_raise_failure(L, b);
  const lt_device_ops *ops = lt_device_table(b->c, d);
  if (ops->forks) return false;
  if (lt_device_used(d))
    lt_raise(L, b, LT_EDEVICE,
             "%s: %d ranks on %s: this process has used %s already, and its children cannot: leave "
             "tensors and modules on the cpu before the first loop, the Trainer moves them; or run "
             "the script with mpirun -n %d",
             what, (int)n, ops->name, ops->name, (int)n);
  if (!b->owns_process)
    lt_raise(L, b, LT_EDEVICE,
             "%s: %d ranks on %s continue the script after it, and this one does not end "
             "(a prompt, or a program that embeds ltrain): write a file for `ltrain run`, or use 1 "
             "rank",
             what, (int)n, ops->name);
  return true;
}

/* dist.fork(n, {what =, timeout =, launch_timeout =, folder =, fork_with_threads =, device =}) ->
   rank: from here on n processes run the script */
static int fork_ranks(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_Integer n = luaL_checkinteger(L, 1);
  lt_launch_options o = lt_check_launch(L, b, 2);
  if (!b->c->policy.fork)
    lt_raise(L, b, LT_EARG, "%s: this state may not start processes (LTRAIN_FORK)", o.what);
  o.ranks = (int)n;
  o.owns_process = b->owns_process;
  o.takes_signals = b->takes_signals;
  o.stays = check_stays(L, b, o.what, n);
  lua_gc(L, LUA_GCCOLLECT); /* garbage is finalised once, here, and not again in each child */
  lt_frame frame = lt_begin(L, b, 0);
  const lt_world *w = lt_world_fork(b->c, &o);
  lt_end_call(L, b, frame);
  lua_pushinteger(L, lt_world_describe(w)->rank);
  return 1;
}

/* Message handler, where the error was raised: reported to the other ranks before anything
   unwinds. */
static int report_at_once(lua_State *L) {
  raised *r = lua_touserdata(L, lua_upvalueindex(1));
  lua_settop(L, 1);
  const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
  if (strstr(text, "yield across a C-call boundary") != NULL) {
    lt_push_where(L);
    lua_pushliteral(L, "dist.launch: the function yielded across the launch: create and resume "
                       "the coroutine inside of it");
    lua_concat(L, 2);
  }
  r->reported = true;
  lt_dist_report(L, r->b);
  return 1;
}

/* dist.stay(): the loop that the ranks were forked for has ended well, and they continue the
   script */
static int stay(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_world_stay(check_world(L, b, "stay"));
  return 0;
}

/* dist.run(fn, ...) -> true and results, or false and the error, which all ranks know of by then.
   Nothing in it can yield to the outside: a child would continue the script of its parent there.
 */
static int run(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int n_args = lua_gettop(L) - 1;
  raised *r = lua_newuserdatauv(L, sizeof *r, 0);
  *r = (raised){.b = b};
  lua_pushcclosure(L, report_at_once, 1);
  lua_insert(L, 1);
  lt_frame mark = lt_frame_open(b->c);
  int status = lua_pcall(L, n_args, LUA_MULTRET, 1);
  if (b->L != L) lt_bind_switch(b, L);
  lt_bind_calm(L, b);
  lt_frame_close(b->c, mark, 0, NULL);
  if (status != LUA_OK && !r->reported)
    lt_dist_report(L, b); /* out of memory: there was no handler */
  lua_pushboolean(L, status == LUA_OK);
  lua_replace(L, 1);
  return lua_gettop(L);
}

/* dist.calm(): control has reached the loop that this rank was in: its own way out is not
   disturbed any more */
static int calm(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (b->waking) lt_bind_calm(L, b);
  return 0;
}

/* dist.set_folder(path): where failures of this world are written from now on */
static int set_folder(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_world_set_folder(check_world(L, b, "set_folder"), luaL_checkstring(L, 1));
  return 0;
}

/* dist.set_timeout(seconds) -> those before: from now on, for this rank */
static int set_timeout(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_world *w = check_world(L, b, "set_timeout");
  double before = lt_world_describe(w)->timeout;
  lt_world_set_timeout(w, luaL_checknumber(L, 1));
  lua_pushnumber(L, before);
  return 1;
}

/* dist.leave() -> whether all ranks have left; else there is an outcome */
static int leave(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_world *w = check_world(L, b, "leave");
  lt_place p = lt_place_here(L, b);
  bool all = lt_world_leave(b->c, w, p.file, p.line);
  lt_failure f;
  lt_take_failure(b->c, &f); /* the outcome says it */
  lua_pushboolean(L, all);
  return 1;
}

static const char *class_name(uint32_t class) {
  static const char *const names[] = {"none", "interrupted", "raised", "exited",
                                      "lost", "late",        "stalled"};
  return class < sizeof names / sizeof *names ? names[class] : "unknown";
}

static void push_outcome(lua_State *L, const lt_outcome *v) {
  lua_createtable(L, 0, 4);
  lua_pushstring(L, class_name(v->class));
  lua_setfield(L, -2, "class");
  lua_pushinteger(L, v->rank);
  lua_setfield(L, -2, "rank");
  lua_pushinteger(L, v->status);
  lua_setfield(L, -2, "status");
  lua_pushstring(L, v->text);
  lua_setfield(L, -2, "text");
}

/* dist.take_terminal() -> whether this rank may ask its user, after its turn has come: false when
   the ranks have failed before. Also in the worker of a loader, which has none. */
static int take_terminal(lua_State *L) {
  lt_world *w = lt_world_current(lt_enter(L)->c);
  lua_pushboolean(L, !lt_worker_here() && (w == NULL || lt_world_take_terminal(w)));
  return 1;
}

/* dist.give_terminal(fails): `fails`: this rank reports a failure next */
static int give_terminal(lua_State *L) {
  lt_world *w = lt_world_current(lt_enter(L)->c);
  if (w != NULL) lt_world_give_terminal(w, lua_toboolean(L, 1));
  return 0;
}

/* dist.is_worker() -> whether this process is one of a loader's */
static int is_worker(lua_State *L) {
  lua_pushboolean(L, lt_worker_here());
  return 1;
}

/* dist.outcome() -> {class =, rank =, status =, text =}, or nil while all is well */
static int outcome(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_outcome *v = lt_world_outcome(lt_world_current(b->c));
  if (v == NULL) return 0;
  push_outcome(L, v);
  return 1;
}

/* dist.finish() -> outcome or nil: the end of the world; does not return in a child */
static int finish(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_world *w = check_world(L, b, "finish");
  lua_settop(L, 0);
  outcome(L);
  lt_dist_forget_world(b->c);
  b->stops.ns += lt_world_terminal_ns(w);
  lt_world_end(b->c, w);
  lt_bind_calm(L, b);
  lt_failure f;
  lt_take_failure(b->c, &f);
  lua_settop(L, 1);
  return 1;
}

/* dist.blame(text, status): raises it as what ranks fail with */
static int blame(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_raise_ranks(L, b, luaL_checkstring(L, 1), (int)luaL_checkinteger(L, 2));
}

/* Declared spans. */

typedef struct span {
  lt_world *w; /* NULL: none was there, or it is closed */
  bool saving;
} span;

/* dist.span([saving]) -> to be closed: until then this rank may let the others wait */
static int open_span(lua_State *L) {
  lt_bind *b = lt_enter(L);
  bool saving = lua_toboolean(L, 1);
  span *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (span){.w = lt_world_current(b->c), .saving = saving};
  luaL_setmetatable(L, SPAN_NAME);
  if (s->w != NULL) lt_world_span(s->w, true, saving);
  return 1;
}

static int close_span(lua_State *L) {
  const lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  span *s = luaL_checkudata(L, 1, SPAN_NAME);
  if (s->w != NULL && b->c != NULL && lt_world_current(b->c) == s->w)
    lt_world_span(s->w, false, s->saving);
  s->w = NULL;
  return 0;
}

/* A child ends here. */
static void end_forked(lt_bind *b, lt_world *w) {
  lt_dist_forget_world(b->c);
  lt_world_end(b->c, w);
}

/* os.exit in a rank must not be silent: others wait for it. Where all ranks that were joined leave
   with 0 it is the end of the script; else a failure, which the rank that reports prints, since
   nothing raises it. A forked child ends here, and its parent when the others have the failure.
   Leaves the status as the only argument. */
static void exit_rank(lua_State *L, lt_bind *b, lt_world *w) {
  const lt_world_info *info = lt_world_describe(w);
  bool forked = info->forked && !info->stays, ends_here = info->forked;
  char file[LT_PLACE_FILE];
  int line = lt_script_place(L, b, file, sizeof file), status;
  if (lua_isboolean(L, 1))
    status = !lua_toboolean(L, 1);
  else
    status = (int)(forked ? lua_tointeger(L, 1) : luaL_optinteger(L, 1, 0));
  if (!forked && status == 0 && lt_world_leave(b->c, w, file, line)) {
    if (ends_here) end_forked(b, w);
    return;
  }
  lt_take_failure(b->c, NULL);
  if (forked || status != 0) {
    lua_pushfstring(L, "%s:%d: os.exit(%s) was called in a rank", file, line,
                    lua_gettop(L) > 0 ? luaL_tolstring(L, 1, NULL) : "");
    lt_world_raise(w, lua_tostring(L, -1), file, line);
  }
  const lt_outcome *v = lt_world_outcome(w);
  if (status == 0) status = v != NULL ? v->status : 1;
  bool prints = v != NULL && !lt_world_describe(w)->in_child && lt_world_may_print(w);
  lua_pushstring(L, v != NULL ? v->text : ""); /* freed with the world */
  if (ends_here) end_forked(b, w);
  if (prints) lua_writestringerror("ltrain: %s\n", lua_tostring(L, -1));
  lua_settop(L, 0);
  lua_pushinteger(L, status);
}

/* os.exit. Upvalues: the binding, Lua's own. */
static int exit_process(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_world *w = b->c != NULL ? lt_world_current(b->c) : NULL;
  if (lt_worker_here()) lt_raise(L, b, LT_EARG, "os.exit was called in a worker of a DataLoader");
  if (w != NULL) exit_rank(L, b, w);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, 0);
  return 0;
}

static void replace_exit(lua_State *L, lt_bind *b) {
  if (b->owned && lua_getglobal(L, "os") == LUA_TTABLE) {
    lua_pushlightuserdata(L, b);
    lua_getfield(L, -2, "exit");
    lua_pushcclosure(L, exit_process, 2);
    lua_setfield(L, -2, "exit");
  }
  if (b->owned) lua_pop(L, 1);
}

void lt_bind_dist_launch(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"fork", fork_ranks},         {"run", run},     {"calm", calm},
      {"set_folder", set_folder},   {"leave", leave}, {"outcome", outcome},
      {"finish", finish},           {"blame", blame}, {"span", open_span},
      {"set_timeout", set_timeout}, {"stay", stay}, {"is_worker", is_worker},
      {"take_terminal", take_terminal}, {"give_terminal", give_terminal}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__close", close_span}, {NULL, NULL}};
  lt_new_type(L, b, SPAN_NAME, meta, NULL);
  lt_add_functions(L, b, functions);
  lua_pushinteger(L, LT_COMM_MAX_RANKS);
  lua_setfield(L, -2, "max_ranks");
  replace_exit(L, b);
}
