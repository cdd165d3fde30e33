/* spec/c/order_test.c: work on several streams and devices runs as if it ran at once: each test on
   the fake device, with work of other streams run as late and as early as it may. */
/* tags: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/fake.h"
#include "device/host.h"
#include "device/ctx_devices.h"
#include "ops/op.h"
#include "registry.h"

static const lt_device FAKE = {1, 0}, OTHER = {1, 3};
enum { N = 16 };

static lt_ctx *fresh(void) { return lt_ctx_new(lt_registry_here(), NULL); }

static lt_tensor *filled(lt_ctx *c, lt_device d, double value) {
  return lt_full(c, lt_shape_of(1, &(int64_t){N}), lt_scalar_of(value), LT_F32, d);
}

static float last_of(lt_ctx *c, lt_tensor *t) {
  float out[N];
  assert_true(lt_tensor_read(c, t, out));
  return out[N - 1];
}

/* What follows is issued on a stream of this role; compute: home. */
static void use(lt_ctx *c, lt_stream_role role) {
  assert_true(lt_stream_set(c, FAKE, lt_stream_of(c, FAKE, role)));
}

static void multiply_by(lt_ctx *c, lt_tensor *x, double by) {
  assert_true(lt_apply(c, LT_OP_mul, 1, &x, &(lt_args_binary){.b = lt_scalar_of(by)}, 1, &x));
}

static lt_tensor *square(lt_ctx *c, lt_tensor *x) { return lt_binary(c, LT_OP_mul, x, x); }

/* Tests of a tensor on FAKE that holds 3. */
typedef void (*body)(lt_ctx *c, lt_tensor *x);

static void written_aside_read_at_home(lt_ctx *c, lt_tensor *x) {
  use(c, LT_STREAM_COMM);
  multiply_by(c, x, 4);
  use(c, LT_STREAM_COMPUTE);
  assert_true(last_of(c, square(c, x)) == 144);
}

static void read_aside_overwritten_at_home(lt_ctx *c, lt_tensor *x) {
  use(c, LT_STREAM_COMM);
  lt_tensor *y = square(c, x);
  use(c, LT_STREAM_COMPUTE);
  multiply_by(c, x, 2);
  assert_true(last_of(c, x) == 6);
  assert_true(last_of(c, y) == 9);
}

static void overwritten_aside_after_a_read_at_home(lt_ctx *c, lt_tensor *x) {
  lt_tensor *y = square(c, x);
  use(c, LT_STREAM_COPY);
  multiply_by(c, x, 2);
  use(c, LT_STREAM_COMPUTE);
  assert_true(last_of(c, y) == 9);
  assert_true(last_of(c, x) == 6);
}

static void copied_after_a_write_aside(lt_ctx *c, lt_tensor *x) {
  use(c, LT_STREAM_COMM);
  multiply_by(c, x, 4);
  use(c, LT_STREAM_COMPUTE);
  lt_tensor *there = lt_to_device(c, x, OTHER), *here = lt_to_device(c, x, LT_CPU_DEVICE);
  assert_true(last_of(c, there) == 12);
  assert_true(last_of(c, here) == 12);
}

static void overwritten_after_a_copy(lt_ctx *c, lt_tensor *x) {
  lt_tensor *there = lt_to_device(c, x, OTHER); /* on a stream of the other device */
  multiply_by(c, x, 5);
  assert_true(last_of(c, x) == 15);
  assert_true(last_of(c, there) == 3);
}

static void written_from_the_host_after_a_read(lt_ctx *c, lt_tensor *x) {
  use(c, LT_STREAM_COMM);
  lt_tensor *y = square(c, x);
  use(c, LT_STREAM_COMPUTE);
  float values[N];
  for (int k = 0; k < N; k++) values[k] = 8;
  assert_true(lt_tensor_write(c, x, values));
  memset(values, 0, sizeof values); /* the caller's again */
  assert_true(last_of(c, x) == 8);
  assert_true(last_of(c, y) == 9);
}

static void nothing(void *ud) { (void)ud; }

