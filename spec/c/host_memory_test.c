/* spec/c/host_memory_test.c: a host's limits: the cap of memory, threads; what lies below them,
   what a state does at them, and that scripts only lower them. */
#include "host_internals.h"

enum { MIB = 1 << 20 };

static ltrain *open_capped(size_t bytes) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.memory_cap = bytes;
  ltrain *l = open_line(&config);
  must(l, ltrain_dostring(l, "lt = require 'ltrain' x = lt.zeros(4)", "x.lua"));
  return l;
}

static void memory_has_a_cap(void **state) {
  (void)state;
  ltrain *l = open_capped(48 * MIB);
  must_say(l, ltrain_dostring(l, "x = ('x'):rep(100 << 20)", "m.lua"), "not enough memory");
  must_say(l, ltrain_dostring(l, "x = require 'ltrain'.zeros(100 << 20)", "m.lua"),
           "m.lua:1: zeros: out of memory on cpu: 419430400 bytes requested, ");
  must_say(l, false, "the limit is 50331648");
  must(l, ltrain_call(l, "train", "i", INT64_C(1)));
  ltrain_close(l);
}

/* Fill the state with what `fill` makes until it is refused, let go of it, and make `big`. */
static void goes_on_after(const char *fill, const char *big) {
  ltrain *l = open_capped(16 * MIB);
  char code[200];
  snprintf(code, sizeof code, "keep = {} for i = 1, 1e9 do keep[i] = %s end", fill);
  must_say(l, ltrain_dostring(l, code, "fill.lua"), "memory");
  must(l, ltrain_dostring(l, "keep = nil", "drop.lua"));
  snprintf(code, sizeof code, "local big = %s", big);
  must(l, ltrain_dostring(l, code, "big.lua"));
  must(l, ltrain_call(l, "train", "i", INT64_C(1)));
  snprintf(code, sizeof code,
           "keep = {} pcall(function() for i = 1, 1e9 do keep[i] = %s end end) keep = nil\n"
           "local small = lt.ones(1000)",
           fill);
  must(l, ltrain_dostring(l, code, "caught.lua"));
  ltrain_close(l);
}

static void what_is_cached_is_given_back_before_memory_is_refused(void **state) {
  (void)state;
  static const char *const fills[] = {"lt.zeros(1)", "lt.zeros(1 << 17)", "lt.zeros(3 << 18)",
                                      "x:view(2, 2)", "('x'):rep(1000) .. i"};
  static const char *const bigs[] = {"lt.zeros(3 << 20)", "('x'):rep(3 << 20)"};
  for (size_t k = 0; k < sizeof fills / sizeof *fills; k++) goes_on_after(fills[k], bigs[k % 2]);
  goes_on_after(fills[0], bigs[1]);
  goes_on_after(fills[3], bigs[0]);
}

/* Small arguments that ask for much: one sentence at once, and the state can continue. */
static void what_would_be_huge_is_refused_at_once(void **state) {
  (void)state;
  static const char *const calls[] = {
      "lt.zeros(1 << 33)",
      "lt.full({1 << 33}, 1)",
      "lt.rand(1 << 33)",
      "lt.randperm(1 << 33)",
      "lt.arange(1 << 33)",
      "lt.arange(0, 1, 1e-10)",
      "lt.one_hot(lt.tensor{0, 1}, 1 << 33)",
      "lt.multinomial(lt.ones(4), 1 << 33, {replacement = true})",
      "lt.ones(2):expand(1 << 33, 2) + 0",
      "lt.ones(2):expand(1 << 33, 2):tolist()",
      "lt.cat({lt.ones(1):expand(1 << 32), lt.ones(1):expand(1 << 32)}, 1)",
      "lt.ones(1 << 16, 1):matmul(lt.ones(1, 1 << 16))",
      "lt.nn.Linear(1 << 17, 1 << 17)",
      "lt.nn.Embedding(1 << 33, 4)",
      "lt.nn.LayerNorm(1 << 33)",
      "lt.data.digits{n = 1 << 33}",
      "lt.data.collate{lt.ones(1):expand(1 << 32), lt.ones(1):expand(1 << 32)}",
  };
  ltrain *l = open_capped(24 * MIB);
  for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
    char code[200];
    snprintf(code, sizeof code, "local y = %s", calls[k]);
    must_say(l, ltrain_dostring(l, code, "huge.lua"), "memory");
  }
  must(l, ltrain_call(l, "train", "i", INT64_C(1)));
  ltrain_close(l);
}

