/* spec/c/zip_test.c: zip files with changed bytes, and reads that fail. */
#include "io_test.h"

#include "device/device.h"
#include "io/zip.h"

static void number(char *at, int n, uint64_t value) {
  for (int i = 0; i < n; i++) at[i] = (char)(value >> (8 * i));
}

/* A file of two members, "a" with 4 bytes and "b" with 3, the sizes and the place of "b" and the
   place of the directory in the fields of large files. */
static size_t wide_file(char *out) {
  static const char marks[] = "PK\1\2PK\3\4PK\6\6PK\6\7PK\5\6";
  memset(out, 0, 512);
  memcpy(out, marks + 4, 4);
  number(out + 26, 2, 1);
  memcpy(out + 30, "aAAAA", 5);
  memcpy(out + 35, marks + 4, 4);
  number(out + 61, 2, 1);
  memcpy(out + 65, "bBBB", 4);
  char *entry = out + 69; /* of "a" */
  memcpy(entry, marks, 4);
  number(entry + 20, 4, 4);
  number(entry + 24, 4, 4);
  number(entry + 28, 2, 1);
  entry[46] = 'a';
  entry += 47; /* of "b" */
  memcpy(entry, marks, 4);
  number(entry + 20, 4, UINT32_MAX);
  number(entry + 24, 4, UINT32_MAX);
  number(entry + 28, 2, 1);
  number(entry + 30, 2, 4 + 1 + 4 + 24);
  number(entry + 42, 4, UINT32_MAX);
  entry[46] = 'b';
  number(entry + 47, 2, 9); /* another note, of a byte */
  number(entry + 49, 2, 1);
  number(entry + 52, 2, 1);
  number(entry + 54, 2, 24);
  number(entry + 56, 8, 3);
  number(entry + 64, 8, 3);
  number(entry + 72, 8, 35);
  char *end = entry + 80; /* 196 */
  memcpy(end, marks + 8, 4);
  number(end + 32, 8, 2);
  number(end + 40, 8, 127);
  number(end + 48, 8, 69);
  memcpy(end + 56, marks + 12, 4);
  number(end + 64, 8, 196);
  memcpy(end + 76, marks + 16, 4);
  number(end + 86, 2, UINT16_MAX);
  number(end + 88, 4, UINT32_MAX);
  number(end + 92, 4, UINT32_MAX);
  return (size_t)(end - out) + 98;
}

static void fields_of_large_files_are_read(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  char bytes[512];
  lt_zip z;
  io_write(IO_PATH("a"), bytes, wide_file(bytes));
  assert_true(lt_zip_open(c, &z, "load", IO_PATH("a"), false));
  assert_int_equal(z.count, 2);
  assert_null(lt_zip_find(&z, "c", 1));
  const lt_member *b = lt_zip_find(&z, "b", 1);
  assert_int_equal(b->size, 3);
  char *text = lt_zip_read(c, &z, b);
  assert_memory_equal(text, "BBB", 3);
  lt_free(c, text, 4);
  lt_tensor *t = lt_zip_tensor(c, &z, lt_zip_find(&z, "a", 1), LT_I16);
  assert_int_equal(t->numel, 2);
  assert_int_equal(((int16_t *)lt_data(t))[1], 'A' << 8 | 'A');
  assert_null(lt_zip_tensor(c, &z, b, LT_I16));
  io_assert_failure(c, "'b' ends within an element");
  lt_zip_close(c, &z);
  lt_ctx_release(c);
}

/* Each byte in turn takes each of some values; the file is cut at each place. */
static void survives_changes(void **state) {
  (void)state;
  static const char values[] = {0, 1, 2, 0x7f, (char)0x80, (char)0xff};
  lt_ctx *c = io_ctx();
  char bytes[512];
  size_t n = wide_file(bytes);
  int refusals = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t v = 0; v <= sizeof values; v++) {
      char was = bytes[i];
      if (v < sizeof values) bytes[i] = values[v];
      io_write(IO_PATH("a"), bytes, v < sizeof values ? n : i);
      bytes[i] = was;
      lt_zip z;
      int64_t live = c->memory.live_bytes;
      lt_frame frame = lt_frame_open(c);
      if (lt_zip_open(c, &z, "load", IO_PATH("a"), false)) {
        for (int64_t k = 0; k < z.count && lt_ok(c); k++)
          lt_zip_tensor(c, &z, &z.members[k], LT_U8);
        lt_zip_close(c, &z);
      } else {
        assert_int_equal(z.fd, -1);
        assert_int_equal(c->memory.live_bytes, live);
        refusals++;
      }
      lt_frame_close(c, frame, 0, NULL);
      lt_take_failure(c, NULL);
    }
  assert_true(refusals > 500);
  lt_ctx_release(c);
}

static ssize_t failing_pread(int fd, void *buffer, size_t n, off_t offset) {
  return io_fails() ? -1 : lt_system_files.pread(fd, buffer, n, offset);
}

static void a_failing_read_is_reported(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  char bytes[512];
  io_write(IO_PATH("a"), bytes, wide_file(bytes));
  lt_file_ops files = lt_system_files;
  files.pread = failing_pread;
  io_error = EIO;
  io_for_ever = false;
  bool ok = false;
  for (io_fail_at = 1; !ok; io_fail_at++) {
    lt_zip z;
    io_calls = 0;
    c->files = &files;
    ok = lt_zip_open(c, &z, "load", IO_PATH("a"), false);
    c->files = NULL;
    if (ok) lt_zip_close(c, &z);
    if (!ok) io_assert_failure(c, "load: cannot read ");
  }
  assert_int_equal(io_fail_at, 8); /* six reads: end, locator, end, directory, two members */
  lt_ctx_release(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, io_setup, io_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(fields_of_large_files_are_read),
      TEST(survives_changes),
      TEST(a_failing_read_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
