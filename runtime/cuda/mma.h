/* runtime/cuda/mma.h: products of small matrices by tensor cores, and what feeds them.

   Instructions of the PTX ISA that GPUs have from compute capability 8.0 on; all lanes of a warp
   come to each. Below it they do nothing: no kernel that uses them is issued there.

   A product is C += A B with A [16, 16], B [16, 8] of 16 bits and C [16, 8] of f32. Each lane holds
   a fragment of each. With row = lane / 4 (groupID) and pair = lane % 4 * 2 (threadID_in_group * 2)
   these are, two neighbours of 16 bits in a word, the first in its lower half:

     a[0]  A[row][pair, pair + 1]              b[0]  B[pair, pair + 1][row]
     a[1]  A[row + 8][pair, pair + 1]          b[1]  B[pair + 8, pair + 9][row]
     a[2]  A[row][pair + 8, pair + 9]          c[0], c[1]  C[row][pair], C[row][pair + 1]
     a[3]  A[row + 8][pair + 8, pair + 9]      c[2], c[3]  C[row + 8][pair], C[row + 8][pair + 1]

   So two results side by side, rounded, are an A of the next product. The specs run what
   spec/cuda/emu_mma.h has in place of the instructions. */
#ifndef LT_CUDA_MMA_H
#define LT_CUDA_MMA_H

#include "cuda/cuda.h"

static const int LT_MMA_CAPABILITY = 8; /* the first major compute capability with all of them */

#ifdef __CUDACC__
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800
#define LT_MMA_ASM asm
#define LT_MMA_MEMORY asm volatile
#else
#define LT_MMA_ASM(...) ((void)0)
#define LT_MMA_MEMORY(...) ((void)0)
#endif

/* c += a b, of factors of a dtype: LT_F16, LT_BF16. */
template <int DTYPE>
static __device__ inline void lt_mma(float *c, const uint32_t *a, const uint32_t *b) {
  if (DTYPE == LT_F16)
    LT_MMA_ASM("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    LT_MMA_ASM("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ inline uint32_t lt_shared_address(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/* Four matrices [8, 8] of 16 bits out of shared memory: lanes 8 k to 8 k + 7 name the rows of
   matrix k, each 16 bytes on a border of 16. With row and pair as above w[k] is that matrix's
   [row][pair, pair + 1]. */
static __device__ inline void lt_load_matrices(uint32_t *w, const void *my_row) {
  LT_MMA_MEMORY("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
             : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
             : "r"(lt_shared_address(my_row))
             : "memory");
}

/* The same transposed: w[k] is [pair, pair + 1][row] of matrix k. */
static __device__ inline void lt_load_transposed(uint32_t *w, const void *my_row) {
  LT_MMA_MEMORY("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
             : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
             : "r"(lt_shared_address(my_row))
             : "memory");
}

/* Begins to copy 16 bytes to shared memory, both on a border of 16; zeros where `there` is false,
   and then reads nothing. */
static __device__ inline void lt_copy_16(void *to, const void *from, bool there) {
  LT_MMA_MEMORY("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(lt_shared_address(to)),
             "l"(from), "r"(there ? 16 : 0)
             : "memory");
}

/* Waits for all that this thread began to copy; others see it after a barrier. */
static __device__ inline void lt_copies_wait() {
  LT_MMA_MEMORY("cp.async.wait_all;" ::: "memory");
}

/* Two numbers of 16 bits as a word, rounded to even. */
template <int DTYPE> static __device__ inline uint32_t lt_pack(float low, float high) {
  uint32_t w = 0;
  if (DTYPE == LT_F16)
    LT_MMA_ASM("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
  else
    LT_MMA_ASM("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
  return w;
}

/* 2^x within 2 ulp, 0 below 2^-126. NaN passes. */
static __device__ inline float lt_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#undef LT_MMA_ASM
#undef LT_MMA_MEMORY
#else
#include "cuda/emu_mma.h"
#endif

#endif
