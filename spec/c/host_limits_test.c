/* spec/c/host_limits_test.c: a call that ran too long, or was cancelled, ends: whatever the script
   catches, closes, finalizes or matches. A test that hangs is ended by the alarm. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/ltrain.h"

enum { HANGS_AFTER = 120 };

static ltrain *open_with(const ltrain_config *config) {
  alarm(HANGS_AFTER);
  ltrain *l = ltrain_open(config);
  assert_non_null(l);
  return l;
}

static ltrain *open_bounded(int64_t max_instructions) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_instructions = max_instructions;
  return open_with(&config);
}

static void must(ltrain *l, bool ok) {
  if (!ok) fail_msg("%s", ltrain_errmsg(l));
}

static void must_say(ltrain *l, const char *code, bool ok, const char *text) {
  if (ok) fail_msg("it continued: %s", code);
  if (strstr(ltrain_errmsg(l), text) == NULL)
    fail_msg("'%s' is not in '%s' of: %s", text, ltrain_errmsg(l), code);
}

/* Each runs for ever, or for longer than anybody waits. */
static const char *const endless[] = {
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do pcall(lt.ones, 4) end",
    "local function f() return pcall(f) end while true do f() end",
    /* message handlers */
    "xpcall(function() while true do end end, function() while true do end end)",
    "xpcall(error, function() while true do end end)",
    "while true do xpcall(function() while true do end end, function(e) while true do end end) end",
    "while true do xpcall(error, function(e) error(e) end) end",
    /* finalizers */
    "setmetatable({}, {__gc = function() while true do end end}) collectgarbage_()",
    "setmetatable({}, {__gc = function() while true do pcall(lt.ones, 4) end end}) collectgarbage_()",
    "local m = {} m.__gc = function(o) setmetatable(o, m) end setmetatable({}, m)"
    " while true do collectgarbage_() end",
    "local C = lt.Module:extend('C') function C.__gc() while true do end end C() collectgarbage_()",
    /* coroutines */
    "while true do coroutine.wrap(function() for i = 1, 500 do end end)() end",
    "coroutine.wrap(function() while true do end end)()",
    "local co = coroutine.create(function() while true do coroutine.yield() end end)"
    " while true do coroutine.resume(co) end",
    "local co = coroutine.create(function() local _ <close> ="
    "  setmetatable({}, {__close = function() while true do end end}) while true do end end)"
    " coroutine.resume(co) coroutine.close(co)",
    "local co = coroutine.create(function() local _ <close> ="
    "  setmetatable({}, {__close = function() while true do end end}) coroutine.yield() end)"
    " coroutine.resume(co) coroutine.close(co)",
    "coroutine.wrap(function() local _ <close> ="
    "  setmetatable({}, {__close = function() while true do end end}) while true do end end)()",
    "coroutine.wrap(function() while true do coroutine.wrap(function() while true do end end)() end"
    " end)()",
    /* what is closed */
    "local _ <close> = setmetatable({}, {__close = function() while true do end end})",
    "local _ <close> = setmetatable({}, {__close = function() while true do end end}) error 'x'",
    "for _ in pairs(setmetatable({}, {__pairs = function() return function() return 1 end end})) do"
    " end",
    /* patterns */
    "string.find(('a'):rep(3000), ('a-'):rep(30) .. 'b')",
    "string.match(('a'):rep(3000), ('a*'):rep(30) .. 'b')",
    "string.gsub(('a'):rep(3000), ('a?a-'):rep(30) .. 'b', '')",
    "for _ in string.gmatch(('a'):rep(3000), ('a-'):rep(30) .. 'b') do end",
    "while true do pcall(string.find, ('a'):rep(3000), ('a-'):rep(30) .. 'b') end",
    "string.find(('('):rep(100000), '%b()')",
    "string.find(('a'):rep(1000000), '.-b')",
    "while true do string.find(('a'):rep(100000), 'b', 1, true) end",
    "string.find(('a'):rep(40000), '[' .. ('b'):rep(40000) .. ']')",
    "string.find(('a'):rep(40000), '%f[' .. ('b'):rep(40000) .. ']')",
    "string.gsub('x', '', function() while true do end end)",
    /* loops of Lua's own functions */
    "string.rep('', 1 << 62)",
    "string.rep('', 1 << 62, '')",
    "string.rep('x', 1 << 30)",
    "while true do string.rep('x', 1 << 20) end",
    "table.move({}, 1, math.maxinteger - 1, 2)",
    "table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 0)",
    "table.remove(setmetatable({}, {__len = function() return 1 << 60 end}), 1)",
    "table.concat(setmetatable({}, {__index = table.concat}), '', 1, math.maxinteger)",
    "local t = {} for i = 1, 1000 do t[i] = i end"
    " table.sort(t, function() while true do end end)",
    "local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t) end",
    "while true do table.unpack({}, 1, 10000) end",
    "while true do local _ = ('%s'):format(('x'):rep(10000)) end",
    "load(function() return ' ' end)",
    "while true do load(function() error 'x' end) end",
    "local t = setmetatable({}, {__tostring = function() while true do end end}) tostring(t)",
    "error(setmetatable({}, {__tostring = function() while true do end end}))",
};

