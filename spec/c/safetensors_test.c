/* spec/c/safetensors_test.c: golden bytes, round trips, every file that must be refused, saving
   under failures. */
#include "io_test.h"

#include "io/safetensors.h"

static lt_tensor *floats(lt_ctx *c, int ndim, const int64_t *size) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, ndim, size);
  for (int64_t i = 0; i < t->numel; i++) ((float *)lt_data(t))[i] = (float)i;
  return t;
}

static void assert_bytes(const char *path, const void *head, size_t n, size_t total) {
  char bytes[4096];
  assert_int_equal(io_read(path, bytes, sizeof bytes), total);
  assert_memory_equal(bytes, head, n);
}

static void writes_the_reference_bytes(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  const char *path = IO_PATH("a");
  assert_true(lt_safetensors_save(c, "save", path, 0, NULL, 0, NULL, NULL));
  assert_bytes(path, "\x08\0\0\0\0\0\0\0{}      ", 16, 16);
  lt_named_tensor t = {"attn.0", floats(c, 3, (int64_t[]){1, 2, 3})};
  assert_true(lt_safetensors_save(c, "save", path, 1, &t, 0, NULL, NULL));
  const char *header = "\x40\0\0\0\0\0\0\0{\"attn.0\":{\"dtype\":\"F32\",\"shape\":[1,2,3],\"data_"
                       "offsets\":[0,24]}}";
  assert_bytes(path, header, 72, 96);
  float data[24];
  io_read(path, (char *)data, 96);
  for (int i = 0; i < 6; i++) assert_true(data[18 + i] == (float)i);
  t = (lt_named_tensor){"attn0", floats(c, 4, (int64_t[]){1, 1, 2, 3})};
  assert_true(lt_safetensors_save(c, "save", path, 1, &t, 0, NULL, NULL));
  header = "\x48\0\0\0\0\0\0\0{\"attn0\":{\"dtype\":\"F32\",\"shape\":[1,1,2,3],\"data_offsets\":"
           "[0,24]}}       ";
  assert_bytes(path, header, 80, 104);
  lt_ctx_release(c);
}

static lt_tensor *filled(lt_ctx *c, lt_dtype dtype, int64_t n, int value) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, 1, &n);
  memset(lt_data(t), value, (size_t)n * lt_item_size(t));
  return t;
}

static void every_dtype_in_the_reference_order(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  enum { ALL = LT_DTYPE_COUNT + 2 };
  lt_named_tensor t[ALL];
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    t[d] = (lt_named_tensor){lt_dtype_name((lt_dtype)d), filled(c, (lt_dtype)d, 3, 1)};
  t[ALL - 2] = (lt_named_tensor){"another f32", filled(c, LT_F32, 0, 0)};
  t[ALL - 1] = (lt_named_tensor){"scalar", floats(c, 0, NULL)};
  assert_true(lt_safetensors_save(c, "save", IO_PATH("a"), ALL, t, 0, NULL, NULL));
  lt_safetensors s;
  assert_true(lt_safetensors_open(c, &s, "load", IO_PATH("a")));
  static const char *const order[] = {"i64",  "f64", "another f32", "f32", "scalar", "i32", "bf16",
                                      "f16",  "u16", "i16",         "i8",  "u8",     "bool"};
  enum { ORDERED = sizeof order / sizeof *order };
  int at = 0; /* a dtype that is not in the list may stand anywhere between */
  assert_int_equal(s.count, ALL);
  for (int i = 0; i < ALL; i++) {
    const char *name = s.stored[i].name;
    at += at < ORDERED && strcmp(name, order[at]) == 0;
    lt_tensor *back = lt_safetensors_read(c, &s, i), *was = NULL;
    for (int k = 0; k < ALL; k++)
      if (strcmp(t[k].name, name) == 0) was = t[k].tensor;
    assert_non_null(was);
    assert_int_equal(back->dtype, was->dtype);
    assert_int_equal(back->ndim, was->ndim);
    assert_int_equal(back->numel, was->numel);
    assert_memory_equal(lt_data(back), lt_data(was), (size_t)was->numel * lt_item_size(was));
  }
  assert_int_equal(at, ORDERED);
  lt_safetensors_close(c, &s);
  lt_ctx_release(c);
}

static lt_tensor *reversed(lt_ctx *c, lt_tensor *t) {
  lt_tensor *out = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, t->ndim, t->size);
  for (int64_t i = 0; i < t->size[0]; i++)
    for (int64_t k = 0; k < t->size[1]; k++)
      ((float *)lt_data(out))[i * t->size[1] + k] =
          ((float *)lt_data(t))[i * t->stride[0] + k * t->stride[1]];
  return out;
}

