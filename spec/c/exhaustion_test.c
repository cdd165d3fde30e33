/* spec/c/exhaustion_test.c: a fit in which the n-th allocation fails, Lua's and ours separately.

   Each run must end in an error or in a finished fit, never in a crash; the same state continues,
   and when it is closed nothing is left. The everyday run takes a sample of n; LT_EXHAUSTIVE=1
   every n of the first step and each 50th after it. Each n fails once, and from then on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lualib.h>

#include "host/install.h"

/* An allocator that fails. Helper threads use it too. */
typedef struct failing {
  atomic_long until;  /* allocations left; negative: never fails */
  atomic_long passed; /* allocations since armed */
  atomic_long live;
  bool for_ever;
  bool is_lua;        /* Lua passes a type tag as the old size of fresh blocks */
} failing;

static bool fails(failing *f) {
  atomic_fetch_add(&f->passed, 1);
  long left = atomic_load(&f->until);
  if (left < 0) return false;
  if (left > 0) {
    atomic_fetch_sub(&f->until, 1);
    return false;
  }
  if (!f->for_ever) atomic_store(&f->until, -1);
  return true;
}

static void *allocate(void *ud, void *ptr, size_t old_size, size_t new_size) {
  failing *f = ud;
  if (ptr == NULL) old_size = 0;
  if (new_size == 0) {
    atomic_fetch_sub(&f->live, (long)old_size);
    free(ptr);
    return NULL;
  }
  if (new_size > old_size && fails(f)) return NULL; /* Lua relies on shrinking */
  void *block = realloc(ptr, new_size);
  if (block != NULL) atomic_fetch_add(&f->live, (long)new_size - (long)old_size);
  return block;
}

static void arm(failing *f, long n, bool for_ever) {
  f->for_ever = for_ever;
  atomic_store(&f->passed, 0);
  atomic_store(&f->until, n);
}

static const char script[] =
    "local lt = require 'ltrain'\n"
    "lt.seed(1)\n"
    "local Net = lt.Module:extend('Net')\n"
    "function Net:init()\n"
    "  self.layers = lt.nn.Sequential(lt.nn.Linear(4, 8), lt.nn.ReLU(), lt.nn.Linear(8, 2))\n"
    "end\n"
    "function Net:training_step(batch)\n"
    "  local loss = lt.cross_entropy(self.layers(batch[1]), batch[2])\n"
    "  self:log('loss', loss)\n"
    "  return loss\n"
    "end\n"
    "function Net:configure_optimizers()\n"
    "  return lt.optim.Adam(self:parameters(), {lr = 0.01})\n"
    "end\n"
    "local set = lt.data.TensorDataset(lt.rand(16, 4), lt.zeros(16, {dtype = 'i64'}))\n"
    "function fit(steps)\n"
    "  local loader = lt.data.DataLoader(set, {batch_size = 4, shuffle = true})\n"
    "  local trainer = lt.Trainer{max_steps = steps, logger = false, enable_checkpointing = "
    "false,\n"
    "    enable_progress_bar = false, enable_model_summary = false}\n"
    "  trainer:fit(Net(), loader)\n"
    "  return trainer.global_step\n"
    "end\n";

typedef struct world {
  failing lua, ours;
  lua_State *L;
  lt_allocator allocator;
} world;

static void open_bare(world *w) {
  memset(w, 0, sizeof *w);
  atomic_store(&w->lua.until, -1);
  atomic_store(&w->ours.until, -1);
  w->allocator = (lt_allocator){allocate, &w->ours};
  w->L = lua_newstate(allocate, &w->lua);
  luaL_openlibs(w->L);
  const lt_bind_options options = {.owned = true, .allocator = &w->allocator};
  lt_host_install(w->L, &options);
  lua_settop(w->L, 0);
}

static void open_world(world *w) {
  open_bare(w);
  assert_int_equal(luaL_dostring(w->L, script), LUA_OK);
}

static int fit(world *w, int steps) {
  lua_settop(w->L, 0);
  if (!lua_checkstack(w->L, 10)) return LUA_ERRMEM;
  if (lua_getglobal(w->L, "fit") != LUA_TFUNCTION) return LUA_ERRRUN;
  lua_pushinteger(w->L, steps);
  return lua_pcall(w->L, 1, 1, 0);
}

