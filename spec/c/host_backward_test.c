/* spec/c/host_backward_test.c: backward in slices of time: it pauses between any two nodes, gives
   what it computes at once, fails with the same words, and can be left where it is. No test depends
   on how long anything takes: a step for 0 seconds pauses at the first place where it can. */
#include <lua.h>

#include "host_counted.h"
#include "host_internals.h"

enum { LAYERS = 20 };

/* A deep net; `operations` counts those of the fit so far. */
static const char deep[] =
    "lt = require 'ltrain'\n"
    "local runtime = internals.runtime\n"
    "local Deep = lt.Module:extend('Deep')\n"
    "function Deep:init(n)\n"
    "  local layers = {}\n"
    "  for k = 1, n do layers[2 * k - 1], layers[2 * k] = lt.nn.Linear(4, 4), lt.nn.Tanh() end\n"
    "  self.net = lt.nn.Sequential(table.unpack(layers))\n"
    "end\n"
    "function Deep:training_step(b) return lt.mse_loss(self.net(b[1]), b[2]) end\n"
    "function Deep:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) "
    "end\n"
    "function fit(layers)\n"
    "  lt.seed(3)\n"
    "  profile = runtime.profile()\n"
    "  net = Deep(layers)\n"
    "  local x = lt.randn(8, 4)\n"
    "  local loader = lt.data.DataLoader(lt.data.TensorDataset(x, x:sin()), {batch_size = 4})\n"
    "  lt.Trainer{max_epochs = 2, logger = false, enable_checkpointing = false,\n"
    "    enable_progress_bar = false, enable_model_summary = false}:fit(net, loader)\n"
    "  profile:close()\n"
    "  done = lt.hash(net:state_dict())\n"
    "end\n"
    "function operations()\n"
    "  local n = 0\n"
    "  for _, op in ipairs(profile and profile:ops() or {}) do n = n + op[2] end\n"
    "  return n\n"
    "end\n";

static void keep_text(ltrain *l, const char *name, char *to, size_t size) {
  const char *text = NULL;
  must(l, ltrain_get(l, name, "s", &text));
  assert_non_null(text);
  snprintf(to, size, "%s", text);
}

static void no_step_takes_more_than_a_node(void **state) {
  (void)state;
  enum { OF_A_NODE = 6 }; /* two products, a sum, and what they are added to */
  char whole[100], sliced[100];
  ltrain *l = open_inside(NULL);
  must(l, ltrain_dostring(l, deep, "deep.lua"));
  must(l, ltrain_call(l, "fit", "i", (int64_t)LAYERS));
  keep_text(l, "done", whole, sizeof whole);
  must(l, ltrain_dostring(l, "profile = nil", "reset.lua"));
  must(l, ltrain_start(l, "fit", "i", (int64_t)LAYERS));
  int64_t before = 0, now = 0, most = 0, steps = 0;
  ltrain_state s;
  while ((s = ltrain_step_for(l, 0, NULL)) == LTRAIN_PAUSED) {
    must(l, ltrain_call(l, "operations", ">i", &now));
    if (now - before > most) most = now - before;
    steps += now > before;
    before = now;
  }
  if (s != LTRAIN_FINISHED) fail_msg("%s", ltrain_errmsg(l));
  if (most > OF_A_NODE) fail_msg("a step of %d operations", (int)most);
  assert_true(steps > 4 * 4 * LAYERS); /* 4 batches, forward and backward of each layer */
  keep_text(l, "done", sliced, sizeof sliced);
  assert_string_equal(sliced, whole);
  ltrain_close(l);
}

/* Runs go() at once, or in slices; the number of pauses. */
static int go(ltrain *l, bool sliced) {
  int paused = 0;
  if (!sliced) {
    ltrain_call(l, "go", "");
    return 0;
  }
  must(l, ltrain_start(l, "go", ""));
  while (ltrain_step_for(l, 0, NULL) == LTRAIN_PAUSED) paused++;
  return paused;
}

