/* spec/c/host_arguments_test.c: what ltrain.h says to arguments that cannot be. */
#include "host_test.h"

typedef struct wrong_wrap {
  int dtype, ndim;
  int64_t shape[9];
  const char *text;
} wrong_wrap;

static const wrong_wrap wrong_wraps[] = {
    {LT_F32, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "wrap: dims must be 0 to 8, got 9"},
    {LT_F32, -1, {1}, "wrap: dims must be 0 to 8, got -1"},
    {LT_F32, 2, {-1, 3}, "wrap: impossible shape [-1, 3]"},
    {LT_F32, 2, {INT64_MAX, 2}, "wrap: impossible shape [9223372036854775807, 2]"},
    {LT_F64, 1, {INT64_MAX / 4}, "wrap: impossible shape [2305843009213693951]"},
    {LT_F32, 3, {0, INT64_MAX, INT64_MAX}, "wrap: impossible shape [0, "},
    {99, 1, {1}, "wrap: there is no dtype 99"},
    {-1, 1, {1}, "wrap: there is no dtype -1"},
};

static void count_drop(void *ud) { ++*(int *)ud; }

static void must_refuse(ltrain *l, const lt_tensor *t, const char *text) {
  must_say(l, t != NULL, text);
  must(l, ltrain_dostring(l, "x = 1", "next.lua")); /* nothing is left behind */
}

static void wrong_wraps_are_refused(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  double host[2] = {0};
  int drops = 0;
  for (size_t k = 0; k < sizeof wrong_wraps / sizeof *wrong_wraps; k++) {
    const wrong_wrap *w = &wrong_wraps[k];
    must_refuse(l, ltrain_wrap(l, host, (lt_dtype)w->dtype, w->ndim, w->shape, count_drop, &drops),
                w->text);
  }
  const int64_t one[1] = {1};
  must_refuse(l, ltrain_wrap(l, NULL, LT_F32, 1, one, count_drop, &drops), "the memory is NULL");
  must_refuse(l, ltrain_wrap(l, host, LT_F32, 1, NULL, count_drop, &drops),
              "wrap: the shape of 1 dims is NULL");
  must_refuse(l, ltrain_wrap(l, (char *)host + 1, LT_F32, 1, one, count_drop, &drops),
              "wrap: memory of f32 must be aligned to 4 bytes, got 0x");
  assert_int_equal(drops, 0);
  lt_tensor *t = ltrain_wrap(l, (char *)host + 1, LT_U8, 0, NULL, count_drop, &drops);
  assert_non_null(t);
  assert_int_equal(lt_tensor_size(t, 0), 0);
  assert_int_equal(lt_tensor_stride(t, -1), 0);
  ltrain_release(l, t);
  assert_int_equal(drops, 1);
  ltrain_close(l);
}

static void what_is_null_is_named(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  must_say(l, ltrain_dofile(l, NULL), "dofile: the path is NULL");
  must_say(l, ltrain_dostring(l, NULL, "x"), "dostring: the code is NULL");
  must_say(l, ltrain_call(l, NULL, ""), "call: the name is NULL");
  must_say(l, ltrain_call(l, "print", NULL), "call: the format is NULL");
  must_say(l, ltrain_get(l, NULL, "i"), "get: the name is NULL");
  must_say(l, ltrain_get(l, "x", NULL), "get: the format is NULL");
  must_say(l, ltrain_set(l, NULL, "i", INT64_C(1)), "set: the name is NULL");
  must_say(l, ltrain_set(l, "x", NULL), "set: the format is NULL");
  must_say(l, ltrain_start(l, NULL, ""), "start: the name is NULL");
  must_say(l, ltrain_call(l, "print", "T", NULL), "a tensor argument is NULL");
  assert_null(ltrain_data(l, NULL, 0));
  must_say(l, false, "data: the tensor is NULL");
  ltrain_release(l, NULL);
  ltrain_close(l);
}

