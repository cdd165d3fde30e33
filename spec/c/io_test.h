/* spec/c/io_test.h: what the tests of files share: a folder of their own, files from bytes, a table
   of calls whose n-th one fails. */
#ifndef LT_C_IO_TEST_H
#define LT_C_IO_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file.h"
#include "registry.h"

static char io_folder[64];

static inline int io_setup(void **state) {
  (void)state;
  strcpy(io_folder, "/tmp/lt_io_XXXXXX");
  return mkdtemp(io_folder) != NULL ? 0 : -1;
}

static inline bool io_remove_entry(void *ud, const char *name) {
  char path[512];
  (void)ud;
  snprintf(path, sizeof path, "%s/%s", io_folder, name);
  if (unlink(path) != 0) rmdir(path);
  return true;
}

static inline int io_teardown(void **state) {
  (void)state;
  lt_system_files.list(io_folder, io_remove_entry, NULL);
  return rmdir(io_folder);
}

static inline const char *io_path(char *out, const char *name) {
  snprintf(out, 128, "%s/%s", io_folder, name);
  return out;
}
#define IO_PATH(name) io_path((char[128]){0}, name)

static inline lt_ctx *io_ctx(void) {
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  assert_non_null(c);
  c->policy = (lt_policy){.read_files = true, .write_files = true};
  return c;
}

static inline void io_write(const char *path, const void *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  if (n > 0) assert_int_equal(fwrite(bytes, 1, n, f), n);
  fclose(f);
}

static inline size_t io_read(const char *path, char *out, size_t room) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  size_t n = fread(out, 1, room, f);
  fclose(f);
  return n;
}

static inline bool io_count_one(void *ud, const char *name) {
  (void)name;
  ++*(int *)ud;
  return true;
}

static inline int io_count_entries(void) {
  int n = 0;
  lt_system_files.list(io_folder, io_count_one, &n);
  return n;
}

/* The ctx has failed, and its text holds `part`; takes the failure. */
static inline void io_assert_failure(lt_ctx *c, const char *part) {
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  if (strstr(f.text, part) == NULL) fail_msg("'%s' does not contain '%s'", f.text, part);
}

/* Writing calls fail with io_error from the io_fail_at-th on (for ever, or that one alone). */
static int io_calls, io_fail_at, io_error;
static bool io_for_ever, io_short;

static inline bool io_fails(void) {
  io_calls++;
  if (io_for_ever ? io_calls < io_fail_at : io_calls != io_fail_at) return false;
  errno = io_error;
  return true;
}

static inline int io_open(const char *path, int flags, mode_t mode) {
  return io_fails() ? -1 : lt_system_files.open(path, flags, mode);
}
static inline ssize_t io_pwrite(int fd, const void *data, size_t n) {
  if (io_fails()) return -1;
  return lt_system_files.write(fd, data, io_short && n > 7 ? 7 : n);
}
static inline int io_fsync(int fd) { return io_fails() ? -1 : lt_system_files.fsync(fd); }
static inline int io_close(int fd) {
  bool fails = io_fails();
  int r = lt_system_files.close(fd);
  if (fails) errno = io_error;
  return fails ? -1 : r;
}
static inline int io_rename(const char *from, const char *to) {
  return io_fails() ? -1 : lt_system_files.rename(from, to);
}

static inline int io_exchange(const char *a, const char *b) {
  return io_fails() ? -1 : lt_system_files.exchange(a, b);
}

static inline int io_mkdir(const char *path, mode_t mode) {
  return io_fails() ? -1 : lt_system_files.mkdir(path, mode);
}

static inline int io_symlink(const char *target, const char *path) {
  return io_fails() ? -1 : lt_system_files.symlink(target, path);
}

static inline lt_file_ops io_failing_files(void) {
  lt_file_ops files = lt_system_files;
  files.open = io_open;
  files.write = io_pwrite;
  files.fsync = io_fsync;
  files.close = io_close;
  files.rename = io_rename;
  files.exchange = io_exchange;
  files.mkdir = io_mkdir;
  files.symlink = io_symlink;
  return files;
}

#endif
