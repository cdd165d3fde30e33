/* spec/c/json_test.c: JSON in and out: limits, positions, doubles bit for bit, odd strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<yaml.h>)
#include <yaml.h>

#include "io/libyaml.h"

/* What runtime/io/libyaml.h declares of libyaml. */
#define SAME_PLACE(ours, theirs, field, path) \
  _Static_assert(offsetof(ours, field) == offsetof(theirs, path), #field)
_Static_assert(sizeof(lt_yaml_parser) >= sizeof(yaml_parser_t), "parser");
SAME_PLACE(lt_yaml_parser, yaml_parser_t, problem, problem);
SAME_PLACE(lt_yaml_parser, yaml_parser_t, problem_mark, problem_mark);
SAME_PLACE(lt_yaml_parser, yaml_parser_t, context, context);
SAME_PLACE(lt_yaml_parser, yaml_parser_t, context_mark, context_mark);
_Static_assert(sizeof(lt_yaml_event) == sizeof(yaml_event_t), "event");
SAME_PLACE(lt_yaml_event, yaml_event_t, data.anchor, data.alias.anchor);
SAME_PLACE(lt_yaml_event, yaml_event_t, data.anchor, data.mapping_start.anchor);
SAME_PLACE(lt_yaml_event, yaml_event_t, data.tag, data.sequence_start.tag);
SAME_PLACE(lt_yaml_event, yaml_event_t, data.tag, data.scalar.tag);
SAME_PLACE(lt_yaml_event, yaml_event_t, data.value, data.scalar.value);
SAME_PLACE(lt_yaml_event, yaml_event_t, data.length, data.scalar.length);
SAME_PLACE(lt_yaml_event, yaml_event_t, data.style, data.scalar.style);
SAME_PLACE(lt_yaml_event, yaml_event_t, start, start_mark);
_Static_assert((int)LT_YAML_STREAM_END == (int)YAML_STREAM_END_EVENT, "event");
_Static_assert((int)LT_YAML_DOCUMENT_START == (int)YAML_DOCUMENT_START_EVENT, "event");
_Static_assert((int)LT_YAML_ALIAS == (int)YAML_ALIAS_EVENT, "event");
_Static_assert((int)LT_YAML_SCALAR == (int)YAML_SCALAR_EVENT, "event");
_Static_assert((int)LT_YAML_SEQUENCE_END == (int)YAML_SEQUENCE_END_EVENT, "event");
_Static_assert((int)LT_YAML_MAPPING_END == (int)YAML_MAPPING_END_EVENT, "event");
_Static_assert((int)LT_YAML_PLAIN == (int)YAML_PLAIN_SCALAR_STYLE, "style");
#endif

#include "io/json.h"
#include "registry.h"

static lt_ctx *fresh(void) { return lt_ctx_new(lt_registry_here(), NULL); }

static void assert_refused(lt_ctx *c, const char *text, size_t n, const char *part) {
  assert_null(lt_json_parse(c, "read", text, n, 8, false));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_int_equal(f.code, LT_EIO);
  if (strstr(f.text, part) == NULL) fail_msg("'%s' does not contain '%s'", f.text, part);
}

static void parses_and_keeps_kinds_apart(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  const char *text = " {\"a\": [1, 1.0, -0.0, \"x\", true, null], \"b\": {}} ";
  json_t *root = lt_json_parse(c, "read", text, strlen(text), 8, false);
  assert_non_null(root);
  json_t *a = json_object_get(root, "a");
  assert_true(json_is_integer(json_array_get(a, 0)));
  assert_true(json_is_real(json_array_get(a, 1)));
  assert_true(signbit(json_real_value(json_array_get(a, 2))));
  json_decref(root);
  lt_ctx_release(c);
}

static void refuses_with_a_position(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  const char *const bad[] = {"",      "{",     "[1,]",    "{\"a\":1,}",    "{a:1}",
                             "[01]",  "[1] x", "nul",     "[\"\n\"]",      "[\"\\x\"]",
                             "[NaN]", "[+1]",  "[1e999]", "[\"\\ud800\"]", "[\"a]",
                             "[1 2]", "'a'",   "[.5]"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_refused(c, bad[i], strlen(bad[i]), "read: not JSON: ");
  assert_refused(c, "[1,\n  ?]", 8, "(line 2, column ");
  assert_refused(c, "{\"a\":1,\"a\":2}", 13, "duplicate object key");
  assert_refused(c, "[\"\xff\"]", 5, "unable to decode byte 0xff");
  assert_refused(c, "[\"\xed\xa0\x80\"]", 7, "not JSON");
  assert_refused(c, "[\"\\u0000\"]", 10, "not JSON");
  assert_refused(c, "{\"\\u0000\":1}", 12, "not JSON");
  assert_refused(c, "[18446744073709551614]", 22, "too big integer");
  lt_ctx_release(c);
}

static void limits_depth_and_count(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  json_t *ok = lt_json_parse(c, "read", "[[[[[[[[\"[[[[\"]]]]]]]]", 22, 8, false);
  assert_non_null(ok);
  json_decref(ok);
  assert_refused(c, "[[[[[[[[[1]]]]]]]]]", 19, "nested deeper than 8 levels (byte 8)");
  enum { n = 1 << 24 };
  char *many = malloc(n);
  for (int i = 0; i < n; i++) many[i] = i % 2 == 0 ? '1' : ',';
  many[0] = '[';
  assert_refused(c, many, n, "more than 8388608 values");
  free(many);
  lt_ctx_release(c);
}

static const double samples[] = {0.0,
                                 -0.0,
                                 1,
                                 0.1,
                                 0.001,
                                 1.0 / 3,
                                 -2.5,
                                 1e22,
                                 1e300,
                                 DBL_MAX,
                                 DBL_MIN,
                                 DBL_TRUE_MIN,
                                 0x1.fffffffffffffp-1023,
                                 3,
                                 0x1.b69b4ba630f34p+56,
                                 0.1f,
                                 0.34234234094619750976};

static uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static double read_back(lt_ctx *c, const lt_json *w, bool exact) {
  json_t *v = lt_json_parse(c, "read", w->data, w->size, 1, false);
  assert_non_null(v);
  double x = json_real_value(v);
  size_t skip;
  if (exact && json_is_string(v))
    assert_int_equal(lt_json_read_string(json_string_value(v), json_string_length(v), &skip, &x),
                     LT_JSON_DOUBLE);
  else
    assert_true(json_is_real(v));
  json_decref(v);
  return x;
}

static void check_double(lt_ctx *c, double x) {
  for (int exact = 0; exact < 2; exact++) {
    lt_json w = {.c = c};
    lt_json_double(&w, x, exact);
    double y = read_back(c, &w, exact);
    assert_int_equal(bits_of(y), bits_of(x));
    lt_json_free(&w);
  }
}

static void doubles_come_back_bit_for_bit(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    check_double(c, samples[i]);
    check_double(c, -samples[i]);
  }
  uint64_t bits = 1;
  for (int i = 0; i < 20000; i++) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    double x;
    memcpy(&x, &bits, sizeof x);
    if (isfinite(x)) check_double(c, x);
  }
  lt_ctx_release(c);
}

