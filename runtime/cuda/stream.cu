/* runtime/cuda/stream.cu: streams, and events as positions of them.

   A position is a number of what was issued. A native event is recorded when somebody asks for a
   position, and then stands for all that was issued by then: a later position implies the earlier
   ones. So a launch costs no event. */
#include <mutex>
#include <new>

#include "cuda/device.h"

enum { RING = 64 };

struct lt_stream {
  int index;
  cudaStream_t native;
  uint64_t issued, done; /* positions */
  struct {
    cudaEvent_t event;
    uint64_t position;
  } ring[RING];
  unsigned next;
  lt_cuda_graph *captured_by;
};

static std::mutex lock; /* of all streams: held for moments, never while something waits */

/* RING events are made with the stream, so that recording never allocates. */
lt_stream *lt_cuda_stream_new(lt_ctx *c, int index, int priority) {
  int least, greatest;
  if (!lt_cuda_use(c, index) ||
      !lt_cuda_ok(c, cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities"))
    return nullptr;
  lt_stream *s = new (std::nothrow) lt_stream();
  if (s == nullptr) {
    lt_cuda_fail(c, LT_EMEMORY, "out of memory");
    return nullptr;
  }
  s->index = index;
  /* Non-blocking: work on the legacy default stream, as of other libraries, orders nothing here. */
  if (!lt_cuda_ok(c, cudaStreamCreateWithPriority(&s->native, cudaStreamNonBlocking,
                                                  priority > 0 ? greatest : least), "new stream"))
    return nullptr;
  for (int k = 0; k < RING; k++)
    /* Without a time: such events are cheaper to record and to wait for. */
    if (!lt_cuda_ok(c, cudaEventCreateWithFlags(&s->ring[k].event, cudaEventDisableTiming),
                    "new event"))
      return nullptr;
  return s;
}

void *lt_cuda_stream_native(lt_stream *stream) { return stream->native; }
int lt_cuda_stream_index(const lt_stream *stream) { return stream->index; }

void *lt_cuda_stream_export(lt_stream *stream) {
  lt_cuda_stream_issued(stream);
  return stream->native;
}

lt_cuda_graph *lt_cuda_stream_captured(const lt_stream *stream) { return stream->captured_by; }

/* All that was issued before has run by then (device/graph.c): its positions need no events, which
   could not be recorded between begin and end. */
void lt_cuda_stream_set_captured(lt_stream *stream, lt_cuda_graph *by) {
  std::lock_guard<std::mutex> hold(lock);
  if (by != nullptr) stream->done = stream->issued;
  stream->captured_by = by;
}

/* After each launch, copy and library call on the stream: the position that later events stand
   for. */
void lt_cuda_stream_issued(lt_stream *stream) {
  std::lock_guard<std::mutex> hold(lock);
  stream->issued++;
}

/* No call of CUDA: the position is the event until somebody asks (native_event). */
bool lt_cuda_event_record(lt_ctx *c, lt_stream *stream, lt_event *out) {
  (void)c;
  std::lock_guard<std::mutex> hold(lock);
  out->stream = stream;
  out->position = stream->issued;
  return true;
}

/* The native event that stands for a position: the earliest that was recorded at or behind it, else
   one that is recorded now. nullptr: it has passed. Under the lock, on the stream's device. A slot
   that is recorded again stands for a later position; whoever waits for it waits a little longer,
   never too short. */
static cudaError_t native_event(lt_event e, cudaEvent_t *out, uint64_t *position) {
  lt_stream *s = e.stream;
  int best = -1;
  *out = nullptr;
  if (s->done >= e.position) return cudaSuccess;
  for (int k = 0; k < RING; k++)
    if (s->ring[k].position >= e.position &&
        (best < 0 || s->ring[k].position < s->ring[best].position))
      best = k;
  if (best < 0) {
    best = static_cast<int>(s->next++ % RING);
    cudaError_t error = cudaEventRecord(s->ring[best].event, s->native);
    if (error != cudaSuccess) return error;
    s->ring[best].position = s->issued;
  }
  *out = s->ring[best].event;
  *position = s->ring[best].position;
  return cudaSuccess;
}

static void pass(lt_stream *s, uint64_t position) {
  if (s->done < position) s->done = position;
}

/* cudaErrorNotReady is an answer, not an error, but it is left in the thread's last error: cleared
   here, or the next check of a launch would report it. */
static lt_progress query(lt_event event) {
  cudaEvent_t native;
  uint64_t position;
  if (native_event(event, &native, &position) != cudaSuccess) return LT_BROKEN;
  if (native == nullptr) return LT_DONE;
  cudaError_t at = cudaEventQuery(native);
  if (at == cudaErrorNotReady) {
    cudaGetLastError();
    return LT_PENDING;
  }
  if (at != cudaSuccess) return LT_BROKEN;
  pass(event.stream, position);
  return LT_DONE;
}

/* Threads that write files ask, too. */
lt_progress lt_cuda_event_done(lt_event event) {
  std::lock_guard<std::mutex> hold(lock);
  int before;
  if (event.stream->done >= event.position) return LT_DONE;
  if (event.stream->captured_by != nullptr) return LT_PENDING; /* it has not even been launched */
  lt_progress at = LT_BROKEN;
  if (lt_cuda_enter(event.stream->index, &before) == cudaSuccess) at = query(event);
  lt_cuda_leave(before);
  return at;
}

static bool refuse_captured(lt_ctx *c) {
  return lt_cuda_fail(c, LT_EDEVICE, "waits for work that is captured and has not been launched");
}

/* The lock is not held while the host waits: other threads go on. */
bool lt_cuda_event_wait(lt_ctx *c, lt_event event) {
  cudaEvent_t native;
  uint64_t position = 0;
  cudaError_t error;
  if (!lt_cuda_use(c, event.stream->index)) return false; /* whose fault it is, if there is one */
  {
    std::lock_guard<std::mutex> hold(lock);
    if (event.stream->done >= event.position) return true;
    if (event.stream->captured_by != nullptr) return refuse_captured(c);
    error = native_event(event, &native, &position);
  }
  if (!lt_cuda_ok(c, error, "event")) return false;
  if (native == nullptr) return true;
  if (!lt_cuda_ok(c, cudaEventSynchronize(native), "wait")) return false;
  std::lock_guard<std::mutex> hold(lock);
  pass(event.stream, event.position); /* the slot may stand for a later one by now */
  return true;
}

/* The device waits, the host does not: later work of `stream` starts after the event. Work of one
   stream is in order by itself. */
bool lt_cuda_stream_wait(lt_ctx *c, lt_stream *stream, lt_event event) {
  if (stream == event.stream || event.stream->done >= event.position) return true;
  if (event.stream->captured_by != nullptr) return refuse_captured(c);
  /* A capture cannot wait for what is not in it: the host does, before it is launched. */
  if (stream->captured_by != nullptr) return lt_cuda_event_wait(c, event);
  cudaEvent_t native;
  uint64_t position;
  cudaError_t error;
  {
    std::lock_guard<std::mutex> hold(lock);
    int before;
    error = lt_cuda_enter(event.stream->index, &before);
    if (error == cudaSuccess) error = native_event(event, &native, &position);
    lt_cuda_leave(before);
    if (error == cudaSuccess && native != nullptr)
      error = cudaStreamWaitEvent(stream->native, native, 0);
  }
  return lt_cuda_ok(c, error, "stream wait");
}

bool lt_cuda_synchronize(lt_ctx *c, int index) {
  return lt_cuda_use(c, index) && lt_cuda_ok(c, cudaDeviceSynchronize(), "wait");
}
