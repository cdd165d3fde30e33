/* spec/c/host_dlpack.h: tensors of another library, and a state that takes them, for the tests of
   DLPack. */
#ifndef LT_SPEC_HOST_DLPACK_H
#define LT_SPEC_HOST_DLPACK_H

#include <pthread.h>

#include <lua.h>

#include "host_test.h"
#include "ltrain/dlpack.h"

/* One that another library would hand over: its deleter counts. */
typedef struct foreign {
  DLManagedTensorVersioned versioned;
  DLManagedTensor unversioned;
  int64_t shape[LT_MAX_DIMS + 1], strides[LT_MAX_DIMS + 1];
  int deleted;
} foreign;

static inline void delete_versioned(DLManagedTensorVersioned *self) {
  ((foreign *)self->manager_ctx)->deleted++;
}
static inline void delete_unversioned(DLManagedTensor *self) {
  ((foreign *)self->manager_ctx)->deleted++;
}

static inline void make(foreign *f, void *data, DLDataType item, int ndim, const int64_t *shape,
                        const int64_t *strides) {
  *f = (foreign){.deleted = 0};
  DLTensor d = {.data = data,
                .device = {.device_type = kDLCPU},
                .ndim = ndim,
                .dtype = item,
                .shape = f->shape,
                .strides = strides == NULL ? NULL : f->strides};
  for (int k = 0; k < ndim; k++) {
    f->shape[k] = shape[k];
    if (strides != NULL) f->strides[k] = strides[k];
  }
  f->versioned = (DLManagedTensorVersioned){
      .version = {1, 1}, .manager_ctx = f, .deleter = delete_versioned, .dl_tensor = d};
  f->unversioned =
      (DLManagedTensor){.dl_tensor = d, .manager_ctx = f, .deleter = delete_unversioned};
}

static inline void put_on(foreign *f, int type, int index) {
  f->versioned.dl_tensor.device = f->unversioned.dl_tensor.device =
      (DLDevice){(DLDeviceType)type, index};
}

static const DLDataType f32 = {kDLFloat, 32, 1};

static inline lt_tensor *take(ltrain *l, foreign *f) {
  lt_tensor *t = ltrain_from_dlpack(l, &f->versioned);
  must(l, t != NULL);
  return t;
}

static inline void refuse(ltrain *l, foreign *f, const char *text) {
  assert_null(ltrain_from_dlpack(l, &f->versioned));
  must_say(l, false, text);
  assert_null(ltrain_from_dlpack_unversioned(l, &f->unversioned));
  must_say(l, false, text);
  assert_int_equal(f->deleted, 0);
}

/* A state whose `x` the test sets and gets. */
static inline ltrain *open_allowed(unsigned allow) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.allow = allow;
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l, "lt = require 'ltrain'", "d.lua"));
  return l;
}
static inline ltrain *open_lua(void) { return open_allowed(0); }

/* The script lets go of a global. */
static inline void drop(ltrain *l, const char *name) {
  lua_pushnil(ltrain_lua(l));
  lua_setglobal(ltrain_lua(l), name);
  lua_gc(ltrain_lua(l), LUA_GCCOLLECT);
}

static inline void expect(ltrain *l, const char *code) {
  char text[512];
  snprintf(text, sizeof text, "local want, got = %s assert(want == got, got)", code);
  must(l, ltrain_dostring(l, text, "d.lua"));
}

static inline void *delete_it(void *managed) {
  DLManagedTensorVersioned *m = managed;
  m->deleter(m);
  return NULL;
}

static inline void delete_elsewhere(DLManagedTensorVersioned *m) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, delete_it, m), 0);
  pthread_join(thread, NULL);
}

/* `w` is a parameter and `loss` = (w * w):sum(): an export for reading says so and is not a write;
   one for writing is, and spoils a backward that is pending. */
static inline void check_exports_of_parameter(ltrain *l) {
  lt_tensor *t;
  must(l, ltrain_get(l, "w", "T", &t));
  DLManagedTensorVersioned *m = ltrain_to_dlpack(l, t, 0);
  must(l, m != NULL);
  assert_int_equal(m->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  m->deleter(m);
  must(l, ltrain_dostring(l, "loss:backward() loss = (w * w):sum()", "d.lua"));
  m = ltrain_to_dlpack(l, t, 1);
  must(l, m != NULL);
  assert_int_equal(m->flags, 0);
  m->deleter(m);
  must_say(l, ltrain_dostring(l, "loss:backward()", "d.lua"), "in place");
  ltrain_release(l, t);
}

#endif
