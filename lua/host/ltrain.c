/* lua/host/ltrain.c: the face for hosts: calls, values, steps. Opening a state is in open.c. */
#include "host/ltrain.h"

#include <string.h>

#include <lauxlib.h>

#include "base/locale.h"
#include "bind/state.h"
#include "bind/tensor.h"
#include "host/budget.h"
#include "host/values.h"
#include "registry.h"

/* One call from the host, on its way through lua_pcall. */
typedef struct request {
  ltrain *l;
  lua_CFunction run; /* (request) -> the values that the host takes */
  const char *name;
  const char *format;
  lt_variadic values;
} request;

static const char no_memory[] = "not enough memory";

static void keep_message(ltrain *l, const char *text) {
  snprintf(l->message, sizeof l->message, "%s", text == NULL ? "an error without a text" : text);
}

/* What is common to all entries: the last message goes, the budget of instructions is new, and
   the host's locale is put aside. Returns it, for lt_locale_leave. */
static void *enter(ltrain *l) {
  l->message[0] = 0;
  l->thread = pthread_self();
  lt_host_arm(l);
  lt_host_recover(l);
  return lt_locale_enter();
}

static int text_of_error(lua_State *L) {
  lt_push_error_text(L, 1);
  return 1;
}

/* The stack's top is an error value: keep its text, drop it. */
static bool fail(ltrain *l, lua_State *L) {
  lua_pushcfunction(L, text_of_error);
  lua_insert(L, -2);
  lua_pcall(L, 1, 1, 0);
  keep_message(l, lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL);
  lua_pop(L, 1);
  l->starved = l->starved || lt_host_is_full(l);
  lt_host_recover(l); /* within the budget: finalizers run */
  lt_host_answer(l);
  return false;
}

/* Strings among the results live in a table until the next call takes its place. */
static void hold_string(lua_State *L, ltrain *l, int index) {
  if (lua_type(L, index) != LUA_TSTRING) return;
  lua_rawgeti(L, LUA_REGISTRYINDEX, l->hold_ref);
  lua_pushvalue(L, index);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 1);
}

static void take_results(lua_State *L, request *r, int first) {
  lua_newtable(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, r->l->hold_ref);
  for (int k = 0; r->format[k] != 0; k++) {
    lt_take_result(L, r->l->b, first + k, r->format[k], &r->values, r->name);
    hold_string(L, r->l, first + k);
  }
}

/* A call that had to end fails, also when the script has caught what it raised. */
static int run_request(lua_State *L) {
  request *r = lua_touserdata(L, 1);
  lt_host_check(L);
  int n = r->run(L);
  lt_host_check(L);
  if (n > 0) take_results(L, r, lua_gettop(L) - n + 1);
  return 0;
}

static bool run_protected(ltrain *l, request *r) {
  lua_State *L = l->L;
  if (!lua_checkstack(L, 8)) {
    keep_message(l, no_memory);
    return false;
  }
  lua_pushcfunction(L, run_request);
  lua_pushlightuserdata(L, r);
  return lua_pcall(L, 1, 0, 0) == LUA_OK || fail(l, L);
}

/* Run run(request) protected. */
static bool protect(ltrain *l, lua_CFunction run, request *r) {
  r->run = run;
  void *locale = enter(l);
  bool ok = run_protected(l, r);
  lt_locale_leave(locale);
  return ok;
}

/* Whether a state and what its call cannot do without are there. */
static bool given(ltrain *l, const char *who, const char *what, const void *one) {
  if (l == NULL) return false;
  l->message[0] = 0;
  if (one == NULL) snprintf(l->message, sizeof l->message, "%s: %s is NULL", who, what);
  return one != NULL;
}

/* Without a state, why there is none: the machine, or else memory. */
const char *ltrain_errmsg(const ltrain *l) {
  if (l != NULL) return l->message;
  const char *refusal = lt_registry_here()->refusal;
  return refusal[0] != 0 ? refusal : no_memory;
}

static int run_file(lua_State *L) {
  const request *r = lua_touserdata(L, 1);
  if (luaL_loadfilex(L, r->name, "t") != LUA_OK) lua_error(L);
  lua_call(L, 0, 0);
  return 0;
}

bool ltrain_dofile(ltrain *l, const char *path) {
  if (!given(l, "dofile", "the path", path)) return false; /* luaL_loadfile would read stdin */
  request r = {.l = l, .name = path};
  return protect(l, run_file, &r);
}

