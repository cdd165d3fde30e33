/* spec/c/host_step_test.c: a call that the host runs in slices of time pauses between operations,
   wherever it is, and computes what it computes at once. No test depends on how long anything
   takes: a step for 0 seconds pauses at the first place where it can. */
/* tags: threads */
#include <math.h>

#include "host_test.h"

/* A fit that draws in all ways, in places where a pause is not easy. */
static const char fits[] =
    "lt = require 'ltrain'\n"
    "local Net = lt.Module:extend('Net')\n"
    "function Net:init()\n"
    "  self.net = lt.nn.Sequential(lt.nn.Linear(4, 8), lt.nn.Dropout(0.3), lt.nn.Linear(8, 1))\n"
    "end\n"
    "local function items(list)\n"
    "  return coroutine.wrap(function()\n"
    "    for k, v in ipairs(list) do lt.zeros(1) coroutine.yield(k, v) end\n"
    "  end)\n"
    "end\n"
    "function Net:training_step(b)\n"
    "  local scale = 0\n"
    "  for _, v in items {0.5, 0.25, 0.25} do scale = scale + v end\n"
    "  local ok, y = pcall(function() return self.net(b[1] + math.random()) end)\n"
    "  assert(ok, y)\n"
    "  local order = {3, 1, 2}\n"
    "  table.sort(order, function(a, b) lt.ones(1) return a < b end)\n"
    "  assert(order[1] == 1 and order[3] == 3)\n"
    "  local loss = lt.mse_loss(y * scale, b[2])\n"
    "  if hooked then loss:register_hook(function(g) return g * 1 end) end\n"
    "  self:log('loss', loss)\n"
    "  return loss\n"
    "end\n"
    "function Net:validation_step(b) self:log('val', lt.mse_loss(self.net(b[1]), b[2])) end\n"
    "function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end\n"
    "function fit(epochs)\n"
    "  lt.seed(3)\n"
    "  net = Net()\n"
    "  local x = lt.randn(24, 4)\n"
    "  local loader = lt.data.DataLoader(lt.data.TensorDataset(x, x:sum(2, true)),\n"
    "    {batch_size = 4, shuffle = true})\n"
    "  trainer = lt.Trainer{max_epochs = epochs, logger = false, enable_checkpointing = false,\n"
    "    enable_progress_bar = false, enable_model_summary = false}\n"
    "  trainer:fit(net, loader, loader)\n"
    "  done = hash()\n"
    "end\n"
    "function in_loop() return trainer ~= nil and trainer.global_step > 0 and not done end\n"
    "function hash() return lt.hash(net:state_dict()) end\n"
    "function draw() return lt.rand(1):item() + math.random() end\n";

static ltrain *open_fits(const ltrain_config *config) {
  ltrain *l = open_with(config);
  must(l, ltrain_dostring(l, fits, "fits.lua"));
  return l;
}

static void keep_hash(ltrain *l, const char *name, char *to) {
  const char *hash = NULL;
  must(l, ltrain_get(l, name, "s", &hash));
  assert_non_null(hash);
  snprintf(to, 100, "%s", hash);
}

typedef struct pauses {
  int between, named;
} pauses;

/* Step to the end, `between` (optional) called at each pause. */
static pauses finish(ltrain *l, double seconds, void (*between)(ltrain *l)) {
  pauses n = {0};
  const char *where = NULL;
  ltrain_state s;
  while ((s = ltrain_step_for(l, seconds, &where)) == LTRAIN_PAUSED) {
    if (where[0] == 0)
      n.between++;
    else
      n.named++;
    if (between != NULL) between(l);
  }
  if (s != LTRAIN_FINISHED) fail_msg("%s", ltrain_errmsg(l));
  return n;
}