static void give_scripts_what_they_call(ltrain *l) {
  must(l, ltrain_dostring(l,
                          "lt = require 'ltrain'\n"
                          "function collectgarbage_() for _ = 1, 100 do lt.zeros(1) end"
                          "  local t = {} for i = 1, 20000 do t[i % 10 + 1] = {} end end\n",
                          "setup"));
}

static void every_endless_script_is_ended(void **state) {
  (void)state;
  ltrain *l = open_bounded(100000);
  give_scripts_what_they_call(l);
  for (size_t k = 0; k < sizeof endless / sizeof *endless; k++) {
    must_say(l, endless[k], ltrain_dostring(l, endless[k], "s.lua"),
             "the script ran more than 100000 instructions");
    must(l, ltrain_dostring(l, "assert(#lt.ones(2):tolist() == 2)", "after"));
  }
  ltrain_close(l);
}

static ltrain *to_cancel;

static void cancel(void *ud, const char *text, size_t length) {
  (void)ud;
  (void)text;
  (void)length;
  ltrain_cancel(to_cancel);
}

/* Once cancelled none continues, also where no budget counts: an operation was refused. */
static void every_script_that_calls_operations_is_cancelled(void **state) {
  (void)state;
  static const char *const scripts[] = {
      "while true do pcall(lt.ones, 4) end",
      "while true do pcall(lt.tensor, {1}) end",
      "for _ = 1, 3 do pcall(lt.ones, 4) end",
      "pcall(lt.ones, 4) while true do end",
      "while true do xpcall(lt.ones, function() while true do end end, 4) end",
      "while true do pcall(coroutine.wrap(function() lt.ones(4) end)) end",
      "local co = coroutine.wrap(function() while true do pcall(lt.ones, 4) end end) co()",
      ("local _ <close> = setmetatable({}, {__close = function()"
       " while true do pcall(lt.ones, 4) end end}) lt.ones(4)"),
      "local _ = 1", /* it did nothing more, and has heard nothing of it */
  };
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.print = cancel;
  ltrain *l = to_cancel = open_with(&config);
  must(l, ltrain_dostring(l, "lt = require 'ltrain'", "setup"));
  for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++) {
    char code[512];
    snprintf(code, sizeof code, "print() %s", scripts[k]);
    must_say(l, code, ltrain_dostring(l, code, "s.lua"), "cancelled");
    must(l, ltrain_dostring(l, "assert(#lt.ones(2):tolist() == 2)", "after"));
  }
  ltrain_close(l);
}

/* Nobody could cancel them: the host waits for the state to be gone. */
static void closing_ends_what_does_not_end(void **state) {
  (void)state;
  static const char *const scripts[] = {
      "kept = setmetatable({}, {__gc = function() while true do end end})",
      "kept = setmetatable({}, {__gc = function() while true do pcall(error) end end})",
      ("kept = {} local meta = {__gc = function() while true do end end}"
       " for k = 1, 9 do kept[k] = setmetatable({}, meta) end"),
  };
  for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++) {
    ltrain_config config = LTRAIN_CONFIG_INIT;
    ltrain *l = open_with(&config);
    must(l, ltrain_dostring(l, scripts[k], "s.lua"));
    ltrain_close(l);
  }
}