static void assert_written(lt_ctx *c, double x, bool exact, const char *expected) {
  lt_json w = {.c = c};
  lt_json_double(&w, x, exact);
  assert_int_equal(w.size, strlen(expected));
  assert_memory_equal(w.data, expected, w.size);
  lt_json_free(&w);
}

static void doubles_read_well(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  assert_written(c, 0.1, false, "0.1");
  assert_written(c, 0.001, true, "0.001");
  assert_written(c, 3, true, "3.0");
  assert_written(c, -0.0, true, "-0.0");
  assert_written(c, 1e22, false, "1e+22");
  assert_written(c, 1.0 / 3, false, "0.3333333333333333");
  assert_written(c, 1.0 / 3, true, "\"0x1.5555555555555p-2\"");
  assert_written(c, DBL_TRUE_MIN, true, "4.94065645841247e-324");
  assert_written(c, HUGE_VAL, true, "\"inf\"");
  assert_written(c, -HUGE_VAL, false, "\"-inf\"");
  assert_written(c, (double)NAN, false, "\"nan\"");
  lt_ctx_release(c);
}

static void not_finite_ones_come_back(void **state) {
  (void)state;
  size_t skip;
  double x;
  assert_int_equal(lt_json_read_string("-inf", 4, &skip, &x), LT_JSON_DOUBLE);
  assert_true(isinf(x) && x < 0);
  assert_int_equal(lt_json_read_string("nan", 3, &skip, &x), LT_JSON_DOUBLE);
  assert_true(isnan(x));
  const char *const texts[] = {"",
                               "infinity",
                               "-nan",
                               "0x",
                               "0x1p",
                               "0x1p+",
                               "0x2p+0",
                               "0x1.p+0",
                               "0x1.8p+9999",
                               "0x1.8P+1",
                               "0X1.8p+1",
                               "0x1.8p+1 ",
                               "1.5",
                               "0x1.00000000000000p+0",
                               "-",
                               "-0x"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    assert_int_equal(lt_json_read_string(texts[i], strlen(texts[i]), &skip, &x), LT_JSON_TEXT);
}

static void check_string(lt_ctx *c, const char *text, size_t n) {
  lt_json w = {.c = c};
  lt_json_exact_string(&w, text, n);
  json_t *v = lt_json_parse(c, "read", w.data, w.size, 1, true);
  assert_non_null(v);
  const char *got = json_string_value(v);
  size_t length = json_string_length(v), skip;
  double x;
  char bytes[600];
  lt_json_meaning meaning = lt_json_read_string(got, length, &skip, &x);
  if (meaning == LT_JSON_BYTES) {
    assert_int_equal(lt_json_bytes(got + 1, length - 1, bytes), n);
    assert_memory_equal(bytes, text, n);
  } else {
    assert_int_equal(meaning, LT_JSON_TEXT);
    assert_int_equal(length - skip, n);
    assert_memory_equal(got + skip, text, n);
  }
  json_decref(v);
  lt_json_free(&w);
}

static void strings_come_back(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  const char *const texts[] = {"",
                               "a",
                               "inf",
                               "-inf",
                               "nan",
                               "0x1.8p+1",
                               "=",
                               "==x",
                               "~",
                               "~x",
                               "\"\\/\b\f\n\r\t\x01\x1f\x7f",
                               "h\xc3\xa9",
                               "\xf0\x9f\x98\x80",
                               "\xff",
                               "\xc3",
                               "\xc0\x80",
                               "\xed\xa0\x80",
                               "\xf4\x90\x80\x80"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    check_string(c, texts[i], strlen(texts[i]));
  char all[256];
  for (int i = 0; i < 256; i++) all[i] = (char)i;
  check_string(c, all, 256);
  check_string(c, "a\0b", 3);
  lt_json w = {.c = c};
  lt_json_string(&w, "a\xff", 2);
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, "json: a string is not UTF-8 (byte 2 of 2 is 0xff)");
  lt_json_free(&w);
  char out[4];
  assert_int_equal(lt_json_bytes("\xc4\x80", 2, out), -1);
  assert_int_equal(lt_json_bytes("\xc3", 1, out), -1);
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parses_and_keeps_kinds_apart),
      cmocka_unit_test(refuses_with_a_position),
      cmocka_unit_test(limits_depth_and_count),
      cmocka_unit_test(doubles_come_back_bit_for_bit),
      cmocka_unit_test(doubles_read_well),
      cmocka_unit_test(not_finite_ones_come_back),
      cmocka_unit_test(strings_come_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
