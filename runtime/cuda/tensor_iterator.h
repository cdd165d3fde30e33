/* runtime/cuda/tensor_iterator.h: strided operands of one shape, as elementwise kernels traverse
   them (cf. PyTorch's TensorIterator).

   Indices are 32 bits wide: the host cuts what has 2^31 elements or reaches so far. Dims stand from
   the fastest on; a division by a size is a multiplication. Broadcasting is a stride of 0. */
#ifndef LT_CUDA_TENSOR_ITERATOR_H
#define LT_CUDA_TENSOR_ITERATOR_H

#include "cuda/cuda.h"

/* n / d for n < 2^31 (T. Granlund, P. Montgomery, "Division by invariant integers using
   multiplication", PLDI 1994). */
typedef struct lt_divider {
  uint32_t d, magic, shift;
} lt_divider;

static inline lt_divider lt_divide_by(uint32_t d) {
  uint32_t s = 0;
  while (s < 32 && (1ull << s) < d) s++;
  lt_divider r = {d, static_cast<uint32_t>((((1ull << s) - d) << 32) / d + 1), s};
  return r;
}

static __device__ inline uint32_t lt_quotient(uint32_t n, lt_divider by) {
  return (__umulhi(n, by.magic) + n) >> by.shift;
}

enum { LT_CUDA_OPERANDS = 6 };

typedef struct lt_cuda_operand {
  char *data; /* nullptr: the number below */
  int dtype;
  int32_t stride[LT_MAX_DIMS]; /* in elements */
  double f;
  int64_t i;
} lt_cuda_operand;

/* Operand 0 is the result. */
typedef struct lt_cuda_iter {
  uint32_t numel;
  int ndim;
  bool linear;    /* element i of each operand is element i of its memory */
  lt_divider size[LT_MAX_DIMS];
  lt_cuda_operand o[LT_CUDA_OPERANDS];
} lt_cuda_iter;

/* The same on the host, before it is cut: dims from the slowest on. */
typedef struct lt_cuda_walk {
  int n, ndim;
  int64_t size[LT_MAX_DIMS];
  lt_view v[LT_CUDA_OPERANDS]; /* dims of `size`; stride 0: broadcast */
  lt_scalar number[LT_CUDA_OPERANDS];
} lt_cuda_walk;

/* Operands of the shape of `over`, to which the views are broadcast; those with data nullptr are
   numbers. Dims are sorted by operand 0 and merged. */
void lt_cuda_walk_make(lt_cuda_walk *w, const lt_view *over, int n, const lt_view *views);

/* Calls `each` for pieces that 32 bits can index, until one returns false. */
bool lt_cuda_pieces(const lt_cuda_walk *w, bool (*each)(void *ud, const lt_cuda_iter *it),
                    void *ud);

/* Where element `n` of the iteration is in operand k. */
static __device__ inline int32_t lt_cuda_place(const lt_cuda_iter &it, int k, uint32_t n) {
  uint32_t at = 0;
  if (it.linear) return static_cast<int32_t>(n);
  for (int d = 0; d < it.ndim; d++) {
    uint32_t q = lt_quotient(n, it.size[d]);
    at += (n - q * it.size[d].d) * static_cast<uint32_t>(it.o[k].stride[d]);
    n = q;
  }
  return static_cast<int32_t>(at);
}

#endif