/* Each leaves tensors in `result`. */
static const char *const kinds[] = {
    "y:backward() result = {x.grad}",
    "pcall(function() y:backward() end) result = {x.grad}",
    "coroutine.wrap(function() y:backward() coroutine.yield(1) end)() result = {x.grad}",
    "coroutine.wrap(function() coroutine.wrap(function() pcall(y.backward, y) end)() end)()\n"
    "result = {x.grad}",
    "y:backward({retain_graph = true}) y:backward() result = {x.grad}",
    "result = lt.grad({y, deep(x, 3):sum()}, {a = x, b = w}) result = {result.a, result.b}",
    "result = {lt.grad(y, x)}",
    "local g = lt.grad(y, x, {create_graph = true}); (g * g):sum():backward() result = {x.grad}",
    "y:backward({create_graph = true}) local g = x.grad x.grad, w.grad = nil;\n"
    "(g * g):sum():backward() result = {x.grad, w.grad}",
    "local h = x * 2 h:register_hook(function(g) return g * 3 end) deep(h, 9):sum():backward()\n"
    "result = {x.grad}",
    "local h, inner = x * 2 h:register_hook(function()\n"
    "  local _ <close> = lt.enable_grad() local z = lt.ones(2):requires_grad_()\n"
    "  deep(z, 5):sum():backward() inner = z.grad end)\n"
    "deep(h, 9):sum():backward() result = {x.grad, inner}",
    "local square = lt.Function{forward = function(ctx, a) ctx:save(a) return a * a end,\n"
    "  backward = function(ctx, g) return 2 * ctx:saved_tensors() * g end}\n"
    "deep(square(deep(x, 4)), 4):sum():backward() result = {x.grad}",
    "local h = lt.nn.utils.checkpoint(function(a) return deep(a, 6) end, deep(x, 2))\n"
    "h:sum():backward() result = {x.grad, w.grad}",
    "local h = lt.nn.utils.checkpoint(function(a) return lt.dropout(deep(a, 6), 0.5) end,\n"
    "  deep(x, 2)) h:sum():backward() result = {x.grad, w.grad}",
    "local _ <close> = lt.no_grad() y:backward() assert(not lt.is_grad_enabled())\n"
    "result = {x.grad}",
    "do local _ <close> = lt.autocast 'bf16' y:backward() result = {x.grad}\n"
    "  assert((lt.ones(2, 2):matmul(lt.ones(2, 2))).dtype == 'bf16') end",
};

static const char common[] =
    "lt = require 'ltrain'\n"
    "function deep(a, n)\n"
    "  for k = 1, n do a = (a * w + k):tanh() end\n"
    "  return a\n"
    "end\n"
    "function start()\n"
    "  lt.seed(5)\n"
    "  x, w = lt.randn(2):requires_grad_(), lt.randn(2):requires_grad_()\n"
    "  y, result = deep(x, 12):sum(), nil\n"
    "end\n";

static void every_kind_of_backward_is_the_same_in_slices(void **state) {
  (void)state;
  ltrain *l = open_inside(NULL);
  must(l, ltrain_dostring(l, common, "common.lua"));
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    char code[1000], hash[2][100];
    snprintf(code, sizeof code, "function go() start() %s hash = lt.hash(result) end", kinds[k]);
    must(l, ltrain_dostring(l, code, "go.lua"));
    for (int sliced = 0; sliced < 2; sliced++) {
      int paused = go(l, sliced);
      if (ltrain_errmsg(l)[0] != 0) fail_msg("%s: %s", kinds[k], ltrain_errmsg(l));
      keep_text(l, "hash", hash[sliced], sizeof hash[sliced]);
      if (sliced && paused < 40) fail_msg("%d pauses in: %s", paused, kinds[k]);
    }
    if (strcmp(hash[0], hash[1]) != 0) fail_msg("another result of: %s", kinds[k]);
  }
  ltrain_close(l);
}

/* What fails in the middle of a walk. */
static const char *const failures[] = {
    "local h = deep(x, 5)\n local z = (h * h):sum()\n h:detach():add_(1)\n z:backward()",
    "y:backward()\n y:backward()",
    "local h = x * 2\n h:register_hook(function() error('in a hook') end)\n deep(h, 9):sum()\n"
    "  :backward()",
    "local h = x * 2\n h:register_hook(function() return lt.ones(3) end)\n"
    "deep(h, 9):sum():backward()",
    "x:register_hook(function() coroutine.yield() end)\n"
    "coroutine.wrap(function()\n y:backward() end)()",
    "x:register_hook(function() y:backward() end)\n y:backward({retain_graph = true})",
    "local odd = lt.Function{forward = function(_, a) return a * 2 end,\n"
    "  backward = function()\n return lt.ones(2) + lt.ones(3) end}\n"
    "deep(odd(deep(x, 4)), 4):sum():backward()",
    "local n = 0 local h = lt.nn.utils.checkpoint(function(a)\n n = n + 1\n"
    " if n > 1 then error('again') end return deep(a, 3) end, deep(x, 2))\n h:sum():backward()",
    "lt.grad(y,\n lt.ones(2):requires_grad_())",
    "deep(x, 3)\n:backward()",
    "local _ <close> = lt.detect_anomaly()\n local z = (x * 0):sqrt():sum()\n z:backward()",
};

