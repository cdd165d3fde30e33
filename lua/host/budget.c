/* lua/host/budget.c: counts what a call from the host runs, and ends it.

   Instructions are counted by a hook, memory as it is asked for, patterns and long loops in C by
   what they charge. When the call must end the hook comes at every instruction. Code of the library
   may take its run down, within a grace; nothing else runs. */
#include "host/budget.h"

#include <stdio.h>

#include <lauxlib.h>

enum { HOOK_COUNT = 1000, BYTES_AN_INSTRUCTION = 256, LARGE = 4096, GRACE = 100000 };

static bool is_spent(const ltrain *l) {
  return l->limit > 0 && atomic_load_explicit(&l->instructions, memory_order_relaxed) > l->limit;
}

bool lt_host_ended(const ltrain *l) {
  return is_spent(l) || (l->b != NULL && l->b->c != NULL && atomic_load(l->b->c->cancel));
}

/* Keep why the call ends: what came first, and where; NULL: at the script's innermost line. */
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

static void watch(lua_State *L, lua_Debug *ar) {
  ltrain *l = lt_host_of(L);
  int count = lua_gethookcount(L);
  atomic_fetch_add_explicit(&l->instructions, count, memory_order_relaxed);
  if (!lt_host_ended(l)) {
    if (count != HOOK_COUNT) lt_host_guard.enter(L); /* from a call that had to end */
    return;
  }
  lua_getinfo(L, "Sl", ar);
  bool ours = lt_source_is_ours(ar->source);
  char where[LUA_IDSIZE + 16];
  snprintf(where, sizeof where, "%s:%d: ", ar->short_src, ar->currentline);
  keep_why(L, l, ours ? NULL : where);
  if (count != 1) lua_sethook(L, watch, LUA_MASKCOUNT, 1);
  if (!ours || ++l->late > GRACE) raise_why(L, l);
}

/* A thread is about to run, or resumes, or an operation was refused in it. */
static void enter(lua_State *thread) {
  ltrain *l = lt_host_of(thread);
  lua_Debug ar;
  int count = lt_host_ended(l) ? 1 : l->limit > 0 ? HOOK_COUNT : 0;
  bool starts = lua_status(thread) == LUA_OK && lua_gettop(thread) > 0 &&
                lua_getstack(thread, 0, &ar) == 0;
  if (starts) /* what it runs before its first hook */
    atomic_fetch_add_explicit(&l->instructions, HOOK_COUNT, memory_order_relaxed);
  bool hooked = lua_gethook(thread) == watch;
  if (count == (hooked ? lua_gethookcount(thread) : 0)) return; /* and its count continues */
  if (count > 0)
    lua_sethook(thread, watch, LUA_MASKCOUNT, count);
  else if (hooked)
    lua_sethook(thread, NULL, 0, 0);
}

bool lt_host_is_lost(lua_State *thread) {
  return lua_status(thread) > LUA_YIELD && lua_gethook(thread) == watch &&
         lua_gethookcount(thread) == 1;
}

const lt_bind_guard lt_host_guard = {.enter = enter, .is_lost = lt_host_is_lost};

void lt_host_arm(ltrain *l) {
  atomic_store(&l->instructions, 0);
  l->limit = l->config.max_instructions;
  l->late = 0;
  enter(l->L);
}

void lt_host_check(lua_State *L) {
  ltrain *l = lt_host_of(L);
  if (!lt_host_ended(l)) return;
  keep_why(L, l, NULL);
  enter(L);
  raise_why(L, l);
}

void lt_host_spend(lua_State *L, int64_t n) {
  ltrain *l = lt_host_of(L);
  int64_t left = l->limit - atomic_load_explicit(&l->instructions, memory_order_relaxed);
  if (n > left) n = left + 1; /* no overflow */
  if (l->limit > 0 && n > 0)
    atomic_fetch_add_explicit(&l->instructions, n, memory_order_relaxed);
  lt_host_check(L);
}

bool lt_host_afford(ltrain *l, size_t bytes) {
  int64_t cost = (int64_t)(bytes / BYTES_AN_INSTRUCTION);
  if (l->limit <= 0 || cost == 0) return true;
  int64_t before = atomic_fetch_add_explicit(&l->instructions, cost, memory_order_relaxed);
  return cost < LARGE || before + cost <= l->limit;
}

const char *lt_host_answer(ltrain *l) {
  if (!lt_host_ended(l)) return NULL;
  keep_why(l->L, l, "");
  snprintf(l->message, sizeof l->message, "%s", l->why);
  l->why[0] = 0;
  l->limit = 0;
  lt_cancel(l->b->c, false);
  return l->message;
}
