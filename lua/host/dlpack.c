/* lua/host/dlpack.c: tensors as DLPack's, and DLPack's as tensors, without a copy.

   What is issued to a GPU runs later, and streams of two libraries know nothing of each other: in
   either direction the host waits, so that what is handed over is ready for any stream. */
#include <inttypes.h>
#include <stdio.h>

#include "device/device.h"
#include "device/stream.h"
#include "host/protected_calls.h"

enum { MAJOR = 1, MINOR = 0, ITEM_TEXT = 64 };

static bool is_cuda(const lt_ctx *c, lt_device d) {
  return strcmp(lt_device_table(c, d)->name, "cuda") == 0;
}

/* Out. */

static DLDataType item_of(lt_dtype dtype) {
  const lt_dtype_info *row = lt_dtype_row(dtype);
  DLDataType item = {.bits = (uint8_t)(8 * row->size), .lanes = 1};
  item.code = dtype == LT_BF16                  ? kDLBfloat
              : dtype == LT_BOOL                ? kDLBool
              : row->category == LT_FLOATING    ? kDLFloat
              : row->is_signed                  ? kDLInt
                                                : kDLUInt;
  return item;
}

/* DLPack's strides are in elements, as ours; the offset is in `data` already, as in PyTorch's, and
   byte_offset 0. */
static DLTensor view_of(lt_export *one, const lt_tensor *t, void *data) {
  memcpy(one->shape, t->size, sizeof one->shape);
  memcpy(one->strides, t->stride, sizeof one->strides);
  bool on_cpu = lt_device_equal(t->storage->device, LT_CPU_DEVICE);
  return (DLTensor){.data = data,
                    .device = {.device_type = on_cpu ? kDLCPU : kDLCUDA,
                               .device_id = t->storage->device.index},
                    .ndim = t->ndim,
                    .dtype = item_of((lt_dtype)t->dtype),
                    .shape = one->shape,
                    .strides = one->strides};
}

/* The address of a GPU's memory, when the issued work that its next user would meet has run. */
static void *address_there(lt_ctx *c, lt_tensor *t, int write) {
  if (!lt_order_host(c, t->storage, write) || !lt_device_check(c, t->storage->device)) return NULL;
  if (write) lt_storage_bump(c, t->storage);
  return lt_data(t);
}

/* The address of a tensor that can be shared. */
static void *address(lt_ctx *c, lt_tensor *t, int write) {
  bool on_cpu = lt_device_equal(t->storage->device, LT_CPU_DEVICE);
  if (!on_cpu && !is_cuda(c, t->storage->device)) {
    char device[32];
    lt_fail(c, LT_EDEVICE, "to_dlpack: the tensor is on %s: copy it with :to('cpu') first",
            lt_device_text(c, t->storage->device, device, sizeof device));
    return NULL;
  }
  if (write && t->storage->read_only) {
    lt_fail(c, LT_EVALUE, "to_dlpack: the memory of %s is read-only", LT_TENSOR_STR(t));
    return NULL;
  }
  if (!lt_check_data(c, "to_dlpack", t)) return NULL;
  return on_cpu ? lt_tensor_ptr(c, t, write ? LT_READ | LT_WRITE : LT_READ)
                : address_there(c, t, write);
}

static lt_export *export(ltrain *l, lt_tensor *t, int write, DLTensor *view) {
  if (!lt_host_check_tensor(l, "to_dlpack", t)) return NULL;
  lt_exports_release(l);
  void *data = address(l->b->c, t, write);
  lt_export *one = data == NULL ? NULL : lt_export_new(l, t->storage);
  if (one != NULL) *view = view_of(one, t, data);
  return lt_host_take_failure(l) ? NULL : one;
}

static void delete_versioned(DLManagedTensorVersioned *self) { lt_export_drop(self->manager_ctx); }
static void delete_unversioned(DLManagedTensor *self) { lt_export_drop(self->manager_ctx); }

DLManagedTensorVersioned *ltrain_to_dlpack(ltrain *l, lt_tensor *t, int write) {
  DLTensor view;
  lt_export *one = export(l, t, write, &view);
  if (one == NULL) return NULL;
  one->managed.versioned =
      (DLManagedTensorVersioned){.version = {.major = MAJOR, .minor = MINOR},
                                 .manager_ctx = one,
                                 .deleter = delete_versioned,
                                 .flags = write ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY,
                                 .dl_tensor = view};
  return &one->managed.versioned;
}