/* Memory that the device reads when the copy runs, in a storage that is not pinned: of DLPack. */
static void pinned_memory_under_another_owner_is_read_before_it_is_the_callers_again(
    void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_pinned *p = lt_pinned_take(c, FAKE, N * sizeof(float));
  float *memory = lt_pinned_memory(p);
  int64_t size = N - 1;
  for (int k = 0; k < N; k++) memory[k] = 3;
  lt_storage *s = lt_storage_wrap(c, LT_CPU_DEVICE, memory + 1, (N - 1) * sizeof *memory, nothing,
                                  NULL);
  lt_tensor *x = lt_tensor_make(c, s, LT_F32, 1, &size, NULL, 0);
  lt_storage_release(c, s);
  assert_false(lt_storage_is_pinned(x->storage));
  lt_tensor *y = lt_to_device(c, x, FAKE);
  for (int k = 0; k < N; k++) memory[k] = 7;
  float out[N];
  assert_true(lt_tensor_read(c, y, out));
  assert_true(out[0] == 3 && out[N - 2] == 3);
  lt_pinned_give(p, (lt_event){0});
  lt_ctx_release(c);
}

/* More streams read than a storage keeps apart. */
static void read_on_many_streams(lt_ctx *c, lt_tensor *x) {
  enum { MANY = LT_READERS + 2 };
  lt_stream *stream[MANY];
  lt_tensor *y[MANY];
  for (int k = 0; k < MANY; k++) {
    stream[k] = lt_stream_lease(c, FAKE, LT_STREAM_COPY);
    assert_true(lt_stream_set(c, FAKE, stream[k]));
    y[k] = square(c, x);
  }
  use(c, LT_STREAM_COMPUTE);
  multiply_by(c, x, 2);
  assert_true(last_of(c, x) == 6);
  for (int k = 0; k < MANY; k++) assert_true(last_of(c, y[k]) == 9);
  for (int k = 0; k < MANY; k++) lt_stream_return(FAKE, LT_STREAM_COPY, stream[k]);
}

static const body BODIES[] = {
    written_aside_read_at_home, read_aside_overwritten_at_home,
    overwritten_aside_after_a_read_at_home, copied_after_a_write_aside, overwritten_after_a_copy,
    written_from_the_host_after_a_read, read_on_many_streams};
enum { BODY_COUNT = sizeof BODIES / sizeof *BODIES };

static void any_two_uses_of_a_tensor_are_ordered(void **state) {
  (void)state;
  for (int order = LT_FAKE_TURNS; order <= LT_FAKE_OTHERS_FIRST; order++)
    for (int k = 0; k < BODY_COUNT; k++) {
      lt_fake_set_order((lt_fake_order)order);
      lt_ctx *c = fresh();
      BODIES[k](c, filled(c, FAKE, 3));
      assert_true(lt_ok(c));
      lt_ctx_release(c);
    }
  lt_fake_set_order(LT_FAKE_TURNS);
}

static void set_flag(void *ud) {
  const lt_fake_counts n = lt_fake_count();
  *(int64_t *)ud = n.pending;
}

/* Memory of somebody else, who may free it once `release` is called. */
static void so_are_those_of_external_memory(void **state) {
  (void)state;
  for (int order = LT_FAKE_TURNS; order <= LT_FAKE_OTHERS_FIRST; order++)
    for (int k = 0; k < BODY_COUNT; k++) {
      lt_fake_set_order((lt_fake_order)order);
      lt_ctx *c = fresh();
      float memory[N];
      int64_t pending = -1, size = N;
      for (int e = 0; e < N; e++) memory[e] = 3;
      lt_storage *s = lt_storage_wrap(c, FAKE, memory, sizeof memory, set_flag, &pending);
      lt_tensor *x = lt_tensor_make(c, s, LT_F32, 1, &size, NULL, 0);
      lt_storage_release(c, s);
      lt_frame frame = lt_frame_open(c);
      BODIES[k](c, x);
      lt_frame_close(c, frame, 0, NULL);
      lt_ctx_release(c);
      assert_true(pending >= 0); /* it was returned */
    }
  lt_fake_set_order(LT_FAKE_TURNS);
}

