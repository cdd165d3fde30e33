/* runtime/cuda/cuda.h: what the files of the CUDA backend share on the host's side.

   A kernel of an op (lt_cuda_<op>) is called within `launch`: it looks at the views of its tensors
   and issues grids on the stream of that launch. It waits for nothing and reads no values. */
#ifndef LT_CUDA_CUDA_H
#define LT_CUDA_CUDA_H

#include "cuda/kernel.h"
#include "ltrain/backend.h"
#include "ops/args.h"
#include "ops/ids.h"

extern const lt_host *lt_cuda_host; /* what ltrain gave us when it opened this backend */

/* Kernels: one an op, and one for all rows. */
#define LT_CUDA_KERNEL(name) bool lt_cuda_##name(lt_ctx *c, const lt_call *call)
#define LT_OP(name, kind, dtype, cast, vjp, saves, devices, doc) LT_CUDA_DECLARE_##devices(name)
#define LT_CUDA_DECLARE_ALL(name) LT_CUDA_KERNEL(name);
#define LT_CUDA_DECLARE_ALL_EXPAND(name) LT_CUDA_DECLARE_ALL(name)
#define LT_CUDA_DECLARE_HOST(name)
#define LT_CUDA_DECLARE_EXPAND(name)
#define LT_CUDA_DECLARE_VIEW(name)
#define LT_CUDA_DECLARE_COPY(name)
#include "ops/ops.def"
LT_CUDA_KERNEL(rows);
LT_CUDA_KERNEL(updates);

/* gemm.cu: memory for the copies of one product, by their order in it: the next products of the
   launch use it again. */
enum { LT_CUDA_COPIES = 6 };
typedef struct lt_cuda_copies {
  int n; /* of the product that is being issued */
  void *memory[LT_CUDA_COPIES];
  int64_t bytes[LT_CUDA_COPIES];
} lt_cuda_copies;

/* graph.cu: a grid of a captured launch, and what becomes of the grids of this one: the nodes of a
   capture, or the place of the next in a graph that is changed. */
typedef struct lt_cuda_node {
  int64_t launch;
  cudaGraphNode_t node;
} lt_cuda_node;
typedef struct lt_cuda_graph lt_cuda_graph;

/* device.cu: the launch that is running in this thread. */
typedef struct lt_cuda_launch_state {
  lt_ctx *c;
  int index;
  cudaStream_t stream;
  const char *op;
  lt_matmul_precision precision = LT_MATMUL_HIGHEST; /* of f32 products */
  void *workspace = nullptr; /* of gemm_plan.cu */
  size_t workspace_size = 0;
  lt_cuda_copies copies = {};
  lt_cuda_graph *captured_by = nullptr;
  cudaGraphExec_t changed = nullptr; /* its grids replace these nodes, and nothing is issued */
  const lt_cuda_node *next = nullptr, *end = nullptr;
} lt_cuda_launch_state;
extern thread_local lt_cuda_launch_state lt_cuda_now;

/* The error word of a device, in pinned memory: the first thread that takes it writes the rest. The
   host may look when a kernel is at it: it reads only a word that is LT_CUDA_WRITTEN. */
enum { LT_CUDA_FREE, LT_CUDA_TAKEN, LT_CUDA_WRITTEN };
typedef struct lt_cuda_word {
  int state;
  lt_device_error error;
} lt_cuda_word;

/* What a kernel needs to refuse a value: the word, and whom to blame. */
typedef struct lt_cuda_blame {
  lt_cuda_word *word;
  int op;
  uint32_t line;
} lt_cuda_blame;
bool lt_cuda_blame_of(lt_ctx *c, const lt_call *call, lt_cuda_blame *out);

/* Refuses a value that had to be below `limit`. */
static __device__ inline void lt_cuda_refuse(lt_cuda_blame b, int64_t value, int64_t limit) {
  int free = LT_CUDA_FREE;
  if (atomicCAS(&b.word->state, free, static_cast<int>(LT_CUDA_TAKEN)) != free) return;
  b.word->error.op = b.op;
  b.word->error.line = b.line;
  b.word->error.value = value;
  b.word->error.limit = limit;
  __threadfence_system();
  *static_cast<volatile int *>(&b.word->state) = LT_CUDA_WRITTEN;
}

/* error.cu: false with a failure that names what was tried; true: there is no error. */
bool lt_cuda_ok(lt_ctx *c, cudaError_t e, const char *what);
/* False with a failure that names a library and its words; the device's fault, if it has one. */
bool lt_cuda_fail_library(lt_ctx *c, const char *library, const char *text);
bool lt_cuda_fail(lt_ctx *c, lt_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* graph.cu: notes the grid that was captured last; the node that the next grid of a changed launch
   replaces, nullptr with a failure. */
bool lt_cuda_note_node(lt_ctx *c);
cudaGraphNode_t lt_cuda_next_node(lt_ctx *c);

template <class... P, class... A>
static inline bool lt_cuda_change_grid(lt_ctx *c, void (*kernel)(P...), dim3 grid, dim3 block,
                                       size_t shared, const A &...args) {
  cudaGraphNode_t node = lt_cuda_next_node(c);
  if (node == nullptr) return false;
  lt_cuda_reissue(lt_cuda_now.op, kernel, grid, block, shared, lt_cuda_now.changed, node, args...);
  return lt_cuda_ok(c, cudaPeekAtLastError(), "graph");
}

/* Issues a grid on the stream of this launch; a grid of no blocks is none. */
template <class... P, class... A>
static inline bool lt_cuda_grid(lt_ctx *c, void (*kernel)(P...), dim3 grid, dim3 block,
                                size_t shared, const A &...args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return true;
  if (lt_cuda_now.changed != nullptr)
    return lt_cuda_change_grid(c, kernel, grid, block, shared, args...);
  lt_cuda_issue(lt_cuda_now.op, kernel, grid, block, shared, lt_cuda_now.stream, args...);
  return lt_cuda_ok(c, cudaPeekAtLastError(), "launch") &&
         (lt_cuda_now.captured_by == nullptr || lt_cuda_note_node(c));
}

/* Memory of the device for this launch, as elements of T; NULL with a failure. */
template <class T> static inline T *lt_cuda_scratch(lt_ctx *c, int64_t n) {
  return static_cast<T *>(lt_cuda_host->scratch(c, static_cast<size_t>(n) * sizeof(T)));
}

/* Bytes of an element. */
static inline int64_t lt_cuda_item_size(int dtype) {
  static const uint8_t items[] = {
#define LT_DTYPE(id, category, memory, ...) sizeof(memory),
#include "tensor/dtype.def"
  };
  return items[dtype];
}

static inline int64_t lt_cuda_numel(const lt_view *v) {
  int64_t n = 1;
  for (int k = 0; k < v->ndim; k++) n *= v->size[k];
  return n;
}

/* Views of a call's tensors; an absent input has data NULL and no elements. */
static inline bool lt_cuda_view(lt_ctx *c, lt_tensor *t, lt_view *out) {
  out->data = nullptr;
  out->ndim = 0;
  out->dtype = LT_F32;
  return t == nullptr || lt_cuda_host->view(c, t, out);
}

template <class T> static inline const T *lt_cuda_args(const lt_call *call) {
  return static_cast<const T *>(call->args);
}

#endif
