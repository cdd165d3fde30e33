/* spec/c/host_dlpack_test.c: tensors as DLPack's and back: what is shared, refused, and given
   back, once, by whichever thread. */
/* tags: threads */
#include <pthread.h>
#include <stdlib.h>

#include "device/device.h"
#include "host/state.h"
#include "host_counted.h"
#include "host_dlpack.h"

static void exports_show_the_tensor_itself(void **state) {
  (void)state;
  ltrain *l = open_lua();
  must(l, ltrain_dostring(l, "whole = lt.arange(0, 24):float():view(2, 3, 4)\n"
                             "part = whole[{lt.all, {2, 3}, {1, -1, 2}}]:transpose(1, 3)",
                          "d.lua"));
  lt_tensor *t;
  must(l, ltrain_get(l, "part", "T", &t));
  DLManagedTensorVersioned *m = ltrain_to_dlpack(l, t, 1);
  must(l, m != NULL);
  assert_int_equal(m->version.major, 1);
  assert_int_equal(m->flags, 0);
  const DLTensor *d = &m->dl_tensor;
  assert_int_equal(d->device.device_type, kDLCPU);
  assert_int_equal(d->device.device_id, 0);
  assert_int_equal(d->ndim, 3);
  const int64_t shape[] = {2, 2, 2}, strides[] = {2, 4, 12};
  assert_memory_equal(d->shape, shape, sizeof shape);
  assert_memory_equal(d->strides, strides, sizeof strides);
  float *first = (float *)(void *)((char *)d->data + d->byte_offset);
  assert_float_equal(first[0], 4, 0);
  assert_float_equal(first[2 + 4 + 12], 22, 0);
  first[2 + 4 + 12] = -1;
  expect(l, "-1, whole[2][3][3]:item()");
  m->deleter(m);
  ltrain_release(l, t);
  ltrain_close(l);
}

static void exports_for_reading_say_so_and_count_as_no_write(void **state) {
  (void)state;
  ltrain *l = open_lua();
  must(l, ltrain_dostring(l, "w = lt.parameter(lt.ones(2)) loss = (w * w):sum()", "d.lua"));
  check_exports_of_parameter(l);
  ltrain_close(l);
}

/* What DLPack calls a dtype, from its name in scripts: "u16" is an unsigned integer of 16 bits. */
static DLDataType item_of(const char *name) {
  if (strcmp(name, "bool") == 0) return (DLDataType){kDLBool, 8, 1};
  int code = name[0] == 'b'   ? kDLBfloat
             : name[0] == 'f' ? kDLFloat
             : name[0] == 'u' ? kDLUInt
                              : kDLInt;
  return (DLDataType){(uint8_t)code, (uint8_t)atoi(name + strcspn(name, "0123456789")), 1};
}

static void every_dtype_goes_both_ways(void **state) {
  (void)state;
  ltrain *l = open_lua();
  for (int k = 0; k < LT_DTYPE_COUNT; k++) {
    char code[128];
    const char *name;
    snprintf(code, sizeof code, "name = lt.dtypes()[%d].name\nx = lt.tensor{1, 0, 1}:to(name)",
             k + 1);
    must(l, ltrain_dostring(l, code, "d.lua"));
    lt_tensor *x, *y;
    must(l, ltrain_get(l, "x", "T", &x));
    must(l, ltrain_get(l, "name", "s", &name));
    const DLDataType item = item_of(name);
    assert_int_equal(lt_tensor_dtype(x), k);
    for (int old = 0; old < 2; old++) {
      DLManagedTensor *u = old ? ltrain_to_dlpack_unversioned(l, x, 1) : NULL;
      DLManagedTensorVersioned *v = old ? NULL : ltrain_to_dlpack(l, x, 1);
      must(l, u != NULL || v != NULL);
      const DLTensor *d = old ? &u->dl_tensor : &v->dl_tensor;
      assert_memory_equal(&d->dtype, &item, sizeof d->dtype);
      y = old ? ltrain_from_dlpack_unversioned(l, u) : ltrain_from_dlpack(l, v);
      must(l, y != NULL);
      assert_int_equal(lt_tensor_dtype(y), k);
      assert_ptr_equal(ltrain_data(l, x, 0), ltrain_data(l, y, 0));
      must(l, ltrain_set(l, "y", "T", y));
      ltrain_release(l, y);
      expect(l, "true, y:equal(x)");
      drop(l, "y");
    }
    ltrain_release(l, x);
  }
  ltrain_close(l);
}