static void external_memory_is_given_back_after_its_last_use(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  float memory[N] = {0};
  int64_t pending = -1, size = N;
  lt_frame frame = lt_frame_open(c);
  lt_storage *s = lt_storage_wrap(c, FAKE, memory, sizeof memory, set_flag, &pending);
  lt_tensor *x = lt_tensor_make(c, s, LT_F32, 1, &size, NULL, 0);
  lt_storage_release(c, s);
  use(c, LT_STREAM_COMM);
  assert_true(lt_apply(c, LT_OP_add, 1, &x, &(lt_args_binary){.b = lt_scalar_of(2)}, 1, &x));
  lt_fake_set_order(LT_FAKE_OTHERS_LAST);
  lt_frame_close(c, frame, 0, NULL);
  assert_true(memory[N - 1] == 2);
  lt_fake_set_order(LT_FAKE_TURNS);
  lt_ctx_release(c);
}

static void overwrite(void *ud) { memset(ud, 0, N * sizeof(float)); }

/* Written at home and then read on another stream: both come first, though the ctx has failed. */
static void external_memory_is_waited_for_in_a_ctx_that_failed(void **state) {
  (void)state;
  lt_fake_set_order(LT_FAKE_OTHERS_LAST);
  lt_ctx *c = fresh();
  float memory[N] = {0};
  int64_t size = N;
  lt_frame frame = lt_frame_open(c);
  lt_storage *s = lt_storage_wrap(c, FAKE, memory, sizeof memory, overwrite, memory);
  lt_tensor *x = lt_tensor_make(c, s, LT_F32, 1, &size, NULL, 0);
  lt_storage_release(c, s);
  assert_true(lt_apply(c, LT_OP_add, 1, &x, &(lt_args_binary){.b = lt_scalar_of(3)}, 1, &x));
  use(c, LT_STREAM_COMM);
  lt_tensor *y = lt_retain(square(c, x));
  use(c, LT_STREAM_COMPUTE);
  lt_fail(c, LT_EVALUE, "of something else");
  lt_frame_close(c, frame, 0, NULL);
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, "of something else");
  assert_true(last_of(c, y) == 9);
  lt_release(c, y);
  lt_fake_set_order(LT_FAKE_TURNS);
  lt_ctx_release(c);
}

static void work_on_the_fake_device_waits_for_a_reader(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_tensor *x = filled(c, FAKE, 3);
  lt_tensor *y = square(c, x);
  lt_fake_counts before = lt_fake_count();
  assert_true(before.pending >= 2);
  assert_true(last_of(c, y) == 9);
  assert_true(last_of(c, y) == 9);
  assert_int_equal(lt_fake_count().pending, 0);
  assert_int_equal(lt_fake_count().waits, before.waits + 2);
  assert_int_equal(lt_fake_count().copies, before.copies + 2);
  assert_null(lt_tensor_ptr(c, x, LT_READ)); /* not the host's memory */
  assert_true(lt_take_failure(c, NULL));
  lt_ctx_release(c);
}

/* Freed while other streams have yet to read it: it is handed out again, in order. */
static void freed_memory_is_reused_in_order(void **state) {
  (void)state;
  for (int order = LT_FAKE_TURNS; order <= LT_FAKE_OTHERS_FIRST; order++) {
    lt_fake_set_order((lt_fake_order)order);
    lt_ctx *c = fresh();
    lt_frame frame = lt_frame_open(c);
    use(c, LT_STREAM_COMM);
    lt_tensor *x = filled(c, FAKE, 3);
    const void *address = x->storage->data;
    lt_tensor *y = lt_retain(square(c, x));
    lt_frame_close(c, frame, 0, NULL);
    use(c, LT_STREAM_COMPUTE);
    lt_tensor *z = filled(c, FAKE, 7);
    assert_ptr_equal(z->storage->data, address);
    assert_true(last_of(c, z) == 7);
    assert_true(last_of(c, y) == 9);
    lt_release(c, y);
    lt_ctx_release(c);
  }
  lt_fake_set_order(LT_FAKE_TURNS);
}

