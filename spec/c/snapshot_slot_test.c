/* spec/c/snapshot_slot_test.c: slots for snapshots: what is written is found, what is damaged or
   half written is not, a process that dies while it writes leaves no header. */
#include "io_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "io/snapshot_slot.h"

static lt_tensor *numbers(lt_ctx *c, int64_t n, float first) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 1, &n);
  for (int64_t i = 0; i < n; i++) ((float *)lt_data(t))[i] = first + (float)i;
  return t;
}

static const lt_slot_header WANTED = {
    .number = {[LT_SLOT_FIT] = 1, [LT_SLOT_ROUND] = 2, [LT_SLOT_SERIAL] = 3, [LT_SLOT_STEP] = 4,
               [LT_SLOT_PART] = 0, [LT_SLOT_PARTS] = 1}};

/* Two tensors, the second under two names. */
static void save(lt_ctx *c, int fd, int64_t n, float first) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor *a = numbers(c, n, first), *b = numbers(c, 3, -first);
  lt_named_tensor t[] = {{"a", a}, {"b", b}, {"tied", b}};
  lt_metadata m = {"text", "hello", 5};
  lt_slot_save *l = lt_slot_save_begin(c, fd, &WANTED, 3, t, 1, &m, NULL);
  assert_non_null(l);
  ((float *)lt_data(a))[0] = 99; /* what comes after is not in it */
  assert_true(lt_slot_save_end(c, l));
  lt_frame_close(c, frame, 0, NULL);
}

/* By shares of several readers, as ranks have them. */
static bool is_whole(lt_ctx *c, int fd, const lt_slot_header *h) {
  for (uint64_t shares = 1; shares <= 3; shares++) {
    uint64_t sum = 0, summand;
    for (uint64_t k = 0; k < shares; k++) {
      if (!lt_slot_hash(c, fd, h, k, shares, &summand)) return false;
      sum += summand;
    }
    if (sum != h->hash) return false;
  }
  return true;
}

static void check_tensors(lt_ctx *c, int fd, const lt_slot_header *h, int64_t n, float first) {
  char path[64];
  lt_safetensors s;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  assert_true(lt_safetensors_open_within(c, &s, "load", path, LT_SLOT_START,
                                         (int64_t)h->number[LT_SLOT_BYTES]));
  assert_int_equal(s.count, 2);
  assert_int_equal(s.n_aliases, 1);
  assert_string_equal(s.aliases[0].name, "tied");
  lt_frame frame = lt_frame_open(c);
  const lt_tensor *a = lt_safetensors_read(c, &s, 0);
  assert_int_equal(a->numel, n);
  for (int64_t i = 0; i < n; i++) assert_true(((float *)lt_data(a))[i] == first + (float)i);
  lt_frame_close(c, frame, 0, NULL);
  lt_safetensors_close(c, &s);
}

static void finds_what_was_written(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  int fd = lt_slot_new(c);
  assert_true(fd >= 0);
  assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  lt_slot_header h;
  assert_false(lt_slot_read(fd, &h));
  static const int64_t sizes[] = {100000, 5, 400000};
  for (int k = 0; k < 3; k++) { /* shorter than before, longer */
    save(c, fd, sizes[k], (float)k);
    assert_true(lt_slot_read(fd, &h));
    for (int j = 0; j < LT_SLOT_BYTES; j++) assert_int_equal(h.number[j], WANTED.number[j]);
    assert_true(is_whole(c, fd, &h));
    check_tensors(c, fd, &h, sizes[k], (float)k);
  }
  close(fd);
  lt_ctx_release(c);
}

static void finds_damage(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  int fd = lt_slot_new(c);
  lt_slot_header h;
  save(c, fd, 50000, 1);
  assert_true(lt_slot_read(fd, &h));
  size_t n = h.number[LT_SLOT_BYTES];
  for (size_t at = 0; at < n; at += n / 50) { /* any byte */
    char byte;
    assert_int_equal(pread(fd, &byte, 1, (off_t)(LT_SLOT_START + at)), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(LT_SLOT_START + at)), 1);
    assert_false(is_whole(c, fd, &h));
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(LT_SLOT_START + at)), 1);
  }
  assert_true(is_whole(c, fd, &h));
  assert_int_equal(ftruncate(fd, (off_t)(LT_SLOT_START + n - 1)), 0); /* cut off */
  assert_false(is_whole(c, fd, &h));
  assert_true(lt_ok(c));
  for (int at = 0; at < 80; at++) { /* any byte of the header */
    char byte;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_false(lt_slot_read(fd, &h));
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  }
  close(fd);
  lt_ctx_release(c);
}

static void moves_to_another_slot(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  int fd = lt_slot_new(c), other = lt_slot_new(c);
  lt_slot_header h, of_other;
  save(c, fd, 1000, 7);
  assert_true(lt_slot_read(fd, &h));
  lt_frame frame = lt_frame_open(c);
  lt_tensor *bytes = lt_slot_bytes(c, fd, &h);
  assert_non_null(bytes);
  assert_true(lt_slot_put(c, other, &h, lt_data(bytes)));
  lt_frame_close(c, frame, 0, NULL);
  assert_true(lt_slot_read(other, &of_other));
  assert_memory_equal(&h, &of_other, sizeof h);
  assert_true(is_whole(c, other, &of_other));
  check_tensors(c, other, &of_other, 1000, 7);
  close(fd);
  close(other);
  lt_ctx_release(c);
}

/* Killed at a moment of its own in each try: what it leaves has no header, or is whole. */
static void is_whole_or_has_no_header(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  int fd = lt_slot_new(c);
  for (int try = 0; try < 20; try++) {
    pid_t pid = fork();
    if (pid == 0) {
      lt_ctx *own = io_ctx();
      for (int k = 0;; k++) save(own, fd, 200000 + k % 7, (float)k);
    }
    usleep((useconds_t)(2000 + 1700 * try));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    lt_slot_header h;
    if (lt_slot_read(fd, &h)) assert_true(is_whole(c, fd, &h));
  }
  close(fd);
  lt_ctx_release(c);
}

static void reports_a_slot_that_cannot_be_written(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  int fd = open("/dev/full", O_RDWR);
  lt_frame frame = lt_frame_open(c);
  lt_named_tensor t = {"a", numbers(c, 10, 0)};
  assert_null(lt_slot_save_begin(c, fd, &WANTED, 1, &t, 0, NULL, NULL));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_int_equal(f.code, LT_EIO);
  c->policy.write_files = false;
  assert_int_equal(lt_slot_new(c), -1);
  assert_true(lt_take_failure(c, &f));
  assert_non_null(strstr(f.text, "LTRAIN_WRITE_FILES"));
  lt_frame_close(c, frame, 0, NULL);
  close(fd);
  lt_ctx_release(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, io_setup, io_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(finds_what_was_written),
      TEST(finds_damage),
      TEST(moves_to_another_slot),
      TEST(is_whole_or_has_no_header),
      TEST(reports_a_slot_that_cannot_be_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
