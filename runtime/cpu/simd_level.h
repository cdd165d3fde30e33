/* runtime/cpu/simd_level.h: LT_CPU: the names of functions that are compiled once per instruction
   level.

   Files of cpu/ that hold kernels are compiled with LT_LEVEL = v2, v3, v4 (plain elsewhere); every
   name that leaves such a file goes through LT_CPU, so that the levels do not collide. */
#ifndef LT_CPU_SIMD_LEVEL_H
#define LT_CPU_SIMD_LEVEL_H

#include "ops/op.h"

#define LT_PASTE_(a, b) a##_##b
#define LT_PASTE(a, b) LT_PASTE_(a, b)
#define LT_CPU(name) LT_PASTE(name, LT_LEVEL)

/* Chunks of parallel loops, in elements of cheap work; never depends on the thread count. */
enum { LT_CHUNK = 32768 };

/* Kernels: one per op with a row in ops.def (devices ALL, HOST), plus the elementwise families. */
#define LT_KERNEL(name) bool LT_CPU(lt_cpu_##name)(lt_ctx *c, const lt_call *call)
#define LT_OP(name, kind, dtype, cast, vjp, saves, devices, doc) LT_DECLARE_##devices(name)
#define LT_DECLARE_ALL(name) LT_KERNEL(name);
#define LT_DECLARE_ALL_EXPAND(name) LT_KERNEL(name);
#define LT_DECLARE_HOST(name) LT_KERNEL(name);
#define LT_DECLARE_EXPAND(name)
#define LT_DECLARE_VIEW(name)
#define LT_DECLARE_COPY(name)
#include "ops/ops.def"
#undef LT_DECLARE_ALL
#undef LT_DECLARE_ALL_EXPAND
#undef LT_DECLARE_HOST
#undef LT_DECLARE_EXPAND
#undef LT_DECLARE_VIEW
#undef LT_DECLARE_COPY
LT_KERNEL(rows);    /* every row of unary.def and binary.def */
LT_KERNEL(updates); /* every row of updates.def */

#endif
