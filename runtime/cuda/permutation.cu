/* runtime/cuda/permutation.cu: the CPU's permutation, made by all threads at once.

   Fisher and Yates' steps i = n-1..0 trade place i for place with(i) <= i. A step takes what its
   place with(i) holds: what the step before it with that place brought there, or the place's own
   number. What step s brings is what place s held: the same question. So steps are sorted by their
   place, and each follows the steps that brought its number, which are few: chains have O(log n)
   links (J. Shun et al., "Sequential random permutation, list contraction and tree contraction are
   highly parallel", SODA 2015). */
#include "cuda/index.h"
#include "cuda/radix.h"

/* With which place step i trades: as in cpu/sampling.c. */
static __device__ inline uint32_t place_of(lt_rng_key t, uint32_t i) {
  lt_random4 r = lt_philox(t, i / 2);
  uint64_t w = i % 2 == 0 ? static_cast<uint64_t>(r.word[0]) << 32 | r.word[1]
                          : static_cast<uint64_t>(r.word[2]) << 32 | r.word[3];
  return static_cast<uint32_t>(__umul64hi(w, static_cast<uint64_t>(i) + 1));
}

static __global__ void draw_places(lt_rng_key t, uint32_t n, uint32_t *place, uint32_t *bringer) {
  uint32_t i = lt_thread();
  if (i >= n) return;
  place[i] = place_of(t, i);
  bringer[i] = 0;
}

/* Steps in order of their place, rising. before[i]: 1 + the step that had the place of step i last
   before it, which is the next greater one; bringer[p]: 1 + the step that brought place p what it
   holds when step p comes. 0: none. */
static __global__ void link_steps(const uint32_t *place, const uint32_t *step, uint32_t n,
                                  uint32_t *before, uint32_t *bringer) {
  uint32_t k = lt_thread();
  if (k >= n) return;
  uint32_t p = place[k], i = step[k];
  bool more = k + 1 < n && place[k + 1] == p, first = k == 0 || place[k - 1] != p;
  before[i] = more ? step[k + 1] + 1 : 0;
  if (i == p)
    bringer[p] = before[i];
  else if (first)
    bringer[p] = i + 1;
}

/* One thread an element. */
static __global__ void follow_steps(lt_rng_key t, uint32_t n, const uint32_t *before,
                                    const uint32_t *bringer, void *out, int dtype, int64_t item,
                                    int64_t stride) {
  uint32_t i = lt_thread();
  if (i >= n) return;
  uint32_t link = before[i], number = link == 0 ? place_of(t, i) : link - 1;
  while (link != 0) {
    number = link - 1;
    link = bringer[number];
  }
  lt_store<int64_t>(static_cast<char *>(out) + i * stride * item, dtype, 0,
                    static_cast<int64_t>(number));
}

LT_CUDA_KERNEL(randperm) {
  const lt_args_permutation *a = lt_cuda_args<lt_args_permutation>(call);
  lt_cuda_sorted<uint32_t> sorted;
  lt_view out;
  if (!lt_cuda_view(c, call->out[0], &out)) return false;
  if (out.size[0] == 0) return true;
  if (out.size[0] > INT32_MAX)
    return lt_cuda_fail(c, LT_EVALUE, "a permutation of %lld numbers is too large for a GPU",
                        static_cast<long long>(out.size[0]));
  uint32_t n = static_cast<uint32_t>(out.size[0]);
  uint32_t *place = lt_cuda_scratch<uint32_t>(c, n), *before = lt_cuda_scratch<uint32_t>(c, n);
  uint32_t *bringer = lt_cuda_scratch<uint32_t>(c, n);
  int dtype = out.dtype;
  int64_t item = lt_cuda_item_size(dtype), stride = out.stride[0];
  unsigned blocks = lt_cuda_blocks(n);
  if (place == nullptr || before == nullptr || bringer == nullptr ||
      !lt_cuda_grid(c, draw_places, blocks, LT_CUDA_THREADS, 0, a->rng_key, n, place, bringer) ||
      !lt_cuda_sort(c, place, 1, n, lt_cuda_bits(n - 1), &sorted))
    return false;
  return lt_cuda_grid(c, link_steps, blocks, LT_CUDA_THREADS, 0, sorted.key, sorted.index, n,
                      before, bringer) &&
         lt_cuda_grid(c, follow_steps, blocks, LT_CUDA_THREADS, 0, a->rng_key, n, before, bringer,
                      out.data, dtype, item, stride);
}
