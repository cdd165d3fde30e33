/* spec/c/host_names_test.c: scripts that set names of Lua's standard libraries to nil, or to what
   they are not: the library computes, says and limits what it does with the names in place. */
#include "host_test.h"

enum { ROOM = 1 << 16 };

/* Everything that is seen of a state: what it gave to `emit`, its last message. */
static char seen[ROOM], whole[ROOM];

static bool emit(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)l;
  (void)ud;
  (void)out;
  size_t length = strlen(seen);
  snprintf(seen + length, sizeof seen - length, "%s\n", in[0].s);
  return true;
}

/* Its own names are locals; `names` are those of the standard libraries. */
static const char work[] =
    "local lt = require 'ltrain'\n"
    "local emit, pcall, tostring, rawset, type = emit, pcall, tostring, rawset, type\n"
    "local G, places, names, values = _G, {}, {}, {}\n"
    "for _, name in ipairs {'coroutine', 'debug', 'io', 'math', 'os', 'package', 'string', 'table',\n"
    "                       'utf8', '_G'} do\n"
    "  for key in pairs(G[name] or {}) do\n"
    "    places[#places + 1] = G[name]\n"
    "    names[#names + 1] = key\n"
    "    values[#values + 1] = G[name][key]\n"
    "  end\n"
    "end\n"
    "local function wrong() return nil end\n"
    "local kinds = {[0] = nil, wrong, {}, 'a text'}\n"
    "function count() return #names end\n"
    "function name_of(k) return tostring(names[k]) end\n"
    "function spoil(k, kind) rawset(places[k], names[k], kinds[kind]) end\n"
    "function mend(k) rawset(places[k], names[k], values[k]) end\n"
    "local spoil, mend, count = spoil, mend, count\n"
    "local function say(...) local _, text = pcall(...) emit(tostring(text)) end\n"
    "local function train()\n"
    "  lt.seed(1)\n"
    "  local line = lt.nn.Sequential(lt.nn.Linear(2, 3), lt.nn.ReLU(), lt.nn.Linear(3, 1))\n"
    "  function line:training_step(b)\n"
    "    local loss = lt.mse_loss(self(b[1]), b[2])\n"
    "    self:log('loss', loss)\n"
    "    return loss\n"
    "  end\n"
    "  function line:configure_optimizers() return lt.optim.Adam(self:parameters()) end\n"
    "  local x = lt.arange(0, 8):to('f32'):view(4, 2)\n"
    "  local data = lt.data.TensorDataset(x, x:sum(2, true))\n"
    "  local trainer = lt.Trainer{max_epochs = 2, logger = false, enable_checkpointing = false,\n"
    "    enable_progress_bar = false}\n"
    "  trainer:fit(line, lt.data.DataLoader(data, {batch_size = 2, shuffle = true}))\n"
    "  trainer:save_checkpoint 'memory:a.ckpt'\n"
    "  emit(tostring(line))\n"
    "  emit(tostring(trainer.callback_metrics.loss))\n"
    "  emit(tostring(lt.load('memory:a.ckpt').state_dict))\n"
    "end\n"
    "function run()\n"
    "  emit(tostring(lt.ones(2, 3) / 3))\n"
    "  say(function() return lt.ones(2):add(lt.ones(3)) end)\n"
    "  say(function() return lt.nn.Linear(2) end)\n"
    "  say(function() return lt.nn.Linera(2, 3) end)\n"
    "  say(function() return lt.optim.SGD({}, {lrr = 1}) end)\n"
    "  say(function() return lt.ones(2):viwe(1) end)\n"
    "  say(function() return lt.nn.Linear(2, 3)(lt.ones(5)) end)\n"
    "  say(function() return lt.zeros(1 << 40) end)\n"
    "  say(function() return lt.save('/nowhere/x', {}) end)\n"
    "  train()\n"
    "  lt.Trainer{max_epoch = 1}\n"
    "end\n"
    "local run = run\n"
    "function spoil_all(kind)\n"
    "  for k = 1, #names do spoil(k, kind) end\n"
    "  rawset(G, 'run', run)\n"
    "end\n";

static ltrain *open_work(unsigned allow) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.allow = allow;
  config.memory_cap = 64 << 20;
  ltrain *l = open_with(&config);
  must(l, ltrain_register(l, "emit", "s", emit, NULL));
  must(l, ltrain_dostring(l, work, "work.lua"));
  return l;
}

