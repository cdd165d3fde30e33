/* runtime/cuda/kernels.cu: the table of kernels by op id.

   Filled at run time, as C++17 has no designated initializers; ops without a kernel stay NULL, and
   run by their definition in other ops or on the CPU. */
#include "cuda/device.h"

static lt_kernel table[LT_OP_COUNT];

const lt_kernel *lt_cuda_kernels(void) {
#define ROW(name) table[LT_OP_##name] = lt_cuda_rows;
#define LT_UNARY_ARGS(name, ...) ROW(name) ROW(name##_backward)
#define LT_UNARY(name, ...) ROW(name) ROW(name##_backward)
#define LT_TEST(name, ...) ROW(name)
#include "ops/unary.def"
#define LT_BINARY(name, ...) ROW(name) ROW(name##_backward_a) ROW(name##_backward_b)
#define LT_COMPARE(name, ...) ROW(name)
#include "ops/binary.def"
#define LT_UPDATE(name, ...) table[LT_OP_##name##_step] = lt_cuda_updates;
#include "ops/updates.def"
#define LT_CUDA_KERNEL_ALL(name) table[LT_OP_##name] = lt_cuda_##name;
#define LT_CUDA_KERNEL_ALL_EXPAND(name) LT_CUDA_KERNEL_ALL(name)
#define LT_CUDA_KERNEL_HOST(name)
#define LT_CUDA_KERNEL_EXPAND(name)
#define LT_CUDA_KERNEL_VIEW(name)
#define LT_CUDA_KERNEL_COPY(name)
#define LT_OP(name, kind, dtype, cast, vjp, saves, devices, doc) LT_CUDA_KERNEL_##devices(name)
#include "ops/ops.def"
  return table;
}
