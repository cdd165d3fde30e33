/* runtime/cuda/kernel.h: the macros in which kernels are written, for nvcc and for the emulator of
   the specs.

   nvcc makes them the backend; g++ compiles the same files over spec/cuda/emu.h, which runs the
   kernels on the CPU, over NVIDIA's own headers. The one place that asks which of the two it is,
   but for instructions without a name in CUDA C++ (mma.h). */
#ifndef LT_CUDA_KERNEL_H
#define LT_CUDA_KERNEL_H

#include <stdint.h>

#include <tuple>

#ifdef __CUDACC__
#include <cuda_runtime.h>
/* Memory of a block: `n` elements, or as many bytes as the launch says. */
#define LT_SHARED(type, name, n) __shared__ type name[n]
#define LT_DYNAMIC(type, name)                        \
  extern __shared__ __align__(16) char dynamic_[];    \
  type *const name = reinterpret_cast<type *>(dynamic_)
/* A large argument that is read where it lies. */
#define LT_CONSTANT const __grid_constant__
/* 1 where ptxas takes a few registers more for the same code, so that it would spill: from compute
   capability 12.0 on. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1200
#define LT_TIGHT 1
#else
#define LT_TIGHT 0
#endif
/* Tells the fake runtime what the next launch reads and writes: nothing on a GPU. */
#define LT_TOUCH(stream, data, bytes, writes, what) ((void)0)

template <class... P, class... A>
static inline void lt_cuda_issue(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                 size_t shared, cudaStream_t stream, const A &...args) {
  (void)name;
  kernel<<<grid, block, shared, stream>>>(static_cast<P>(args)...);
}

/* From its next launch on the graph has this grid at `node`, which was one of the same kernel. */
template <class... P, class... A>
static inline void lt_cuda_reissue(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                   size_t shared, cudaGraphExec_t graph, cudaGraphNode_t node,
                                   const A &...args) {
  (void)name;
  std::tuple<P...> kept(static_cast<P>(args)...);
  void *places[sizeof...(P)];
  std::apply([&](auto &...value) {
    size_t k = 0;
    ((places[k++] = &value), ...);
  }, kept);
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void *>(kernel);
  params.gridDim = grid, params.blockDim = block;
  params.sharedMemBytes = static_cast<unsigned>(shared);
  params.kernelParams = places;
  cudaGraphExecKernelNodeSetParams(graph, node, &params);
}
#else
#include "cuda/emu.h"
#define LT_SHARED(type, name, n)                   \
  static thread_local emu::Shared<type, n> name##_; \
  type *const name = name##_.get()
#define LT_DYNAMIC(type, name) type *const name = reinterpret_cast<type *>(EMU_ME->dynamic)
#define LT_CONSTANT const
#define LT_TIGHT 0
#define LT_TOUCH(stream, data, bytes, writes, what) fakert_touch(stream, data, bytes, writes, what)

/* Arguments are copied when the launch is issued, as CUDA does; the grid runs later. */
template <class... P, class... A>
static inline void lt_cuda_issue(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                 size_t shared, cudaStream_t stream, const A &...args) {
  std::tuple<P...> kept(static_cast<P>(args)...);
  fakert_launch(stream, name, grid, block, [=] {
    emu::run(name, grid, block, shared, [&] { std::apply(kernel, kept); });
  });
}

template <class... P, class... A>
static inline void lt_cuda_reissue(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                   size_t shared, cudaGraphExec_t graph, cudaGraphNode_t node,
                                   const A &...args) {
  std::tuple<P...> kept(static_cast<P>(args)...);
  fakert_set_node(graph, node, name, [=] {
    emu::run(name, grid, block, shared, [&] { std::apply(kernel, kept); });
  });
}
#endif

#endif
