/* spec/c/host_fuzz_test.c: drawn scripts and damaged bytes, in a state with limits: whatever they
   are, each call ends, with an error or without, and the state works after it.

   `./dev fuzz scripts [RUNS] [SEED]` sets the number of each kind, LT_FUZZ_RUNS, and the seed,
   LT_FUZZ_SEED; a failure says which seed and run it was. Run with sanitizers
   (LT_SANITIZE=address,undefined before it) it looks for what they find. */
#include <stdlib.h>
#include <unistd.h>

#include "host_counted.h"
#include "host_test.h"

enum { RUNS = 300, LONGEST = 600, ROOM = 16, HANGS_AFTER = 60 };

static uint64_t drawn;

static uint64_t draw(uint64_t n) {
  drawn += 0x9E3779B97F4A7C15u;
  uint64_t x = drawn;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return (x ^ x >> 31) % n;
}

static long number_of(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text != NULL ? atol(text) : otherwise;
}

/* Pieces of scripts that make sense together often enough. */
static const char *const pieces[] = {
    "x",
    "y",
    "x",
    "lt",
    "= ",
    "x = ",
    "y = ",
    "local z = ",
    "(",
    ")",
    "()",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ".",
    ":",
    "..",
    " + ",
    " - ",
    " * ",
    " / ",
    " // ",
    " < ",
    " == ",
    " and ",
    " or ",
    "not ",
    "#",
    "1",
    "0",
    "-1",
    "2.5",
    "1 << 40",
    "0/0",
    "'a'",
    "nil",
    "true",
    "{2, 3}",
    "{1, 2, 3}",
    "\n",
    "lt.zeros(2, 3)",
    "lt.ones(3)",
    "lt.randn(2, 2)",
    "lt.tensor{1, 2}",
    "lt.arange(0, 6)",
    "x:sum()",
    "x:mean(1)",
    "x:view(-1)",
    "x:t()",
    "x:reshape(3, 2)",
    "x:matmul(y)",
    "x:expand(4, 3)",
    "x[{1, 2}]",
    "x[1]",
    "x:requires_grad_()",
    "x:sum():backward()",
    "x.grad",
    "x:tolist()",
    "x:add_(1)",
    "x:item()",
    "x:to('f64')",
    "x:clone()",
    "x:narrow(1, 1, 1)",
    "lt.cat({x, y}, 1)",
    "lt.nn.Linear(3, 2)(x)",
    "lt.mse_loss(x, y)",
    "lt.save('memory:a', {x, y})",
    "lt.load('memory:a')",
    "lt.no_grad()",
    "pcall(error, x)",
    "pcall(function() ",
    "function() ",
    " end",
    "for i = 1, 3 do ",
    "while x do ",
    "if x then ",
    "return ",
    "coroutine.wrap(function() ",
    "coroutine.yield(x)",
    "end)()",
    "setmetatable({}, {__gc = function() x = 1 end})",
    "local t <close> = x ",
    "tostring(x)",
    "host(x)",
    "host(1)",
    "('x'):rep(9)",
    "string.gsub('abc', '%w', tostring)",
    "table.sort({2, 1})",
    "select('#', x, y)",
    "math.random()",
    "collectgarbage",
    "load('x = 1')()",
    "require 'ltrain.c'",
    "lt.hash(x)",
    "x:close()",
    "x:register_hook(function(g) return y end)",
    "error(x)",
    "goto done ",
    "::done::",
    "lt.seed(1)",
    "string.format('%s %d', x, 1)",
    "print(x)",
    "_G",
    "_ENV",
    "getmetatable(x)",
};

