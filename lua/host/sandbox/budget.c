/* lua/host/sandbox/budget.c: counts the instructions of a call from the host, and ends it at the
   limit.

   Instructions are counted by a hook, memory as it is asked for, patterns and long loops in C by
   what they charge. When the call must end the hook comes at every instruction. Code of the library
   may take its run down, within a grace; nothing else runs. The hook is there without a limit too:
   another thread can set a flag, but not a hook, while Lua runs.

   In a step that has a deadline the clock is read when functions return and every HOOK_COUNT
   instructions; the first instruction after the deadline yields. */
#include "host/sandbox/budget.h"

#include <stdio.h>

#include <lauxlib.h>

#include "bind/core/current_line.h"
#include "bind/core/threads.h"
#include "bind/system/process.h"

/* Instructions between two hooks: as a rule, after the deadline, in a call that must end. */
enum { HOOK_COUNT = 1000, HOOK_SOON = 2, HOOK_ENDED = 1 };
/* What work in C costs in instructions: 256 bytes of allocation or 64 elements of an operation
   count as one. LARGE: an allocation that costs less is granted even if it exceeds the budget, so
   that a call at its end can still build its error message; GRACE: instructions that the library's
   own code has for taking a run down. */
enum { BYTES_AN_INSTRUCTION = 256, ELEMENTS_AN_INSTRUCTION = 64, LARGE = 4096, GRACE = 100000 };

static bool is_spent(const ltrain *l) {
  return l->limit > 0 && atomic_load_explicit(&l->instructions, memory_order_relaxed) > l->limit;
}

bool lt_host_ended(const ltrain *l) {
  return is_spent(l) || (l->b != NULL && l->b->c != NULL && atomic_load(l->b->c->cancel));
}

/* Keep why the call ends: what came first, and where; NULL: at the script's innermost line.
   Cancelling the ctx makes operations fail too, which check that flag and not this budget. */
static void keep_why(lua_State *L, ltrain *l, const char *where) {
  if (l->why[0] != 0) return;
  if (is_spent(l)) {
    luaL_checkstack(L, 4, "ltrain");
    int top = lua_gettop(L);
    if (where == NULL) lt_push_where(L);
    snprintf(l->why, sizeof l->why, "%sthe script ran more than %lld instructions",
             where == NULL ? lua_tostring(L, -1) : where, (long long)l->limit);
    lua_settop(L, top);
  } else {
    snprintf(l->why, sizeof l->why, "cancelled");
  }
  if (l->b != NULL && l->b->c != NULL) lt_cancel(l->b->c, true); /* operations too */
}

static int raise_why(lua_State *L, const ltrain *l) {
  luaL_checkstack(L, 1, "ltrain");
  lua_pushstring(L, l->why);
  return lua_error(L);
}

static bool is_due(const ltrain *l) { return l->deadline > 0 && lt_seconds_now() >= l->deadline; }

/* Yield to the host, if every function below can; else note where that was not so. */
static void pause_here(lua_State *L, ltrain *l, lua_Debug *ar) {
  if (l->b->pausable && lua_isyieldable(L)) {
    l->b->pausing = true;
    lua_yield(L, 0);
  } else if (l->unpausable[0] == 0) {
    lua_getinfo(L, "Sl", ar);
    snprintf(l->unpausable, sizeof l->unpausable, "%s:%d", ar->short_src, ar->currentline);
  }
}

/* The counter is relaxed: it is read by other threads as an estimate, and this thread sees its own
   adds in order. */
static void watch(lua_State *L, lua_Debug *ar) {
  ltrain *l = lt_host_of(L);
  if (ar->event == LUA_HOOKRET) {
    if (is_due(l)) lua_sethook(L, watch, LUA_MASKCOUNT | LUA_MASKRET, HOOK_SOON);
    return;
  }
  int count = lua_gethookcount(L);
  atomic_fetch_add_explicit(&l->instructions, count, memory_order_relaxed);
  if (!lt_host_ended(l)) {
    if (count != HOOK_COUNT) lt_host_guard.enter(L); /* from a call that had to end */
    if (is_due(l)) pause_here(L, l, ar);
    return;
  }
  lua_getinfo(L, "Sl", ar);
  bool ours = lt_source_is_ours(ar->source);
  char where[LUA_IDSIZE + 16];
  snprintf(where, sizeof where, "%s:%d: ", ar->short_src, ar->currentline);
  keep_why(L, l, ours ? NULL : where);
  if (count != HOOK_ENDED) lua_sethook(L, watch, LUA_MASKCOUNT, HOOK_ENDED);
  if (!ours || ++l->overrun > GRACE) raise_why(L, l);
}

/* A thread is about to run, or resumes, or an operation was refused in it. Each coroutine has its
   own hook in Lua, so that every one is armed as it starts; it is charged a full interval at once,
   as many short coroutines would otherwise never come to their first hook. */
