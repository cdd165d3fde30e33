/* spec/c/device_test.c: the caching allocator, threads that free, streams (on the fake device). */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/threads.h"
#include "ops/op.h"
#include "registry.h"

static const lt_device FAKE = {1, 0};

static lt_ctx *fresh(void) { return lt_ctx_new(lt_registry_here(), NULL); }

static lt_tensor *filled(lt_ctx *c, lt_device d, int64_t n, double value) {
  return lt_full(c, lt_shape_of(1, &n), lt_scalar_of(value), LT_F32, d);
}

static void a_steady_loop_asks_the_system_for_nothing(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  int64_t calls = 0;
  for (int step = 0; step < 50; step++) {
    lt_frame frame = lt_frame_open(c);
    lt_tensor *x = filled(c, LT_CPU_DEVICE, 100000, 1);
    for (int k = 0; k < 10; k++) x = lt_binary(c, LT_OP_add, x, x);
    lt_frame_close(c, frame, 0, NULL);
    if (step == 1) calls = lt_device_memory(c, LT_CPU_DEVICE).system_calls;
  }
  assert_true(lt_ok(c));
  lt_memory_stats m = lt_device_memory(c, LT_CPU_DEVICE);
  assert_int_equal(m.system_calls, calls);
  assert_int_equal(m.live_bytes, 0);
  assert_true(m.cached_bytes > 0);
  lt_device_empty_cache(c, LT_CPU_DEVICE);
  lt_ctx_release(c);
}

static void a_limit_is_an_error_that_says_what_is_held(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_device_set_limit(c, 8 << 20);
  assert_non_null(filled(c, LT_CPU_DEVICE, 1 << 20, 1)); /* 4 MiB */
  assert_null(filled(c, LT_CPU_DEVICE, 1 << 22, 1));     /* 16 MiB */
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_int_equal(f.code, LT_EMEMORY);
  assert_non_null(strstr(f.text, "16777216 bytes asked, 4194304 bytes in use"));
  assert_non_null(filled(c, LT_CPU_DEVICE, 1000, 1)); /* usable again */
  lt_ctx_release(c);
}

static void impossible_shapes_are_errors(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  const int64_t huge[2] = {INT64_MAX / 2, 3}, negative[1] = {-4};
  assert_null(lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 2, huge));
  assert_true(lt_take_failure(c, NULL));
  assert_null(lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 1, negative));
  assert_true(lt_take_failure(c, NULL));
  lt_ctx_release(c);
}

/* A helper thread makes a storage in its own ctx; the main thread frees it. */
typedef struct handover {
  lt_ctx *child;
  lt_storage *storage;
} handover;

static void make_storage(void *ud) {
  handover *h = ud;
  h->storage = lt_storage_new(h->child, LT_CPU_DEVICE, 5000);
}

static void a_storage_may_be_freed_by_another_thread(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  handover h = {.child = lt_ctx_child(c)};
  for (int round = 0; round < 20; round++) {
    lt_thread t = {.name = "maker", .fn = make_storage, .ud = &h};
    assert_true(lt_thread_start(c, &t));
    lt_thread_join(c, &t);
    lt_storage_release(c, h.storage);
  }
  assert_int_equal(lt_device_memory(h.child, LT_CPU_DEVICE).system_calls, 1);
  make_storage(&h); /* outlives its ctx */
  lt_ctx_release(h.child);
  lt_storage_release(c, h.storage);
  lt_ctx_release(c);
}

/* A maker writes and hands over 2,000 storages through 8 places while another thread frees them. */
enum { PLACES = 8, HANDED = 2000 };
typedef struct stream_of_storages {
  lt_ctx *child;
  _Atomic(lt_storage *) place[PLACES];
} stream_of_storages;

static void make_many(void *ud) {
  stream_of_storages *s = ud;
  for (int k = 0; k < HANDED; k++) {
    lt_storage *made = lt_storage_new(s->child, LT_CPU_DEVICE, 600);
    memset(made->data, k, 600);
    lt_storage *empty = NULL;
    while (!atomic_compare_exchange_weak(&s->place[k % PLACES], &empty, made)) {
      empty = NULL;
      sched_yield();
    }
  }
}

static void storages_are_freed_while_their_maker_goes_on(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  stream_of_storages s = {.child = lt_ctx_child(c)};
  lt_thread t = {.name = "maker", .fn = make_many, .ud = &s};
  assert_true(lt_thread_start(c, &t));
  for (int k = 0; k < HANDED; k++) {
    lt_storage *taken;
    while ((taken = atomic_exchange(&s.place[k % PLACES], NULL)) == NULL) sched_yield();
    const unsigned char *bytes = taken->data;
    assert_int_equal(bytes[0], k & 0xff); /* nobody else got the same memory */
    assert_int_equal(bytes[599], k & 0xff);
    lt_storage_release(c, taken);
  }
  lt_thread_join(c, &t);
  lt_memory_stats m = lt_device_memory(s.child, LT_CPU_DEVICE);
  assert_int_equal(m.live_bytes, 0);
  assert_int_equal(m.system_calls, 1);
  lt_ctx_release(s.child);
  lt_ctx_release(c);
}

