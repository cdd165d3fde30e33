/* ltrain/tensor.h: opaque tensors and contexts, for hosts and for every part of the runtime. */
#ifndef LT_INCLUDE_TENSOR_H
#define LT_INCLUDE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LT_API __attribute__((visibility("default")))
#define LT_MAX_DIMS 8

typedef struct lt_ctx lt_ctx;
typedef struct lt_tensor lt_tensor;
typedef struct lt_storage lt_storage;

/* Element types. Order is the order of the tables in tensor/dtype.c, and never changes. */
typedef enum lt_dtype {
  LT_F32, LT_F64, LT_F16, LT_BF16, LT_I64, LT_I32, LT_U8, LT_BOOL, LT_I16, LT_U16,
  LT_I8,
  LT_DTYPE_COUNT,
  LT_DTYPE_NONE = -1 /* "absent" in arguments */
} lt_dtype;

/* Why a call failed; LT_OK means that nothing did. */
typedef enum lt_code {
  LT_OK, LT_EARG, LT_ESHAPE, LT_EDTYPE, LT_EDEVICE, LT_EVALUE, LT_EVERSION, LT_EMEMORY, LT_EIO,
  LT_ECANCEL, LT_ECALLBACK, LT_ERANKS, LT_EINTERNAL
} lt_code;

/* A device: index into the registry's table of kinds (0 is always the cpu), and which of them. */
typedef struct lt_device {
  int16_t kind;
  int16_t index;
} lt_device;

/* A queue of a device's work, which runs in the order of issue. The backend defines the struct; a
   stream belongs to the process and is never freed. */
typedef struct lt_stream lt_stream;

/* A position of a stream: the end of all that was issued on it so far. Waiting for a later position
   of the stream implies the earlier ones. {NULL, 0}: nothing to wait for. */
typedef struct lt_event {
  lt_stream *stream;
  uint64_t position;
} lt_event;

/* What lt_tensor_ptr is asked for. LT_WRITE bumps the storage's version. */
enum { LT_READ = 1, LT_WRITE = 2 };

/* The one way to a tensor's bytes: address of its first element, valid until the tensor is
   released. Waits for the device. NULL (failure in the ctx) when the memory is not the host's. */
LT_API void *lt_tensor_ptr(lt_ctx *ctx, lt_tensor *t, int access);

LT_API lt_dtype lt_tensor_dtype(const lt_tensor *t);
LT_API int lt_tensor_ndim(const lt_tensor *t);
LT_API int64_t lt_tensor_size(const lt_tensor *t, int dim);   /* dim 0-based; 0: no such dim */
LT_API int64_t lt_tensor_stride(const lt_tensor *t, int dim); /* in elements; likewise */
LT_API lt_device lt_tensor_device(const lt_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
