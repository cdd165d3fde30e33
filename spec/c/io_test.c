/* spec/c/io_test.c: files, saving under failures, folders. */
#include "io_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <zlib.h>

static void saves_and_loads(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  const char *path = IO_PATH("a.txt");
  assert_true(lt_file_save(c, "save", path, "first", 5));
  assert_true(lt_file_save(c, "save", path, "second\0!", 8));
  size_t n;
  char *text = lt_file_load(c, "load", path, 100, &n);
  assert_int_equal(n, 8);
  assert_memory_equal(text, "second\0!", 9);
  lt_free(c, text, n + 1);
  assert_int_equal(io_count_entries(), 1);
  assert_null(lt_file_load(c, "load", path, 7, &n));
  io_assert_failure(c, "a.txt is larger than 7 bytes: it has 8");
  assert_null(lt_file_load(c, "load", IO_PATH("none"), 7, &n));
  io_assert_failure(c, "load: cannot open ");
  assert_null(lt_file_load(c, "load", io_folder, 7000, &n));
  io_assert_failure(c, "Is a directory");
  lt_ctx_release(c);
}

/* A pipe that nobody writes to, a device that never ends. */
static void reads_plain_files_alone(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  size_t n;
  assert_int_equal(mkfifo(IO_PATH("pipe"), 0600), 0);
  assert_null(lt_file_load(c, "load", IO_PATH("pipe"), 100, &n));
  io_assert_failure(c, "load: not a plain file: ");
  assert_null(lt_file_load(c, "load", "/dev/zero", (size_t)1 << 40, &n));
  io_assert_failure(c, "load: not a plain file: /dev/zero");
  assert_false(lt_file_append(c, "log", IO_PATH("pipe"), "x", 1));
  io_assert_failure(c, "log: cannot open ");
  char *text = lt_file_load(c, "load", "/proc/self/stat", 4096, &n); /* its size is 0 */
  assert_true(n > 10);
  lt_free(c, text, n + 1);
  lt_ctx_release(c);
}

static void *interrupt_soon(void *interrupts) {
  usleep(20000);
  atomic_store((atomic_int *)interrupts, 1);
  return NULL;
}

/* What a shell gives for <(command) is read to its end; the user may end the wait for it. */
static void reads_pipes_of_its_own(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  int ends[2];
  size_t n;
  char path[64];
  assert_int_equal(pipe(ends), 0);
  snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
  assert_int_equal(write(ends[1], "abc", 3), 3);
  atomic_int interrupts = 0;
  c->interrupts = &interrupts;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, &interrupts), 0);
  assert_null(lt_file_load(c, "load", path, 100, &n));
  io_assert_failure(c, "load: interrupted while it read /dev/fd/");
  pthread_join(thread, NULL);
  c->interrupts = NULL;
  assert_int_equal(write(ends[1], "def", 3), 3);
  close(ends[1]);
  char *text = lt_file_load(c, "load", path, 100, &n);
  assert_int_equal(n, 3); /* the first three are gone */
  assert_memory_equal(text, "def", 4);
  lt_free(c, text, n + 1);
  close(ends[0]);
  lt_ctx_release(c);
}

static void says_why_it_cannot_save(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  assert_false(lt_file_save(c, "save", IO_PATH("none/a.txt"), "x", 1));
  io_assert_failure(c, "/none/a.txt: No such file or directory");
  assert_false(lt_file_save(c, "save", "/", "x", 1));
  io_assert_failure(c, "save: not the name of a file: '/'");
  char *deep = malloc(5000);
  memset(deep, 'x', 4999);
  deep[4999] = 0;
  assert_false(lt_file_save(c, "save", deep, "x", 1));
  io_assert_failure(c, "path too long");
  free(deep);
  c->policy.write_files = false;
  assert_false(lt_file_save(c, "save", IO_PATH("a"), "x", 1));
  io_assert_failure(c, "this state may not write files");
  assert_false(lt_file_append(c, "log", IO_PATH("a"), "x", 1));
  io_assert_failure(c, "log: this state may not write files");
  c->policy.read_files = false;
  size_t n;
  assert_null(lt_file_load(c, "load", IO_PATH("a"), 1, &n));
  io_assert_failure(c, "this state may not read files");
  assert_int_equal(lt_file_kind_of(c, io_folder), LT_NO_FILE);
  assert_int_equal(io_count_entries(), 0);
  lt_ctx_release(c);
}

