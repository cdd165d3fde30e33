/* runtime/cuda/device.h: functions of the CUDA backend's device table (lt_device_ops), and what
   they share, by file. */
#ifndef LT_CUDA_DEVICE_H
#define LT_CUDA_DEVICE_H

#include "cuda/cuda.h"

enum { LT_CUDA_MOST = 16 }; /* devices of this kind that are used */

/* device_count.cu: how many there are, found without CUDA: a process that initialised it cannot
   fork ranks that use it. */
int lt_cuda_count(void);
bool lt_cuda_available(char *why, size_t size);

static inline bool lt_cuda_has(int index) { return index >= 0 && index < lt_cuda_count(); }

/* current_device.cu: the device that is this thread's. */
cudaError_t lt_cuda_make_current(int index);
bool lt_cuda_use(lt_ctx *c, int index); /* makes it this thread's; false with a failure */
/* The same for a moment, and then back to what it was, if it was any: a thread that has none yet
   makes a context on device 0 by almost each call of CUDA, hundreds of megabytes of a GPU that may
   be another's. */
cudaError_t lt_cuda_enter(int index, int *before);
void lt_cuda_leave(int before);

/* describe.cu: what devices are called; host_memory.cu: pinned memory. */
bool lt_cuda_describe(int index, char *text, size_t size);
bool lt_cuda_bus_address(int index, char *text, size_t size);
void *lt_cuda_host_alloc(size_t bytes);
void lt_cuda_host_free(void *memory, size_t bytes);
bool lt_cuda_host_has(const void *memory); /* whether it is of lt_cuda_host_alloc */

/* device.cu: opening a device, memory, copies, launches; error.cu: the error words. */
bool lt_cuda_open(lt_ctx *c, int index);
void *lt_cuda_alloc(int index, size_t bytes);
void lt_cuda_free(int index, void *memory, size_t bytes);
bool lt_cuda_memory_info(int index, int64_t *free_bytes, int64_t *total);
bool lt_cuda_copy(lt_ctx *c, lt_stream *stream, lt_copy way, int index, void *dst, int from,
                  const void *src, size_t bytes, lt_dtype dtype);
bool lt_cuda_launch(lt_ctx *c, int index, lt_stream *stream, lt_kernel kernel, const lt_call *call);
bool lt_cuda_take_error(lt_ctx *c, int index, lt_device_error *out);

/* staging.cu: copies between a device and memory that is not pinned: the first returns when `src`
   may be written again, the second when `dst` is filled. */
bool lt_cuda_stage_in(lt_ctx *c, lt_stream *stream, void *dst, const void *src, size_t bytes);
bool lt_cuda_stage_out(lt_ctx *c, lt_stream *stream, void *dst, const void *src, size_t bytes);

/* Tells the fake runtime that the host reads or writes pinned memory now: nothing on a GPU. */
#ifdef __CUDACC__
#define LT_HOST_TOUCH(data, bytes, writes, what) ((void)0)
#else
#define LT_HOST_TOUCH(data, bytes, writes, what) fakert_host_touch(data, bytes, writes, what)
#endif

/* stream.cu: streams and their positions. */
lt_stream *lt_cuda_stream_new(lt_ctx *c, int index, int priority);
void *lt_cuda_stream_native(lt_stream *stream);
void *lt_cuda_stream_export(lt_stream *stream); /* to others, whose work on it is not seen here */
int lt_cuda_stream_index(const lt_stream *stream); /* its device */
void lt_cuda_stream_issued(lt_stream *stream); /* something was: its position grows */
bool lt_cuda_event_record(lt_ctx *c, lt_stream *stream, lt_event *out);
lt_progress lt_cuda_event_done(lt_event event);
bool lt_cuda_event_wait(lt_ctx *c, lt_event event);
bool lt_cuda_stream_wait(lt_ctx *c, lt_stream *stream, lt_event event);
bool lt_cuda_synchronize(lt_ctx *c, int index);

/* The graph that captures what is issued on it; nullptr: none does, and what is issued runs. */
lt_cuda_graph *lt_cuda_stream_captured(const lt_stream *stream);
void lt_cuda_stream_set_captured(lt_stream *stream, lt_cuda_graph *by);

/* graph.cu: graphs. */
bool lt_cuda_capture_begin(lt_ctx *c, lt_stream *stream);
void *lt_cuda_capture_end(lt_ctx *c, lt_stream *stream, bool keep);
bool lt_cuda_graph_launch(lt_ctx *c, lt_stream *stream, void *graph);
bool lt_cuda_graph_update(lt_ctx *c, lt_stream *stream, void *graph, int64_t number,
                          lt_kernel kernel, const lt_call *call);
void lt_cuda_graph_free(int index, void *graph);
void lt_cuda_graph_count(lt_cuda_graph *g); /* a launch begins, whose grids follow */

/* timer.cu: measuring. */
bool lt_cuda_timer_record(lt_ctx *c, lt_stream *stream, void **timer);
lt_progress lt_cuda_timer_elapsed(void *from, void *to, double *milliseconds);
void lt_cuda_timer_free(void *timer);
void lt_cuda_range_push(const char *name);
void lt_cuda_range_pop(void);
void lt_cuda_mark(const char *name);

/* combine.cu: reductions between ranks. */
bool lt_cuda_combine(lt_ctx *c, int index, lt_stream *stream, void *dst, const void *a,
                     const void *b, int64_t n, lt_dtype dtype, lt_comm_reduce reduce);
bool lt_cuda_divide(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n, lt_dtype dtype,
                    int by);
bool lt_cuda_scale(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n, lt_dtype dtype,
                   double by);

/* kernels.cu: the table by op id. */
const lt_kernel *lt_cuda_kernels(void);

#endif