static void shared_tensors_are_stored_once(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  lt_tensor *w = floats(c, 2, (int64_t[]){2, 3});
  lt_tensor *same = lt_tensor_make(c, w->storage, LT_F32, 2, w->size, NULL, 0);
  lt_tensor *turned =
      lt_tensor_make(c, w->storage, LT_F32, 2, (int64_t[]){3, 2}, (int64_t[]){1, 3}, 0);
  lt_tensor *part = lt_tensor_make(c, w->storage, LT_F32, 1, (int64_t[]){2}, NULL, 1);
  lt_named_tensor t[] = {{"head", w}, {"z", turned}, {"embed", same}, {"part", part}, {"tail", w}};
  lt_metadata m[] = {{"zeta", "1", 1}, {"alpha", "caf\xc3\xa9", 5}};
  assert_true(lt_safetensors_save(c, "save", IO_PATH("a"), 5, t, 2, m, reversed));
  char text[512];
  io_read(IO_PATH("a"), text, sizeof text);
  const char *start = "{\"__metadata__\":{\"alpha\":\"caf\xc3\xa9\",\"ltrain.aliases\":"
                      "\"{\\\"embed\\\":\\\"head\\\",\\\"tail\\\":\\\"head\\\"}\",\"zeta\":\"1\"},"
                      "\"head\":{";
  assert_memory_equal(text + 8, start, strlen(start));
  lt_safetensors s;
  assert_true(lt_safetensors_open(c, &s, "load", IO_PATH("a")));
  assert_int_equal(s.count, 3);
  assert_int_equal(s.n_aliases, 2);
  for (int i = 0; i < 2; i++) assert_string_equal(s.stored[s.aliases[i].stored].name, "head");
  assert_string_equal(s.stored[2].name, "z");
  const float *z = lt_data(lt_safetensors_read(c, &s, 2));
  static const float expected[] = {0, 3, 1, 4, 2, 5};
  assert_memory_equal(z, expected, sizeof expected);
  const float *p = lt_data(lt_safetensors_read(c, &s, 1));
  assert_true(p[0] == 1 && p[1] == 2);
  lt_safetensors_close(c, &s);
  lt_ctx_release(c);
}

static void refuses_to_write_nonsense(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  lt_tensor *w = floats(c, 0, NULL);
  const char *path = IO_PATH("a");
  lt_named_tensor twice[] = {{"a", w}, {"b", w}, {"a", w}};
  assert_false(lt_safetensors_save(c, "save", path, 3, twice, 0, NULL, NULL));
  io_assert_failure(c, "save: two tensors are called 'a'");
  lt_named_tensor own = {"__metadata__", w}, bad = {"\xff", w};
  assert_false(lt_safetensors_save(c, "save", path, 1, &own, 0, NULL, NULL));
  io_assert_failure(c, "no tensor can be called '__metadata__'");
  assert_false(lt_safetensors_save(c, "save", path, 1, &bad, 0, NULL, NULL));
  io_assert_failure(c, "not UTF-8");
  lt_metadata keys[] = {{"k", "1", 1}, {"k", "2", 1}}, zero = {"k", "a\0b", 3},
              ours = {LT_ALIASES_KEY, "", 0};
  assert_false(lt_safetensors_save(c, "save", path, 0, NULL, 2, keys, NULL));
  io_assert_failure(c, "two metadata keys 'k'");
  assert_false(lt_safetensors_save(c, "save", path, 0, NULL, 1, &zero, NULL));
  io_assert_failure(c, "metadata 'k' contains a zero byte");
  assert_false(lt_safetensors_save(c, "save", path, 0, NULL, 1, &ours, NULL));
  io_assert_failure(c, "is ltrain's own");
  assert_int_equal(io_count_entries(), 0);
  lt_ctx_release(c);
}

/* A file with this header and so many bytes of data. */
static void write_file(const char *path, const char *header, size_t data) {
  static char bytes[1 << 16];
  size_t n = strlen(header);
  memset(bytes, 0, sizeof bytes);
  for (int i = 0; i < 8; i++) bytes[i] = (char)(n >> (8 * i));
  memcpy(bytes + 8, header, n);
  io_write(path, bytes, 8 + n + data);
}

static void assert_refused(lt_ctx *c, const char *path, const char *part) {
  lt_safetensors s;
  int64_t live = c->memory.live_bytes;
  assert_false(lt_safetensors_open(c, &s, "load", path));
  assert_int_equal(s.fd, -1);
  assert_int_equal(c->memory.live_bytes, live);
  io_assert_failure(c, part);
}