DLManagedTensor *ltrain_to_dlpack_unversioned(ltrain *l, lt_tensor *t, int write) {
  DLTensor view;
  lt_export *one = export(l, t, write, &view);
  if (one == NULL) return NULL;
  one->managed.unversioned =
      (DLManagedTensor){.dl_tensor = view, .manager_ctx = one, .deleter = delete_unversioned};
  return &one->managed.unversioned;
}

/* In. */

static lt_dtype dtype_of(DLDataType item) {
  for (int k = 0; k < LT_DTYPE_COUNT; k++) {
    DLDataType ours = item_of((lt_dtype)k);
    if (ours.code == item.code && ours.bits == item.bits && ours.lanes == item.lanes)
      return (lt_dtype)k;
  }
  return LT_DTYPE_NONE;
}

static const char *item_text(DLDataType item, char *buffer) {
  static const char *const names[] = {"int", "uint", "float", "opaque", "bfloat", "complex",
                                      "bool"};
  const char *name = item.code < sizeof names / sizeof *names ? names[item.code] : "type ";
  int n = snprintf(buffer, ITEM_TEXT, "%s%d", name, item.bits);
  if (item.code >= sizeof names / sizeof *names)
    n = snprintf(buffer, ITEM_TEXT, "type %d of %d bits", item.code, item.bits);
  if (item.lanes != 1) snprintf(buffer + n, ITEM_TEXT - (size_t)n, " x %d", item.lanes);
  return buffer;
}

static bool fail_kind(lt_ctx *c, DLDevice d) {
  static const char *const kinds[] = {
      [kDLOpenCL] = "OpenCL", [kDLVulkan] = "Vulkan",     [kDLMetal] = "Metal",
      [kDLROCM] = "ROCm",     [kDLROCMHost] = "ROCm's pinned memory",
      [kDLOneAPI] = "oneAPI", [kDLCUDAManaged] = "CUDA's managed memory"};
  int at = (int)d.device_type; /* whatever another library has put there */
  bool known = at >= 0 && at < (int)(sizeof kinds / sizeof *kinds) && kinds[at] != NULL;
  return lt_fail(c, LT_EDEVICE,
                 "from_dlpack: the tensor is neither in the memory of the CPU nor in that of a "
                 "CUDA device but on device %d of DLPack's type %d%s%s%s: copy it first",
                 d.device_id, at, known ? " (" : "", known ? kinds[at] : "", known ? ")" : "");
}

/* Which of our devices that is. */
static bool device_of(lt_ctx *c, DLDevice d, lt_device *out) {
  char name[32];
  lt_failure failure;
  *out = LT_CPU_DEVICE;
  if (d.device_type == kDLCPU || d.device_type == kDLCUDAHost) return true;
  if (d.device_type != kDLCUDA) return fail_kind(c, d);
  snprintf(name, sizeof name, "cuda:%d", d.device_id);
  if (lt_device_parse(c, name, out)) return true;
  lt_take_failure(c, &failure);
  return lt_fail(c, LT_EDEVICE, "from_dlpack: %s", failure.text);
}

static bool check_kind(lt_ctx *c, const DLTensor *d) {
  if (d->ndim < 0 || d->ndim > LT_MAX_DIMS)
    return lt_fail(c, LT_ESHAPE, "from_dlpack: dims must be 0 to %d, got %d", LT_MAX_DIMS,
                   d->ndim);
  if (d->ndim > 0 && d->shape == NULL)
    return lt_fail(c, LT_ESHAPE, "from_dlpack: the shape of %d dims is NULL", d->ndim);
  char text[ITEM_TEXT];
  return dtype_of(d->dtype) != LT_DTYPE_NONE ||
         lt_fail(c, LT_EDTYPE, "from_dlpack: there is no dtype for elements of %s",
                 item_text(d->dtype, text));
}

/* How many elements of memory the tensor reaches over; false where strides are impossible. The
   element that is farthest from the first, plus 1. Strides of 0 (broadcast) reach nowhere. Negative
   ones (NumPy's x[::-1]) begin before `data`, which a storage cannot. */
static bool reach(const DLTensor *d, int64_t *elements) {
  *elements = 1;
  for (int k = 0; k < d->ndim; k++) {
    int64_t far;
    if (d->shape[k] <= 1) continue;
    if (d->strides[k] < 0 || __builtin_mul_overflow(d->strides[k], d->shape[k] - 1, &far) ||
        __builtin_add_overflow(*elements, far, elements) || *elements > INT64_MAX / 8)
      return false;
  }
  return true;
}