static void enter(lua_State *thread) {
  ltrain *l = lt_host_of(thread);
  lua_Debug ar;
  bool ended = lt_host_ended(l);
  int count = ended ? HOOK_ENDED : HOOK_COUNT;
  int mask = !ended && l->deadline > 0 ? LUA_MASKCOUNT | LUA_MASKRET : LUA_MASKCOUNT;
  bool starts = lua_status(thread) == LUA_OK && lua_gettop(thread) > 0 &&
                lua_getstack(thread, 0, &ar) == 0;
  if (starts) /* what it runs before its first hook */
    atomic_fetch_add_explicit(&l->instructions, HOOK_COUNT, memory_order_relaxed);
  lua_Hook hook = lua_gethook(thread);
  bool same = hook == watch && mask == lua_gethookmask(thread) && count == lua_gethookcount(thread);
  bool another = hook != NULL && hook != watch; /* a script's own, which it may have */
  if (!same && (!another || ended || l->limit > 0)) lua_sethook(thread, watch, mask, count);
}

bool lt_host_is_lost(lua_State *thread) {
  return lua_status(thread) > LUA_YIELD && lua_gethook(thread) == watch &&
         lua_gethookcount(thread) == HOOK_ENDED;
}

static bool wants_control(lua_State *thread) { return is_due(lt_host_of(thread)); }

const lt_bind_guard lt_host_guard = {
    .enter = enter, .is_lost = lt_host_is_lost, .is_due = wants_control};

void lt_host_arm(ltrain *l) {
  atomic_store(&l->instructions, 0);
  l->limit = l->config.max_instructions;
  l->overrun = 0;
  l->calls++;
  l->inherited = l->limit;
  l->deadline = 0;
  if (l->b == NULL) return;
  l->b->pausable = l->b->pausing = false;
  l->b->resumed = NULL;
  lt_bind_enter_thread(l->b, l->L);
}

void lt_host_set_deadline(ltrain *l, double seconds) {
  l->deadline = lt_seconds_now() + (seconds > 0 ? seconds : 0);
  l->unpausable[0] = 0;
  l->b->pausable = true;
}

bool lt_host_is_due(const ltrain *l) { return is_due(l); }

void lt_host_check(lua_State *L) {
  ltrain *l = lt_host_of(L);
  if (!lt_host_ended(l)) return;
  keep_why(L, l, NULL);
  enter(L);
  raise_why(L, l);
}

/* Saturating: `n` may come near INT64_MAX from a script's argument. */
void lt_host_spend(lua_State *L, int64_t n) {
  ltrain *l = lt_host_of(L);
  int64_t left = l->limit - atomic_load_explicit(&l->instructions, memory_order_relaxed);
  if (n > left) n = left + 1; /* no overflow */
  if (l->limit > 0 && n > 0)
    atomic_fetch_add_explicit(&l->instructions, n, memory_order_relaxed);
  lt_host_check(L);
}

/* Called by the allocator, also from other threads: it only counts; the thread of the state raises
   later. */
bool lt_host_afford(ltrain *l, size_t bytes) {
  int64_t cost = (int64_t)(bytes / BYTES_AN_INSTRUCTION);
  if (l->limit <= 0 || cost == 0) return true;
  int64_t before = atomic_fetch_add_explicit(&l->instructions, cost, memory_order_relaxed);
  return cost < LARGE || before + cost <= l->limit;
}

bool lt_host_afford_elements(void *ud, int64_t elements) {
  ltrain *l = ud;
  int64_t cost = elements / ELEMENTS_AN_INSTRUCTION;
  if (l->limit <= 0) return true;
  if (cost > l->limit - atomic_load_explicit(&l->instructions, memory_order_relaxed)) return false;
  atomic_fetch_add_explicit(&l->instructions, cost, memory_order_relaxed);
  return true;
}

/* For code that must run although the call may be at its end: the hint of an error's text
   (protected_calls.c), finalizers of what an earlier call left (bounded_functions.c). It gets a
   budget of its own; the call's comes back afterwards. */
lt_host_budget lt_host_budget_begin(ltrain *l, int64_t instructions) {
  lt_host_budget before = {l->limit, l->instructions};
  l->limit = instructions;
  l->instructions = 0;
  return before;
}

void lt_host_budget_end(ltrain *l, lt_host_budget before) {
  if (is_spent(l) && l->why[0] != 0) { /* keep_why has cancelled, and hooks come at each line */
    l->why[0] = 0;
    if (!atomic_load(&l->cancelled)) lt_cancel(l->b->c, false);
  }
  l->limit = before.limit;
  l->instructions = before.instructions;
  l->overrun = 0;
  lt_bind_enter_thread(l->b, lt_bind_running(l->b));
}

const char *lt_host_answer(ltrain *l) {
  if (!lt_host_ended(l)) return NULL;
  keep_why(l->L, l, "");
  snprintf(l->message, sizeof l->message, "%s", l->why);
  l->why[0] = 0;
  l->limit = 0;
  atomic_store(&l->cancelled, false);
  lt_cancel(l->b->c, false);
  return l->message;
}