#define ENTRY(dtype, shape, offsets)                                                               \
  "\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets
#define ONE(dtype, shape, offsets) "{\"a\":{" ENTRY(dtype, shape, offsets) "}}"
#define TWO(offsets_a, offsets_b)                                                                  \
  "{\"a\":{" ENTRY("U8", "[4]", offsets_a) "},\"b\":{" ENTRY("U8", "[4]", offsets_b) "}}"

static const struct {
  const char *header;
  size_t data;
  const char *reason;
} refused[] = {
    {"[]", 0, "the header is not an object"},
    {"", 0, "not JSON"},
    {"{", 0, "not JSON"},
    {"{}x", 0, "not JSON"},
    {"\xff", 0, "not JSON"},
    {"{\"\xff\":1}", 0, "not JSON"},
    {"{}", 1, "1 bytes of tensors, the header says 0"},
    {ONE("F32", "[2,2]", "[0,16]"), 18, "18 bytes of tensors, the header says 16"},
    {ONE("F32", "[2,2]", "[0,16]"), 14, "14 bytes of tensors, the header says 16"},
    {ONE("F32", "[2,2]", "[0,4]"), 4, "its shape and its bytes do not agree"},
    {ONE("F32", "[2,2]", "[4,20]"), 20, "a hole before it"},
    {ONE("F32", "[2,2]", "[16,0]"), 16, "it ends before it begins"},
    {ONE("F32", "[2,18446744073709551614]", "[0,16]"), 16, "too big integer"},
    {ONE("F32", "[2,9223372036854775807]", "[0,16]"), 16, "its shape overflows"},
    {ONE("F32", "[2305843009213693952]", "[0,0]"), 0, "its shape overflows"},
    {ONE("F32", "[4611686018427387904,4]", "[0,0]"), 0, "its shape overflows"},
    {ONE("F32", "[-2,-2]", "[0,16]"), 16, "a size is not a whole number"},
    {ONE("F32", "[4.0]", "[0,16]"), 16, "a size is not a whole number"},
    {ONE("F32", "[1e1]", "[0,40]"), 40, "a size is not a whole number"},
    {ONE("F32", "[4]", "[0.0,16]"), 16, "data_offsets is not a pair"},
    {ONE("F32", "[4]", "[-16,0]"), 16, "data_offsets is not a pair"},
    {ONE("F32", "[4]", "[0,9007199254740993.0]"), 16, "data_offsets is not a pair"},
    {ONE("F32", "[4]", "[0,16,16]"), 16, "data_offsets is not a pair"},
    {ONE("F32", "[4]", "16"), 16, "it needs dtype, shape and data_offsets"},
    {ONE("F32", "4", "[0,16]"), 16, "its shape is not a list"},
    {ONE("F32", "[[4]]", "[0,16]"), 16, "a size is not a whole number"},
    {ONE("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "more than 8 dimensions"},
    {ONE("F31", "[4]", "[0,16]"), 16, "has the unknown dtype 'F31'"},
    {ONE("f32", "[4]", "[0,16]"), 16, "has the unknown dtype 'f32'"},
    {ONE("F4", "[3]", "[0,1]"), 1, "do not fill whole bytes"},
    {"{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "it needs dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, "it needs dtype, shape"},
    {"{\"a\":{" ENTRY("F32", "[]", "[0,4]") ",\"x\":1}}", 4, "no more"},
    {"{\"a\":[]}", 0, "it needs dtype"},
    {"{\"a\":null}", 0, "it needs dtype"},
    {"{\"a\":{" ENTRY("U8", "[1]", "[0,1]") "},\"a\":{" ENTRY("U8", "[1]", "[1,2]") "}}", 2,
     "duplicate object key"},
    {"{\"a\":{" ENTRY("U8", "[1]", "[0,1]") ",\"shape\":[1]}}", 1, "duplicate object key"},
    {"{\"a\\u0000b\":{" ENTRY("U8", "[1]", "[0,1]") "}}", 1, "not JSON"},
    {ONE("F32", "[[[4]]]", "[0,16]"), 16, "nested deeper than 4 levels"},
    {TWO("[0,4]", "[0,4]"), 8, "it overlaps another"},
    {TWO("[0,4]", "[2,6]"), 8, "it overlaps another"},
    {TWO("[0,4]", "[5,9]"), 9, "a hole before it"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "metadata 'a' is not a string"},
    {"{\"__metadata__\":{\"a\":null}}", 0, "metadata 'a' is not a string"},
    {"{\"__metadata__\":{\"ltrain.aliases\":\"[]\"}}", 0, "aliases are not an object"},
    {"{\"__metadata__\":{\"ltrain.aliases\":\"{\"}}", 0, "not JSON"},
    {"{\"__metadata__\":{\"ltrain.aliases\":\"{\\\"b\\\":\\\"c\\\"}\"}}", 0, "names no tensor"},
    {"{\"__metadata__\":{\"ltrain.aliases\":\"{\\\"b\\\":1}\"}}", 0, "names no tensor"},
    {"{\"__metadata__\":{\"ltrain.aliases\":\"{\\\"a\\\":\\\"a\\\"}\"},\"a\":{" ENTRY("U8", "[1]",
                                                                                      "[0,1]") "}}",
     1, "or itself"},
};

static void refuses_every_damaged_header(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    write_file(IO_PATH("a"), refused[i].header, refused[i].data);
    assert_refused(c, IO_PATH("a"), refused[i].reason);
  }
  char header[2048];
  size_t n = 0;
  for (int i = 0; i < 10; i++)
    n += (size_t)snprintf(header + n, sizeof header - n,
                          "%s\"t%d\":{" ENTRY("F32", "[2,2]", "[0,16]") "}", i == 0 ? "{" : ",", i);
  strcpy(header + n, "}");
  write_file(IO_PATH("a"), header, 16);
  assert_refused(c, IO_PATH("a"), "it overlaps another");
  lt_ctx_release(c);
}

static void refuses_what_is_no_such_file(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  const char *path = IO_PATH("a");
  io_write(path, "", 0);
  assert_refused(c, path, "is not a safetensors file: it is empty");
  io_write(path, "\x3c\0\0\0\0\xff\xff\xff", 8);
  assert_refused(c, path, "is not a safetensors file: it does not begin with the size of a header");
  io_write(path, "\x01\xe1\xf5\x05\0\0\0\0{}", 10);
  assert_refused(c, path, "it does not begin with the size of a header");
  io_write(path, "\x03\0\0\0\0\0\0\0{}", 10);
  assert_refused(c, path, "a header of 3 bytes in 10");
  assert_refused(c, IO_PATH("none"), "load: cannot open ");
  assert_refused(c, io_folder, "load: not a plain file: ");
  lt_ctx_release(c);
}

static void accepts_what_the_reference_does(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  static const struct {
    const char *header;
    size_t data;
    int count;
  } fine[] = {
      {"\n\t {}  \n", 0, 0},
      {ONE("F32", "[]", "[0,4]"), 4, 1},
      {ONE("F32", "[2,0]", "[0,0]"), 0, 1},
      {ONE("F32", "[9223372036854775807,0,9]", "[0,0]"), 0, 1},
      {ONE("F4", "[2]", "[0,1]"), 1, 1},
      {ONE("F6_E2M3", "[4]", "[0,3]"), 3, 1},
      {TWO("[4,8]", "[0,4]"), 8, 2},
      {"{\"\":{" ENTRY("U8", "[1]", "[0,1]") "}}", 1, 1},
      {"{\"__metadata__\":{}}", 0, 0},
  };
  for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
    write_file(IO_PATH("a"), fine[i].header, fine[i].data);
    lt_safetensors s;
    if (!lt_safetensors_open(c, &s, "load", IO_PATH("a")))
      fail_msg("%s: %s", fine[i].header, c->failure.text);
    assert_int_equal(s.count, fine[i].count);
    lt_safetensors_close(c, &s);
  }
  lt_safetensors s;
  write_file(IO_PATH("a"), ONE("F8_E4M3", "[2]", "[0,2]"), 2);
  assert_true(lt_safetensors_open(c, &s, "load", IO_PATH("a")));
  assert_null(lt_safetensors_read(c, &s, 0));
  io_assert_failure(c, "tensor 'a' is F8_E4M3, a dtype that ltrain does not have");
  lt_safetensors_close(c, &s);
  static const char boolean[] = "\x37\0\0\0\0\0\0\0" ONE("BOOL", "[2]", "[0,2]") "\x01\x02";
  io_write(IO_PATH("a"), boolean, sizeof boolean - 1);
  assert_true(lt_safetensors_open(c, &s, "load", IO_PATH("a")));
  assert_null(lt_safetensors_read(c, &s, 0));
  io_assert_failure(c, "byte 1 of a BOOL is 2");
  lt_safetensors_close(c, &s);
  lt_ctx_release(c);
}