/* Sizes, strides and address; *bytes is what the tensor reaches over. */
static bool check_layout(lt_ctx *c, const DLTensor *d, lt_dtype dtype, size_t *bytes) {
  lt_shape shape = lt_shape_of(d->ndim, d->shape);
  if (!lt_shape_check(c, d->ndim, d->shape)) {
    lt_take_failure(c, NULL);
    return lt_fail(c, LT_ESHAPE, "from_dlpack: impossible shape %s", LT_SHAPE_STR(shape));
  }
  int64_t elements = lt_shape_numel(shape);
  *bytes = 0;
  if (elements == 0) return true;
  if (d->strides != NULL && !reach(d, &elements))
    return lt_fail(c, LT_ESHAPE, "from_dlpack: strides %s of shape %s: they must not be negative, "
                   "nor reach beyond what can be addressed; copy the array first",
                   LT_SHAPE_STR(lt_shape_of(d->ndim, d->strides)), LT_SHAPE_STR(shape));
  size_t item = lt_dtype_size(dtype);
  *bytes = (size_t)elements * item;
  if (d->data == NULL) return lt_fail(c, LT_EARG, "from_dlpack: the memory is NULL");
  uintptr_t at = (uintptr_t)d->data + d->byte_offset;
  return at % item == 0 ||
         lt_fail(c, LT_EARG, "from_dlpack: memory of %s must be aligned to %zu bytes, got 0x%"
                 PRIxPTR, lt_dtype_name(dtype), item, at);
}

/* The drop is set only when all is made: until then the caller still owns the tensor, and a failure
   leaves it so, as the protocol demands. */
static lt_tensor *import(ltrain *l, const DLTensor *d, bool read_only, void (*drop)(void *ud),
                         void *ud) {
  static char nothing[8]; /* of tensors without elements */
  lt_ctx *c = l->b->c;
  size_t bytes = 0;
  lt_dtype dtype = dtype_of(d->dtype);
  lt_device device;
  if (!device_of(c, d->device, &device) || !check_kind(c, d) ||
      !check_layout(c, d, dtype, &bytes) || !lt_host_expect_tensor(l, "from_dlpack"))
    return NULL;
  void *data = bytes == 0 ? nothing : (char *)d->data + d->byte_offset;
  lt_frame frame = lt_frame_open(c);
  lt_storage *s = lt_storage_wrap(c, device, data, bytes, NULL, NULL);
  lt_tensor *t = NULL;
  if (s != NULL && lt_device_synchronize(c, device))
    t = lt_tensor_make(c, s, dtype, d->ndim, d->shape, bytes == 0 ? NULL : d->strides, 0);
  if (t != NULL) {
    s->read_only = read_only;
    lt_storage_on_drop(s, drop, ud);
  }
  if (s != NULL) lt_storage_release(c, s);
  lt_retain(t);
  lt_frame_close(c, frame, 0, NULL);
  return t;
}

static void drop_versioned(void *managed) {
  DLManagedTensorVersioned *m = managed;
  if (m->deleter != NULL) m->deleter(m);
}

static void drop_unversioned(void *managed) {
  DLManagedTensor *m = managed;
  if (m->deleter != NULL) m->deleter(m);
}

lt_tensor *ltrain_from_dlpack(ltrain *l, DLManagedTensorVersioned *m) {
  if (!lt_host_check_pointer(l, "from_dlpack", "the tensor", m)) return NULL;
  if (m->version.major != MAJOR) { /* what follows may be laid out in another way */
    snprintf(l->message, sizeof l->message, "from_dlpack: the tensor is of DLPack %u.%u, this "
             "reads %d", m->version.major, m->version.minor, MAJOR);
    return NULL;
  }
  bool read_only = (m->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  lt_tensor *t = import(l, &m->dl_tensor, read_only, drop_versioned, m);
  return lt_host_give_tensor(l, t);
}

lt_tensor *ltrain_from_dlpack_unversioned(ltrain *l, DLManagedTensor *m) {
  if (!lt_host_check_pointer(l, "from_dlpack", "the tensor", m)) return NULL;
  lt_tensor *t = import(l, &m->dl_tensor, false, drop_unversioned, m);
  return lt_host_give_tensor(l, t);
}