/* Run everything; what is seen of it is in `seen`. */
static void look(ltrain *l) {
  seen[0] = 0;
  assert_false(ltrain_call(l, "run", ""));
  size_t length = strlen(seen);
  snprintf(seen + length, sizeof seen - length, "%s\n", ltrain_errmsg(l));
}

static void compare(const char *name, int kind) {
  if (strcmp(seen, whole) != 0)
    fail_msg("%s (%d):\n%s\ninstead of:\n%s", name, kind, seen, whole);
}

enum { KINDS = 4 };

static void each_name_may_be_anything(void **state) {
  (void)state;
  ltrain *l = open_work(LTRAIN_LUA_LIBRARIES);
  look(l);
  memcpy(whole, seen, sizeof whole);
  assert_non_null(strstr(whole, "did you mean 'max_epochs'?"));
  int64_t n = 0;
  must(l, ltrain_call(l, "count", ">i", &n));
  assert_true(n > 100);
  for (int64_t k = 1; k <= n; k++) {
    const char *held = NULL;
    char name[64];
    int kind = (int)(k % KINDS); /* all of them, for all names, below */
    must(l, ltrain_call(l, "name_of", "i>s", k, &held));
    snprintf(name, sizeof name, "%s", held);
    must(l, ltrain_call(l, "spoil", "ii", k, (int64_t)kind));
    look(l);
    compare(name, kind);
    must(l, ltrain_call(l, "mend", "i", k));
  }
  ltrain_close(l);
}

/* Before anything was loaded that is loaded at first use. */
static void all_names_at_once_may_be_anything(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    ltrain *l = open_work(LTRAIN_LUA_LIBRARIES);
    look(l);
    memcpy(whole, seen, sizeof whole);
    ltrain_close(l);
    l = open_work(LTRAIN_LUA_LIBRARIES);
    must(l, ltrain_call(l, "spoil_all", "i", (int64_t)kind));
    look(l);
    compare("all", kind);
    ltrain_close(l);
  }
}

/* Methods of strings: Lua's stay, a script's are added. */
static void strings_have_the_methods_that_a_script_adds(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  must(l, ltrain_dostring(l,
                          "function string.twice(s) return s .. s end\n"
                          "assert(('ab'):twice() == 'abab' and ('x').none == nil)\n"
                          "string.upper = nil assert(('ab'):upper() == 'AB')\n"
                          "assert(('x').dump == nil and not getmetatable(''))\n"
                          "string = nil assert(('%d'):format(3) == '3')",
                          "own.lua"));
  ltrain_close(l);
}

/* Limits that the host has set hold. */
static void limits_need_no_names(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    ltrain_config config = LTRAIN_CONFIG_INIT;
    config.allow = LTRAIN_LUA_LIBRARIES;
    config.memory_cap = 64 << 20;
    config.max_instructions = 400000;
    ltrain *l = open_with(&config);
    must(l, ltrain_register(l, "emit", "s", emit, NULL));
    must(l, ltrain_dostring(l, work, "work.lua"));
    must(l, ltrain_dostring(l,
                            "local lt, pcall = require 'ltrain', pcall\n"
                            "function loop() while true do pcall(loop) end end\n"
                            "function fill() local t = {} while true do t[#t + 1] = {} end end\n"
                            "function tensors() local t = {}\n"
                            "  while true do t[#t + 1] = lt.ones(1 << 20) end end\n"
                            "local loop, fill, tensors, spoil, G = loop, fill, tensors, spoil_all, _G\n"
                            "function spoil_rest(kind) spoil(kind) G.loop, G.fill = loop, fill\n"
                            "  G.tensors = tensors end\n",
                            "limits.lua"));
    must(l, ltrain_call(l, "spoil_rest", "i", (int64_t)kind));
    must_say(l, ltrain_call(l, "loop", ""), "the script ran more than 400000 instructions");
    must_say(l, ltrain_call(l, "fill", ""), "");
    must_say(l, ltrain_call(l, "tensors", ""), "memory");
    ltrain_close(l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_name_may_be_anything),
      cmocka_unit_test(all_names_at_once_may_be_anything),
      cmocka_unit_test(strings_have_the_methods_that_a_script_adds),
      cmocka_unit_test(limits_need_no_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