static void imports_share_any_layout(void **state) {
  (void)state;
  ltrain *l = open_lua();
  float data[13];
  for (int k = 0; k < 13; k++) data[k] = (float)k;
  foreign f;
  make(&f, data, f32, 2, (int64_t[]){3, 2}, (int64_t[]){1, 6}); /* columns, and not all */
  f.versioned.dl_tensor.byte_offset = 4 * sizeof(float);
  lt_tensor *t = take(l, &f);
  must(l, ltrain_set(l, "x", "T", t));
  expect(l, "'4,10,5,11,6', table.concat({x[1][1]:item()//1|0, x[1][2]:item()//1|0, "
            "x[2][1]:item()//1|0, x[2][2]:item()//1|0, x[3][1]:item()//1|0}, ',')");
  must(l, ltrain_dostring(l, "x:add_(100)", "d.lua"));
  assert_float_equal(data[4], 104, 0);
  assert_float_equal(data[7], 7, 0);
  data[11] = 1;
  expect(l, "1.0, x[2][2]:item()");
  drop(l, "x");
  assert_int_equal(f.deleted, 0); /* the host has a tensor */
  ltrain_release(l, t);
  assert_int_equal(f.deleted, 1);

  make(&f, data, f32, 0, NULL, NULL); /* a scalar */
  must(l, ltrain_set(l, "x", "T", t = take(l, &f)));
  ltrain_release(l, t);
  expect(l, "0, x:dim()");
  expect(l, "0.0, x:item()");
  drop(l, "x");
  assert_int_equal(f.deleted, 1);

  make(&f, data, f32, 2, (int64_t[]){2, 3}, (int64_t[]){0, 1}); /* a row, repeated */
  must(l, ltrain_set(l, "x", "T", t = take(l, &f)));
  ltrain_release(l, t);
  expect(l, "6.0, x:sum():item()");
  must_say(l, ltrain_dostring(l, "x:zero_()", "d.lua"), "d.lua:1: fill: cannot write into [2, 3]");
  must(l, ltrain_dostring(l, "x = nil", "d.lua"));
  ltrain_close(l);
  assert_int_equal(f.deleted, 1);
}

static void nothing_is_shared_by_what_has_no_elements(void **state) {
  (void)state;
  ltrain *l = open_lua();
  foreign f;
  make(&f, NULL, f32, 2, (int64_t[]){0, 3}, (int64_t[]){-7, INT64_MAX});
  lt_tensor *t = take(l, &f);
  must(l, ltrain_set(l, "x", "T", t));
  expect(l, "'0,3', table.concat(x.shape, ',')");
  expect(l, "0.0, (x + 1):sum():item()");
  DLManagedTensorVersioned *m = ltrain_to_dlpack(l, t, 1);
  must(l, m != NULL);
  assert_int_equal(m->dl_tensor.shape[0], 0);
  m->deleter(m);
  ltrain_release(l, t);
  ltrain_close(l);
  assert_int_equal(f.deleted, 1);
}

static void read_only_memory_is_never_written(void **state) {
  (void)state;
  ltrain *l = open_lua();
  static const float data[4] = {1, 2, 3, 4};
  foreign f;
  make(&f, (void *)(uintptr_t)data, f32, 1, (int64_t[]){4}, NULL);
  f.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  lt_tensor *t = take(l, &f);
  must(l, ltrain_set(l, "x", "T", t));
  static const char *const writes[] = {"x:add_(1)", "x[1] = 2", "x:copy_(lt.zeros(4))",
                                       "x:uniform_()", "x:view(2, 2)[1]:zero_()",
                                       "x:detach():mul_(2)"};
  for (size_t k = 0; k < sizeof writes / sizeof *writes; k++) {
    must_say(l, ltrain_dostring(l, writes[k], "w.lua"), "w.lua:1: ");
    must_say(l, false, "lends it read-only; write x:clone() first");
  }
  must_say(l, ltrain_dostring(l, "p = lt.parameter(x);\n"
                                 "(p * p):sum():backward()\n"
                                 "lt.optim.SGD({p}, {lr = 1}):step()", "w.lua"),
           "w.lua:3: sgd_step: cannot write into [4] in place");
  /* A gradient of that memory is replaced, not added to. */
  must(l, ltrain_dostring(l, "q = lt.parameter(lt.ones(4)) q.grad = x\n"
                             "q:sum():backward() assert(q.grad:sum():item() == 14)", "w.lua"));
  assert_null(ltrain_data(l, t, 1));
  must_say(l, false, "the memory of [4] is read-only");
  assert_non_null(ltrain_data(l, t, 0));
  assert_null(ltrain_to_dlpack(l, t, 1));
  must_say(l, false, "to_dlpack: the memory of [4] is read-only");
  assert_null(ltrain_to_dlpack_unversioned(l, t, 1));
  DLManagedTensorVersioned *m = ltrain_to_dlpack(l, t, 0);
  must(l, m != NULL);
  m->deleter(m);
  expect(l, "10.0, x:clone():mul_(1):sum():item()");
  ltrain_release(l, t);
  ltrain_close(l);
  assert_int_equal(f.deleted, 1);
}