static void a_fit_in_slices_learns_the_same(void **state) {
  (void)state;
  char whole[100], sliced[100];
  ltrain *l = open_fits(NULL);
  must(l, ltrain_call(l, "fit", "i", INT64_C(2)));
  keep_hash(l, "done", whole);
  must(l, ltrain_start(l, "fit", "i", INT64_C(2)));
  pauses n = finish(l, 0, NULL);
  assert_true(n.between > 500); /* 12 batches of some 50 operations */
  keep_hash(l, "done", sliced);
  assert_string_equal(sliced, whole);
  must(l, ltrain_start(l, "fit", "i", INT64_C(2)));
  n = finish(l, INFINITY, NULL); /* in one step */
  assert_int_equal(n.between + n.named, 0);
  keep_hash(l, "done", sliced);
  assert_string_equal(sliced, whole);
  ltrain_close(l);
}

static double drawn[4];
static int n_drawn;

static void draw_some(ltrain *l) {
  double value = 0;
  int fits_now = 0;
  must(l, ltrain_call(l, "in_loop", ">b", &fits_now));
  if (!fits_now) return; /* before its loop a run draws as the host does, from one sequence */
  must(l, ltrain_call(l, "draw", ">d", &value));
  if (n_drawn < 4) drawn[n_drawn++] = value;
  must(l, ltrain_dostring(l, "local x <const> = net and net.net(lt.ones(2, 4))", "between.lua"));
}

/* Neither the run nor what the host calls in the pauses takes the other's random numbers. */
static void calls_between_steps_leave_the_run_alone(void **state) {
  (void)state;
  char whole[100], sliced[100];
  ltrain *l = open_fits(NULL);
  must(l, ltrain_call(l, "fit", "i", INT64_C(1)));
  keep_hash(l, "done", whole);
  must(l, ltrain_dostring(l, "trainer, done = nil, nil", "reset.lua"));
  must(l, ltrain_start(l, "fit", "i", INT64_C(1)));
  n_drawn = 0;
  pauses n = finish(l, 0, draw_some);
  assert_true(n.between > 100);
  keep_hash(l, "done", sliced);
  assert_string_equal(sliced, whole);
  assert_int_equal(n_drawn, 4);
  for (int a = 0; a < 4; a++)
    for (int b = 0; b < a; b++) assert_true(drawn[a] != drawn[b]);
  ltrain_close(l);
}

static char warned[400];

static void keep_warning(void *ud, int level, const char *text) {
  (void)ud;
  if (level != LTRAIN_WARNING) return;
  snprintf(warned + strlen(warned), sizeof warned - strlen(warned), "%s\n", text);
}

/* Pauses come as soon as they can; the line where one could not is reported, once. */
static void what_cannot_pause_says_so(void **state) {
  (void)state;
  static const char *const bodies[] = {
      "table.sort({2, 1}, function(a, b)\n spin() return a < b end)",
      "(('x'):gsub('x', function()\n spin() end))",
      "setmetatable({}, {__tostring = function()\n spin() return 'x' end}) tostring(it)",
      "local x = lt.ones(1):requires_grad_() local y = x * 2\n"
      " y:register_hook(function(g) spin() return g end) y:sum():backward()",
      "coroutine.wrap(function() table.sort({2, 1}, function(a, b)\n"
      " coroutine.wrap(function() spin() end)() return a < b end) end)()",
  };
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.log = keep_warning;
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l,
                          "lt = require 'ltrain'\n"
                          "function spin() for i = 1, 20000 do local _ = lt end end",
                          "spin.lua"));
  for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
    char code[600];
    const char *body = bodies[k];
    bool is_tostring = strstr(body, "__tostring") != NULL;
    snprintf(code, sizeof code, "ended = false function go() spin() %s%s spin() ended = true end",
             is_tostring      ? "it = "
             : body[0] == '(' ? "local _ = "
                              : "",
             body);
    must(l, ltrain_dostring(l, code, "go.lua"));
    warned[0] = 0;
    must(l, ltrain_start(l, "go", ""));
    assert_true(finish(l, 0, NULL).between > 20);
    int ended = 0;
    must(l, ltrain_get(l, "ended", "b", &ended));
    assert_true(ended);
    if (strstr(warned, "step_for: paused late: ") != warned) fail_msg("'%s' of %s", warned, code);
    assert_ptr_equal(strchr(warned, '\n'), warned + strlen(warned) - 1);
  }
  ltrain_close(l);
}