static void must_fit(world *w, const char *when) {
  if (fit(w, 2) != LUA_OK) fail_msg("%s: %s", when, luaL_tolstring(w->L, -1, NULL));
}

static long allocations_of(world *w, failing *f, int steps) {
  arm(f, -1, false);
  assert_int_equal(fit(w, steps), LUA_OK);
  return atomic_load(&f->passed);
}

static void try_each(world *w, failing *f, const char *whose) {
  bool exhaustive = getenv("LT_EXHAUSTIVE") != NULL;
  must_fit(w, "before");
  long first = allocations_of(w, f, 1), all = allocations_of(w, f, 3);
  long errors = 0, runs = 0;
  long stride = exhaustive ? 1 : 1 + first / 40;
  for (long n = 0; n < all + 20; n += n < first ? stride : exhaustive ? 50 : 50 * stride) {
    for (int for_ever = 0; for_ever < 2; for_ever++) {
      arm(f, n, for_ever != 0);
      int status = fit(w, 3);
      arm(f, -1, false);
      runs++;
      if (status != LUA_OK) errors++;
      if (status != LUA_OK && lua_gettop(w->L) > 0)
        assert_int_not_equal(lua_type(w->L, -1), LUA_TNIL);
    }
    if (runs % 50 == 0) must_fit(w, whose);
  }
  must_fit(w, whose);
  assert_true(errors > 0);
  print_message("# %s: %ld allocations in the first step, %ld in three; %ld runs, %ld errors\n",
                whose, first, all, runs, errors);
}

static void close_world(world *w) {
  lua_close(w->L);
  assert_int_equal(atomic_load(&w->lua.live), 0);
  assert_int_equal(atomic_load(&w->ours.live), 0);
}

static void a_fit_survives_each_failing_allocation_of_lua(void **state) {
  (void)state;
  world w;
  open_world(&w);
  try_each(&w, &w.lua, "Lua's");
  close_world(&w);
}

static void a_fit_survives_each_failing_allocation_of_ours(void **state) {
  (void)state;
  world w;
  open_world(&w);
  try_each(&w, &w.ours, "ours");
  close_world(&w);
}

/* A warm context allocates little: here each run has a fresh one. */
static void a_first_fit_survives_each_failing_allocation_of_ours(void **state) {
  (void)state;
  world w;
  open_world(&w);
  arm(&w.ours, -1, false);
  must_fit(&w, "before");
  long all = atomic_load(&w.ours.passed), runs = 0, errors = 0;
  close_world(&w);
  long stride = getenv("LT_EXHAUSTIVE") != NULL ? 1 : 1 + all / 8;
  for (long n = 0; n < all; n += stride, runs++) {
    open_world(&w);
    arm(&w.ours, n, runs % 2 != 0);
    errors += fit(&w, 2) != LUA_OK;
    arm(&w.ours, -1, false);
    must_fit(&w, "after a failed first fit");
    close_world(&w);
  }
  assert_true(errors > 0);
  print_message("# a first fit: %ld allocations; %ld runs, %ld errors\n", all, runs, errors);
}

/* Runs a chunk with the n-th allocation of ours failing once. */
static int run_failing(world *w, const char *code, long n) {
  lua_settop(w->L, 0);
  assert_int_equal(luaL_loadstring(w->L, code), LUA_OK);
  arm(&w->ours, n, false);
  int status = lua_pcall(w->L, 0, 0, 0);
  assert_true(atomic_load(&w->ours.passed) > n);
  arm(&w->ours, -1, false);
  return status;
}

/* The table of lines has no room yet: the first line takes an allocation. */
static void a_line_that_cannot_be_kept_fails_nothing(void **state) {
  static const char mark[] = "require 'ltrain.c'.runtime.mark_line()";
  (void)state;
  world w;
  open_bare(&w);
  assert_int_equal(run_failing(&w, mark, 0), LUA_OK);
  assert_true(lt_ok(lt_bind_get(w.L)->c));
  lua_settop(w.L, 0);
  assert_int_equal(luaL_dostring(w.L, "require 'ltrain'.ones(2)"), LUA_OK);
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_fit_survives_each_failing_allocation_of_lua),
      cmocka_unit_test(a_fit_survives_each_failing_allocation_of_ours),
      cmocka_unit_test(a_line_that_cannot_be_kept_fails_nothing),
      cmocka_unit_test(a_first_fit_survives_each_failing_allocation_of_ours),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
