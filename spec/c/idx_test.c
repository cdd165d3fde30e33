/* spec/c/idx_test.c: IDX files of every type, plain and compressed, and those to refuse. */
#include "io_test.h"

#include <zlib.h>

#include "io/idx.h"

static void write_gz(const char *path, const void *bytes, unsigned n) {
  gzFile f = gzopen(path, "wb9");
  assert_non_null(f);
  assert_int_equal(gzwrite(f, bytes, n), n);
  gzclose(f);
}

static void reads_every_type(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  static const struct {
    const char *bytes;
    size_t n;
    lt_dtype dtype;
    double values[2];
  } files[] = {
      {"\0\0\x08\x01\0\0\0\x02\x05\xff", 10, LT_U8, {5, 255}},
      {"\0\0\x09\x01\0\0\0\x02\x05\xff", 10, LT_I8, {5, -1}},
      {"\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe", 12, LT_I16, {258, -2}},
      {"\0\0\x0c\x01\0\0\0\x02\0\x01\0\0\xff\xff\xff\xfd", 16, LT_I32, {65536, -3}},
      {"\0\0\x0d\x01\0\0\0\x02\x3f\x80\0\0\xc0\0\0\0", 16, LT_F32, {1, -2}},
      {"\0\0\x0e\x01\0\0\0\x02\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", 24, LT_F64, {1, -2}},
  };
  for (size_t i = 0; i < 2 * sizeof files / sizeof *files; i++) {
    const char *path = IO_PATH("a");
    if (i % 2 == 0)
      io_write(path, files[i / 2].bytes, files[i / 2].n);
    else
      write_gz(path, files[i / 2].bytes, (unsigned)files[i / 2].n);
    lt_tensor *t = lt_idx_read(c, "idx", path);
    if (t == NULL) fail_msg("%s", c->failure.text);
    assert_int_equal(t->dtype, files[i / 2].dtype);
    assert_int_equal(t->ndim, 1);
    assert_int_equal(t->numel, 2);
    for (int k = 0; k < 2; k++) {
      void *p = lt_data(t);
      double v = t->dtype == LT_U8    ? ((uint8_t *)p)[k]
                 : t->dtype == LT_I8  ? ((int8_t *)p)[k]
                 : t->dtype == LT_I16 ? ((int16_t *)p)[k]
                 : t->dtype == LT_I32 ? ((int32_t *)p)[k]
                 : t->dtype == LT_F32 ? (double)((float *)p)[k]
                                      : ((double *)p)[k];
      assert_true(v == files[i / 2].values[k]);
    }
  }
  lt_ctx_release(c);
}

static void reads_images(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  enum { n = 16 + 3 * 28 * 28 };
  unsigned char bytes[n] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 28, 0, 0, 0, 28};
  for (int i = 16; i < n; i++) bytes[i] = (unsigned char)(i * 7);
  write_gz(IO_PATH("images.gz"), bytes, n);
  lt_tensor *t = lt_idx_read(c, "idx", IO_PATH("images.gz"));
  assert_non_null(t);
  assert_int_equal(t->ndim, 3);
  assert_int_equal(t->size[0], 3);
  assert_int_equal(t->size[2], 28);
  assert_memory_equal(lt_data(t), bytes + 16, n - 16);
  lt_ctx_release(c);
}

static void refuses_damaged_files(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  static const struct {
    const char *bytes;
    size_t n;
    const char *reason;
  } files[] = {
      {"", 0, "it ends within its header"},
      {"\0\0\x08", 3, "it ends within its header"},
      {"\0\0\x08\x01\0\0", 6, "it ends within its header"},
      {"\0\x01\x08\x01\0\0\0\0", 8, "it does not begin with two zero bytes"},
      {"\0\0\x0a\x01\0\0\0\0", 8, "its element type is unknown"},
      {"\0\0\x08\0", 4, "it has not 1 to 4 dimensions"},
      {"\0\0\x08\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "not 1 to 4 dimensions"},
      {"\0\0\x08\x01\0\0\0\x02\x01", 9, "do not agree"},
      {"\0\0\x08\x01\0\0\0\x02\x01\x02\x03", 11, "do not agree"},
      {"\0\0\x0e\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20,
       "its dimensions overflow"},
      {"\0\0\x08\x02\x7f\xff\xff\xff\x7f\xff\xff\xff", 12, "do not agree"},
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    io_write(IO_PATH("a"), files[i].bytes, files[i].n);
    assert_null(lt_idx_read(c, "idx", IO_PATH("a")));
    io_assert_failure(c, files[i].reason);
  }
  assert_null(lt_idx_read(c, "mnist", IO_PATH("none")));
  io_assert_failure(c, "mnist: cannot open ");
  lt_ctx_release(c);
}

static void refuses_damaged_compression(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  enum { n = 8 + 1000 };
  unsigned char bytes[n] = {0, 0, 8, 1, 0, 0, 3, 232};
  for (int i = 8; i < n; i++) bytes[i] = (unsigned char)(i * i * 31);
  const char *path = IO_PATH("a.gz");
  char packed[2048], damaged[2048];
  write_gz(path, bytes, n);
  size_t size = io_read(path, packed, sizeof packed);
  assert_non_null(lt_idx_read(c, "idx", path));
  for (size_t cut = 2; cut < size; cut += 37) {
    io_write(path, packed, cut);
    assert_null(lt_idx_read(c, "idx", path));
    io_assert_failure(c, "is not an IDX file");
  }
  for (size_t at = 10; at < size; at += 13) { /* data, checksum and length alike */
    memcpy(damaged, packed, size);
    damaged[at] = (char)(damaged[at] ^ 0x10);
    io_write(path, damaged, size);
    assert_null(lt_idx_read(c, "idx", path));
    io_assert_failure(c, "is not an IDX file");
  }
  memcpy(damaged, packed, size);
  damaged[size] = 'x';
  io_write(path, damaged, size + 1);
  assert_null(lt_idx_read(c, "idx", path));
  io_assert_failure(c, "bytes follow its data");
  bytes[4] = 0x7f; /* 2 GB promised by a file of 1 KB */
  write_gz(path, bytes, n);
  assert_null(lt_idx_read(c, "idx", path));
  io_assert_failure(c, "its size and its dimensions do not agree");
  bytes[4] = 0, bytes[7]--; /* one byte more than promised */
  write_gz(path, bytes, n);
  assert_null(lt_idx_read(c, "idx", path));
  io_assert_failure(c, "bytes follow its data");
  lt_ctx_release(c);
}

/* 300 KB that may, by the limit of deflate, become 300 MB: refused before there is memory for it. */
static void refuses_what_becomes_too_large(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  enum { n = 300000 };
  char *bytes = calloc(1, n);
  memcpy(bytes, "\0\0\x08\x01\x11\xe1\xa3\0", 8); /* promises 300000000 bytes */
  for (int i = 8; i < n; i++) bytes[i] = (char)(rand() >> 7);
  write_gz(IO_PATH("a.gz"), bytes, n);
  free(bytes);
  assert_null(lt_idx_read(c, "idx", IO_PATH("a.gz")));
  io_assert_failure(c, "would become 300000000, over 100 times as many: unpack it first");
  lt_ctx_release(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, io_setup, io_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(reads_every_type),
      TEST(reads_images),
      TEST(refuses_damaged_files),
      TEST(refuses_damaged_compression),
      TEST(refuses_what_becomes_too_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