/* Not refused at once, nor run when it suits the collector. */
static bool can_be_cancelled(const char *code) {
  return strstr(code, "1 << ") == NULL && strstr(code, "maxinteger") == NULL &&
         strstr(code, "__gc") == NULL;
}

static void cancel_endless_scripts(int64_t max_instructions) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.print = cancel;
  config.max_instructions = max_instructions;
  ltrain *l = to_cancel = open_with(&config);
  give_scripts_what_they_call(l);
  for (size_t k = 0; k < sizeof endless / sizeof *endless; k++) {
    if (!can_be_cancelled(endless[k])) continue;
    char code[512];
    snprintf(code, sizeof code, "print() %s", endless[k]);
    must_say(l, code, ltrain_dostring(l, code, "s.lua"), "cancelled");
  }
  ltrain_close(l);
}

static void every_endless_script_is_cancelled(void **state) {
  (void)state;
  cancel_endless_scripts(0);
  cancel_endless_scripts(INT64_C(1) << 60);
}

typedef struct canceller {
  ltrain *l;
  sem_t begins;
} canceller;

static void begin(void *ud, const char *text, size_t length) {
  (void)text;
  (void)length;
  sem_post(&((canceller *)ud)->begins);
}

static void *cancel_each(void *ud) {
  canceller *c = ud;
  for (size_t k = 0; k < sizeof endless / sizeof *endless; k++) {
    if (!can_be_cancelled(endless[k])) continue;
    while (sem_wait(&c->begins) != 0) {
    }
    for (volatile int spin = 0; spin < (int)k * 20000; spin++) { /* at another moment each time */
    }
    ltrain_cancel(c->l);
  }
  return NULL;
}

static void another_thread_cancels_whatever_runs(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  canceller c = {0};
  sem_init(&c.begins, 0, 0);
  config.print = begin;
  config.ud = &c;
  ltrain *l = c.l = open_with(&config);
  give_scripts_what_they_call(l);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, cancel_each, &c), 0);
  for (size_t k = 0; k < sizeof endless / sizeof *endless; k++) {
    if (!can_be_cancelled(endless[k])) continue;
    char code[512];
    snprintf(code, sizeof code, "print() %s", endless[k]);
    must_say(l, code, ltrain_dostring(l, code, "s.lua"), "cancelled");
  }
  pthread_join(thread, NULL);
  must(l, ltrain_dostring(l, "assert(#lt.ones(2):tolist() == 2)", "after"));
  ltrain_close(l);
  sem_destroy(&c.begins);
}

/* One operation each, on views that are larger than any memory. */
static const char *const vast[] = {
    "x:expand(1 << 42):sum()",
    "x:expand(1 << 42):mean()",
    "x:expand(1 << 42):argmax()",
    "x:expand(1 << 42):max()",
    "x:expand(1 << 42):any()",
    "x:expand(1 << 40, 4):sum(1)",
    "x:expand(4, 1 << 40):amax(2)",
    "x:clone():requires_grad_():expand(1 << 42):sum():backward()",
};

static void *cancel_vast(void *ud) {
  canceller *c = ud;
  for (size_t k = 0; k < sizeof vast / sizeof *vast; k++) {
    while (sem_wait(&c->begins) != 0) {
    }
    usleep(20000); /* it is in its kernel by then, as a rule */
    ltrain_cancel(c->l);
  }
  return NULL;
}

static void an_operation_that_takes_for_ever_is_cancelled(void **state) {
  (void)state;
  for (int threads = 1; threads <= 2; threads++) {
    ltrain_config config = LTRAIN_CONFIG_INIT;
    canceller c = {0};
    sem_init(&c.begins, 0, 0);
    config.print = begin;
    config.ud = &c;
    config.threads = threads;
    ltrain *l = c.l = open_with(&config);
    must(l, ltrain_dostring(l, "lt = require 'ltrain' x = lt.ones(1)", "s"));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_vast, &c), 0);
    for (size_t k = 0; k < sizeof vast / sizeof *vast; k++) {
      char code[200];
      snprintf(code, sizeof code, "print() local y = %s", vast[k]);
      if (k == sizeof vast / sizeof *vast - 1) snprintf(code, sizeof code, "print() %s", vast[k]);
      must_say(l, code, ltrain_dostring(l, code, "s.lua"), "cancelled");
    }
    pthread_join(thread, NULL);
    must(l, ltrain_dostring(l, "assert(x:expand(7):sum():item() == 7)", "after"));
    ltrain_close(l);
    sem_destroy(&c.begins);
  }
}