static int run_string(lua_State *L) {
  const request *r = lua_touserdata(L, 1);
  lua_pushfstring(L, "=%s", r->name == NULL ? "host" : r->name);
  if (luaL_loadbufferx(L, r->format, strlen(r->format), lua_tostring(L, -1), "t") != LUA_OK)
    lua_error(L);
  lua_call(L, 0, 0);
  return 0;
}

bool ltrain_dostring(ltrain *l, const char *code, const char *name) {
  if (!given(l, "dostring", "the code", code)) return false;
  request r = {.l = l, .name = name, .format = code};
  return protect(l, run_string, &r);
}

static void check_callable(lua_State *L, int index, const char *name) {
  if (lua_type(L, index) == LUA_TFUNCTION) return;
  if (luaL_getmetafield(L, index, "__call") == LUA_TNIL)
    luaL_error(L, "%s: a function wanted, got %s", name, luaL_typename(L, index));
  lua_pop(L, 1);
}

/* Push the named function and the arguments; returns how many arguments. `format` moves to the
   letters of the results. */
static int push_call(lua_State *L, request *r) {
  int n = lt_push_named(L, r->name) - 1;
  check_callable(L, -1 - n, r->name);
  for (; *r->format != 0 && *r->format != '>'; r->format++, n++)
    lt_push_argument(L, r->l->b, *r->format, &r->values);
  if (*r->format == '>') r->format++;
  return n;
}

static int call_named(lua_State *L) {
  request *r = lua_touserdata(L, 1);
  int n = push_call(L, r), results = (int)strlen(r->format);
  luaL_checkstack(L, results, "too many results");
  lua_call(L, n, results);
  return results;
}

static bool named(ltrain *l, const char *who, const char *name, const char *format) {
  return given(l, who, "the name", name) && given(l, who, "the format", format);
}

bool ltrain_call(ltrain *l, const char *name, const char *format, ...) {
  if (!named(l, "call", name, format)) return false;
  request r = {.l = l, .name = name, .format = format};
  va_start(r.values.list, format);
  bool ok = protect(l, call_named, &r);
  va_end(r.values.list);
  return ok;
}

static int get_named(lua_State *L) {
  request *r = lua_touserdata(L, 1);
  lt_push_named(L, r->name);
  return 1;
}

/* Whether name and format are those of one value. */
static bool names_value(ltrain *l, const char *who, const char *name, const char *format) {
  if (!named(l, who, name, format)) return false;
  if (strlen(format) == 1 && strchr(name, ':') == NULL) return true;
  snprintf(l->message, sizeof l->message,
           "%s: one letter and a name without ':' are wanted: \"%.80s\", \"%.80s\"", who, format,
           name);
  return false;
}

bool ltrain_get(ltrain *l, const char *name, const char *format, ...) {
  if (!names_value(l, "get", name, format)) return false;
  request r = {.l = l, .name = name, .format = format};
  va_start(r.values.list, format);
  bool ok = protect(l, get_named, &r);
  va_end(r.values.list);
  return ok;
}

static int set_named(lua_State *L) {
  request *r = lua_touserdata(L, 1);
  lt_push_argument(L, r->l->b, r->format[0], &r->values);
  lt_store_named(L, r->name);
  return 0;
}

bool ltrain_set(ltrain *l, const char *name, const char *format, ...) {
  if (!names_value(l, "set", name, format)) return false;
  request r = {.l = l, .name = name, .format = format};
  va_start(r.values.list, format);
  bool ok = protect(l, set_named, &r);
  va_end(r.values.list);
  return ok;
}

/* Stepping. The call runs in a Lua thread of its own, in which the Trainer's loops yield. What an
   error ends there closes its variables within a call, while hooks are on. */

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
  request *r = lua_touserdata(L, 1);
  int n = push_call(L, r);
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
  if (!named(l, "start", name, format)) return false;
  if (strchr(format, '>') != NULL) {
    keep_message(l, "start: a call that is stepped gives no results: its format has no '>'");
    return false;
  }
  if (l->stepped != NULL) {
    keep_message(l, "start: the last call that was started has not ended");
    return false;
  }
  request r = {.l = l, .name = name, .format = format};
  va_start(r.values.list, format);
  bool ok = protect(l, start_named, &r);
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
static ltrain_state tell_pause(ltrain *l, lua_State *thread, int n_results, const char **where) {
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
  if (status == LUA_YIELD && !lt_host_ended(l)) return tell_pause(l, thread, n_results, where);
  l->stepped = NULL;
  if (status != LUA_OK) {
    if (lua_resetthread(thread) == LUA_OK) lua_pushnil(thread); /* it yielded what it had caught */
    lua_xmove(thread, l->L, 1);
    fail(l, l->L);
  }
  lua_pushcfunction(l->L, end_steps);
  lua_pushlightuserdata(l->L, l);
  if (lua_pcall(l->L, 1, 0, 0) != LUA_OK) lua_pop(l->L, 1);
  return status == LUA_OK ? LTRAIN_FINISHED : LTRAIN_FAILED;
}

