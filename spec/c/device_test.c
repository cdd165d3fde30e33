/* spec/c/device_test.c: the caching allocator, threads that free, the table of devices. */
/* tags: threads */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/threads.h"
#include "device/plugin.h"
#include "ops/op.h"
#include "registry.h"

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
  lt_device_empty_caches(c);
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
  assert_non_null(strstr(f.text, "16777216 bytes requested, 4194304 bytes in use"));
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

static void devices_tell_the_rows_that_they_were_built_with(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  assert_true(lt_device_table(c, LT_CPU_DEVICE)->op_hash == lt_op_hash());
  assert_true(lt_device_kinds[1]->op_hash == lt_op_hash());
  assert_true(lt_op_hash() != 0);
  lt_ctx_release(c);
}

static void device_names_are_read_to_their_end(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_device d;
  assert_true(lt_device_parse(c, "fake:3", &d));
  assert_true(lt_device_equal(d, (lt_device){1, 3}));
  const char *const wrong[] = {"fake:4", "fake:", "fake:0x", "fake:-1", "fake:99999999999", "fak"};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    lt_failure f;
    assert_false(lt_device_parse(c, wrong[k], &d));
    assert_true(lt_take_failure(c, &f));
    assert_int_equal(f.code, LT_EDEVICE);
    assert_non_null(strstr(f.text, wrong[k]));
  }
  lt_ctx_release(c);
}

/* A kind with more devices than ltrain uses, and names that are taken. */
static int twenty(void) { return 20; }
static void *nowhere(int index, size_t bytes) {
  (void)index, (void)bytes;
  return NULL;
}
static void nothing(int index, void *ptr, size_t bytes) { (void)index, (void)ptr, (void)bytes; }

static void a_kind_is_added_once_and_its_devices_are_limited(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  static lt_device_ops many = {.size = sizeof many, .version = LT_BACKEND_VERSION, .name = "many",
                               .alias = "crowd", .host_memory = true, .for_specs = true,
                               .count = twenty, .alloc = nowhere, .free = nothing};
  char why[256];
  assert_false(lt_device_add(&many, why, sizeof why));
  assert_string_equal(why, "its table of devices lacks `kernels`");
  many.kernels = lt_device_table(c, LT_CPU_DEVICE)->kernels;
  int before = lt_device_kind_count();
  assert_true(lt_device_add(&many, why, sizeof why));
  assert_true(lt_device_add(&many, why, sizeof why)); /* the same again */
  assert_int_equal(lt_device_kind_count(), before + 1);
  lt_device_ops other = many;
  assert_false(lt_device_add(&other, why, sizeof why));
  assert_string_equal(why, "there is a device 'many' already");
  other.size += sizeof(void *); /* built with another table of the same version */
  assert_false(lt_device_add(&other, why, sizeof why));
  assert_non_null(strstr(why, "its devices are of version 3"));
  other.version++;
  assert_false(lt_device_add(&other, why, sizeof why));
  assert_non_null(strstr(why, "its devices are of version 4"));
  lt_device d;
  assert_true(lt_device_parse(c, "crowd:15", &d)); /* by its alias */
  assert_int_equal(d.index, LT_MAX_DEVICES - 1);
  assert_false(lt_device_parse(c, "many:16", &d));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, "device: no many:16 (many has 20, of which 16 can be used)");
  assert_true(lt_device_named(c, "crowd:3"));
  assert_false(lt_device_named(c, "crow"));
  lt_ctx_release(c);
}

/* Memory that the host cannot touch, of a kind that users are not shown. */
static int one(void) { return 1; }
static void *far_away(int index, size_t bytes) {
  (void)index;
  return bytes > 0 ? (void *)(uintptr_t)4096 : NULL;
}
static bool no_copy(lt_ctx *c, lt_stream *s, lt_copy way, int index, void *dst, int from,
                    const void *src, size_t bytes, lt_dtype dtype) {
  (void)s, (void)way, (void)index, (void)dst, (void)from, (void)src, (void)bytes, (void)dtype;
  return lt_fail(c, LT_EDEVICE, "far: no copies");
}

static void freed_memory_is_touched_on_the_fake_device_alone(void **state) {
  (void)state;
  static lt_device_ops far = {.size = sizeof far, .version = LT_BACKEND_VERSION, .name = "far",
                              .for_specs = true, .count = one, .alloc = far_away, .free = nothing,
                              .copy = no_copy};
  lt_ctx *c = fresh();
  far.kernels = lt_device_table(c, LT_CPU_DEVICE)->kernels;
  char why[256];
  assert_true(lt_device_add(&far, why, sizeof why));
  lt_device d;
  assert_true(lt_device_parse(c, "far", &d));
  lt_storage *s = lt_storage_new(c, d, 4096);
  assert_ptr_equal(s->data, far_away(0, 1));
  lt_storage_release(c, s);
  assert_true(lt_device_memory(c, d).cached_bytes > 0);
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_steady_loop_asks_the_system_for_nothing),
      cmocka_unit_test(a_limit_is_an_error_that_says_what_is_held),
      cmocka_unit_test(impossible_shapes_are_errors),
      cmocka_unit_test(a_storage_may_be_freed_by_another_thread),
      cmocka_unit_test(storages_are_freed_while_their_maker_goes_on),
      cmocka_unit_test(devices_tell_the_rows_that_they_were_built_with),
      cmocka_unit_test(device_names_are_read_to_their_end),
      cmocka_unit_test(a_kind_is_added_once_and_its_devices_are_limited),
      cmocka_unit_test(freed_memory_is_touched_on_the_fake_device_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
