/* lua/host/host_memory.c: tensors over memory of the host program, and the host's access to the
   memory of tensors. */
#include "bind/core/tensor.h"
#include "host/protected_calls.h"

/* Whether the memory at `data` can be a tensor; a failure of the ctx says why not. */
static bool may_wrap(ltrain *l, const void *data, lt_dtype dtype, int ndim, const int64_t *shape) {
  lt_ctx *c = l->b->c;
  int number = (int)dtype; /* whatever a host has put there */
  if (number < 0 || number >= LT_DTYPE_COUNT)
    return lt_fail(c, LT_EDTYPE, "wrap: there is no dtype %d", number);
  if (ndim < 0 || ndim > LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "wrap: dims must be 0 to %d, got %d", LT_MAX_DIMS, ndim);
  if (shape == NULL && ndim > 0)
    return lt_fail(c, LT_ESHAPE, "wrap: the shape of %d dims is NULL", ndim);
  if (!lt_shape_check(c, ndim, shape)) {
    lt_take_failure(c, NULL);
    return lt_fail(c, LT_ESHAPE, "wrap: impossible shape %s",
                   LT_SHAPE_STR(lt_shape_of(ndim, shape)));
  }
  if (data == NULL) return lt_fail(c, LT_EARG, "wrap: the memory is NULL");
  size_t item = lt_dtype_size(dtype);
  return (uintptr_t)data % item == 0 ||
         lt_fail(c, LT_EARG, "wrap: memory of %s must be aligned to %zu bytes, got %p",
                 lt_dtype_name(dtype), item, data);
}

lt_tensor *ltrain_wrap(ltrain *l, void *data, lt_dtype dtype, int ndim, const int64_t *shape,
                       void (*drop)(void *ud), void *ud) {
  if (l == NULL) return NULL;
  lt_ctx *c = l->b->c;
  l->message[0] = 0;
  if (!may_wrap(l, data, dtype, ndim, shape) || !lt_host_expect_tensor(l, "wrap"))
    return lt_host_give_tensor(l, NULL);
  int64_t count = lt_shape_numel(lt_shape_of(ndim, shape));
  lt_frame frame = lt_frame_open(c);
  lt_storage *s = lt_storage_wrap(c, LT_CPU_DEVICE, data,
                                  (size_t)count * lt_dtype_size(dtype), NULL, NULL);
  lt_tensor *t = s == NULL ? NULL : lt_tensor_make(c, s, dtype, ndim, shape, NULL, 0);
  if (t != NULL) lt_storage_on_drop(s, drop, ud);
  if (s != NULL) lt_storage_release(c, s);
  lt_retain(t);
  lt_frame_close(c, frame, 0, NULL);
  return lt_host_give_tensor(l, t);
}

void *ltrain_data(ltrain *l, lt_tensor *t, int write) {
  if (!lt_host_check_tensor(l, "data", t)) return NULL;
  void *data = lt_tensor_ptr(l->b->c, t, write ? LT_READ | LT_WRITE : LT_READ);
  return lt_host_take_failure(l) ? NULL : data;
}

/* Nothing tells the host that it failed but the message, and a warning. */
static void refuse(ltrain *l, const lt_tensor *t) {
  const char *fault = lt_host_tensors_fault(l, t);
  snprintf(l->message, sizeof l->message, "release: the tensor is %s",
           fault != NULL ? fault : "an argument of the function that runs, and the script's");
  if (l->config.log != NULL) l->config.log(l->config.ud, LTRAIN_WARNING, l->message);
}

void ltrain_release(ltrain *l, lt_tensor *t) {
  if (l == NULL || t == NULL) return;
  if (!lt_host_tensors_remove(l, t, LT_OWNED)) {
    refuse(l, t);
    return;
  }
  l->depth++; /* `drop` may come: it cannot close the state */
  lt_release(l->b->c, t);
  l->depth--;
}
