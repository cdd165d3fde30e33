/* spec/c/host_functions_test.c: functions of the host's that scripts call: what they get and give,
   how they fail, and that they may call the state that calls them. */
#include "host_test.h"

static bool mix(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)l;
  ++*(int *)ud;
  out[0].i = in[0].i + 1;
  out[1].d = in[1].d / 2;
  out[2].b = !in[2].b;
  out[3].s = in[3].s;
  return true;
}

static void values_go_both_ways(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  int calls = 0;
  must(l, ltrain_dostring(l, "host = {}", "h.lua"));
  must(l, ltrain_register(l, "host.mix", "idbs>idbs", mix, &calls));
  must(l, ltrain_dostring(l,
                          "local i, d, b, s = host.mix(1 << 60, 5, false, 'hi')\n"
                          "assert(i == (1 << 60) + 1 and d == 2.5 and b == true and s == 'hi')\n"
                          "i, d, b, s = host.mix(2.0, 0.5, 1)\n"
                          "assert(math.type(i) == 'integer' and i == 3 and b == false and s == "
                          "nil)",
                          "h.lua"));
  assert_int_equal(calls, 2);
  static const char *const wrong[][2] = {
      {"\nhost.mix(1.5, 1)", "h.lua:2: host.mix: argument 1 must be an integer, got number"},
      {"\nhost.mix('1', 1)", "h.lua:2: host.mix: argument 1 must be an integer, got string"},
      {"host.mix(1, '2')", "h.lua:1: host.mix: argument 2 must be a number, got string"},
      {"host.mix(1, 2, 3, 4)", "h.lua:1: host.mix: argument 4 must be a string or nil, got number"},
      {"host.mix(1)", "h.lua:1: host.mix: argument 2 must be a number, got no value"},
      {"host.mix(1, 2, 3, '4', {})", "h.lua:1: host.mix: one argument too many: table"},
  };
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
    must_say(l, ltrain_dostring(l, wrong[k][0], "h.lua"), wrong[k][1]);
  assert_int_equal(calls, 2);
  ltrain_close(l);
}

static void what_cannot_be_registered_is_refused(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  int calls = 0;
  must_say(l, ltrain_register(l, NULL, "", mix, NULL), "register: the name is NULL");
  must_say(l, ltrain_register(l, "", "", mix, NULL), "register: the name is empty");
  must_say(l, ltrain_call(l, "", ""), "call: the name is empty");
  must_say(l, ltrain_register(l, "f", NULL, mix, NULL), "register: the format is NULL");
  must_say(l, ltrain_register(l, "f", "", NULL, NULL), "register: the function is NULL");
  must_say(l, ltrain_register(l, "f", "ix", mix, NULL), "register: unknown letter 'x'");
  must_say(l, ltrain_register(l, "f", "i>>", mix, NULL), "register: unknown letter '>'");
  must_say(l, ltrain_register(l, "f", "iiiiiiiiiiiiiiiii", mix, NULL), "at most 16 arguments");
  must_say(l, ltrain_register(l, "no.f", "", mix, NULL), "no.f: no table to store into");
  assert_false(ltrain_register(NULL, "f", "", mix, NULL));
  must(l, ltrain_register(l, "f", "idbs>idbs", mix, &calls));
  must(l, ltrain_dostring(l, "f(1, 2)", "h.lua"));
  ltrain_close(l);
}

static int drops;
static void drop(void *ud) { drops++, (void)ud; }

static float memory[4];

/* The sum of the argument's elements, in memory of the host's; and the argument itself. */
static bool total(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)ud;
  const float *x = ltrain_data(l, in[0].T, 0);
  const int64_t shape[] = {1};
  if (x == NULL) return false; /* with the reason that ltrain_data gave */
  memory[0] = 0;
  for (int64_t k = 0; k < lt_tensor_size(in[0].T, 0); k++)
    memory[0] += x[k * lt_tensor_stride(in[0].T, 0)];
  out[0].T = ltrain_wrap(l, memory, LT_F32, 1, shape, drop, NULL);
  out[1].T = in[0].T;
  out[2].T = NULL;
  return out[0].T != NULL;
}

static void tensors_are_lent_and_handed_over(void **state) {
  (void)state;
  drops = 0;
  ltrain *l = open_with(NULL);
  must(l, ltrain_register(l, "total", "T>TTT", total, NULL));
  must(l, ltrain_dostring(l,
                          "local lt = require 'ltrain'\n"
                          "local x = lt.ones(3) * 2\n"
                          "local sum, same, none = total(x)\n"
                          "assert(sum:item() == 6)\n"
                          "assert(rawequal(same, x) and none == nil)\n"
                          "assert(total(lt.arange(0, 6):to('f32'):view(3, 2):t()[1]):item() == 6)\n"
                          "for _ = 1, 100 do local s, y = total(x) s, y = nil, nil end\n"
                          "assert(not pcall(total, 1) and not pcall(total))\n",
                          "t.lua"));
  ltrain_close(l);
  assert_int_equal(drops, 102);
}

