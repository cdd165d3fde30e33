/* runtime/cpu/kernels.c: the table of this level's kernels. A missing one is a link error here.

   One array of function pointers by op number, made by the preprocessor from the rows: a new row
   without a kernel fails to link, and not at its first call. */
#include "cpu/simd_level.h"

extern const lt_kernel LT_CPU(lt_cpu_kernels)[LT_OP_COUNT];

const lt_kernel LT_CPU(lt_cpu_kernels)[LT_OP_COUNT] = {
#define ROW(name) [LT_OP_##name] = LT_CPU(lt_cpu_rows),
#define LT_UNARY_ARGS(name, ...) ROW(name) ROW(name##_backward)
#define LT_UNARY(name, ...) ROW(name) ROW(name##_backward)
#define LT_TEST(name, ...) ROW(name)
#include "ops/unary.def"
#define LT_BINARY(name, ...) ROW(name) ROW(name##_backward_a) ROW(name##_backward_b)
#define LT_COMPARE(name, ...) ROW(name)
#include "ops/binary.def"
#define LT_UPDATE(name, ...) [LT_OP_##name##_step] = LT_CPU(lt_cpu_updates),
#include "ops/updates.def"
#define LT_KERNEL_ALL(name) [LT_OP_##name] = LT_CPU(lt_cpu_##name),
#define LT_KERNEL_ALL_EXPAND(name) LT_KERNEL_ALL(name)
#define LT_KERNEL_HOST(name) LT_KERNEL_ALL(name)
#define LT_KERNEL_EXPAND(name)
#define LT_KERNEL_VIEW(name)
#define LT_KERNEL_COPY(name)
#define LT_OP(name, kind, dtype, cast, vjp, saves, devices, doc) LT_KERNEL_##devices(name)
#include "ops/ops.def"
};
