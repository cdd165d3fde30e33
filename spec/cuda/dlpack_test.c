/* spec/cuda/dlpack_test.c: tensors on (emulated) GPUs as DLPack's and back, beside a library with
   streams of its own: fakert ends the program at the first race between the two. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "c/host_dlpack.h"

enum { N = 6, DEVICE = 1 };

static cudaStream_t theirs; /* of the other library, on DEVICE; waits for nobody */

static void ok(cudaError_t e) { assert_int_equal(e, cudaSuccess); }

static int begin(void **state) {
  (void)state;
  setenv("LTRAIN_BACKENDS", BACKENDS, 1);
  ok(cudaSetDevice(DEVICE));
  ok(cudaStreamCreateWithPriority(&theirs, cudaStreamNonBlocking, 0));
  return 0;
}

static void fetch(void *to, const void *from, size_t bytes) {
  ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, theirs));
  ok(cudaStreamSynchronize(theirs));
}

static const void *first_of(const DLTensor *d) { return (char *)d->data + d->byte_offset; }

/* Memory of the other library that is 0, 1, ...: its copy may still run. */
static float *numbers(void) {
  static const float from[N] = {0, 1, 2, 3, 4, 5};
  void *data;
  ok(cudaSetDevice(DEVICE));
  ok(cudaMalloc(&data, sizeof from));
  ok(cudaMemcpyAsync(data, from, sizeof from, cudaMemcpyHostToDevice, theirs));
  return data;
}

static void forget(float *data) {
  ok(cudaSetDevice(DEVICE));
  ok(cudaFree(data));
}

static lt_tensor *get(ltrain *l, const char *code) {
  lt_tensor *t;
  char text[256];
  snprintf(text, sizeof text, "x = %s", code);
  must(l, ltrain_dostring(l, text, "d.lua"));
  must(l, ltrain_get(l, "x", "T", &t));
  return t;
}

static void every_dtype_goes_both_ways(void **state) {
  (void)state;
  static const char *const names[] = {"f32", "f64", "f16", "bf16", "i64", "i32",
                                      "u8",  "bool", "i16", "u16", "i8"};
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  for (size_t k = 0; k < 2 * sizeof names / sizeof *names; k++) {
    char code[128];
    bool old = k % 2 == 1;
    snprintf(code, sizeof code, "lt.tensor({1, 0, 1}, {dtype = '%s', device = 'cuda:1'})",
             names[k / 2]);
    lt_tensor *x = get(l, code), *y;
    DLManagedTensor *u = old ? ltrain_to_dlpack_unversioned(l, x, 1) : NULL;
    DLManagedTensorVersioned *v = old ? NULL : ltrain_to_dlpack(l, x, 1);
    must(l, u != NULL || v != NULL);
    const DLTensor *d = old ? &u->dl_tensor : &v->dl_tensor;
    const void *at = first_of(d);
    assert_int_equal(d->device.device_type, kDLCUDA);
    assert_int_equal(d->device.device_id, DEVICE);
    y = old ? ltrain_from_dlpack_unversioned(l, u) : ltrain_from_dlpack(l, v);
    must(l, y != NULL);
    assert_int_equal(lt_tensor_dtype(y), lt_tensor_dtype(x));
    assert_int_equal(lt_tensor_device(y).index, DEVICE);
    v = ltrain_to_dlpack(l, y, 0);
    must(l, v != NULL);
    assert_ptr_equal(first_of(&v->dl_tensor), at);
    v->deleter(v);
    must(l, ltrain_set(l, "y", "T", y));
    ltrain_release(l, y);
    expect(l, "'cuda:1', y.device");
    expect(l, "true, y:equal(x)");
    drop(l, "y");
    ltrain_release(l, x);
  }
  ltrain_close(l);
}