/* A full disk, by the device that is always full. */
static void a_full_disk_is_named(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  assert_false(lt_file_append(c, "log", "/dev/full", "x", 1));
  io_assert_failure(c, "log: cannot write /dev/full: No space left on device");
  lt_ctx_release(c);
}

/* A disk with room for some more bytes. */
static size_t room_left;
static ssize_t write_until_full(int fd, const void *data, size_t n) {
  errno = ENOSPC;
  if (room_left == 0) return -1;
  if (n > room_left) n = room_left;
  room_left -= n;
  return write(fd, data, n);
}

static void a_line_that_a_full_disk_cuts_is_taken_back(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  assert_true(lt_file_append(c, "log", IO_PATH("rows"), "1,2\n", 4));
  lt_file_ops files = lt_system_files;
  files.write = write_until_full;
  c->files = &files;
  room_left = 2;
  assert_false(lt_file_append(c, "log", IO_PATH("rows"), "3,4\n", 4));
  io_assert_failure(c, "/rows: No space left on device");
  room_left = 4;
  assert_true(lt_file_append(c, "log", IO_PATH("rows"), "5,6\n", 4));
  char text[16];
  assert_int_equal(io_read(IO_PATH("rows"), text, sizeof text), 8);
  assert_memory_equal(text, "1,2\n5,6\n", 8);
  c->files = NULL;
  lt_ctx_release(c);
}

/* Each call of a save fails in turn: the file is the former or the new one, nothing else is left.
 */
static void check_every_failure(int error, bool for_ever) {
  lt_ctx *c = io_ctx();
  lt_file_ops files = io_failing_files();
  const char *path = IO_PATH("kept");
  io_error = error;
  io_short = true;
  bool done = false;
  int failures = 0;
  for (io_fail_at = 1; !done; io_fail_at++) {
    io_write(path, "former", 6);
    io_calls = 0;
    io_for_ever = for_ever;
    c->files = &files;
    done = lt_file_save(c, "save", path, "new and longer", 14) && io_calls < io_fail_at;
    c->files = NULL;
    char text[32];
    size_t n = io_read(path, text, sizeof text);
    bool former = n == 6 && memcmp(text, "former", 6) == 0;
    assert_true(former || (n == 14 && memcmp(text, "new and longer", 14) == 0));
    lt_failure f;
    if (lt_take_failure(c, &f)) {
      failures++;
      assert_non_null(strstr(f.text, path));
      assert_non_null(strstr(f.text, strerror(error)));
    } else {
      assert_false(former);
    }
    assert_int_equal(io_count_entries(), 1);
  }
  /* open, 2 writes, fsync, close, rename, and two of the folder; its close may fail in peace */
  assert_true(failures >= 8);
  lt_ctx_release(c);
}

static void every_failure_keeps_a_whole_file(void **state) {
  (void)state;
  check_every_failure(ENOSPC, false);
  check_every_failure(EIO, false);
  check_every_failure(ENOSPC, true);
}

static void put_folder(lt_ctx *c, const char *text) {
  char temporary[LT_PATH_MAX], file[LT_PATH_MAX];
  if (!lt_folder_begin(c, "save", IO_PATH("kept"), temporary, sizeof temporary)) return;
  snprintf(file, sizeof file, "%.4000s/part", temporary);
  if (lt_file_save(c, "save", file, text, strlen(text)) &&
      lt_folder_commit(c, "save", temporary, IO_PATH("kept")))
    return;
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  lt_folder_discard(c, "remove", temporary);
  lt_fail(c, f.code, "%s", f.text);
}