static void an_operation_on_no_memory_counts(void **state) {
  (void)state;
  ltrain *l = open_bounded(100000);
  must(l, ltrain_dostring(l, "lt = require 'ltrain' x = lt.ones(1)", "s"));
  for (size_t k = 0; k + 1 < sizeof vast / sizeof *vast; k++) {
    char code[200];
    snprintf(code, sizeof code, "local y = %s", vast[k]);
    must_say(l, code, ltrain_dostring(l, code, "s.lua"),
             "so many elements are more than the host of this state allows (max_instructions): [");
  }
  must(l, ltrain_dostring(l, "assert(x:expand(1 << 20):sum():item() == 1 << 20)", "s"));
  assert_false(ltrain_dostring(l, "for _ = 1, 1000 do x:expand(1 << 20):sum() end", "s"));
  ltrain_close(l);
}

/* What an earlier call has left to finalize is not charged to the next, and ends all the same. The
   collector is stopped where calls leave it, and runs at once where others use memory. */
static void finalizers_of_earlier_calls_have_a_budget_of_their_own(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_instructions = 100000;
  config.allow = LTRAIN_LUA_LIBRARIES; /* collectgarbage */
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l,
                          "done = 0\n"
                          "function leave(n, m) collectgarbage 'stop' for _ = 1, n do\n"
                          "  setmetatable({}, {__gc = function() for _ = 1, m do end\n"
                          "    done = done + 1 end}) end end\n"
                          "function use() collectgarbage 'restart'\n"
                          "  for _ = 1, 9000 do local t = {} end end",
                          "f.lua"));
  int64_t done = 0;
  for (int k = 0; k < 20; k++) {
    must(l, ltrain_dostring(l, "leave(10, 6000)", "f.lua"));
    must(l, ltrain_dostring(l, "use()", "f.lua"));
  }
  must(l, ltrain_get(l, "done", "i", &done));
  assert_int_equal(done, 200);
  must(l, ltrain_dostring(l, "leave(50, 1 << 60)", "f.lua"));
  for (int k = 0; k < 20; k++) must(l, ltrain_dostring(l, "use()", "f.lua"));
  must_say(l, "leave", ltrain_dostring(l, "leave(1, 1 << 60) use()", "f"),
           "f.lua:3: the script ran more than 100000 instructions");
  must(l, ltrain_dostring(l, "leave(50, 1 << 60)", "f.lua"));
  ltrain_close(l);
}

static void it_says_where(void **state) {
  (void)state;
  ltrain *l = open_bounded(100000);
  static const char code[] = "\npcall(function()\n  while true do end\nend)\nlocal x = 1\n";
  must_say(l, code, ltrain_dostring(l, code, "s.lua"), "s.lua:3: the script ran more than 100000");
  static const char pattern[] = "local s = ('a'):rep(1000)\npcall(s.find, s, ('a-'):rep(9) .. 'b')";
  must_say(l, pattern, ltrain_dostring(l, pattern, "s.lua"), "s.lua:2: the script ran more than");
  static const char forged[] = "load('while true do end', '=ltrain.forged')()";
  must_say(l, forged, ltrain_dostring(l, forged, "s.lua"), "'=ltrain.forged' is the library's");
  ltrain_close(l);
}

static void what_is_closed_late_ends_too(void **state) {
  (void)state;
  ltrain *l = open_bounded(100000);
  must(l, ltrain_dostring(l,
                          "local forever = function() while true do end end\n"
                          "kept = setmetatable({}, {__gc = forever})\n"
                          "co = coroutine.create(function()\n"
                          "  local _ <close> = setmetatable({}, {__close = forever})\n"
                          "  while true do end\n"
                          "end)\n"
                          "function go() coroutine.resume(co) end\n",
                          "s.lua"));
  must_say(l, "go", ltrain_call(l, "go", ""), "more than 100000");
  must(l, ltrain_dostring(l, "local ok, why = coroutine.close(co)\n"
                             "assert(not ok and why:find 'more than 100000')", "s.lua"));
  ltrain_close(l); /* finalizes `kept` */
}