static void memory_of_several_streams_is_not_handed_out_before_they_are_done(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_frame frame = lt_frame_open(c);
  lt_tensor *x = filled(c, FAKE, 3);
  const void *address = x->storage->data;
  use(c, LT_STREAM_COMM);
  lt_tensor *y = lt_retain(square(c, x));
  use(c, LT_STREAM_COMPUTE);
  lt_frame_close(c, frame, 0, NULL);
  lt_tensor *z = filled(c, FAKE, 7); /* home does not wait for the other stream */
  assert_ptr_not_equal(z->storage->data, address);
  assert_true(last_of(c, y) == 9);
  assert_true(last_of(c, filled(c, FAKE, 5)) == 5);
  assert_true(last_of(c, z) == 7);
  lt_release(c, y);
  lt_ctx_release(c);
}

static void freed_memory_is_filled_with_nan(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_frame frame = lt_frame_open(c);
  lt_tensor *x = filled(c, FAKE, 3);
  const float *memory = x->storage->data;
  assert_true(last_of(c, x) == 3);
  lt_frame_close(c, frame, 0, NULL);
  assert_true(memory[0] != memory[0]);
  lt_ctx_release(c);
}

/* Kernels that run at the very end take scratch of the cpu's pool, and of its slot. */
static void work_that_nobody_waits_for_runs_before_the_end(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  int64_t size[2] = {40, 30};
  lt_tensor *x = lt_full(c, lt_shape_of(2, size), lt_scalar_of(1), LT_BF16, FAKE);
  lt_tensor *ids = lt_full(c, lt_shape_of(1, size), lt_scalar_int(3), LT_I64, FAKE);
  lt_tensor *in[2] = {lt_transpose(c, lt_transpose(c, x, 0, 1), 0, 1), ids};
  assert_non_null(lt_apply1(c, LT_OP_embedding, 2, in, NULL));
  assert_non_null(lt_apply1(c, LT_OP_matmul, LT_IN(x, lt_transpose(c, x, 0, 1)), NULL));
  assert_true(lt_fake_count().pending > 0);
  lt_ctx_release(c);
  assert_int_equal(lt_fake_count().pending, 0);
}

/* A storage that outlives its ctx is used by another, on streams of that one. */
static void a_storage_outlives_its_ctx_and_its_streams(void **state) {
  (void)state;
  lt_ctx *a = fresh(), *b = fresh();
  lt_tensor *x = filled(a, FAKE, 3);
  lt_storage *s = lt_storage_retain(x->storage);
  lt_ctx_release(a);
  int64_t size = N;
  lt_tensor *y = lt_tensor_make(b, s, LT_F32, 1, &size, NULL, 0);
  lt_storage_release(b, s);
  lt_tensor *z = square(b, y);
  assert_true(last_of(b, z) == 9);
  multiply_by(b, y, 2);
  lt_ctx_release(b); /* frees the memory of the pool whose ctx has gone */
  assert_int_equal(lt_fake_count().pending, 0);
}

enum { LARGE = 1 << 19 }; /* elements of a block that goes back to the device by itself */

/* The other device's stream reads it last, and no stream of its own. */
static void memory_goes_back_to_its_device_after_reads_of_another(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_fake_set_order(LT_FAKE_OTHERS_LAST);
  lt_frame frame = lt_frame_open(c);
  lt_tensor *x = lt_tensor_empty(c, FAKE, LT_F32, 1, &(int64_t){LARGE});
  lt_tensor *there = lt_retain(lt_to_device(c, x, OTHER));
  lt_frame_close(c, frame, 0, NULL);
  lt_device_empty_caches(c);
  assert_int_equal(lt_device_memory(c, FAKE).cached_bytes, 0);
  assert_int_equal(lt_fake_count().pending, 0);
  lt_release(c, there);
  lt_fake_set_order(LT_FAKE_TURNS);
  lt_ctx_release(c);
}