static void what_cannot_be_shared_is_refused(void **state) {
  (void)state;
  ltrain *l = open_lua();
  float data[4] = {0};
  foreign f;
  const int64_t shape[] = {2, 2};
  static const struct {
    DLDataType item;
    const char *text;
  } items[] = {{{kDLUInt, 32, 1}, "elements of uint32"},
               {{kDLComplex, 64, 1}, "elements of complex64"},
               {{kDLFloat, 32, 4}, "elements of float32 x 4"},
               {{kDLInt, 4, 1}, "elements of int4"},
               {{10, 8, 1}, "elements of type 10 of 8 bits"}};
  for (size_t k = 0; k < sizeof items / sizeof *items; k++) {
    make(&f, data, items[k].item, 2, shape, NULL);
    refuse(l, &f, items[k].text);
  }
  make(&f, data, f32, 2, shape, (int64_t[]){2, -1});
  refuse(l, &f, "strides [2, -1] of shape [2, 2]: they must not be negative");
  make(&f, data, f32, 2, shape, (int64_t[]){INT64_MAX / 2, 1});
  refuse(l, &f, "nor reach beyond what can be addressed");
  make(&f, data, f32, 2, (int64_t[]){-1, 2}, NULL);
  refuse(l, &f, "from_dlpack: impossible shape [-1, 2]");
  make(&f, data, f32, 2, (int64_t[]){INT64_MAX, 4}, NULL);
  refuse(l, &f, "from_dlpack: impossible shape");
  make(&f, NULL, f32, 2, shape, NULL);
  refuse(l, &f, "from_dlpack: the memory is NULL");
  make(&f, (char *)data + 2, f32, 1, (int64_t[]){2}, NULL);
  refuse(l, &f, "from_dlpack: memory of f32 must be aligned to 4 bytes, got 0x");
  make(&f, data, f32, 2, shape, NULL);
  f.versioned.dl_tensor.ndim = f.unversioned.dl_tensor.ndim = 9;
  refuse(l, &f, "from_dlpack: dims must be 0 to 8, got 9");
  f.versioned.dl_tensor.ndim = f.unversioned.dl_tensor.ndim = 2;
  f.versioned.dl_tensor.shape = f.unversioned.dl_tensor.shape = NULL;
  refuse(l, &f, "from_dlpack: the shape of 2 dims is NULL");
  make(&f, data, f32, 2, shape, NULL);
  put_on(&f, kDLROCM, 1);
  refuse(l, &f, "neither in the memory of the CPU nor in that of a CUDA device but on device 1 of "
                "DLPack's type 10 (ROCm): copy it first");
  put_on(&f, kDLCUDAManaged, 0);
  refuse(l, &f, "on device 0 of DLPack's type 13 (CUDA's managed memory): copy it first");
  put_on(&f, 99, -1);
  refuse(l, &f, "on device -1 of DLPack's type 99: copy it first");
  put_on(&f, kDLCUDA, 1);
  refuse(l, &f, "from_dlpack: cuda: ");
  f.versioned.version.major = 2;
  assert_null(ltrain_from_dlpack(l, &f.versioned));
  must_say(l, false, "from_dlpack: the tensor is of DLPack 2.1, this reads 1");
  assert_null(ltrain_from_dlpack(l, NULL));
  must_say(l, false, "from_dlpack: the tensor is NULL");
  assert_null(ltrain_to_dlpack(l, NULL, 0));
  must_say(l, false, "to_dlpack: the tensor is NULL");
  assert_null(ltrain_to_dlpack(NULL, NULL, 0));
  assert_null(ltrain_from_dlpack(NULL, &f.versioned));
  assert_int_equal(f.deleted, 0);

  must(l, ltrain_dostring(l, "x = lt.zeros(2):to('fake')", "d.lua"));
  lt_tensor *t;
  must(l, ltrain_get(l, "x", "T", &t));
  assert_null(ltrain_to_dlpack(l, t, 0));
  must_say(l, false, "to_dlpack: the tensor is on fake:0: copy it with :to('cpu') first");
  ltrain_release(l, t);
  expect(l, "2, 1 + 1"); /* the state continues */
  ltrain_close(l);
}

