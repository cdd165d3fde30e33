/* runtime/device/meta.c: the meta device: tensors with a shape, strides and a dtype, without data.

   Every operation infers its results and computes nothing (ops/run.c). The table names the kernels
   of the cpu, none of which is called, so that an operation is dispatched as it is there: the same
   decomposition, layouts, nodes and random keys. The pool counts bytes as for any device: what a
   model would take on the cpu, rounded as there. */
#include "device/meta.h"

/* An address that nothing can read: no memory is behind it. */
static void *alloc(int index, size_t bytes) {
  (void)index, (void)bytes;
  return (void *)(uintptr_t)64;
}

static void no_free(int index, void *ptr, size_t bytes) { (void)index, (void)ptr, (void)bytes; }

static int count(void) { return 1; }

static bool copy(lt_ctx *c, lt_stream *stream, lt_copy way, int index, void *dst, int from,
                 const void *src, size_t bytes, lt_dtype dtype) {
  (void)dtype, (void)stream, (void)index, (void)dst, (void)from, (void)src, (void)bytes;
  return way != LT_TO_HOST ||
         lt_fail(c, LT_EDEVICE, "%s%sa meta tensor has no data", lt_op_name(c), lt_op_colon(c));
}

const lt_device_ops *lt_meta_ops(const lt_device_ops *cpu) {
  static lt_device_ops ops;
  ops = (lt_device_ops){.size = sizeof ops,
                        .version = LT_BACKEND_VERSION,
                        .name = "meta",
                        .op_hash = cpu->op_hash,
                        .forks = true,
                        .no_data = true,
                        .kernels = cpu->kernels,
                        .count = count,
                        .supports = cpu->supports,
                        .layout = cpu->layout,
                        .alloc = alloc,
                        .free = no_free,
                        .copy = copy};
  return &ops;
}

bool lt_check_data(lt_ctx *c, const char *who, const lt_tensor *t) {
  const char *away = t->storage->away;
  if (lt_device_table(c, t->storage->device)->no_data) away = "a meta tensor has no data";
  if (away == NULL || t->numel == 0) return lt_ok(c);
  return lt_fail(c, LT_EDEVICE, "%s%s%s: %s %s", who != NULL ? who : lt_op_name(c),
                 who != NULL ? ": " : lt_op_colon(c), away, lt_dtype_name((lt_dtype)t->dtype),
                 LT_TENSOR_STR(t));
}