ltrain_state ltrain_step(ltrain *l, const char **where) {
  if (l == NULL) return LTRAIN_FAILED;
  if (l->stepped == NULL || l->stepping) {
    keep_message(l, l->stepping ? "step: called from within a step" : "step: nothing was started");
    return LTRAIN_FAILED;
  }
  void *locale = enter(l);
  l->stepping = true;
  ltrain_state state = step(l, l->stepped, where);
  l->stepping = false;
  lt_locale_leave(locale);
  return state;
}

/* Tensors. */

static bool take_failure(ltrain *l) {
  lt_failure failure;
  if (!lt_take_failure(l->b->c, &failure)) return false;
  keep_message(l, failure.text);
  return true;
}

/* Whether the memory at `data` can be a tensor; a failure of the ctx says why not. */
static bool may_wrap(ltrain *l, const void *data, lt_dtype dtype, int ndim, const int64_t *shape) {
  lt_ctx *c = l->b->c;
  int number = (int)dtype; /* whatever a host has put there */
  if (number < 0 || number >= LT_DTYPE_COUNT)
    return lt_fail(c, LT_EDTYPE, "wrap: there is no dtype %d", number);
  if (ndim < 0 || ndim > LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "wrap: dims must be 0 to %d, got %d", LT_MAX_DIMS, ndim);
  if (shape == NULL && ndim > 0)
    return lt_fail(c, LT_ESHAPE, "wrap: the shape of %d dims is NULL", ndim);
  if (!lt_shape_check(c, ndim, shape)) {
    lt_take_failure(c, NULL);
    return lt_fail(c, LT_ESHAPE, "wrap: impossible shape %s",
                   LT_SHAPE_STR(lt_shape_of(ndim, shape)));
  }
  if (data == NULL) return lt_fail(c, LT_EARG, "wrap: the memory is NULL");
  size_t item = lt_dtype_size(dtype);
  return (uintptr_t)data % item == 0 ||
         lt_fail(c, LT_EARG, "wrap: memory of %s must be aligned to %zu bytes, got %p",
                 lt_dtype_name(dtype), item, data);
}

lt_tensor *ltrain_wrap(ltrain *l, void *data, lt_dtype dtype, int ndim, const int64_t *shape,
                       void (*drop)(void *ud), void *ud) {
  if (l == NULL) return NULL;
  lt_ctx *c = l->b->c;
  l->message[0] = 0;
  if (!may_wrap(l, data, dtype, ndim, shape)) {
    take_failure(l);
    return NULL;
  }
  int64_t count = lt_shape_numel(lt_shape_of(ndim, shape));
  lt_frame frame = lt_frame_open(c);
  lt_storage *s = lt_storage_wrap(c, LT_CPU_DEVICE, data,
                                  (size_t)count * lt_dtype_size(dtype), NULL, NULL);
  lt_tensor *t = s == NULL ? NULL : lt_tensor_make(c, s, dtype, ndim, shape, NULL, 0);
  if (t != NULL) lt_storage_on_drop(s, drop, ud);
  if (s != NULL) lt_storage_release(c, s);
  lt_retain(t);
  lt_frame_close(c, frame, 0, NULL);
  return take_failure(l) ? NULL : t;
}

void *ltrain_data(ltrain *l, lt_tensor *t, int write) {
  if (!given(l, "data", "the tensor", t)) return NULL;
  void *data = lt_tensor_ptr(l->b->c, t, write ? LT_READ | LT_WRITE : LT_READ);
  return take_failure(l) ? NULL : data;
}

void ltrain_release(ltrain *l, lt_tensor *t) {
  if (l != NULL && t != NULL) lt_release(l->b->c, t);
}

void ltrain_cancel(ltrain *l) {
  if (l != NULL) lt_cancel(l->b->c, true);
}

lt_ctx *ltrain_context(ltrain *l) { return l == NULL ? NULL : l->b->c; }

struct lua_State *ltrain_lua(ltrain *l) {
  return l == NULL ? NULL : l->L;
}