/* The same of a folder of files, on file systems that can exchange two names and on others. */
static void check_every_failure_of_a_folder(bool for_ever, bool can_exchange) {
  lt_ctx *c = io_ctx();
  lt_file_ops files = io_failing_files();
  io_short = false;
  io_error = ENOSPC;
  if (!can_exchange) files.exchange = NULL;
  bool done = false;
  int failures = 0;
  for (io_fail_at = 1; !done; io_fail_at++) {
    put_folder(c, "former");
    assert_true(lt_ok(c));
    io_calls = 0;
    io_for_ever = for_ever;
    c->files = &files;
    put_folder(c, "new");
    c->files = NULL;
    char text[16] = "";
    io_read(IO_PATH("kept/part"), text, sizeof text - 1);
    assert_true(strcmp(text, "former") == 0 || strcmp(text, "new") == 0);
    done = lt_ok(c) && io_calls < io_fail_at;
    if (!lt_ok(c)) {
      io_assert_failure(c, strerror(ENOSPC));
      failures++;
    }
    assert_int_equal(io_count_entries(), 1);
  }
  assert_true(failures >= 8);
  assert_true(lt_folder_discard(c, "remove", IO_PATH("kept")));
  assert_true(lt_folder_discard(c, "remove", IO_PATH("kept")));
  lt_ctx_release(c);
}

static void every_failure_keeps_a_whole_folder(void **state) {
  (void)state;
  check_every_failure_of_a_folder(false, true);
  check_every_failure_of_a_folder(false, false);
  check_every_failure_of_a_folder(true, true);
}

/* A folder takes the place of a file, and a file that of a folder. */
static void a_folder_and_a_file_replace_each_other(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  char temporary[LT_PATH_MAX], file[LT_PATH_MAX];
  io_write(IO_PATH("kept"), "file", 4);
  put_folder(c, "folder");
  assert_true(lt_ok(c));
  assert_int_equal(lt_file_kind_of(c, IO_PATH("kept")), LT_FOLDER);
  assert_true(lt_folder_begin(c, "save", IO_PATH("kept"), temporary, sizeof temporary));
  snprintf(file, sizeof file, "%.4000s/x", temporary);
  assert_true(lt_file_save(c, "save", file, "again", 5));
  assert_true(lt_folder_commit(c, "save", file, IO_PATH("kept")));
  assert_true(lt_folder_discard(c, "remove", temporary));
  assert_int_equal(lt_file_kind_of(c, IO_PATH("kept")), LT_PLAIN_FILE);
  assert_int_equal(io_count_entries(), 1);
  lt_ctx_release(c);
}

static void expect_link(lt_ctx *c, const char *target) {
  char leads[LT_PATH_MAX];
  assert_true(lt_file_follow(c, IO_PATH("last"), leads, sizeof leads));
  assert_string_equal(strrchr(leads, '/') + 1, target);
}

/* The same of a link: it leads to the former file or to the new one. */
static void every_failure_keeps_a_link(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  lt_file_ops files = io_failing_files();
  io_error = EIO;
  io_for_ever = false;
  io_write(IO_PATH("a"), "a", 1);
  io_write(IO_PATH("b"), "b", 1);
  bool done = false;
  int failures = 0;
  for (io_fail_at = 1; !done; io_fail_at++) {
    assert_true(lt_file_link(c, "link", "a", IO_PATH("last")));
    io_calls = 0;
    c->files = &files;
    bool good = lt_file_link(c, "link", "b", IO_PATH("last"));
    done = good && io_calls < io_fail_at;
    c->files = NULL;
    if (!good) io_assert_failure(c, "/last: Input/output error");
    failures += !good;
    expect_link(c, good || io_fail_at > 2 ? "b" : "a"); /* the folder's sync is after the rename */
    assert_int_equal(io_count_entries(), 3);
  }
  assert_int_equal(failures, 4); /* symlink, rename, open and fsync of the folder */
  lt_ctx_release(c);
}