static void exports_show_the_tensor_when_its_work_is_done(void **state) {
  (void)state;
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  must(l, ltrain_dostring(l, "whole = lt.arange(0, 24):float():view(2, 3, 4):to('cuda:1') + 1",
                          "d.lua"));
  lt_tensor *t = get(l, "whole[{lt.all, {2, 3}, {1, -1, 2}}]:transpose(1, 3)");
  DLManagedTensorVersioned *m = ltrain_to_dlpack(l, t, 1);
  must(l, m != NULL);
  const int64_t shape[] = {2, 2, 2}, strides[] = {2, 4, 12};
  assert_memory_equal(m->dl_tensor.shape, shape, sizeof shape);
  assert_memory_equal(m->dl_tensor.strides, strides, sizeof strides);
  float part[2 + 4 + 12 + 1];
  fetch(part, first_of(&m->dl_tensor), sizeof part);
  assert_float_equal(part[0], 5, 0);
  assert_float_equal(part[2 + 4 + 12], 23, 0);
  const float one = -1;
  ok(cudaMemcpyAsync((char *)m->dl_tensor.data + m->dl_tensor.byte_offset, &one, sizeof one,
                     cudaMemcpyHostToDevice, theirs));
  ok(cudaStreamSynchronize(theirs));
  expect(l, "-1, whole[1][2][1]:item()");
  m->deleter(m);
  ltrain_release(l, t);
  ltrain_close(l);
}

static void exports_for_writing_count_as_writes(void **state) {
  (void)state;
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  must(l, ltrain_dostring(l, "w = lt.parameter(lt.ones(2, {device = 'cuda:1'}))\n"
                             "loss = (w * w):sum()", "d.lua"));
  check_exports_of_parameter(l);
  ltrain_close(l);
}

static void imports_share_any_layout(void **state) {
  (void)state;
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  float *data = numbers(), now[N];
  foreign f;
  make(&f, data, f32, 2, (int64_t[]){2, 2}, (int64_t[]){1, 3});
  put_on(&f, kDLCUDA, DEVICE);
  f.versioned.dl_tensor.byte_offset = sizeof(float);
  lt_tensor *t = take(l, &f);
  must(l, ltrain_set(l, "x", "T", t));
  expect(l, "'cuda:1 1.0 4.0 2.0 5.0', table.concat({x.device, x[1][1]:item(), x[1][2]:item(), "
            "x[2][1]:item(), x[2][2]:item()}, ' ')");
  must(l, ltrain_dostring(l, "x:mul_(10) lt.cuda.synchronize(1)", "d.lua"));
  fetch(now, data, sizeof now);
  static const float want[N] = {0, 10, 20, 3, 40, 50};
  assert_memory_equal(now, want, sizeof now);
  drop(l, "x");
  assert_int_equal(f.deleted, 0); /* the host has a tensor */
  ltrain_release(l, t);
  assert_int_equal(f.deleted, 1);

  make(&f, NULL, f32, 2, (int64_t[]){0, 3}, NULL);
  put_on(&f, kDLCUDA, DEVICE);
  must(l, ltrain_set(l, "x", "T", t = take(l, &f)));
  ltrain_release(l, t);
  expect(l, "0.0, (x + 1):sum():item()");
  ltrain_close(l);
  assert_int_equal(f.deleted, 1);
  forget(data);
}

/* What scripts have issued on it has run when its owner may free it. */
static void imports_are_given_back_when_they_are_not_used(void **state) {
  (void)state;
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  float *data = numbers();
  foreign f;
  make(&f, data, f32, 1, (int64_t[]){N}, NULL);
  put_on(&f, kDLCUDA, DEVICE);
  lt_tensor *t = take(l, &f);
  must(l, ltrain_set(l, "x", "T", t));
  ltrain_release(l, t);
  must(l, ltrain_dostring(l, "y = x * 2 x:zero_()", "d.lua"));
  drop(l, "x");
  assert_int_equal(f.deleted, 1);
  ok(cudaMemsetAsync(data, 0xff, N * sizeof *data, theirs));
  ok(cudaStreamSynchronize(theirs));
  forget(data);
  expect(l, "30.0, y:sum():item()");
  ltrain_close(l);
}

