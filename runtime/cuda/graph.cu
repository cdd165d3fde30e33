/* runtime/cuda/graph.cu: CUDA graphs: the work of a stream, captured once and launched as a whole.

   A graph keeps the arguments that its grids were captured with. Those few that differ from launch
   to launch (keys of random numbers, an optimizer's numbers) are set in their nodes
   (cudaGraphExecKernelNodeSetParams) by running the host's function of the launch once more, which
   then changes nodes where it would issue grids: no kernel reads its arguments from memory, and
   none knows of graphs. A change is seen by later launches alone, so nothing waits for it. */
#include <stdlib.h>

#include "cuda/device.h"

struct lt_cuda_graph {
  cudaGraph_t captured; /* kept: its nodes name those of `exec` */
  cudaGraphExec_t exec;
  lt_matmul_precision precision; /* that it was captured with */
  int64_t launches; /* that were captured */
  lt_cuda_node *nodes; /* their grids, in order */
  size_t n, capacity;
};

static bool add(lt_cuda_graph *g, cudaGraphNode_t node) {
  if (g->n == g->capacity) {
    size_t capacity = g->capacity > 0 ? 2 * g->capacity : 64;
    void *grown = realloc(g->nodes, capacity * sizeof *g->nodes);
    if (grown == nullptr) return false;
    g->nodes = static_cast<lt_cuda_node *>(grown);
    g->capacity = capacity;
  }
  g->nodes[g->n++] = {g->launches - 1, node};
  return true;
}

void lt_cuda_graph_count(lt_cuda_graph *g) { g->launches++; }

/* The next node of a stream that is captured would follow this one. */
bool lt_cuda_note_node(lt_ctx *c) {
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t *last = nullptr;
  size_t n = 0;
#if CUDART_VERSION >= 13000
  cudaError_t e = cudaStreamGetCaptureInfo(lt_cuda_now.stream, &status, nullptr, nullptr, &last,
                                           nullptr, &n);
#else
  cudaError_t e = cudaStreamGetCaptureInfo_v2(lt_cuda_now.stream, &status, nullptr, nullptr, &last,
                                              &n);
#endif
  if (!lt_cuda_ok(c, e, "capture")) return false;
  if (status != cudaStreamCaptureStatusActive || n != 1)
    return lt_cuda_fail(c, LT_EDEVICE, "the capture has ended before its time");
  lt_cuda_now.captured_by->precision = lt_cuda_now.precision;
  return add(lt_cuda_now.captured_by, last[0]) || lt_cuda_fail(c, LT_EMEMORY, "out of memory");
}

cudaGraphNode_t lt_cuda_next_node(lt_ctx *c) {
  if (lt_cuda_now.next < lt_cuda_now.end) return (lt_cuda_now.next++)->node;
  lt_cuda_fail(c, LT_EINTERNAL, "internal: more grids than were captured");
  return nullptr;
}

/* Relaxed: what allocates memory is allowed, and other threads are not concerned. What would wait
   for the device is refused before it comes here (device/graph.h). */
bool lt_cuda_capture_begin(lt_ctx *c, lt_stream *stream) {
  if (!lt_cuda_use(c, lt_cuda_stream_index(stream))) return false;
  lt_cuda_graph *g = static_cast<lt_cuda_graph *>(calloc(1, sizeof *g));
  if (g == nullptr) return lt_cuda_fail(c, LT_EMEMORY, "out of memory");
  cudaError_t e = cudaStreamBeginCapture(static_cast<cudaStream_t>(lt_cuda_stream_native(stream)),
                                         cudaStreamCaptureModeRelaxed);
  if (!lt_cuda_ok(c, e, "capture")) {
    free(g);
    return false;
  }
  lt_cuda_stream_set_captured(stream, g);
  return true;
}

void lt_cuda_graph_free(int index, void *graph) {
  lt_cuda_graph *g = static_cast<lt_cuda_graph *>(graph);
  int before;
  if (lt_cuda_enter(index, &before) == cudaSuccess) {
    if (g->exec != nullptr) cudaGraphExecDestroy(g->exec);
    if (g->captured != nullptr) cudaGraphDestroy(g->captured);
  }
  lt_cuda_leave(before);
  cudaGetLastError();
  free(g->nodes);
  free(g);
}

void *lt_cuda_capture_end(lt_ctx *c, lt_stream *stream, bool keep) {
  lt_cuda_graph *g = lt_cuda_stream_captured(stream);
  bool used = lt_cuda_use(c, lt_cuda_stream_index(stream));
  cudaError_t e = cudaStreamEndCapture(static_cast<cudaStream_t>(lt_cuda_stream_native(stream)),
                                       &g->captured);
  lt_cuda_stream_set_captured(stream, nullptr);
  if (!keep) cudaGetLastError(); /* whatever made the capture invalid */
  if (keep && used && lt_cuda_ok(c, e, "capture") &&
      lt_cuda_ok(c, cudaGraphInstantiate(&g->exec, g->captured, 0), "graph"))
    return g;
  lt_cuda_graph_free(lt_cuda_stream_index(stream), g);
  return nullptr;
}

bool lt_cuda_graph_launch(lt_ctx *c, lt_stream *stream, void *graph) {
  const lt_cuda_graph *g = static_cast<const lt_cuda_graph *>(graph);
  cudaStream_t native = static_cast<cudaStream_t>(lt_cuda_stream_native(stream));
  if (!lt_cuda_use(c, lt_cuda_stream_index(stream)) ||
      !lt_cuda_ok(c, cudaGraphLaunch(g->exec, native), "graph launch"))
    return false;
  lt_cuda_stream_issued(stream);
  return true;
}

/* The grids of a launch lie together, and launches are in order: bisection. */
static size_t first_of(const lt_cuda_graph *g, int64_t launch) {
  size_t low = 0, high = g->n;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (g->nodes[middle].launch < launch)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool lt_cuda_graph_update(lt_ctx *c, lt_stream *stream, void *graph, int64_t number,
                          lt_kernel kernel, const lt_call *call) {
  const lt_cuda_graph *g = static_cast<const lt_cuda_graph *>(graph);
  int index = lt_cuda_stream_index(stream);
  if (!lt_cuda_use(c, index)) return false;
  lt_cuda_launch_state before = lt_cuda_now;
  lt_cuda_now = {c, index, static_cast<cudaStream_t>(lt_cuda_stream_native(stream)),
                 lt_cuda_host->op_name(call->op), g->precision};
  lt_cuda_now.changed = g->exec;
  lt_cuda_now.next = g->nodes + first_of(g, number);
  lt_cuda_now.end = g->nodes + first_of(g, number + 1);
  bool ok = kernel(c, call);
  lt_cuda_now = before;
  return ok;
}