/* All of these pause within; none does anything but wait. */
static void every_kind_of_call_pauses(void **state) {
  (void)state;
  static const char *const bodies[] = {
      "spin()",
      "pcall(spin)",
      "pcall(pcall, pcall, spin)",
      "xpcall(spin, print)",
      "select(2, pcall(function() spin() error('x') end))",
      "local _ = setmetatable({}, {__index = function() spin() return 1 end}).x",
      "local _ = setmetatable({}, {__add = function() spin() return 1 end}) + 1",
      "local _ = setmetatable({}, {__concat = function() spin() return '' end}) .. 'x'",
      "local _ = setmetatable({}, {__lt = function() spin() return true end}) < {}",
      "for _ in pairs(setmetatable({}, {__pairs = function(t) spin() return next, t end})) do end",
      "for _ in (function() local n = 0 return function() n = n + 1 spin()"
      " if n < 3 then return n end end end)() do end",
      "do local _ <close> = setmetatable({}, {__close = function() spin() end}) end",
      "coroutine.wrap(spin)()",
      "coroutine.wrap(function() coroutine.wrap(function() spin() end)() spin() end)()",
      "assert(coroutine.resume(coroutine.create(function(...) spin() return ... end), 1, 2, 3))",
      "local co = coroutine.create(function(...) local a, b = ... spin() a = coroutine.yield(b)"
      " spin() return a, 7 end) local ok, b = coroutine.resume(co, 1, 2) assert(ok and b == 2)"
      " local _, a, c = coroutine.resume(co, 5) assert(a == 5 and c == 7)"
      " assert(coroutine.status(co) == 'dead')",
      "local f = coroutine.wrap(function() spin() error({9}) end)"
      " local ok, e = pcall(f) assert(not ok and e[1] == 9)",
      "local ok, e = coroutine.resume(coroutine.create(function() spin() error 'no' end))"
      " assert(not ok and e:find 'no')",
      "local _, e = coroutine.resume(coroutine.running()) assert(e:find 'non%-suspended')",
      "local t = table.pack((function(...) spin() return ... end)(1, nil, 3)) assert(t.n == 3)",
      "local s = ('%s'):format((function() spin() return 'x' end)()) assert(s == 'x')",
      "local t = {(function() spin() return 1, 2, 3 end)()} assert(#t == 3)",
  };
  ltrain *l = open_with(NULL);
  must(l, ltrain_dostring(l, "function spin() for i = 1, 2000 do local _ = spin end end", "s.lua"));
  for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
    char code[600];
    snprintf(code, sizeof code, "ended = 0 function go() %s ended = ended + 1 end", bodies[k]);
    must(l, ltrain_dostring(l, code, "go.lua"));
    must(l, ltrain_start(l, "go", ""));
    int n = finish(l, 0, NULL).between;
    bool short_one = strstr(bodies[k], "spin") == NULL;
    if (n < (short_one ? 0 : 3)) fail_msg("%d pauses in: %s", n, bodies[k]);
    int64_t ended = 0;
    must(l, ltrain_get(l, "ended", "i", &ended));
    assert_true(ended == 1);
  }
  ltrain_close(l);
}

