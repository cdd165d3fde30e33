/* ltrain/dlpack.h: the structs of DLPack, as far as ltrain reads them, for programs that have no
   dlpack.h. They are those of DLPack 0.8 to 1: whichever of the two headers comes first is used. */
#ifndef LT_INCLUDE_DLPACK_H
#define LT_INCLUDE_DLPACK_H
#ifndef DLPACK_DLPACK_H_ /* the guard of dlpack.h */
#define DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which changes of `major` a reader cannot skip; of `minor` it can. */
typedef struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

typedef enum DLDeviceType {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3, /* pinned memory of the host */
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14
} DLDeviceType;

typedef struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum DLDataTypeCode {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
} DLDataTypeCode;

typedef struct DLDataType {
  uint8_t code; /* DLDataTypeCode */
  uint8_t bits;
  uint16_t lanes; /* 1; more: an element is a vector */
} DLDataType;

typedef struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;     /* in elements; NULL: row-major */
  uint64_t byte_offset; /* of the first element from `data` */
} DLTensor;

/* Before DLPack 1; in Python a capsule "dltensor". */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

/* Since DLPack 1; in Python a capsule "dltensor_versioned". */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif
#endif
#endif
