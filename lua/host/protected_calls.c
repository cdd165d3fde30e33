/* lua/host/protected_calls.c: runs an entry point of ltrain.h under lua_pcall, and stores its error
   message. */
#include "host/protected_calls.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/locale.h"
#include "bind/core/raise.h"
#include "host/sandbox/budget.h"

static const char no_memory[] = "not enough memory";

void lt_host_keep_message(ltrain *l, const char *text) {
  if (text == NULL) text = "an error without a message";
  size_t n = strnlen(text, sizeof l->message - 1);
  memmove(l->message, text, n); /* a host may give what ltrain_errmsg returned */
  l->message[n] = 0;
}

/* A thread's stack does not grow: scripts recurse in C (the parser, pcall, sort), and an overflow
   is a SIGSEGV in the host's process, which no pcall catches. */
bool lt_host_stack_fits(char *text, size_t size) {
  pthread_attr_t attr;
  size_t stack = 0;
  if (syscall(SYS_gettid) == getpid()) return true; /* the main thread's grows */
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return true;
  bool known = pthread_attr_getstacksize(&attr, &stack) == 0;
  pthread_attr_destroy(&attr);
  if (!known || stack >= LT_HOST_LEAST_STACK) return true;
  snprintf(text, size, "the stack of this thread is too small: %zu KiB, scripts need %d KiB",
           stack >> 10, LT_HOST_LEAST_STACK >> 10);
  return false;
}

bool lt_host_fits(ltrain *l) {
  return pthread_equal(l->thread, pthread_self()) != 0 ||
         lt_host_stack_fits(l->message, sizeof l->message);
}

void lt_host_push_part(lua_State *L, const char *name) {
  lt_push_require(L);
  lua_pushstring(L, name);
  lua_call(L, 1, 1);
}

void lt_host_set_stepped(lua_State *L, bool on) {
  lt_host_push_part(L, "ltrain.trainer.Trainer");
  if (on)
    lua_pushboolean(L, true);
  else
    lua_pushnil(L);
  lua_setfield(L, -2, "stepped");
  lua_pop(L, 1);
}

static int end_steps(lua_State *L) {
  const ltrain *l = lua_touserdata(L, 1);
  lt_host_set_stepped(L, false);
  lua_pushboolean(L, false);
  lua_rawseti(L, LUA_REGISTRYINDEX, l->thread_ref);
  return 0;
}

void lt_host_end_steps(ltrain *l) {
  if (l->stepped != NULL || !l->loops_yield || !lua_checkstack(l->L, 2)) return;
  lua_pushcfunction(l->L, end_steps);
  lua_pushlightuserdata(l->L, l);
  if (lua_pcall(l->L, 1, 0, 0) == LUA_OK)
    l->loops_yield = false;
  else
    lua_pop(l->L, 1);
}

void *lt_host_enter(ltrain *l) {
  l->message[0] = 0;
  l->thread = pthread_self();
  if (l->depth++ == 0) { /* what is called within a call belongs to its budget */
    lt_host_arm(l);
    lt_exports_release(l);
    lt_host_recover(l);
    lt_host_end_steps(l);
  }
  return lt_locale_enter();
}

void lt_host_leave(ltrain *l, void *locale) {
  l->depth--;
  lt_locale_leave(locale);
}

static int text_of_error(lua_State *L) {
  lt_push_error_text(L, 1);
  return 1;
}

enum { REMEDY_INSTRUCTIONS = 2000000 };

/* The text of the script that a message is about; NULL: of a file, which may be read. */
static const char *script_of(const ltrain *l, const char *message, const lt_request *r) {
  size_t length = r != NULL && r->code != NULL ? strlen(r->name) : 0;
  if (length > 0 && strncmp(message, r->name, length) == 0 && message[length] == ':')
    return r->code;
  return l->b->c->policy.read_files || strncmp(message, "memory:", 7) == 0 ? NULL : "";
}

/* (request) after the text: with what to do about it. Nothing needs it: errors leave the text. */
static int add_remedy(lua_State *L) {
  const lt_request *r = lua_touserdata(L, 2);
  lua_settop(L, 1);
  lt_add_remedy(L, script_of(lt_host_of(L), lua_tostring(L, 1), r));
  return 1;
}

/* Under a budget of its own: it runs Lua over the text of a script, which may be long. */
static void keep_remedy(ltrain *l, lua_State *L, const lt_request *r) {
  if (!lua_checkstack(L, 4)) return;
  lt_host_budget before = lt_host_budget_begin(l, REMEDY_INSTRUCTIONS);
  lua_pushcfunction(L, add_remedy);
  lua_pushvalue(L, -2);
  lua_pushlightuserdata(L, (void *)r);
  if (lua_pcall(L, 2, 1, 0) == LUA_OK) lt_host_keep_message(l, lua_tostring(L, -1));
  lua_pop(L, 1);
  lt_host_budget_end(l, before);
}