static bool fail_with_tensor(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  const int64_t shape[] = {1};
  out[0].T = out[1].T = ltrain_wrap(l, memory, LT_F32, 1, shape, drop, NULL);
  if (in[0].i == 1) return ltrain_fail(l, "no such level");
  if (in[0].i == 2) return ltrain_fail(l, NULL);
  if (in[0].i == 3) return ltrain_dostring(l, "\nerror('within')", ud);
  return in[0].i != 4;
}

static void failures_are_errors_of_the_script(void **state) {
  (void)state;
  drops = 0;
  ltrain *l = open_with(NULL);
  must(l, ltrain_register(l, "load_level", "i>TT", fail_with_tensor, "nested.lua"));
  must_say(l, ltrain_dostring(l, "\nload_level(1)", "f.lua"), "f.lua:2: load_level: no such level");
  must_say(l, ltrain_dostring(l, "load_level(2)", "f.lua"),
           "load_level: an error without a message");
  must_say(l, ltrain_dostring(l, "load_level(3)", "f.lua"),
           "f.lua:1: load_level: nested.lua:2: within");
  must_say(l, ltrain_dostring(l, "load_level(4)", "f.lua"), "f.lua:1: load_level: it has failed");
  must(l, ltrain_dostring(l,
                          "local ok, why = pcall(load_level, 1)\n"
                          "assert(not ok and why:find 'load_level: no such level')\n"
                          "local a, b = load_level(0) assert(a == b)",
                          "f.lua"));
  assert_string_equal(ltrain_errmsg(l), "");
  ltrain_close(l);
  assert_int_equal(drops, 6); /* also of those that failed */
}

/* Calls back, as deep as it is asked to. */
static bool down(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)ud;
  if (in[0].i == 0) return true;
  int64_t deeper = 0;
  if (!ltrain_call(l, "go_down", "i>i", in[0].i - 1, &deeper)) return false;
  out[0].i = deeper + 1;
  const char *where = NULL;
  bool refused =
      ltrain_step(l, &where) == LTRAIN_FAILED && !ltrain_start(l, "go_down", "i", in[0].i);
  return refused || ltrain_fail(l, "a step within a call");
}

static void they_may_call_the_state(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  must(l, ltrain_register(l, "down", "i>i", down, NULL));
  must(l, ltrain_dostring(l,
                          "function go_down(n)\n"
                          "  if n % 2 == 0 then return down(n) end\n"
                          "  return coroutine.wrap(function() return down(n) end)()\n"
                          "end",
                          "d.lua"));
  int64_t depth = 0;
  must(l, ltrain_call(l, "go_down", "i>i", INT64_C(20), &depth));
  assert_true(depth == 20);
  must_say(l, ltrain_call(l, "go_down", "i>i", INT64_C(100000), &depth), "overflow");
  must(l, ltrain_call(l, "go_down", "i>i", INT64_C(3), &depth));
  must(l, ltrain_start(l, "go_down", "i", INT64_C(5)));
  ltrain_state s;
  while ((s = ltrain_step_for(l, 0, NULL)) == LTRAIN_PAUSED) {
  }
  assert_int_equal(s, LTRAIN_FINISHED);
  ltrain_close(l);
}

/* A script cannot begin a budget of its own through the host. */
static bool again(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)ud;
  (void)in;
  (void)out;
  return ltrain_dostring(l, "local x = 1", "again.lua");
}

static bool stop(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)ud;
  (void)in;
  (void)out;
  ltrain_cancel(l);
  ltrain_dostring(l, "local x = 1", "again.lua"); /* fails, and takes nothing back */
  return true;
}

static void calls_within_calls_share_their_budget(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_instructions = 100000;
  ltrain *l = open_with(&config);
  must(l, ltrain_register(l, "again", "", again, NULL));
  must(l, ltrain_register(l, "stop", "", stop, NULL));
  must_say(l, ltrain_dostring(l, "while true do pcall(again) end", "b.lua"),
           "lua:1: the script ran more than 100000 instructions");
  must_say(l, ltrain_dostring(l, "pcall(stop) while true do pcall(again) end", "b.lua"),
           "cancelled");
  must(l, ltrain_dostring(l, "again()", "b.lua"));
  ltrain_close(l);
}

static ltrain *called;
static int refused;

static void call_from_print(void *ud, const char *text, size_t length) {
  (void)ud;
  (void)text;
  (void)length;
  must(called, ltrain_dostring(called, "printed = (printed or 0) + 1", "print.lua"));
}

static void call_from_log(void *ud, int level, const char *text) {
  (void)ud;
  (void)level;
  (void)text;
  if (!ltrain_dostring(called, "logged = true", "log.lua")) refused++;
}

static void print_may_call_the_state_and_log_may_not(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.print = call_from_print;
  config.log = call_from_log;
  ltrain *l = called = open_with(&config);
  must(l, ltrain_dostring(l, "print() print() warn('x') assert(printed == 2 and not logged)",
                          "p.lua"));
  assert_int_equal(refused, 1);
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_go_both_ways),
      cmocka_unit_test(what_cannot_be_registered_is_refused),
      cmocka_unit_test(tensors_are_lent_and_handed_over),
      cmocka_unit_test(failures_are_errors_of_the_script),
      cmocka_unit_test(they_may_call_the_state),
      cmocka_unit_test(calls_within_calls_share_their_budget),
      cmocka_unit_test(print_may_call_the_state_and_log_may_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