static void so_does_that_of_a_pool_whose_ctx_has_gone(void **state) {
  (void)state;
  lt_ctx *a = fresh(), *b = fresh();
  lt_fake_set_order(LT_FAKE_OTHERS_LAST);
  int64_t size = LARGE;
  lt_tensor *x = lt_full(a, lt_shape_of(1, &size), lt_scalar_of(3), LT_F32, FAKE);
  lt_storage *s = lt_storage_retain(x->storage);
  lt_ctx_release(a);
  lt_frame frame = lt_frame_open(b);
  lt_tensor *y = lt_tensor_make(b, s, LT_F32, 1, &size, NULL, 0);
  lt_tensor *there = lt_retain(lt_to_device(b, y, OTHER));
  lt_storage_release(b, s);
  lt_frame_close(b, frame, 0, NULL); /* its memory goes */
  assert_int_equal(lt_fake_count().pending, 0);
  float *out = malloc(LARGE * sizeof *out);
  assert_true(lt_tensor_read(b, there, out));
  assert_true(out[LARGE - 1] == 3);
  free(out);
  lt_release(b, there);
  lt_fake_set_order(LT_FAKE_TURNS);
  lt_ctx_release(b);
}

/* A label that is too large, at line 7; read at line 9. */
static void late_errors_name_the_line_that_issued_them(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  int64_t size[2] = {4, 10};
  lt_tensor *logits = lt_full(c, lt_shape_of(2, size), lt_scalar_of(0), LT_F32, FAKE);
  lt_tensor *labels = lt_full(c, lt_shape_of(1, size), lt_scalar_int(12), LT_I64, FAKE);
  lt_tensor *out[3] = {NULL};
  c->line = 7;
  assert_true(lt_apply(c, LT_OP_cross_entropy, LT_IN(logits, labels), NULL, 3, out));
  c->line = 8;
  lt_tensor *table = lt_apply1(c, LT_OP_embedding, LT_IN(logits, labels), NULL); /* the second */
  assert_non_null(table);
  c->line = 9;
  float loss;
  assert_false(lt_tensor_read(c, out[0], &loss));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_int_equal(f.line, 7);
  assert_int_equal(f.code, LT_EVALUE);
  assert_string_equal(f.op, "cross_entropy");
  assert_string_equal(f.text, "cross_entropy: targets are ids 0..9; got 12 with C = 10");
  assert_int_equal(c->line, 9);
  assert_true(lt_tensor_read(c, labels, (int64_t[4]){0})); /* the word is empty again */
  lt_device_synchronize(c, FAKE);
  lt_take_failure(c, NULL);
  lt_ctx_release(c);
}

static void a_call_takes_any_number_of_tensors(void **state) {
  (void)state;
  enum { MANY = 200 };
  lt_ctx *c = fresh();
  lt_tensor *in[MANY];
  for (int k = 0; k < MANY; k++) in[k] = filled(c, FAKE, k);
  lt_tensor *joined = lt_apply1(c, LT_OP_cat, MANY, in, NULL);
  assert_non_null(joined);
  float out[MANY * N];
  assert_true(lt_tensor_read(c, joined, out));
  for (int k = 0; k < MANY; k++) assert_true(out[k * N] == (float)k);
  lt_ctx_release(c);
}

static void copies_between_devices_keep_values(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_tensor *x = filled(c, LT_CPU_DEVICE, 5);
  lt_tensor *there = lt_to_device(c, x, FAKE);
  lt_tensor *back = lt_to_device(c, lt_to_device(c, there, OTHER), LT_CPU_DEVICE);
  assert_true(last_of(c, back) == 5);
  assert_null(lt_binary(c, LT_OP_add, x, there));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, "add: tensors are on different devices: cpu and fake:0; make the one on the cpu with "
                      "{device = self.device}, or move it with :to 'fake:0'");
  lt_ctx_release(c);
}

/* A copy out of pinned memory reads it when it runs; of other memory at once. */
static void pinned_memory_is_read_late(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_tensor *x = filled(c, FAKE, 1);
  size_t bytes = N * sizeof(float);
  lt_pinned *p = lt_pinned_take(c, FAKE, bytes);
  assert_non_null(p);
  float *pinned = lt_pinned_memory(p);
  memset(pinned, 0, bytes);
  assert_true(lt_tensor_write(c, x, pinned));
  for (int k = 0; k < N; k++) pinned[k] = 4; /* too early: the copy has not run */
  assert_true(last_of(c, x) == 4);
  lt_pinned_give(p, (lt_event){0});
  lt_ctx_release(c);
}