static void a_step_that_ends_closes_what_it_began(void **state) {
  (void)state;
  ltrain *l = open_bounded(1000000);
  static const char code[] =
      "local lt = require 'ltrain'\n"
      "local Net = lt.Module:extend('Net')\n"
      "function Net:init() self.layer = lt.nn.Linear(1, 1) end\n"
      "function Net:training_step(x)\n"
      "  local _ <close> = setmetatable({}, {__close = function() while true do end end})\n"
      "  while forever do pcall(self.layer, x) end\n"
      "  return self.layer(x):sum()\n"
      "end\n"
      "function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end\n"
      "function train()\n"
      "  lt.Trainer{max_epochs = 1, logger = false, enable_checkpointing = false,\n"
      "    enable_progress_bar = false, enable_model_summary = false}:fit(Net(), {lt.ones(2, 1)})\n"
      "end\n"
      "forever = true\n";
  must(l, ltrain_dostring(l, code, "net.lua"));
  must(l, ltrain_start(l, "train", ""));
  ltrain_state s;
  while ((s = ltrain_step(l, NULL)) == LTRAIN_PAUSED)
    ;
  assert_int_equal(s, LTRAIN_FAILED);
  must_say(l, "train", false, "net.lua:6: the script ran more than 1000000 instructions");
  must_say(l, "train", ltrain_step(l, NULL) != LTRAIN_FAILED, "nothing was started");
  must(l, ltrain_dostring(l, "forever = false", "s.lua"));
  must_say(l, "train", ltrain_call(l, "train", ""), "net.lua:5: the script ran more than 1000000");
  ltrain_close(l);
}

/* The last thing that it ran was C, after which no hook comes. */
static void a_step_whose_end_comes_too_late_has_failed(void **state) {
  (void)state;
  ltrain *l = open_bounded(100000);
  must(l, ltrain_dostring(l,
                          "function late()\n"
                          "  return coroutine.resume(coroutine.create(function()\n"
                          "    string.find(('a'):rep(3000), ('a-'):rep(30) .. 'b')\n"
                          "  end))\n"
                          "end\n",
                          "late.lua"));
  must(l, ltrain_start(l, "late", ""));
  must_say(l, "late", ltrain_step(l, NULL) != LTRAIN_FAILED,
           "late.lua:3: the script ran more than 100000 instructions");
  must(l, ltrain_dostring(l, "assert(true)", "after"));
  ltrain_close(l);
}

static void finalizers_run_as_lua_runs_them(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  must(l, ltrain_dostring(
              l,
              "local order, kept = {}, nil\n"
              "local meta = {__gc = function(o)\n"
              "  order[#order + 1] = o.n\n"
              "  if o.n < 5 then kept = o end -- not what is in `weak`: it would stay there\n"
              "end}\n"
              "for n = 1, 3 do setmetatable({n = n}, meta) end\n"
              "assert(type(meta.__gc) == 'function')\n"
              "local late = {}\n"
              "setmetatable({n = 9}, late)\n"
              "late.__gc = meta.__gc -- as in Lua: it was not there in time\n"
              "setmetatable({n = 4}, {__gc = function() coroutine.yield() end})\n"
              "local weak = setmetatable({}, {__mode = 'k'})\n"
              "weak[setmetatable({n = 5}, meta)] = true\n"
              "while #order < 4 or next(weak) do local _ = {} end\n"
              "table.sort(order)\n"
              "assert(kept and table.concat(order, ' ') == '1 2 3 5')\n"
              "assert(not pcall(setmetatable, setmetatable({}, {__metatable = 1}), {__gc = print}))\n"
              "assert(not pcall(setmetatable, 1, meta))\n"
              "local t = {}\n"
              "assert(setmetatable(t, meta) == t and getmetatable(t) == meta)\n",
              "s.lua"));
  ltrain_close(l);
}