/* A temporary of a process with our number on this host, as in a container. */
static void a_link_is_made_beside_what_is_there(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  char host[256] = "", name[64], leads[8];
  gethostname(host, sizeof host - 1);
  unsigned id = (unsigned)crc32(0, (const Bytef *)host, (uInt)strlen(host));
  snprintf(name, sizeof name, ".last.%08x-%d-0.saving", id, (int)getpid());
  io_write(IO_PATH(name), "x", 1);
  io_write(IO_PATH("a"), "a", 1);
  assert_true(lt_file_link(c, "link", "a", IO_PATH("last")));
  expect_link(c, "a");
  assert_false(lt_file_follow(c, IO_PATH("a"), leads, sizeof leads));    /* not a link */
  assert_false(lt_file_follow(c, IO_PATH("last"), leads, sizeof leads)); /* too long */
  unlink(IO_PATH("a"));
  char longer[LT_PATH_MAX];
  assert_false(lt_file_follow(c, IO_PATH("last"), longer, sizeof longer)); /* leads to nothing */
  assert_int_equal(io_count_entries(), 2);
  lt_ctx_release(c);
}

static void interrupted_and_short_writes_go_on(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  lt_file_ops files = io_failing_files();
  c->files = &files;
  io_error = EINTR;
  io_short = true;
  io_for_ever = false;
  for (io_fail_at = 1; io_fail_at <= 2; io_fail_at++) {
    io_calls = 0;
    assert_true(lt_file_save(c, "save", IO_PATH("a"), "0123456789abcdef", 16));
    char text[32];
    assert_int_equal(io_read(IO_PATH("a"), text, sizeof text), 16);
    assert_memory_equal(text, "0123456789abcdef", 16);
  }
  lt_ctx_release(c);
}

static pid_t dead_process(void) {
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, NULL, 0);
  return pid;
}

static void sweeps_temporaries_of_the_dead(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  char host[256] = "", name[64];
  gethostname(host, sizeof host - 1);
  unsigned id = (unsigned)crc32(0, (const Bytef *)host, (uInt)strlen(host));
  int dead = (int)dead_process(), alive = (int)getppid();
  struct {
    unsigned host;
    int pid;
    bool stale;
  } cases[] = {{id, dead, true}, {id, alive, false}, {id ^ 1, dead, false}};
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, ".m.ckpt.%08x-%d-0.saving", cases[i].host, cases[i].pid);
    io_write(IO_PATH(name), "x", 1);
  }
  io_write(IO_PATH("my.saving"), "x", 1);
  io_write(IO_PATH(".my.saving"), "x", 1);
  assert_true(lt_file_save(c, "save", IO_PATH("other"), "x", 1));
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, ".m.ckpt.%08x-%d-0.saving", cases[i].host, cases[i].pid);
    assert_int_equal(access(IO_PATH(name), F_OK) == 0, !cases[i].stale);
  }
  assert_int_equal(io_count_entries(), 5);
  lt_ctx_release(c);
}

/* A process killed at any moment of a save leaves the former or the new file. */
static void survives_being_killed(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  const char *path = IO_PATH("big");
  enum { size = 1 << 20 };
  char *data = malloc(size);
  memset(data, 'a', size);
  assert_true(lt_file_save(c, "save", path, data, size));
  for (int i = 0; i < 20; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      for (int k = 0;; k++) {
        memset(data, 'b' + k % 20, size);
        lt_file_save(c, "save", path, data, size);
      }
    }
    usleep(500 * (useconds_t)i);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    char *text = malloc(size + 1);
    assert_int_equal(io_read(path, text, size + 1), size);
    for (int k = 1; k < size; k++) assert_int_equal(text[k], text[0]);
    free(text);
  }
  assert_true(lt_file_save(c, "save", path, "x", 1));
  assert_int_equal(io_count_entries(), 1);
  free(data);
  lt_ctx_release(c);
}