static void read_only_memory_is_never_written(void **state) {
  (void)state;
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  float *data = numbers();
  foreign f;
  make(&f, data, f32, 1, (int64_t[]){N}, NULL);
  put_on(&f, kDLCUDA, DEVICE);
  f.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  lt_tensor *t = take(l, &f);
  must(l, ltrain_set(l, "x", "T", t));
  must_say(l, ltrain_dostring(l, "x:add_(1)", "w.lua"), "lends it read-only");
  assert_null(ltrain_to_dlpack(l, t, 1));
  must_say(l, false, "to_dlpack: the memory of [6] is read-only");
  DLManagedTensorVersioned *m = ltrain_to_dlpack(l, t, 0);
  must(l, m != NULL);
  expect(l, "15.0, x:sum():item()");
  ltrain_release(l, t);
  ltrain_close(l);
  assert_int_equal(f.deleted, 0);
  m->deleter(m); /* they hold what is theirs */
  assert_int_equal(f.deleted, 1);
  forget(data);
}

/* The other library makes whichever device it uses the thread's current one. */
static void the_current_device_is_theirs_too(void **state) {
  (void)state;
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  must(l, ltrain_dostring(l, "a = lt.ones(3, {device = 'cuda:1'})", "d.lua"));
  ok(cudaSetDevice(0));
  must(l, ltrain_dostring(l, "b = lt.ones(1 << 19, {device = 'cuda:1'}) * 2", "d.lua"));
  lt_tensor *t = get(l, "b");
  DLManagedTensorVersioned *m = ltrain_to_dlpack(l, t, 0);
  must(l, m != NULL);
  struct cudaPointerAttributes a;
  ok(cudaPointerGetAttributes(&a, m->dl_tensor.data));
  assert_int_equal(a.device, DEVICE);
  ok(cudaSetDevice(2));
  m->deleter(m);
  expect(l, "1048579.0, (b:sum() + a:sum()):item()");
  ltrain_release(l, t);
  ltrain_close(l);
}

static void devices_are_what_they_are(void **state) {
  (void)state;
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  float *data = numbers(), *pinned;
  foreign f;
  make(&f, data, f32, 1, (int64_t[]){N}, NULL);
  put_on(&f, kDLCUDA, 7);
  refuse(l, &f, "from_dlpack: device: no cuda:7 (cuda has 4)");
  put_on(&f, kDLCUDA, -1);
  refuse(l, &f, "from_dlpack: device: no cuda:-1 (cuda has 4)");
  put_on(&f, kDLCUDAManaged, DEVICE);
  refuse(l, &f, "on device 1 of DLPack's type 13 (CUDA's managed memory): copy it first");
  forget(data);
  ok(cudaHostAlloc((void **)&pinned, N * sizeof *pinned, cudaHostAllocPortable));
  for (int k = 0; k < N; k++) pinned[k] = 1;
  make(&f, pinned, f32, 1, (int64_t[]){N}, NULL);
  put_on(&f, kDLCUDAHost, DEVICE);
  lt_tensor *t = take(l, &f);
  must(l, ltrain_set(l, "x", "T", t));
  ltrain_release(l, t);
  expect(l, "'cpu', x.device");
  expect(l, "6.0, x:to('cuda:1'):sum():item()");
  ltrain_close(l);
  assert_int_equal(f.deleted, 1);
  ok(cudaFreeHost(pinned));
}

/* Memory that another library has pinned is its owner's again when a copy of it returns, however
   much work the GPU has before it. */
static void memory_that_others_pinned_is_copied_at_once(void **state) {
  (void)state;
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  float *pinned;
  foreign f;
  ok(cudaHostAlloc((void **)&pinned, N * sizeof *pinned, cudaHostAllocPortable));
  for (int k = 0; k < N; k++) pinned[k] = 1;
  make(&f, pinned, f32, 1, (int64_t[]){N}, NULL);
  put_on(&f, kDLCUDAHost, DEVICE);
  lt_tensor *t = take(l, &f);
  must(l, ltrain_set(l, "x", "T", t));
  ltrain_release(l, t);
  must(l, ltrain_dostring(l, "a = lt.ones(64, 64, {device = 'cuda:1'}) for _ = 1, 4 do a = a * 2 end\n"
                             "y = x:to('cuda:1') x:fill_(7) z = x:to('cuda:1')", "d.lua"));
  drop(l, "x");
  assert_int_equal(f.deleted, 1);
  for (int k = 0; k < N; k++) pinned[k] = 9;
  ok(cudaFreeHost(pinned));
  expect(l, "6.0, y:sum():item()");
  expect(l, "42.0, z:sum():item()");

  lt_tensor *own = get(l, "lt.ones(8):pin_memory()");
  DLManagedTensorVersioned *m = ltrain_to_dlpack(l, own, 1), *n = ltrain_to_dlpack(l, own, 1);
  must(l, m != NULL && n != NULL);
  lt_tensor *same = ltrain_from_dlpack(l, n);
  must(l, same != NULL && ltrain_set(l, "x", "T", same));
  must(l, ltrain_dostring(l, "a = a * 2 y = x:to('cuda:1')", "d.lua"));
  for (int k = 0; k < 8; k++) ((float *)m->dl_tensor.data)[k] = 9;
  expect(l, "8.0, y:sum():item()");
  m->deleter(m);
  ltrain_release(l, same);
  ltrain_release(l, own);
  ltrain_close(l);
}