/* Structs of any numbers: what is taken reads the right elements, the rest is refused. */

enum { CASES = 4000, BYTES = 4096 };

static uint64_t draw(uint64_t n) {
  static uint64_t seed = 1;
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (seed >> 33) % n;
}

static int64_t one_of(const int64_t *list, size_t n) { return list[draw(n)]; }
#define ONE_OF(...) \
  one_of((const int64_t[]){__VA_ARGS__}, sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t))

/* The sum of what a valid tensor shows, INT64_MIN where it reaches beyond the bytes. */
static int64_t sum_of(const DLTensor *d, const uint8_t *bytes, size_t item) {
  int64_t at[LT_MAX_DIMS] = {0}, sum = 0, count = 1;
  for (int k = 0; k < d->ndim; k++) {
    if (d->shape[k] > BYTES || d->shape[k] * count > BYTES) return INT64_MIN;
    count *= d->shape[k];
  }
  for (int64_t n = 0; n < count; n++) {
    int64_t from = 0, row = 1;
    for (int k = d->ndim - 1; k >= 0; k--) {
      int64_t stride = d->strides == NULL ? row : d->strides[k];
      if (at[k] > 0 && stride > BYTES) return INT64_MIN;
      from += at[k] * stride;
      row *= d->shape[k];
    }
    from = from * (int64_t)item + (int64_t)d->byte_offset;
    if (from + (int64_t)item > BYTES) return INT64_MIN;
    sum += bytes[from];
    for (int k = d->ndim - 1; k >= 0 && ++at[k] == d->shape[k]; k--) at[k] = 0;
  }
  return sum;
}

/* As a parameter of which this rank has a part, whose bytes are elsewhere. */
static void an_emptied_tensor_is_refused(void **state) {
  (void)state;
  ltrain *l = open_lua();
  lt_tensor *t;
  must(l, ltrain_dostring(l, "x = lt.ones(3)", "d.lua"));
  must(l, ltrain_get(l, "x", "T", &t));
  assert_true(lt_storage_empty(l->b->c, t->storage, "its bytes are not here"));
  for (int write = 0; write < 2; write++)
    must_say(l, ltrain_to_dlpack(l, t, write) != NULL,
             "to_dlpack: its bytes are not here: f32 [3]");
  ltrain_release(l, t);
  ltrain_close(l);
}

static void any_numbers_are_read_right_or_refused(void **state) {
  (void)state;
  static _Alignas(8) uint8_t bytes[BYTES];
  for (size_t k = 0; k < BYTES; k += 2) bytes[k] = (uint8_t)(k / 2); /* odd ones 0: also as i16 */
  ltrain *l = open_lua();
  must(l, ltrain_dostring(l, "function total(x) return x:long():sum():item() end", "d.lua"));
  int taken = 0, compared = 0;
  for (int n = 0; n < CASES; n++) {
    foreign f;
    int64_t shape[LT_MAX_DIMS + 1], strides[LT_MAX_DIMS + 1];
    int ndim = (int)ONE_OF(0, 1, 1, 2, 2, 2, 3, 3, 8, 9);
    for (int k = 0; k < ndim; k++) {
      shape[k] = draw(8) > 0 ? 1 + (int64_t)draw(4)
                             : ONE_OF(0, -1, 300, INT64_MAX, INT64_C(1) << 61);
      strides[k] = draw(8) > 0 ? 2 * (int64_t)draw(20) : ONE_OF(-1, 9000, INT64_MIN, INT64_MAX / 2);
    }
    bool wide = draw(2) == 0;
    DLDataType item = {wide ? kDLInt : kDLUInt, wide ? 16 : 8, 1};
    make(&f, draw(30) == 0 ? NULL : bytes, item, ndim, shape, draw(3) == 0 ? NULL : strides);
    if (draw(10) == 0) f.versioned.dl_tensor.dtype.bits = (uint8_t)ONE_OF(0, 1, 32, 128, 255);
    f.versioned.dl_tensor.byte_offset = 2 * draw(100);
    bool as_made = f.versioned.dl_tensor.dtype.bits == item.bits;
    lt_tensor *t = ltrain_from_dlpack(l, &f.versioned);
    assert_true(t != NULL || ltrain_errmsg(l)[0] != 0);
    if (t == NULL) {
      assert_int_equal(f.deleted, 0);
      continue;
    }
    taken++;
    int64_t want = as_made ? sum_of(&f.versioned.dl_tensor, bytes, wide ? 2 : 1) : INT64_MIN, got;
    if (want != INT64_MIN) {
      must(l, ltrain_call(l, "total", "T>i", t, &got));
      assert_int_equal(got, want);
      compared++;
    }
    ltrain_release(l, t);
    lua_gc(ltrain_lua(l), LUA_GCCOLLECT);
    assert_int_equal(f.deleted, 1);
  }
  assert_true(taken > CASES / 8 && taken < CASES && compared > CASES / 10);
  ltrain_close(l);
}