static void folders_are_made_listed_removed(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  assert_true(lt_folder_make(c, "log", IO_PATH("a//b/c/")));
  assert_true(lt_folder_make(c, "log", IO_PATH("a/b")));
  assert_int_equal(lt_file_kind_of(c, IO_PATH("a/b/c")), LT_FOLDER);
  assert_int_equal(lt_file_kind_of(c, IO_PATH("a/x")), LT_NO_FILE);
  assert_true(lt_file_append(c, "log", IO_PATH("a/x"), "1\n", 2));
  assert_true(lt_file_append(c, "log", IO_PATH("a/x"), "2\n", 2));
  char text[8];
  assert_int_equal(io_read(IO_PATH("a/x"), text, 8), 4);
  assert_memory_equal(text, "1\n2\n", 4);
  assert_int_equal(lt_file_kind_of(c, IO_PATH("a/x")), LT_PLAIN_FILE);
  int n = 0;
  assert_true(lt_folder_list(c, "list", IO_PATH("a"), io_count_one, &n));
  assert_int_equal(n, 2);
  assert_false(lt_folder_make(c, "log", IO_PATH("a/x/y")));
  io_assert_failure(c, "log: cannot make folder ");
  bool made;
  assert_true(lt_folder_claim(c, "log", IO_PATH("own"), &made) && made);
  assert_true(lt_folder_claim(c, "log", IO_PATH("own"), &made) && !made);
  assert_true(lt_file_remove(c, "remove", IO_PATH("own")));
  assert_false(lt_folder_claim(c, "log", IO_PATH("none/own"), &made));
  io_assert_failure(c, "log: cannot make folder ");
  assert_false(lt_file_remove(c, "remove", IO_PATH("a")));
  io_assert_failure(c, "remove: cannot remove ");
  assert_false(lt_folder_list(c, "list", IO_PATH("none"), io_count_one, &n));
  io_assert_failure(c, "list: cannot list ");
  assert_true(lt_file_remove(c, "remove", IO_PATH("a/x")));
  assert_true(lt_file_remove(c, "remove", IO_PATH("a/x")));
  assert_true(lt_file_remove(c, "remove", IO_PATH("a/b/c")));
  assert_true(lt_file_remove(c, "remove", IO_PATH("a/b")));
  assert_true(lt_file_remove(c, "remove", IO_PATH("a")));
  assert_int_equal(io_count_entries(), 0);
  lt_ctx_release(c);
}

static int refuse_access(const char *path, int mode) {
  (void)path;
  (void)mode;
  errno = EROFS;
  return -1;
}

static void fails_early_where_nothing_can_be_written(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  assert_true(lt_folder_writable(c, "log", IO_PATH("")));
  assert_true(lt_folder_writable(c, "log", IO_PATH("a//b/c/")));
  assert_true(lt_folder_writable(c, "log", "not/here"));
  assert_int_equal(lt_file_kind_of(c, IO_PATH("a")), LT_NO_FILE);
  io_write(IO_PATH("x"), "1", 1);
  assert_false(lt_folder_writable(c, "log", IO_PATH("x/y/z")));
  io_assert_failure(c, "Not a directory");
  assert_false(lt_folder_writable(c, "log", ""));
  io_assert_failure(c, "log: not a path: ''");
  lt_file_ops files = lt_system_files;
  files.access = refuse_access;
  c->files = &files;
  assert_false(lt_folder_writable(c, "log", IO_PATH("a/b")));
  io_assert_failure(c, "Read-only file system");
  c->files = NULL;
  c->policy.write_files = false;
  assert_false(lt_folder_writable(c, "log", IO_PATH("a")));
  io_assert_failure(c, "log: this state may not write files (LTRAIN_WRITE_FILES): ");
  lt_ctx_release(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, io_setup, io_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(saves_and_loads),
      TEST(reads_plain_files_alone),
      TEST(reads_pipes_of_its_own),
      TEST(says_why_it_cannot_save),
      TEST(a_full_disk_is_named),
      TEST(a_line_that_a_full_disk_cuts_is_taken_back),
      TEST(every_failure_keeps_a_whole_file),
      TEST(every_failure_keeps_a_link),
      TEST(a_link_is_made_beside_what_is_there),
      TEST(interrupted_and_short_writes_go_on),
      TEST(every_failure_keeps_a_whole_folder),
      TEST(a_folder_and_a_file_replace_each_other),
      TEST(sweeps_temporaries_of_the_dead),
      TEST(survives_being_killed),
      TEST(fails_early_where_nothing_can_be_written),
      TEST(folders_are_made_listed_removed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
