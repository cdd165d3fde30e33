/* spec/c/emptied_test.c: storages whose memory goes back to the pool, and comes again behind their
   tensors: on the CPU, and on the fake device with work of other streams run late. */
/* tags: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "autograd/backward.h"
#include "device/ctx_devices.h"
#include "device/fake.h"
#include "image/picture.h"
#include "ops/op.h"
#include "registry.h"

static const lt_device DEVICES[] = {{0, 0}, {1, 0}};
static const char WHY[] = "parameter 'layers.1.weight' is sharded: its bytes are not here";
enum { N = 1000 };

static lt_tensor *filled(lt_ctx *c, lt_device d, double value) {
  return lt_full(c, lt_shape_of(1, &(int64_t){N}), lt_scalar_of(value), LT_F32, d);
}

static float last_of(lt_ctx *c, lt_tensor *t) {
  float out[N];
  assert_true(lt_tensor_read(c, t, out));
  return out[t->numel - 1];
}

static void expect_away(lt_ctx *c) {
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_non_null(strstr(f.text, WHY));
}

/* *t = value, in place. */
static void set(lt_ctx *c, lt_tensor *t, double value) {
  lt_tensor *from = filled(c, t->storage->device, value);
  bool grad = c->modes.grad;
  c->modes.grad = false;
  assert_true(lt_copy_into(c, t, from));
  c->modes.grad = grad;
}

typedef void (*body)(lt_ctx *c, lt_device d);

static void on_each_device(body fn) {
  for (int k = 0; k < 2; k++)
    for (int order = 0; order <= LT_FAKE_OTHERS_FIRST; order++) {
      lt_fake_set_order((lt_fake_order)order);
      lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
      fn(c, DEVICES[k]);
      assert_true(lt_ok(c));
      lt_ctx_release(c);
    }
  lt_fake_set_order(LT_FAKE_TURNS);
}

static void gives_back(lt_ctx *c, lt_device d) {
  lt_tensor *x = filled(c, d, 3);
  lt_storage *s = x->storage;
  int64_t live = lt_device_memory(c, d).live_bytes;
  uint64_t version = s->version;
  assert_true(lt_storage_empty(c, s, WHY) && lt_storage_empty(c, s, "again"));
  assert_true(lt_device_memory(c, d).live_bytes < live);
  assert_int_equal(s->version, version);
  assert_true(lt_storage_fill(c, s) && lt_storage_fill(c, s));
  assert_int_equal(lt_device_memory(c, d).live_bytes, live);
  assert_int_equal(s->version, version);
  set(c, x, 5);
  assert_true(last_of(c, x) == 5);
}

static void memory_goes_back_and_comes_again(void **state) {
  (void)state;
  on_each_device(gives_back);
}

static void refuses(lt_ctx *c, lt_device d) {
  lt_tensor *x = filled(c, d, 3), *y = filled(c, d, 4);
  lt_tensor *view = lt_slice(c, x, 0, 10, 20, 1), *out = x;
  float values[N] = {0};
  assert_true(lt_storage_empty(c, x->storage, WHY));
  assert_non_null(lt_slice(c, view, 0, 0, 5, 1)); /* shapes are there */
  assert_null(lt_binary(c, LT_OP_add, y, x));
  expect_away(c);
  assert_null(lt_unary(c, LT_OP_exp, view));
  expect_away(c);
  assert_false(lt_apply(c, LT_OP_exp, 1, &y, NULL, 1, &out));
  expect_away(c);
  assert_false(lt_tensor_read(c, view, values));
  expect_away(c);
  assert_false(lt_tensor_write(c, x, values));
  expect_away(c);
  assert_null(lt_tensor_ptr(c, x, LT_READ));
  expect_away(c);
  lt_readback r = {0};
  assert_false(lt_readback_begin(c, &r, x));
  expect_away(c);
  lt_readback_end(&r);
  assert_true(lt_storage_fill(c, x->storage));
  set(c, x, 2);
  assert_true(last_of(c, view) == 2);
}

static void access_names_what_is_away(void **state) {
  (void)state;
  on_each_device(refuses);
}

