/* spec/cuda/fakert.h: what the fake CUDA runtime has beside the runtime's own functions.

   libfakert.so has those functions of NVIDIA's <cuda_runtime_api.h> that the backend uses, over
   host memory, for machines without a GPU. What real GPUs do not do:
   - *When*: queued work runs only when somebody waits for it, in the waiting thread, and only that
     stream and what it waits for: the latest moment that the rules allow, the same every
     time. FAKERT=threads: one worker a stream, random pauses of up to FAKERT_PAUSE (300)
     microseconds (FAKERT_SEED). Fresh and freed memory is 0xff.
   - *Who*: every access that is declared (copies, memsets, fakert_touch for launches) is checked
     with vector clocks: two accesses of the same bytes of which one writes, neither ordered before
     the other by a stream, an event or a wait of the host, are a race, whatever the timing was. It
     ends the program with a sentence. FAKERT_RACES=0: not checked.
   - *Where*: behind each block lie bytes that nobody may write; they are checked when the host
     waits, and when the block is freed.
   - *What*: launches, copies and waits of the host are counted, and copies between two devices
     that reach each other's memory (cudaDeviceEnablePeerAccess; FAKERT_PEERS=0: none can).
     FAKERT_FAIL=n: the n-th call of the
     runtime, cuBLASLt or cuDNN returns an error and does nothing.
     FAKERT_FAULT="cudaErrorIllegalAddress@n" (or another error, or "...@n:1" for device 1 alone):
     the n-th launch of a device fails when it runs, and from then on each call that touches it.
   - *Whose*: in a process that was forked from one that has called it, calls fail.
   - *Graphs*: between cudaStreamBeginCapture and its end, launches and copies are recorded with
     their arguments; what a capture forbids has the runtime's own error codes, and makes it invalid.
   FAKERT_DEVICES (4), FAKERT_MEMORY (bytes of each) and FAKERT_CAPABILITY (90: 9.0; below 80 they
   have neither bf16 nor TF32 nor mma.m16n8k16) say what there is; FAKERT_HIDDEN=n: the first n are
   hidden, as by a cgroup, and CUDA_VISIBLE_DEVICES counts the others. FAKERT_NODES: the nodes in
   /dev, without their numbers; FAKERT_MAKER: the program that makes them; FAKERT_WINDOWS: the node
   of WSL. */
#ifndef LT_SPEC_FAKERT_H
#define LT_SPEC_FAKERT_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>

#define FAKERT_API __attribute__((visibility("default")))

/* Queues the running of a grid, which was issued by the kernel of `what`. */
FAKERT_API void fakert_launch(cudaStream_t stream, const char *what, dim3 grid, dim3 block,
                              std::function<void()> run);
/* Queues any work of a library, e.g. a product. */
FAKERT_API void fakert_queue(cudaStream_t stream, const char *what, std::function<void()> run);
/* Replaces the grid at a node of a graph, as cudaGraphExecKernelNodeSetParams does. */
FAKERT_API void fakert_set_node(cudaGraphExec_t graph, cudaGraphNode_t node, const char *what,
                                std::function<void()> run);
/* A variable of the environment, or what is there in its place. */
FAKERT_API const char *fakert_setting(const char *name, const char *otherwise);
FAKERT_API int fakert_stream_device(cudaStream_t stream);
FAKERT_API void fakert_count_message(void);
/* From now on streams run by themselves, as with FAKERT=threads: the work of other processes waits
   for theirs. */
FAKERT_API void fakert_run_by_itself(void);
/* Declares what the next launch on a stream reads or writes. */
FAKERT_API void fakert_touch(cudaStream_t stream, const void *data, size_t bytes, bool writes,
                             const char *what);
/* The host reads or writes pinned memory now. */
FAKERT_API void fakert_host_touch(const void *data, size_t bytes, bool writes, const char *what);

/* A factor as TF32 has it: 11 bits of fraction, rounded to nearest. */
static inline float fakert_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits >> 23 & 255) != 255) bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Whether this call is the one that FAKERT_FAIL names: every function that can fail asks, once. */
FAKERT_API bool fakert_fails(void);

/* For the fakes of libraries: this thread's device; which device's memory that is, -1: none's. */
FAKERT_API int fakert_device(void);
FAKERT_API int fakert_capability(void); /* compute capability, times 10 */
FAKERT_API int fakert_device_of(const void *memory);
/* Which of the machine's GPUs a device is: CUDA_VISIBLE_DEVICES numbers them anew. */
FAKERT_API int fakert_gpu(int device);

/* Since the last time that they were asked for. */
typedef struct fakert_counts {
  int64_t launches, copies, waits;
  int64_t direct;   /* copies between devices, without the host */
  int64_t messages; /* sent by the fake NCCL: calls of ncclSend outside of a group */
  int64_t threads; /* of all launches */
  int64_t calls;   /* that can fail; in all */
  int64_t contexts; /* devices on which a context was made, as bits; in all */
} fakert_counts;
extern "C" FAKERT_API fakert_counts fakert_take_counts(void);

#endif