/* Scripts that Lua can read: $ is an expression, @ some statements. */
static const char *const expressions[] = {
    "x", "y", "x", "y", "z", "i", "1", "2", "0", "-1", "2.5", "1 << 40", "0/0", "'a'", "nil",
    "true", "{2, 3}", "{$, $}", "{a = $}", "($ + $)", "($ - $)", "($ * $)", "($ / $)", "($ // $)",
    "($ .. $)", "($ == $)", "($ < $)", "($ and $)", "(not $)", "(#$)", "(-$)", "x.grad", "x.shape",
    "x.shape[$]", "x[$]", "x[{$, $}]", "x[{{$, $}}]", "lt.zeros($, $)", "lt.ones($)",
    "lt.randn(2, 3)", "lt.tensor($)", "lt.tensor{$, $}", "lt.arange($, $)", "x:sum($)",
    "x:mean($)", "x:view($, $)", "x:t()", "x:reshape($)", "x:matmul($)", "x:expand($, $)",
    "x:narrow($, $, $)", "x:transpose($, $)", "x:permute($, $)", "x:to('f64')", "x:to('i64')",
    "x:clone()", "x:detach()", "x:item()", "x:tolist()", "x:softmax($)", "x:max($)", "x:sort($)",
    "x:topk($)", "x:gather(1, $)", "x:add_($)", "x:mul_($)", "x:copy_($)", "x:fill_($)",
    "lt.where($, $, $)", "lt.cat({$, $}, $)", "lt.stack{$, $}", "lt.einsum('ij,jk->ik', $, $)",
    "lt.nn.Linear($, $)($)", "lt.nn.Sequential(lt.nn.Linear(3, 2), lt.nn.ReLU())($)",
    "lt.nn.Dropout($)($)", "lt.cross_entropy($, $)", "lt.mse_loss($, $)", "lt.hash($)",
    "lt.load('memory:a')", "tostring($)", "pcall($, $)", "host($)", "select('#', $, $)",
    "string.format('%s', $)", "math.type($)", "(function(a) return $ end)($)", "next($)",
    "coroutine.wrap(function() return $ end)()", "load('return ' .. tostring($))", "lt.grad($, $)",
};

static const char *const statements[] = {
    "x = $\n", "y = $\n", "x = $\n", "local z = $\n", "x, y = $, $\n",
    "x, y = lt.ones(2, 3), lt.randn(3, 2)\n", "x = lt.randn(2, 3):requires_grad_()\n",
    "x[$] = $\n", "x[{$, $}] = $\n", "if $ then @ end\n", "for i = 1, 3 do @ end\n",
    "do @ end\n", "pcall(function() @ end)\n", "pcall(function() @ end)\n",
    "do local t <close> = lt.no_grad() @ end\n", "lt.no_grad(function() @ end)\n",
    "coroutine.wrap(function() @ coroutine.yield(x) @ end)()\n", "x:sum():backward()\n",
    "pcall(x.backward, x)\n", "lt.save('memory:a', $)\n", "print($)\n", "error($)\n",
    "x:register_hook(function(g) return $ end)\n", "setmetatable({}, {__gc = function() @ end})\n",
    "do local t <close> = setmetatable({}, {__close = function() @ end}) end\n",
    "collectgarbage()\n", "lt.seed($)\n", "x:close()\n", "while $ do @ break end\n",
    "for k, v in pairs($) do @ end\n", "table.sort({$, $, $})\n", "goto done do @ end ::done::\n",
};

enum { DEEPEST = 4 };

/* Returns how many bytes there are then; what is beyond LONGEST is left out. */
static size_t draw_form(char *code, size_t n, bool is_statement, int depth) {
  const char *form = is_statement ? statements[draw(sizeof statements / sizeof *statements)]
                                  : expressions[draw(sizeof expressions / sizeof *expressions)];
  if (depth > DEEPEST) form = is_statement ? "x = y\n" : draw(2) == 0 ? "x" : "2";
  for (; *form != 0 && n < LONGEST; form++) {
    if (*form == '$' || *form == '@')
      n = draw_form(code, n, *form == '@', depth + 1);
    else
      code[n++] = *form;
  }
  code[n] = 0;
  return n;
}

static void draw_readable(char *code) {
  size_t n = 0, count = 1 + draw(6);
  code[0] = 0;
  for (size_t k = 0; k < count; k++) {
    bool kept = draw(3) > 0; /* what it raises */
    if (kept && n < LONGEST - 40) n += (size_t)sprintf(code + n, "pcall(function() ");
    n = draw_form(code, n, true, 0);
    if (kept && n < LONGEST) n += (size_t)sprintf(code + n, " end)\n");
  }
}