/* The bounded matcher gives what Lua's own gives. */
static const char drawn[] =
    "lt = require 'ltrain'\n"
    "lt.seed(7)\n"
    "local parts = {'a', 'b', '.', '%a', '%A', '%d', '[ab]', '[^a]', '[a-c%d]', '[]]', '(', ')',\n"
    "  '()', '*', '+', '-', '?', '^', '$', '%1', '%bab', '%f[a]', '%%', '%', '[', ' ', '\\0', 'x'}\n"
    "local letters = {'a', 'b', 'c', '1', ' ', '\\0', 'x', '%', ']'}\n"
    "local function draw(from, n)\n"
    "  local t = {}\n"
    "  for k = 1, n do t[k] = from[math.random(#from)] end\n"
    "  return table.concat(t)\n"
    "end\n"
    "local seen = {}\n"
    "local function note(...)\n"
    "  local t = table.pack(...)\n"
    "  for k = 1, t.n do t[k] = tostring(t[k]) end\n"
    "  seen[#seen + 1] = table.concat(t, ',')\n"
    "end\n"
    "local function all(s, p, at)\n"
    "  local n = 0\n"
    "  for a, b in s:gmatch(p, at) do note(a, b) n = n + 1 if n > 20 then break end end\n"
    "end\n"
    "function go(from, to)\n"
    "  seen = {}\n"
    "  for _ = from, to do\n"
    "    local s, p = draw(letters, math.random(0, 8)), draw(parts, math.random(0, 6))\n"
    "    local at = math.random(-10, 10)\n"
    "    note(pcall(string.find, s, p, at))\n"
    "    note(pcall(string.find, s, p, at, true))\n"
    "    note(pcall(string.match, s, p, at))\n"
    "    note(pcall(string.gsub, s, p, '<%0%1>', math.random(0, 9)))\n"
    "    note(pcall(string.gsub, s, p, {a = 'A', b = false, [1] = 2}))\n"
    "    note(pcall(string.gsub, s, p, function(x, y) if x ~= 'b' then return y or x end end))\n"
    "    note(pcall(all, s, p, at))\n"
    "  end\n"
    "  note(pcall(string.find, '', ('a*'):rep(300)))\n"
    "  note(pcall(string.find, '', ('(a)?'):rep(40)))\n"
    "  note(pcall(string.find, ('a'):rep(300), ('a?'):rep(300)))\n"
    "  note(pcall(string.gsub, 'abc', '%w', '%9'))\n"
    "  note(pcall(string.gsub, 'abc', '%w', '%x'))\n"
    "  note(pcall(string.gsub, 'abc', '%w', function() return {} end))\n"
    "  note(pcall(string.gsub, 'abc', '%w', true))\n"
    "  return table.concat(seen, '\\n')\n"
    "end\n";

static void patterns_give_what_lua_gives(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  ltrain *own = open_with(&config);
  config.max_instructions = INT64_C(1) << 40;
  ltrain *bounded = open_with(&config);
  must(own, ltrain_dostring(own, drawn, "d.lua"));
  must(bounded, ltrain_dostring(bounded, drawn, "d.lua"));
  for (int64_t k = 0; k < 8; k++) {
    const char *wanted = NULL, *got = NULL;
    must(own, ltrain_call(own, "go", "ii>s", k * 200, k * 200 + 199, &wanted));
    must(bounded, ltrain_call(bounded, "go", "ii>s", k * 200, k * 200 + 199, &got));
    assert_string_equal(wanted, got);
  }
  ltrain_close(own);
  ltrain_close(bounded);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_endless_script_is_ended),
      cmocka_unit_test(every_script_that_calls_operations_is_cancelled),
      cmocka_unit_test(closing_ends_what_does_not_end),
      cmocka_unit_test(every_endless_script_is_cancelled),
      cmocka_unit_test(another_thread_cancels_whatever_runs),
      cmocka_unit_test(an_operation_that_takes_for_ever_is_cancelled),
      cmocka_unit_test(an_operation_on_no_memory_counts),
      cmocka_unit_test(finalizers_of_earlier_calls_have_a_budget_of_their_own),
      cmocka_unit_test(it_says_where),
      cmocka_unit_test(what_is_closed_late_ends_too),
      cmocka_unit_test(a_step_that_ends_closes_what_it_began),
      cmocka_unit_test(a_step_whose_end_comes_too_late_has_failed),
      cmocka_unit_test(finalizers_run_as_lua_runs_them),
      cmocka_unit_test(patterns_give_what_lua_gives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