/* A host that did not look whether ltrain_open gave it one. */
static void a_state_that_is_null_fails(void **state) {
  (void)state;
  assert_false(ltrain_dofile(NULL, "x.lua"));
  assert_false(ltrain_dostring(NULL, "x = 1", NULL));
  assert_false(ltrain_call(NULL, "print", ""));
  assert_false(ltrain_get(NULL, "x", "i", NULL));
  assert_false(ltrain_set(NULL, "x", "i", INT64_C(1)));
  assert_false(ltrain_start(NULL, "print", ""));
  assert_int_equal(ltrain_step(NULL, NULL), LTRAIN_FAILED);
  assert_null(ltrain_wrap(NULL, NULL, LT_F32, 0, NULL, NULL, NULL));
  assert_null(ltrain_data(NULL, NULL, 0));
  assert_null(ltrain_context(NULL));
  assert_null(ltrain_lua(NULL));
  assert_string_equal(ltrain_errmsg(NULL), "not enough memory");
  ltrain_release(NULL, NULL);
  ltrain_cancel(NULL);
  ltrain_close(NULL);
}

static void formats_are_checked(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  int64_t i = 0;
  must_say(l, ltrain_get(l, "x", "ii", &i), "get: expected one letter and a name without ':'");
  must_say(l, ltrain_set(l, "x:y", "i", i), "set: expected one letter and a name without ':'");
  must_say(l, ltrain_set(l, "x", "", i), "\"\", \"x\"");
  must_say(l, ltrain_set(l, "a.b", "i", i), "a.b: ");
  must_say(l, ltrain_start(l, "print", ">i", &i), "start: a call run step by step has no results");
  must_say(l, ltrain_call(l, "print", "q"), "unknown letter 'q'");
  must(l, ltrain_dostring(l, "function touch() touched = true return 1 end", "touch.lua"));
  must_say(l, ltrain_call(l, "touch", "id.", INT64_C(1), 2.0),
           "call: unknown letter '.' in the format \"id.\": letters of arguments (i d b s T), '>', "
           "letters of results");
  must_say(l, ltrain_call(l, "touch", ">i>i", NULL, NULL),
           "unknown letter '>' in the format \">i>i\"");
  must_say(l, ltrain_call(l, "touch", ">i ", NULL), "unknown letter ' '");
  must(l, ltrain_dostring(l, "assert(not touched)", "touch.lua"));
  ltrain_close(l);
}

static ltrain *inside;
static ltrain_state answer;

static void step_within(void *ud, const char *text, size_t length) {
  (void)ud, (void)text, (void)length;
  answer = ltrain_step(inside, NULL);
}

static void a_step_within_a_step_is_refused(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.print = step_within;
  inside = open_with(&config);
  answer = LTRAIN_PAUSED;
  must(inside, ltrain_start(inside, "print", "s", "x"));
  assert_int_equal(ltrain_step(inside, NULL), LTRAIN_FINISHED);
  assert_int_equal(answer, LTRAIN_FAILED);
  ltrain_close(inside);
}

/* A program built against a header whose config ended earlier: what follows is not checked. */
static void a_config_is_as_long_as_it_says(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  memset((char *)&config + offsetof(ltrain_config, log), 0xff,
         sizeof config - offsetof(ltrain_config, log));
  config.size = offsetof(ltrain_config, log);
  config.memory_cap = 64 << 20;
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l, "print 'x' warn 'y' local x = require 'ltrain'.zeros(8)", "c.lua"));
  must_say(l, ltrain_dostring(l, "require 'ltrain'.zeros(1 << 30)", "c.lua"), "out of memory");
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_wraps_are_refused),         cmocka_unit_test(what_is_null_is_named),
      cmocka_unit_test(a_state_that_is_null_fails),      cmocka_unit_test(formats_are_checked),
      cmocka_unit_test(a_step_within_a_step_is_refused),
      cmocka_unit_test(a_config_is_as_long_as_it_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