/* What a test's states and their exports hold. */
static counted held;

static ltrain *open_counted(void) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.alloc = count_alloc;
  config.ud = &held;
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l, "lt = require 'ltrain'", "d.lua"));
  return l;
}

static void memory_outlives_the_state(void **state) {
  (void)state;
  enum { N = 3 };
  ltrain *l = open_counted();
  float data[4] = {1, 2, 3, 4};
  foreign f;
  make(&f, data, f32, 1, (int64_t[]){4}, NULL);
  lt_tensor *theirs = take(l, &f), *ours[N];
  must(l, ltrain_dostring(l, "a, b, c = lt.ones(3), lt.ones(1 << 20), lt.ones(3)[{{2, 3}}]",
                          "d.lua"));
  static const char *const names[N] = {"a", "b", "c"};
  DLManagedTensorVersioned *m[N + 1];
  for (int k = 0; k < N; k++) {
    must(l, ltrain_get(l, names[k], "T", &ours[k]));
    m[k] = ltrain_to_dlpack(l, ours[k], 1);
    must(l, m[k] != NULL);
    ltrain_release(l, ours[k]);
  }
  m[N] = ltrain_to_dlpack(l, theirs, 1);
  must(l, m[N] != NULL);
  ltrain_release(l, theirs);
  delete_elsewhere(m[0]); /* before the close */
  ltrain_close(l);
  assert_int_equal(f.deleted, 0);
  float *big = m[1]->dl_tensor.data, *part = m[2]->dl_tensor.data, *lent = m[N]->dl_tensor.data;
  big[(1 << 20) - 1] = 5;
  assert_float_equal(big[0] + big[(1 << 20) - 1] + part[1] + lent[3], 1 + 5 + 1 + 4, 0);
  delete_elsewhere(m[1]);
  delete_it(m[2]);
  assert_true(atomic_load(&held.live) > 0);
  delete_elsewhere(m[N]);
  assert_int_equal(f.deleted, 1);
  assert_int_equal(atomic_load(&held.live), 0);
}

static void what_is_given_back_is_used_again(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.memory_cap = 32 << 20;
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l, "lt = require 'ltrain' function make() return lt.ones(1 << 20) end",
                          "d.lua"));
  for (int k = 0; k < 40; k++) { /* 4 MiB each */
    lt_tensor *t;
    must(l, ltrain_call(l, "make", ">T", &t));
    DLManagedTensorVersioned *m = ltrain_to_dlpack(l, t, 0);
    must(l, m != NULL);
    ltrain_release(l, t);
    if (k % 2 == 0)
      delete_it(m);
    else
      delete_elsewhere(m);
  }
  ltrain_close(l);
}