static void a_paused_coroutine_is_its_calls(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  must(l, ltrain_dostring(l,
                          "function go()\n"
                          "  outer = coroutine.create(function()\n"
                          "    inner = coroutine.wrap(function() while not stop do end return 5 "
                          "end)\n"
                          "    return inner()\n"
                          "  end)\n"
                          "  ok, result = coroutine.resume(outer)\n"
                          "end\n"
                          "function meddle()\n"
                          "  local ok, why = coroutine.resume(outer)\n"
                          "  assert(not ok and why:find 'its host has paused', why)\n"
                          "  ok, why = pcall(inner)\n"
                          "  assert(not ok and why:find 'its host has paused', why)\n"
                          "end\n",
                          "co.lua"));
  must(l, ltrain_start(l, "go", ""));
  const char *where = NULL;
  for (int k = 0; k < 20; k++) {
    assert_int_equal(ltrain_step_for(l, 0, &where), LTRAIN_PAUSED);
    assert_string_equal(where, "");
    if (k > 5) must(l, ltrain_call(l, "meddle", ""));
  }
  must(l, ltrain_dostring(l, "stop = true", "co.lua"));
  finish(l, 0, NULL);
  must(l, ltrain_dostring(l, "assert(ok and result == 5)", "co.lua"));
  ltrain_close(l);
}

/* Whatever ends it, its variables are closed and the state can be used. */
static void it_ends_from_any_pause(void **state) {
  (void)state;
  static const char code[] =
      "lt = require 'ltrain'\n"
      "local function closing()\n"
      "  return setmetatable({}, {__close = function() closed = closed + 1 end})\n"
      "end\n"
      "function go(fails)\n"
      "  closed = 0\n"
      "  local _ <close> = closing()\n"
      "  coroutine.wrap(function()\n"
      "    local _ <close> = closing()\n"
      "    pcall(function() for i = 1, 500 do local _ = lt.ones(1) + 1 end end)\n"
      "    if fails then local _ = lt.ones(2) + lt.ones(3) end\n"
      "    while true do end\n"
      "  end)()\n"
      "end\n";
  ltrain *l = open_with(NULL);
  must(l, ltrain_dostring(l, code, "end.lua"));
  for (int n = 0; n < 40; n++) {
    must(l, ltrain_start(l, "go", "b", 0));
    for (int k = 0; k < n; k++) assert_int_equal(ltrain_step_for(l, 0, NULL), LTRAIN_PAUSED);
    ltrain_cancel(l);
    must_say(l, ltrain_step_for(l, 0, NULL) != LTRAIN_FAILED, "cancelled");
    must(l, ltrain_dostring(l, "assert(#lt.ones(2):tolist() == 2)", "after"));
  }
  must(l, ltrain_start(l, "go", "b", 1));
  ltrain_state s;
  int paused = 0;
  while ((s = ltrain_step_for(l, 0, NULL)) == LTRAIN_PAUSED) paused++;
  assert_int_equal(s, LTRAIN_FAILED);
  assert_true(paused > 100);
  must_say(l, false, "end.lua:11: add: ");
  must(l, ltrain_dostring(l, "assert(closed == 2)", "after"));
  must_say(l, ltrain_step_for(l, 0, NULL) != LTRAIN_FAILED, "step_for: nothing was started");
  must(l, ltrain_start(l, "go", "b", 0)); /* closed where it is paused */
  for (int k = 0; k < 50; k++) assert_int_equal(ltrain_step_for(l, 0, NULL), LTRAIN_PAUSED);
  ltrain_close(l);
}

/* The budget of instructions is that of each step. */
static void each_step_has_a_budget(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_instructions = 50000;
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l, "function go() while true do end end", "b.lua"));
  must(l, ltrain_start(l, "go", ""));
  for (int k = 0; k < 200; k++) assert_int_equal(ltrain_step_for(l, 0, NULL), LTRAIN_PAUSED);
  must_say(l, ltrain_step_for(l, INFINITY, NULL) != LTRAIN_FAILED,
           "b.lua:1: the script ran more than 50000 instructions");
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_fit_in_slices_learns_the_same),
      cmocka_unit_test(calls_between_steps_leave_the_run_alone),
      cmocka_unit_test(what_cannot_pause_says_so),
      cmocka_unit_test(every_kind_of_call_pauses),
      cmocka_unit_test(a_paused_coroutine_is_its_calls),
      cmocka_unit_test(it_ends_from_any_pause),
      cmocka_unit_test(each_step_has_a_budget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