static float first_of(lt_ctx *c, lt_tensor *t) {
  float out[16];
  assert_true(lt_tensor_read(c, t, out));
  return out[0];
}

static void work_on_the_fake_device_waits_for_a_reader(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_device_synchronize(c, FAKE);
  lt_tensor *x = filled(c, FAKE, 16, 3);
  lt_tensor *y = lt_binary(c, LT_OP_mul, x, x);
  assert_true(lt_fake_count(c).pending >= 2);
  assert_true(first_of(c, y) == 9);
  assert_int_equal(lt_fake_count(c).pending, 0);
  assert_null(lt_tensor_ptr(c, x, LT_READ)); /* not the host's memory */
  assert_true(lt_take_failure(c, NULL));
  lt_ctx_release(c);
}

static void another_stream_waits_for_the_home_stream(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_tensor *x = filled(c, FAKE, 16, 2);
  assert_true(lt_stream_set(c, FAKE, 1));
  lt_tensor *y = lt_binary(c, LT_OP_add, x, x); /* stream 1 reads what stream 0 has yet to make */
  assert_true(lt_stream_set(c, FAKE, 0));
  assert_true(first_of(c, y) == 4);
  lt_ctx_release(c);
}

static void memory_in_use_on_another_stream_is_not_handed_out(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_frame frame = lt_frame_open(c);
  lt_tensor *x = filled(c, FAKE, 16, 2);
  void *address = x->storage->data;
  assert_true(lt_stream_set(c, FAKE, 1));
  lt_tensor *y = lt_binary(c, LT_OP_add, x, x);
  lt_retain(y);
  assert_true(lt_stream_set(c, FAKE, 0));
  lt_frame_close(c, frame, 0, NULL); /* x is freed, but stream 1 still has to read it */
  lt_tensor *z = filled(c, FAKE, 16, 7);
  assert_ptr_not_equal(z->storage->data, address);
  assert_true(first_of(c, y) == 4);
  lt_release(c, y);
  lt_ctx_release(c);
}

static void memory_that_changes_streams_waits_for_its_last_use(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_frame frame = lt_frame_open(c);
  assert_true(lt_stream_set(c, FAKE, 1));
  lt_tensor *x = filled(c, FAKE, 16, 2);
  void *address = x->storage->data;
  lt_tensor *y = lt_binary(c, LT_OP_add, x, x);
  lt_retain(y);
  lt_frame_close(c, frame, 0, NULL); /* x is free again, with stream 1 still to read it */
  assert_true(lt_stream_set(c, FAKE, 0));
  lt_tensor *z = filled(c, FAKE, 16, 7); /* the same memory, on another stream */
  assert_ptr_equal(z->storage->data, address);
  assert_true(first_of(c, z) == 7);
  assert_true(first_of(c, y) == 4);
  lt_release(c, y);
  lt_ctx_release(c);
}

static void devices_tell_the_rows_that_they_were_built_with(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  assert_true(lt_device_table(c, LT_CPU_DEVICE)->op_hash == lt_op_hash());
  assert_true(lt_device_table(c, FAKE)->op_hash == lt_op_hash());
  assert_true(lt_op_hash() != 0);
  lt_ctx_release(c);
}

static void device_names_are_read_to_their_end(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_device d;
  assert_true(lt_device_parse(c, "fake:0", &d));
  assert_true(lt_device_equal(d, FAKE));
  const char *const wrong[] = {"fake:1", "fake:", "fake:0x", "fake:-1", "fake:99999999999", "fak"};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    lt_failure f;
    assert_false(lt_device_parse(c, wrong[k], &d));
    assert_true(lt_take_failure(c, &f));
    assert_int_equal(f.code, LT_EDEVICE);
    assert_non_null(strstr(f.text, wrong[k]));
  }
  lt_ctx_release(c);
}

static void copies_between_devices_keep_values(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_tensor *x = filled(c, LT_CPU_DEVICE, 16, 5);
  lt_tensor *there = lt_to_device(c, x, FAKE);
  lt_tensor *back = lt_to_device(c, there, LT_CPU_DEVICE);
  assert_true(first_of(c, back) == 5);
  assert_null(lt_binary(c, LT_OP_add, x, there));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, "add: tensors are on different devices: cpu and fake:0");
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_steady_loop_asks_the_system_for_nothing),
      cmocka_unit_test(a_limit_is_an_error_that_says_what_is_held),
      cmocka_unit_test(impossible_shapes_are_errors),
      cmocka_unit_test(a_storage_may_be_freed_by_another_thread),
      cmocka_unit_test(storages_are_freed_while_their_maker_goes_on),
      cmocka_unit_test(work_on_the_fake_device_waits_for_a_reader),
      cmocka_unit_test(another_stream_waits_for_the_home_stream),
      cmocka_unit_test(memory_in_use_on_another_stream_is_not_handed_out),
      cmocka_unit_test(memory_that_changes_streams_waits_for_its_last_use),
      cmocka_unit_test(devices_tell_the_rows_that_they_were_built_with),
      cmocka_unit_test(device_names_are_read_to_their_end),
      cmocka_unit_test(copies_between_devices_keep_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