static void saves(lt_ctx *c, lt_device d) {
  lt_tensor *x = filled(c, d, 3);
  x->flags |= LT_REQUIRES_GRAD;
  c->modes.grad = true;
  lt_tensor *view = lt_slice(c, x, 0, 0, N, 1);
  lt_tensor *y = lt_apply1(c, LT_OP_sum, 1, (lt_tensor *[]){lt_binary(c, LT_OP_mul, view, view)},
                           NULL);
  uint64_t version = x->storage->version;
  assert_true(lt_storage_empty(c, x->storage, WHY));
  assert_true(lt_storage_fill(c, x->storage));
  float values[N];
  for (int k = 0; k < N; k++) values[k] = 3;
  assert_true(lt_tensor_write(c, x, values)); /* as it was: no new version */
  assert_int_equal(x->storage->version, version);
  assert_true(lt_backward(c, y, &(lt_backward_options){0}));
  assert_true(last_of(c, x->grad) == 6);
}

static void saved_values_are_there_again(void **state) {
  (void)state;
  on_each_device(saves);
}

/* What reads memory in the host's code, by no kernel: the range check of binary_cross_entropy, which
   is the first reader of its inputs, and the view of an image. */
static void readers_of_the_host_refuse_it(void **state) {
  (void)state;
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_tensor *p = filled(c, DEVICES[0], 0.5), *full = filled(c, DEVICES[0], 0.5);
  assert_true(lt_storage_empty(c, p->storage, WHY));
  for (int k = 0; k < 2; k++) {
    lt_tensor *in[] = {k == 0 ? p : full, k == 0 ? full : p};
    assert_null(lt_apply1(c, LT_OP_binary_cross_entropy, 2, in, NULL));
    expect_away(c);
  }
  lt_tensor *image = lt_tensor_empty(c, DEVICES[0], LT_U8, 3, (int64_t[]){3, 2, 2});
  lt_picture view;
  assert_true(lt_picture_of(c, "transforms", image, &view));
  assert_ptr_equal(view.first, lt_data(image));
  assert_true(lt_storage_empty(c, image->storage, WHY));
  assert_false(lt_picture_of(c, "transforms", image, &view));
  expect_away(c);
  lt_ctx_release(c);
}

/* What was read before is read in time, although its memory has another owner at once. */
static void reuses(lt_ctx *c, lt_device d) {
  lt_tensor *x = filled(c, d, 3);
  lt_stream *comm = lt_stream_of(c, d, LT_STREAM_COMM), *home = lt_stream_current(c, d);
  if (comm != NULL) assert_true(lt_stream_set(c, d, comm));
  lt_tensor *y = lt_binary(c, LT_OP_mul, x, x);
  if (comm != NULL) assert_true(lt_stream_set(c, d, home));
  assert_true(lt_storage_empty(c, x->storage, WHY));
  lt_tensor *z = filled(c, d, 7), *w = filled(c, d, 8);
  assert_true(lt_storage_fill(c, x->storage));
  set(c, x, 1);
  assert_true(last_of(c, y) == 9 && last_of(c, z) == 7 && last_of(c, w) == 8);
  assert_true(last_of(c, x) == 1);
}

static void memory_is_reused_in_order(void **state) {
  (void)state;
  on_each_device(reuses);
}

static void drops(lt_ctx *c, lt_device d) {
  lt_storage *s = lt_storage_new(c, d, (size_t)3 << 20);
  int64_t cached = lt_device_memory(c, d).cached_bytes;
  assert_true(lt_storage_empty(c, s, WHY));
  lt_device_empty_caches(c);
  assert_true(lt_device_memory(c, d).cached_bytes <= cached);
  lt_storage_release(c, s);
  float here[4] = {0};
  lt_storage *wrapped = lt_storage_wrap(c, DEVICES[0], here, sizeof here, NULL, NULL);
  assert_false(lt_storage_empty(c, wrapped, WHY));
  assert_true(lt_take_failure(c, NULL));
  lt_storage_release(c, wrapped);
}

static void one_may_be_dropped_while_it_is_empty(void **state) {
  (void)state;
  on_each_device(drops);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_goes_back_and_comes_again),
      cmocka_unit_test(access_names_what_is_away),
      cmocka_unit_test(saved_values_are_there_again),
      cmocka_unit_test(memory_is_reused_in_order),
      cmocka_unit_test(readers_of_the_host_refuse_it),
      cmocka_unit_test(one_may_be_dropped_while_it_is_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