bool lt_host_fail(ltrain *l, lua_State *L, const lt_request *r) {
  lua_pushcfunction(L, text_of_error);
  lua_insert(L, -2);
  lua_pcall(L, 1, 1, 0);
  bool is_text = lua_type(L, -1) == LUA_TSTRING;
  lt_host_keep_message(l, is_text ? lua_tostring(L, -1) : NULL);
  l->starved = l->starved || lt_host_is_full(l);
  bool has_remedy = l->worker != NULL; /* who has run the script has added it */
  if (is_text && l->depth == 1 && !has_remedy && !l->starved && !lt_host_ended(l))
    keep_remedy(l, L, r);
  lua_pop(L, 1);
  if (l->depth > 1) return false; /* the outermost call answers */
  lt_host_recover(l);             /* within the budget: finalizers run */
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

/* All or, when an error is raised, none. Two passes: all results are checked before the first is
   stored, so that a wrong type leaves the host's variables as they were. */
static void give_results(lua_State *L, lt_request *r, int first) {
  lua_newtable(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, r->l->hold_ref);
  if (!lt_host_tensors_reserve(r->l, (int)strlen(r->format))) luaL_error(L, "%s", no_memory);
  for (int k = 0; r->format[k] != 0; k++) {
    lt_check_result(L, r->l->b, first + k, r->format[k], r->name);
    hold_string(L, r->l, first + k);
  }
  for (int k = 0; r->format[k] != 0; k++)
    lt_give_result(L, r->l->b, first + k, r->format[k], &r->values);
}

/* A call that had to end fails, also when the script has caught what it raised. */
static int run_request(lua_State *L) {
  lt_request *r = lua_touserdata(L, 1);
  lt_host_check(L);
  int n = r->run(L);
  lt_host_check(L);
  if (n > 0) give_results(L, r, lua_gettop(L) - n + 1);
  return 0;
}

static bool run_protected(ltrain *l, lua_State *L, lt_request *r) {
  if (!lua_checkstack(L, 8)) {
    lt_host_keep_message(l, no_memory);
    return false;
  }
  lua_pushcfunction(L, run_request);
  lua_pushlightuserdata(L, r);
  return lua_pcall(L, 1, 0, 0) == LUA_OK || lt_host_fail(l, L, r);
}

bool lt_request_run(ltrain *l, lua_CFunction run, lt_request *r) {
  lua_State *L = l->depth == 0 ? l->L : l->inside;
  if (L == NULL) {
    lt_host_keep_message(l, "the state is in a call: only its functions that were registered, "
                            "print and progress may call it");
    return false;
  }
  if (!lt_host_fits(l)) return false;
  r->run = run;
  void *locale = lt_host_enter(l);
  l->inside = NULL;
  bool ok = run_protected(l, L, r);
  if (l->depth > 1) l->inside = L;
  if (ok) l->message[0] = 0; /* what a callback was refused meanwhile */
  lt_host_leave(l, locale);
  return ok;
}

bool lt_host_check_pointer(ltrain *l, const char *who, const char *what, const void *one) {
  if (l == NULL) return false;
  l->message[0] = 0;
  if (one == NULL) snprintf(l->message, sizeof l->message, "%s: %s is NULL", who, what);
  return one != NULL;
}

bool lt_host_check_tensor(ltrain *l, const char *who, const lt_tensor *t) {
  if (!lt_host_check_pointer(l, who, "the tensor", t)) return false;
  const char *fault = lt_host_tensors_fault(l, t);
  if (fault != NULL) snprintf(l->message, sizeof l->message, "%s: the tensor is %s", who, fault);
  return fault == NULL;
}

/* Letters, '>', letters: before anything runs. */
static bool is_format(ltrain *l, const char *who, const char *format) {
  size_t n = strspn(format, "idbsT");
  if (format[n] == '>') n += 1 + strspn(format + n + 1, "idbsT");
  if (format[n] == 0) return true;
  snprintf(l->message, sizeof l->message,
           "%s: unknown letter '%c' in the format \"%.80s\": letters of arguments (i d b s T), "
           "'>', letters of results",
           who, format[n], format);
  return false;
}

bool lt_host_named(ltrain *l, const char *who, const char *name, const char *format) {
  if (!lt_host_check_pointer(l, who, "the name", name) ||
      !lt_host_check_pointer(l, who, "the format", format))
    return false;
  if (name[0] == 0) snprintf(l->message, sizeof l->message, "%s: the name is empty", who);
  return name[0] != 0 && is_format(l, who, format);
}

bool lt_host_take_failure(ltrain *l) {
  lt_failure failure;
  if (!lt_take_failure(l->b->c, &failure)) return false;
  lt_host_keep_message(l, failure.text);
  return true;
}

bool lt_host_expect_tensor(ltrain *l, const char *who) {
  return lt_host_tensors_reserve(l, 1) || lt_fail(l->b->c, LT_EMEMORY, "%s: out of memory", who);
}

lt_tensor *lt_host_give_tensor(ltrain *l, lt_tensor *t) {
  if (lt_host_take_failure(l)) return NULL;
  lt_host_tensors_add(l, t, LT_OWNED);
  return t;
}

static void check_callable(lua_State *L, int index, const char *name) {
  if (lua_type(L, index) == LUA_TFUNCTION) return;
  if (luaL_getmetafield(L, index, "__call") == LUA_TNIL)
    luaL_error(L, "%s: expected a function, got %s", name, luaL_typename(L, index));
  lua_pop(L, 1);
}

int lt_push_function(lua_State *L, const char *name) {
  int n = lt_push_named(L, name) - 1;
  check_callable(L, -1 - n, name);
  return n;
}

int lt_push_call(lua_State *L, lt_request *r) {
  int n = lt_push_function(L, r->name);
  for (; *r->format != 0 && *r->format != '>'; r->format++, n++)
    lt_push_argument(L, r->l->b, *r->format, &r->values);
  if (*r->format == '>') r->format++;
  return n;
}