static void without_memory_it_fails_and_goes_on(void **state) {
  (void)state;
  ltrain *l = open_counted();
  must(l, ltrain_dostring(l, "x = lt.ones(3)", "d.lua"));
  lt_tensor *t, *u = NULL;
  must(l, ltrain_get(l, "x", "T", &t));
  DLManagedTensorVersioned *m = NULL;
  int failed = 0;
  for (long n = 0; m == NULL; n++) {
    held.fails_at = atomic_load(&held.asked) + n + 1;
    m = ltrain_to_dlpack(l, t, 1);
    failed += m == NULL;
    if (m == NULL) must_say(l, false, "out of memory");
  }
  assert_true(failed > 1);
  for (long n = 0; u == NULL; n++) {
    held.fails_at = atomic_load(&held.asked) + n + 1;
    u = ltrain_from_dlpack(l, m);
    if (u == NULL) must_say(l, false, "out of memory");
  }
  held.fails_at = 0;
  ltrain_release(l, u);
  ltrain_release(l, t);
  ltrain_close(l);
  assert_int_equal(atomic_load(&held.live), 0);
}

/* A state's memory in a second one, and back in the first: deleters call deleters. */
static void memory_passes_through_states(void **state) {
  (void)state;
  ltrain *a = open_counted(), *b = open_counted();
  must(a, ltrain_dostring(a, "x = lt.ones(3)", "d.lua"));
  lt_tensor *t;
  must(a, ltrain_get(a, "x", "T", &t));
  DLManagedTensorVersioned *m = NULL;
  for (int k = 0; k < 6; k++) {
    ltrain *from = k % 2 == 0 ? a : b, *to = k % 2 == 0 ? b : a;
    m = ltrain_to_dlpack(from, t, 1);
    must(from, m != NULL);
    ltrain_release(from, t);
    t = ltrain_from_dlpack(to, m);
    must(to, t != NULL);
  }
  must(a, ltrain_set(a, "y", "T", t));
  must(a, ltrain_dostring(a, "y:add_(1) assert(x:sum():item() == 6)", "d.lua"));
  m = ltrain_to_dlpack(a, t, 1);
  must(a, m != NULL);
  ltrain_release(a, t);
  ltrain_close(a);
  ltrain_close(b);
  assert_float_equal(((float *)m->dl_tensor.data)[2], 2, 0);
  delete_elsewhere(m);
  assert_int_equal(atomic_load(&held.live), 0);
}

enum { THREADS = 4, ROUNDS = 200 };

/* Threads give back while the state runs, is closed, and is gone. */
static void *delete_all(void *list) {
  DLManagedTensorVersioned **m = list;
  for (int k = 0; k < ROUNDS; k++)
    m[k]->deleter(m[k]);
  return NULL;
}

static void any_thread_gives_back_at_any_time(void **state) {
  (void)state;
  static DLManagedTensorVersioned *m[THREADS][ROUNDS];
  static foreign f;
  static float data[4];
  ltrain *l = open_counted();
  make(&f, data, f32, 1, (int64_t[]){4}, NULL);
  lt_tensor *theirs = take(l, &f), *ours;
  must(l, ltrain_dostring(l, "x = lt.ones(100) function f() return x + 1 end", "d.lua"));
  for (int i = 0; i < THREADS; i++)
    for (int k = 0; k < ROUNDS; k++) {
      must(l, ltrain_call(l, "f", ">T", &ours));
      m[i][k] = ltrain_to_dlpack(l, k % 3 == 0 ? theirs : ours, 0);
      must(l, m[i][k] != NULL);
      ltrain_release(l, ours);
    }
  ltrain_release(l, theirs);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, delete_all, m[i]), 0);
  for (int k = 0; k < 20; k++)
    must(l, ltrain_call(l, "f", ">T", NULL));
  ltrain_close(l);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(f.deleted, 1);
  assert_int_equal(atomic_load(&held.live), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exports_show_the_tensor_itself),
      cmocka_unit_test(exports_for_reading_say_so_and_count_as_no_write),
      cmocka_unit_test(every_dtype_goes_both_ways),
      cmocka_unit_test(imports_share_any_layout),
      cmocka_unit_test(nothing_is_shared_by_what_has_no_elements),
      cmocka_unit_test(read_only_memory_is_never_written),
      cmocka_unit_test(what_cannot_be_shared_is_refused),
      cmocka_unit_test(an_emptied_tensor_is_refused),
      cmocka_unit_test(any_numbers_are_read_right_or_refused),
      cmocka_unit_test(memory_outlives_the_state),
      cmocka_unit_test(what_is_given_back_is_used_again),
      cmocka_unit_test(without_memory_it_fails_and_goes_on),
      cmocka_unit_test(memory_passes_through_states),
      cmocka_unit_test(any_thread_gives_back_at_any_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