static void draw_script(char *code) {
  if (draw(4) > 0) {
    draw_readable(code);
    return;
  }
  size_t n = 0, count = 1 + draw(24);
  code[0] = 0;
  for (size_t k = 0; k < count; k++) {
    const char *piece = pieces[draw(sizeof pieces / sizeof *pieces)];
    size_t length = strlen(piece);
    if (n + length + 2 > LONGEST) break;
    memcpy(code + n, piece, length + 1);
    n += length;
    if (draw(3) > 0) code[n++] = ' ', code[n] = 0;
  }
  if (n > 0 && draw(10) == 0) code[draw(n)] = (char)(1 + draw(255));
}

static bool host(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)ud;
  (void)ltrain_data(l, in[0].T, 1);
  out[0].T = in[0].T;
  return draw(4) > 0 || ltrain_fail(l, "drawn");
}

static counted allocated; /* by the state that is open */

static ltrain *open_limited(void) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  allocated = (counted){0};
  config.alloc = count_alloc;
  config.ud = &allocated;
  config.memory_cap = 64 << 20;
  config.max_instructions = 20000;
  ltrain *l = open_with(&config);
  must(l, ltrain_register(l, "host", "T>T", host, NULL));
  return l;
}

static const char check[] = "lt = require 'ltrain' x, y = lt.ones(2, 3), lt.ones(2, 3)\n"
                            "if lt.zeros(2).dtype == nil then error 'broken' end";

/* Runs it at once, or in slices. */
static void run_script(ltrain *l, const char *code) {
  if (draw(2) == 0) {
    ltrain_dostring(l, code, "drawn.lua");
  } else if (ltrain_set(l, "code", "s", code) &&
             ltrain_dostring(l, "drawn = load(code) or print", "load.lua") &&
             ltrain_start(l, "drawn", "")) {
    for (int k = 0; ltrain_step_for(l, 0, NULL) == LTRAIN_PAUSED && k < 30; k++) {
    }
    ltrain_cancel(l); /* if it is not at its end */
    ltrain_step(l, NULL);
    ltrain_dostring(l, "", "taken");
  }
}

static void any_script_ends_and_the_state_works(void **state) {
  (void)state;
  long runs = number_of("LT_FUZZ_RUNS", RUNS), seed = number_of("LT_FUZZ_SEED", 1), ended = 0;
  ltrain *l = open_limited();
  for (long k = 0; k < runs; k++) {
    char code[LONGEST + ROOM];
    drawn = (uint64_t)seed * 1000003 + (uint64_t)k;
    draw_script(code);
    alarm(HANGS_AFTER);
    if (k % 500 == 499) { /* what one script breaks of its own globals another need not find */
      ltrain_close(l);
      if (atomic_load(&allocated.live) != 0)
        fail_msg("%ld bytes stay of the 500 runs before %ld of seed %ld",
                 atomic_load(&allocated.live), k, seed);
      l = open_limited();
    }
    ltrain_dostring(l, check, "check.lua");
    run_script(l, code);
    ended += ltrain_errmsg(l)[0] == 0;
    const int64_t shape[] = {2};
    float memory[2] = {1, 2};
    lt_tensor *t = ltrain_wrap(l, memory, LT_F32, 1, shape, NULL, NULL);
    if (t == NULL || ltrain_data(l, t, 0) == NULL)
      fail_msg("run %ld of seed %ld: %s: %s", k, seed, ltrain_errmsg(l), code);
    ltrain_release(l, t);
    /* A call is charged what it collects of those before it, so one may be refused for that. */
    if (!ltrain_dostring(l, "return 1", "after.lua") &&
        !ltrain_dostring(l, "return 1", "after.lua"))
      fail_msg("run %ld of seed %ld: %s: %s", k, seed, ltrain_errmsg(l), code);
  }
  alarm(0);
  assert_true(runs < 100 || ended > 0);
  if (runs != RUNS) printf("%ld scripts from seed %ld: %ld without an error\n", runs, seed, ended);
  ltrain_close(l);
}