/* A good file with bytes changed, cut or added: refused or read, never a crash (and under
   sanitizers no leak). */
static void survives_mutations(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  lt_named_tensor t[] = {{"a.weight", floats(c, 2, (int64_t[]){2, 3})},
                         {"a.bias", filled(c, LT_BOOL, 3, 1)},
                         {"ids", filled(c, LT_I64, 2, 7)}};
  lt_metadata m = {"ltrain", "{\"format\":1}", 12};
  assert_true(lt_safetensors_save(c, "save", IO_PATH("good"), 3, t, 1, &m, NULL));
  char good[1024], bad[1100];
  size_t n = io_read(IO_PATH("good"), good, sizeof good);
  uint32_t x = 1;
  static const char bits[] = "{}[]\",:0123456789e-.\\ \xff";
  int refusals = 0;
  for (int i = 0; i < 4000; i++) {
    memcpy(bad, good, n);
    size_t size = n;
    for (int k = 0; k <= i % 3; k++) {
      x = x * 1664525 + 1013904223;
      bad[(x >> 8) % size] = bits[(x >> 24) % (sizeof bits - 1)];
      if (x % 7 == 0) size = (x >> 10) % n + 1;
    }
    io_write(IO_PATH("bad"), bad, size);
    lt_safetensors s;
    lt_frame frame = lt_frame_open(c);
    if (lt_safetensors_open(c, &s, "load", IO_PATH("bad"))) {
      for (int64_t j = 0; j < s.count && lt_ok(c); j++) lt_safetensors_read(c, &s, j);
      lt_safetensors_close(c, &s);
    } else {
      refusals++;
    }
    lt_frame_close(c, frame, 0, NULL);
    lt_take_failure(c, NULL);
  }
  assert_true(refusals > 2000);
  lt_ctx_release(c);
}

