/* runtime/base/host_device.h: LT_FN: inline functions that kernels of the CPU and of CUDA share
   (__host__ __device__). */
#ifndef LT_BASE_HOST_DEVICE_H
#define LT_BASE_HOST_DEVICE_H

/* Before a function in a header: also for kernels of a GPU where the compiler makes such. APART:
   called there, not made part of the kernel. */
#ifdef __CUDACC__
#define LT_FN static __host__ __device__ inline
#define LT_FN_APART static __host__ __device__ __noinline__
#else
#define LT_FN static inline
#define LT_FN_APART static inline
#endif

#endif