/* What backends see of tensors and get for their work. */
static void a_backend_sees_views_streams_and_lines(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  const lt_host *host = lt_host_here(1);
  int64_t size[3] = {2, 3, 5};
  lt_tensor *x = lt_full(c, lt_shape_of(3, size), lt_scalar_of(1), LT_F64, FAKE);
  lt_view v;
  assert_true(host->view(c, lt_transpose(c, lt_slice(c, x, 2, 1, 2, 2), 0, 2), &v));
  assert_int_equal(v.dtype, LT_F64);
  assert_int_equal(v.ndim, 3);
  assert_ptr_equal(v.data, (double *)x->storage->data + 1);
  assert_memory_equal(v.size, ((int64_t[]){2, 3, 2}), 3 * sizeof *v.size);
  assert_memory_equal(v.stride, ((int64_t[]){2, 5, 15}), 3 * sizeof *v.stride);
  use(c, LT_STREAM_COPY);
  assert_ptr_equal(host->stream(c, FAKE), lt_stream_of(c, FAKE, LT_STREAM_COPY));
  c->line = 12;
  assert_int_equal(host->line(c), 12);
  assert_false((host->fail)(c, LT_EDEVICE, "no luck")); /* cmocka has a macro of that name */
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, "no luck");
  lt_ctx_release(c);
}

static void scratch_is_reused_after_the_work_of_its_launch(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  const lt_host *host = lt_host_here(1);
  assert_null(host->scratch(c, 100)); /* nothing is being launched */
  assert_true(lt_take_failure(c, NULL));
  lt_stream *stream = lt_stream_of(c, FAKE, LT_STREAM_COMM);
  use(c, LT_STREAM_COMM);
  assert_true(lt_launch_begin(c, FAKE, LT_OP_add));
  char *a = host->scratch(c, 100), *b = host->scratch(c, 100);
  assert_true(a != NULL && b != NULL && a != b && (uintptr_t)a % 64 == 0);
  const lt_device_ops *ops = lt_device_table(c, FAKE);
  float ones[N];
  for (int k = 0; k < N; k++) ones[k] = 1;
  assert_true(ops->copy(c, stream, LT_TO_DEVICE, 0, b, 0, ones, sizeof ones, LT_U8));
  lt_launch_end(c, stream);
  use(c, LT_STREAM_COMPUTE);
  lt_fake_set_order(LT_FAKE_OTHERS_LAST);
  lt_tensor *x = filled(c, FAKE, 3), *y = filled(c, FAKE, 4);
  assert_true(x->storage->data == a || x->storage->data == b);
  assert_true(last_of(c, x) == 3 && last_of(c, y) == 4);
  lt_device_synchronize(c, FAKE);
  assert_true(last_of(c, x) == 3 && last_of(c, y) == 4);
  lt_fake_set_order(LT_FAKE_TURNS);
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_two_uses_of_a_tensor_are_ordered),
      cmocka_unit_test(pinned_memory_under_another_owner_is_read_before_it_is_the_callers_again),
      cmocka_unit_test(so_are_those_of_external_memory),
      cmocka_unit_test(external_memory_is_given_back_after_its_last_use),
      cmocka_unit_test(external_memory_is_waited_for_in_a_ctx_that_failed),
      cmocka_unit_test(work_on_the_fake_device_waits_for_a_reader),
      cmocka_unit_test(freed_memory_is_reused_in_order),
      cmocka_unit_test(memory_of_several_streams_is_not_handed_out_before_they_are_done),
      cmocka_unit_test(freed_memory_is_filled_with_nan),
      cmocka_unit_test(work_that_nobody_waits_for_runs_before_the_end),
      cmocka_unit_test(a_storage_outlives_its_ctx_and_its_streams),
      cmocka_unit_test(memory_goes_back_to_its_device_after_reads_of_another),
      cmocka_unit_test(so_does_that_of_a_pool_whose_ctx_has_gone),
      cmocka_unit_test(late_errors_name_the_line_that_issued_them),
      cmocka_unit_test(a_call_takes_any_number_of_tensors),
      cmocka_unit_test(copies_between_devices_keep_values),
      cmocka_unit_test(pinned_memory_is_read_late),
      cmocka_unit_test(a_backend_sees_views_streams_and_lines),
      cmocka_unit_test(scratch_is_reused_after_the_work_of_its_launch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