static void what_fails_says_the_same_in_slices(void **state) {
  (void)state;
  ltrain *l = open_inside(NULL);
  must(l, ltrain_dostring(l, common, "common.lua"));
  for (size_t k = 0; k < sizeof failures / sizeof *failures; k++) {
    char code[1000], text[2][2000];
    for (int caught = 0; caught < 2; caught++) {
      snprintf(code, sizeof code,
               "function go() start() local ok, why = pcall(function()\n%s\nend)\n"
               "  assert(not ok) %s end",
               failures[k], caught ? "said = tostring(why)" : "error(why, 0)");
      must(l, ltrain_dostring(l, code, "go.lua"));
      for (int sliced = 0; sliced < 2; sliced++) {
        go(l, sliced);
        snprintf(text[sliced], sizeof text[sliced], "%s", ltrain_errmsg(l));
        if (caught) keep_text(l, "said", text[sliced], sizeof text[sliced]);
        if (strstr(text[sliced], "go.lua:") == NULL)
          fail_msg("no line in '%s' of: %s", text[sliced], failures[k]);
      }
      if (strcmp(text[0], text[1]) != 0)
        fail_msg("'%s' and in slices '%s' of: %s", text[0], text[1], failures[k]);
      must(l, ltrain_dostring(l, "start() y:backward() assert(x.grad)", "after.lua"));
    }
  }
  ltrain_close(l);
}

/* Between two nodes the host has the whole state, but for the graph that is walked. */
static void the_host_runs_a_backward_of_its_own_between(void **state) {
  (void)state;
  char alone[100], beside[100];
  ltrain *l = open_inside(NULL);
  must(l, ltrain_dostring(l, common, "common.lua"));
  must(l, ltrain_dostring(l,
                          "function go() start() y:backward() hash = lt.hash({x.grad}) end\n"
                          "function between()\n"
                          "  local z = lt.ones(2):requires_grad_()\n"
                          "  deep(z, 3):sum():backward()\n"
                          "  assert(z.grad and lt.is_grad_enabled())\n"
                          "end\n",
                          "go.lua"));
  go(l, false);
  keep_text(l, "hash", alone, sizeof alone);
  must(l, ltrain_start(l, "go", ""));
  int pauses = 0;
  for (; ltrain_step_for(l, 0, NULL) == LTRAIN_PAUSED; pauses++) {
    must(l, ltrain_call(l, "between", ""));
    lua_gc(ltrain_lua(l), LUA_GCCOLLECT);
  }
  keep_text(l, "hash", beside, sizeof beside);
  assert_string_equal(alone, beside);
  must(l, ltrain_start(l, "go", ""));
  for (int k = 0; k < pauses - 8; k++) /* backward is the last that it does */
    assert_int_equal(ltrain_step_for(l, 0, NULL), LTRAIN_PAUSED);
  must_say(l, ltrain_dostring(l, "y:backward()", "same.lua"),
           "same.lua:1: backward of tanh: its saved values were freed by an earlier backward");
  while (ltrain_step_for(l, 0, NULL) == LTRAIN_PAUSED) {
  }
  keep_text(l, "hash", beside, sizeof beside);
  assert_string_equal(alone, beside);
  ltrain_close(l);
}

/* Cancelled or closed at any of its pauses: nothing stays, and the state can be used. */
static void it_can_be_left_between_any_two_nodes(void **state) {
  (void)state;
  counted n = {0};
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.alloc = count_alloc;
  config.ud = &n;
  static const char code[] = "function go() start() if by then lt.grad(y, {x, w}) else\n"
                             "  coroutine.wrap(function() y:backward() end)() end end";
  for (int by = 0; by < 2; by++) {
    int pauses = 1000;
    for (int at = 0; at < pauses; at += 7) {
      ltrain *l = open_inside(&config);
      must(l, ltrain_dostring(l, common, "common.lua"));
      must(l, ltrain_dostring(l, code, "go.lua"));
      if (at == 0) pauses = go(l, true);
      must(l, ltrain_set(l, "by", "b", by));
      must(l, ltrain_start(l, "go", ""));
      for (int k = 0; k < at; k++) assert_int_equal(ltrain_step_for(l, 0, NULL), LTRAIN_PAUSED);
      if (at % 2 == 0) {
        ltrain_cancel(l);
        must_say(l, ltrain_step_for(l, 0, NULL) != LTRAIN_FAILED, "cancelled");
        lua_gc(ltrain_lua(l), LUA_GCCOLLECT);
        must(l, ltrain_dostring(l, "start() y:backward()", "after.lua"));
      }
      ltrain_close(l);
      assert_int_equal(atomic_load(&n.live), 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_step_takes_more_than_a_node),
      cmocka_unit_test(every_kind_of_backward_is_the_same_in_slices),
      cmocka_unit_test(what_fails_says_the_same_in_slices),
      cmocka_unit_test(the_host_runs_a_backward_of_its_own_between),
      cmocka_unit_test(it_can_be_left_between_any_two_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