static bool is_former(lt_ctx *c, const char *path, float value) {
  lt_safetensors s;
  lt_frame frame = lt_frame_open(c);
  assert_true(lt_safetensors_open(c, &s, "load", path));
  assert_int_equal(s.count, 2);
  const float *data = lt_data(lt_safetensors_read(c, &s, 0));
  bool former = data[5] == value;
  lt_safetensors_close(c, &s);
  lt_frame_close(c, frame, 0, NULL);
  return former;
}

/* open, write, fsync, close, rename, the folder: each fails in turn. */
static void a_failing_save_leaves_a_loadable_file(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  const char *path = IO_PATH("a.ckpt");
  lt_tensor *w = floats(c, 2, (int64_t[]){2, 3});
  lt_named_tensor t[] = {{"w", w}, {"x", filled(c, LT_I32, 2, 3)}};
  t[1].tensor = floats(c, 1, (int64_t[]){4});
  lt_file_ops files = io_failing_files();
  io_short = false;
  for (int round = 0; round < 2; round++) {
    bool done = false;
    io_for_ever = round == 1;
    io_error = round == 0 ? ENOSPC : EIO;
    int failures = 0;
    for (io_fail_at = 1; !done; io_fail_at++) {
      ((float *)lt_data(w))[5] = 1;
      assert_true(lt_safetensors_save(c, "save", path, 2, t, 0, NULL, NULL));
      ((float *)lt_data(w))[5] = 2;
      io_calls = 0;
      c->files = &files;
      bool saved = lt_safetensors_save(c, "save", path, 2, t, 0, NULL, NULL);
      c->files = NULL;
      done = saved && io_calls < io_fail_at;
      if (!saved) {
        io_assert_failure(c, "save: cannot ");
        failures++;
      }
      assert_true(is_former(c, path, 1) || is_former(c, path, 2));
      if (saved) assert_true(is_former(c, path, 2));
      assert_int_equal(io_count_entries(), 1);
    }
    assert_true(failures >= 9);
  }
  lt_ctx_release(c);
}

static void crc_is_that_of_zlib(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_U8, 1, (int64_t[]){9});
  memcpy(lt_data(t), "123456789", 9);
  uint32_t crc;
  assert_true(lt_tensor_crc32(c, t, &crc));
  assert_int_equal(crc, 0xcbf43926);
  assert_true(lt_tensor_crc32(c, filled(c, LT_U8, 0, 0), &crc));
  assert_int_equal(crc, 0);
  lt_ctx_release(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, io_setup, io_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(writes_the_reference_bytes),
      TEST(every_dtype_in_the_reference_order),
      TEST(shared_tensors_are_stored_once),
      TEST(refuses_to_write_nonsense),
      TEST(refuses_every_damaged_header),
      TEST(refuses_what_is_no_such_file),
      TEST(accepts_what_the_reference_does),
      TEST(survives_mutations),
      TEST(a_failing_save_leaves_a_loadable_file),
      TEST(crc_is_that_of_zlib),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