/* ltrain_wrap with numbers of any size: a tensor, or a sentence. */
static void any_import_is_right_or_refused(void **state) {
  (void)state;
  static const int64_t sizes[] = {0,  1,       2,         3,         7,
                                  -1, 1 << 20, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
  static union {
    double aligned;
    char bytes[1 << 12];
  } memory;
  long runs = number_of("LT_FUZZ_RUNS", RUNS), seed = number_of("LT_FUZZ_SEED", 1);
  ltrain *l = open_limited();
  must(l, ltrain_dostring(l, "function sum(x) return (x:sum():item()) ~= nil end", "sum.lua"));
  for (long k = 0; k < runs; k++) {
    drawn = (uint64_t)seed * 7919 + (uint64_t)k;
    int64_t shape[12], count = 1;
    int ndim = (int)draw(12) - 1, dtype = (int)draw(LT_DTYPE_COUNT + 4) - 2, ok = 0;
    for (int d = 0; d < 12; d++) shape[d] = sizes[draw(10) < 7 ? draw(5) : draw(10)];
    for (int d = 0; d < ndim; d++) /* as far as there are so many bytes */
      if (shape[d] > 4 && draw(8) > 0) shape[d] = 1;
    for (int d = 0; d < ndim; d++)
      count = shape[d] < 0 || shape[d] > 7 ? 1 << 20 : count * shape[d];
    void *at = draw(10) == 0 ? NULL : memory.bytes + draw(3) * draw(5);
    if (count > 400 && count < (1 << 20))
      continue; /* memory that is not there: the host's own fault */
    bool large = false;
    for (int d = 0; d < ndim; d++) large = large || shape[d] > 7;
    if (large && draw(4) > 0) continue;
    lt_tensor *t = ltrain_wrap(l, at, (lt_dtype)dtype, ndim,
                               ndim > 8 || draw(20) > 0 ? shape : NULL, NULL, NULL);
    if (t == NULL) {
      assert_true(ltrain_errmsg(l)[0] != 0);
      continue;
    }
    if (!large) ltrain_call(l, "sum", "T>b", t, &ok);
    ltrain_release(l, t);
  }
  ltrain_close(l);
}

/* Bytes of checkpoints, damaged in some places, as lt.load and a resumed fit find them. */
static void any_bytes_load_or_are_refused(void **state) {
  (void)state;
  long runs = number_of("LT_FUZZ_RUNS", RUNS), seed = number_of("LT_FUZZ_SEED", 1), loaded = 0;
  ltrain *l = open_limited();
  must(l, ltrain_dostring(l,
                          "lt = require 'ltrain'\n"
                          "assert(lt.save('memory:whole', {a = lt.ones(3, 2), b = {1, 'x', "
                          "lt.zeros(2)}}))\n"
                          "function load_it() return (lt.load('memory:part')) ~= nil end",
                          "save.lua"));
  size_t size = 0;
  const char *whole = ltrain_get_file(l, "memory:whole", &size);
  assert_true(whole != NULL && size > 100);
  char *part = malloc(size + 16);
  for (long k = 0; k < runs; k++) {
    drawn = (uint64_t)seed * 104729 + (uint64_t)k;
    memcpy(part, whole, size);
    size_t n = draw(4) == 0 ? draw(size + 1) : size, changes = draw(4);
    for (size_t c = 0; c < changes && n > 0; c++)
      part[draw(n)] = draw(3) == 0 ? "\"{}[]:,0919-"[draw(12)] : (char)draw(256);
    must(l, ltrain_put_file(l, "memory:part", part, n));
    int ok = 0;
    alarm(HANGS_AFTER);
    if (!ltrain_call(l, "load_it", ">b", &ok)) assert_true(ltrain_errmsg(l)[0] != 0);
    loaded += ok;
  }
  alarm(0);
  assert_true(runs < 100 || (loaded > 0 && loaded < runs));
  free(part);
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_script_ends_and_the_state_works),
      cmocka_unit_test(any_import_is_right_or_refused),
      cmocka_unit_test(any_bytes_load_or_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