/* Two states, one of which is full, do not know of each other. */
static void a_cap_is_of_its_state(void **state) {
  (void)state;
  ltrain *full = open_capped(32 * MIB), *other = open_capped(32 * MIB);
  must(full, ltrain_dostring(full, "keep = lt.zeros(7 << 20)", "f.lua"));
  must(other, ltrain_dostring(other, "keep = lt.zeros(7 << 20)", "o.lua"));
  must_say(full, ltrain_dostring(full, "more = lt.zeros(3 << 20)", "f.lua"), "out of memory");
  ltrain_close(full);
  must_say(other, ltrain_dostring(other, "more = lt.zeros(3 << 20)", "o.lua"), "out of memory");
  must(other, ltrain_dostring(other, "keep = nil more = lt.zeros(7 << 20)", "o.lua"));
  ltrain_close(other);
}

/* Batches gathered ahead are tensors of the state: 16 of 4 MiB do not fit beside 16 MiB. */
static void batches_gathered_ahead_count(void **state) {
  (void)state;
  ltrain *l = open_capped(32 * MIB);
  must(l, ltrain_dostring(l,
                          "local set = lt.data.TensorDataset(lt.arange(0, 1 << 21):to('f32'))\n"
                          "local loader = lt.data.DataLoader(set, {batch_size = 1 << 20,\n"
                          "  prefetch = 16})\n"
                          "for _ = 1, 3 do\n"
                          "  local sum = 0\n"
                          "  for batch in loader:batches() do\n"
                          "    for _ = 1, 5 do sum = sum + (batch[1] * 1):mean():item() end\n"
                          "  end\n"
                          "  assert(sum == 5 * ((1 << 21) - 1), sum)\n"
                          "end",
                          "p.lua"));
  must_say(l,
           ltrain_dostring(l,
                           "local set = lt.data.TensorDataset(lt.zeros(4 << 20, {dtype = 'u8'}))\n"
                           "local loader = lt.data.DataLoader(set, {batch_size = 1 << 20,\n"
                           "  prefetch = 16})\n"
                           "local next = loader:batches()\n"
                           "keep = {} for k = 1, 1e9 do keep[k] = lt.zeros(1 << 18) end",
                           "q.lua"),
           "q.lua:5: zeros: out of memory on cpu");
  must(l, ltrain_call(l, "train", "i", INT64_C(1)));
  ltrain_close(l);
}

/* 1,040 samples of 1 KiB, one tensor of over 1 MiB; a batch of n needs some 30 n KiB at once. */
static const char fits[] =
    "local lt = require 'ltrain'\n"
    "local runtime = internals.runtime\n"
    "local Wide = lt.Module:extend('Wide')\n"
    "function Wide:init()\n"
    "  self.net = lt.nn.Sequential(lt.nn.Linear(256, 512), lt.nn.ReLU(), lt.nn.Linear(512, 512),\n"
    "    lt.nn.Tanh(), lt.nn.Linear(512, 512), lt.nn.ReLU(), lt.nn.Linear(512, 1))\n"
    "end\n"
    "function Wide:training_step(b) return lt.mse_loss(self.net(b[1]), b[2]) end\n"
    "function Wide:validation_step(b) self:log('val', lt.mse_loss(self.net(b[1]), b[2])) end\n"
    "function Wide:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-3}) "
    "end\n"
    "lt.seed(1)\n"
    "local set = lt.data.TensorDataset(lt.randn(1040, 256), lt.randn(1040, 1))\n"
    "function fit(batch, epochs)\n"
    "  lt.seed(2)\n"
    "  local wide = Wide()\n"
    "  local loader = lt.data.DataLoader(set, {batch_size = batch, shuffle = true})\n"
    "  local trainer = lt.Trainer{max_epochs = epochs, logger = false, enable_checkpointing = "
    "false,\n"
    "    enable_progress_bar = false, enable_model_summary = false}\n"
    "  trainer:fit(wide, loader, loader)\n"
    "  return lt.hash(wide:state_dict())\n"
    "end\n"
    "function held()\n"
    "  local m = runtime.memory()\n"
    "  return m.live_bytes + m.cached_bytes, m.lua_bytes + m.struct_bytes\n"
    "end\n";