static size_t left_on_device(void) {
  size_t left, total;
  ok(cudaSetDevice(DEVICE));
  ok(cudaMemGetInfo(&left, &total));
  return left;
}

static void memory_outlives_the_state(void **state) {
  (void)state;
  size_t before = left_on_device();
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  lt_tensor *small = get(l, "lt.ones(3, {device = 'cuda:1'}) * 2");
  DLManagedTensorVersioned *m = ltrain_to_dlpack(l, small, 1);
  must(l, m != NULL);
  lt_tensor *large = get(l, "lt.ones(1 << 19, {device = 'cuda:1'}) * 3");
  DLManagedTensorVersioned *n = ltrain_to_dlpack(l, large, 1);
  must(l, n != NULL);
  ltrain_release(l, small);
  ltrain_release(l, large);
  ltrain_close(l);
  float now[3];
  fetch(now, first_of(&m->dl_tensor), sizeof now);
  assert_float_equal(now[2], 2, 0);
  fetch(now, (const float *)first_of(&n->dl_tensor) + (1 << 19) - 3, sizeof now);
  assert_float_equal(now[2], 3, 0);
  delete_elsewhere(m);
  assert_true(left_on_device() < before);
  ok(cudaMemsetAsync(n->dl_tensor.data, 0, sizeof now, theirs)); /* runs before it is freed */
  delete_elsewhere(n);
  assert_int_equal(left_on_device(), before);
}

/* The other library's last work on a tensor may still run when it lets go. */
static void what_is_given_back_is_used_again_after_their_work(void **state) {
  (void)state;
  ltrain *l = open_allowed(LTRAIN_LOAD_LIBRARIES);
  const void *first = NULL;
  int again = 0;
  for (int k = 0; k < 8; k++) {
    lt_tensor *t = get(l, "lt.ones(1000, {device = 'cuda:1'})");
    DLManagedTensorVersioned *m = ltrain_to_dlpack(l, t, 1);
    must(l, m != NULL);
    if (first == NULL) first = m->dl_tensor.data;
    again += k > 0 && m->dl_tensor.data == first;
    ltrain_release(l, t);
    drop(l, "x");
    ok(cudaMemsetAsync(m->dl_tensor.data, 0xff, 1000 * sizeof(float), theirs));
    if (k % 2 == 0)
      m->deleter(m);
    else
      delete_elsewhere(m);
    must(l, ltrain_dostring(l, "z = lt.ones(1000, {device = 'cuda:1'}) * 2\n"
                               "assert(z:sum():item() == 2000)", "d.lua"));
    drop(l, "z");
  }
  assert_true(again > 0);
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_dtype_goes_both_ways),
      cmocka_unit_test(exports_show_the_tensor_when_its_work_is_done),
      cmocka_unit_test(exports_for_writing_count_as_writes),
      cmocka_unit_test(imports_share_any_layout),
      cmocka_unit_test(imports_are_given_back_when_they_are_not_used),
      cmocka_unit_test(read_only_memory_is_never_written),
      cmocka_unit_test(the_current_device_is_theirs_too),
      cmocka_unit_test(devices_are_what_they_are),
      cmocka_unit_test(memory_that_others_pinned_is_copied_at_once),
      cmocka_unit_test(memory_outlives_the_state),
      cmocka_unit_test(what_is_given_back_is_used_again_after_their_work),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