/* What a fit of `epochs` in batches of `batch` learns. */
static const char *fit_in(ltrain *l, int64_t batch, int64_t epochs) {
  const char *hash = NULL;
  must(l, ltrain_call(l, "fit", "ii>s", batch, epochs, &hash));
  return hash;
}

static void a_fit_stays_in_its_cap(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  ltrain *roomy = open_inside(&config);
  must(roomy, ltrain_dostring(roomy, fits, "fit.lua"));
  config.memory_cap = 20 * MIB;
  ltrain *l = open_inside(&config);
  must(l, ltrain_dostring(l, fits, "fit.lua"));
  assert_string_equal(fit_in(l, 64, 2), fit_in(roomy, 64, 2));
  int64_t tensors = 0, heap = 0;
  must(l, ltrain_call(l, "held", ">ii", &tensors, &heap));
  assert_true(tensors > 8 * MIB && tensors <= 20 * MIB);
  assert_true(heap <= 20 * MIB);
  must(roomy, ltrain_call(roomy, "fit", "ii", INT64_C(1024), INT64_C(1)));
  must(roomy, ltrain_call(roomy, "held", ">ii", &tensors, &heap));
  assert_true(tensors > 20 * MIB); /* it takes more */
  ltrain_close(roomy);
  for (int k = 0; k < 2; k++) {
    must_say(l, ltrain_call(l, "fit", "ii", INT64_C(1024), INT64_C(1)), "out of memory on cpu: ");
    must_say(l, false, "fit.lua:");
    must_say(l, false, "\nthe largest tensors in use:\n");
    assert_null(strstr(ltrain_errmsg(l), "stack traceback"));
    fit_in(l, 64, 1);
  }
  ltrain_close(l);
}

static void scripts_only_lower_limits(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.memory_cap = 64 * MIB;
  config.threads = 2;
  ltrain *l = open_inside(&config);
  must(l, ltrain_dostring(l, "lt = require 'ltrain' runtime = internals.runtime", "l.lua"));
  must_say(l, ltrain_dostring(l, "runtime.set_memory_limit(1 << 50)", "l.lua"),
           "set_memory_limit: the host of this state allows 67108864 bytes, got 1125899906842624");
  must_say(l, ltrain_dostring(l, "runtime.set_memory_limit(-1)", "l.lua"), "must not be negative");
  must_say(l, ltrain_dostring(l, "runtime.set_threads(64)", "l.lua"),
           "set_threads: the host of this state allows 2, got 64");
  must(l, ltrain_dostring(l, "runtime.set_threads(1) runtime.set_threads(2)", "l.lua"));
  must(l, ltrain_dostring(l, "runtime.set_memory_limit(8 << 20)", "l.lua"));
  must_say(l, ltrain_dostring(l, "local x = lt.zeros(4 << 20)", "l.lua"), "the limit is 8388608");
  must(l, ltrain_dostring(l, "runtime.set_memory_limit(0) local x = lt.zeros(4 << 20)", "l.lua"));
  must_say(l, ltrain_dostring(l, "local x = lt.zeros(20 << 20)", "l.lua"), "limit is 67108864");
  ltrain_close(l);
  l = open_inside(NULL); /* threads: 1 */
  must_say(l, ltrain_dostring(l, "internals.runtime.set_threads(2)", "l.lua"), "allows 1");
  must(l, ltrain_dostring(l, "internals.runtime.set_memory_limit(1 << 50)", "l.lua"));
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_has_a_cap),
      cmocka_unit_test(what_is_cached_is_given_back_before_memory_is_refused),
      cmocka_unit_test(what_would_be_huge_is_refused_at_once),
      cmocka_unit_test(a_cap_is_of_its_state),
      cmocka_unit_test(batches_gathered_ahead_count),
      cmocka_unit_test(a_fit_stays_in_its_cap),
      cmocka_unit_test(scripts_only_lower_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
