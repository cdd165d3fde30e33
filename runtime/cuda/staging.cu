/* runtime/cuda/staging.cu: copies of pageable memory, through pinned buffers.

   cudaMemcpyAsync of pageable memory may wait until the stream has come to the copy: the host would
   stand still for as long as the GPU has work. What comes from such memory is staged in pinned
   buffers instead, a piece at a time, and the host continues; only when MOST bytes are on their way
   does it wait, for the first of them. What goes to such memory is waited for once. */
#include <string.h>

#include <mutex>

#include "cuda/device.h"

enum : size_t { SMALLEST = 4096, PIECE = size_t{4} << 20, MOST = size_t{64} << 20 };

struct buffer {
  buffer *next;
  void *memory;
  size_t bytes;
  bool used; /* by a thread, now */
  lt_event after;
};

static std::mutex lock;
static buffer *buffers; /* the first was made last */
static size_t pinned_bytes;

/* Powers of two: few sizes, so that a buffer is found again. */
static size_t class_of(size_t bytes) {
  size_t capacity = SMALLEST;
  while (capacity < bytes) capacity *= 2;
  return capacity;
}

static buffer *make(size_t bytes) {
  void *memory = lt_cuda_host_alloc(bytes);
  if (memory == nullptr) return nullptr;
  pinned_bytes += bytes;
  return buffers = new buffer{buffers, memory, bytes, true, {}};
}

/* One that nothing reads any more, else a new one; nullptr where there are too many: `*busy` is
   then one that is on its way. Under the lock. */
static buffer *find(size_t bytes, buffer **busy) {
  for (buffer *b = buffers; b != nullptr; b = b->next) {
    if (b->used || b->bytes != bytes) continue;
    if (b->after.stream == nullptr || lt_cuda_event_done(b->after) == LT_DONE) return b;
    *busy = b;
  }
  return pinned_bytes + bytes <= MOST || *busy == nullptr ? make(bytes) : nullptr;
}

/* Where MOST bytes are under way the host waits for one of them, outside of the lock. */
static buffer *take(lt_ctx *c, size_t bytes) {
  buffer *busy = nullptr, *b;
  {
    std::lock_guard<std::mutex> hold(lock);
    b = find(bytes, &busy);
    if (b == nullptr && busy != nullptr) b = busy;
    if (b != nullptr) b->used = true;
  }
  if (b == nullptr) {
    lt_cuda_fail(c, LT_EMEMORY, "out of memory: %zu bytes of pinned host memory", bytes);
    return nullptr;
  }
  if (b != busy || lt_cuda_event_wait(c, b->after)) return b;
  b->used = false;
  return nullptr;
}

static void give(buffer *b) {
  std::lock_guard<std::mutex> hold(lock);
  b->used = false;
}

/* The event is asked for at once, so that it stands for this copy and nothing behind it. */
static bool issue(lt_ctx *c, lt_stream *stream, buffer *b, void *dst, const void *src, size_t bytes,
                  cudaMemcpyKind kind) {
  cudaStream_t native = static_cast<cudaStream_t>(lt_cuda_stream_native(stream));
  if (!lt_cuda_ok(c, cudaMemcpyAsync(dst, src, bytes, kind, native), "copy")) return false;
  lt_cuda_stream_issued(stream);
  if (!lt_cuda_event_record(c, stream, &b->after)) return false;
  return lt_cuda_event_done(b->after) != LT_BROKEN || lt_cuda_fail(c, LT_EDEVICE, "copy: no event");
}

/* In pieces: the first is on its way to the device while the next is copied by the host. */
bool lt_cuda_stage_in(lt_ctx *c, lt_stream *stream, void *dst, const void *src, size_t bytes) {
  for (size_t at = 0; at < bytes; at += PIECE) {
    size_t n = bytes - at < PIECE ? bytes - at : PIECE;
    buffer *b = take(c, class_of(n));
    if (b == nullptr) return false;
    LT_HOST_TOUCH(b->memory, n, true, "staging");
    memcpy(b->memory, static_cast<const char *>(src) + at, n);
    char *to = static_cast<char *>(dst) + at;
    bool ok = issue(c, stream, b, to, b->memory, n, cudaMemcpyHostToDevice);
    give(b);
    if (!ok) return false;
  }
  return true;
}

/* A piece on its way out of the device, or none (b is nullptr). */
struct piece {
  buffer *b;
  size_t at, n;
};

static piece begin_out(lt_ctx *c, lt_stream *stream, const void *src, size_t at, size_t bytes) {
  piece p = {nullptr, at, bytes - at < PIECE ? bytes - at : PIECE};
  if (at >= bytes || (p.b = take(c, class_of(p.n))) == nullptr) return p;
  const char *from = static_cast<const char *>(src) + at;
  if (issue(c, stream, p.b, p.b->memory, from, p.n, cudaMemcpyDeviceToHost)) return p;
  give(p.b);
  p.b = nullptr;
  return p;
}

static bool end_out(lt_ctx *c, const piece *p, void *dst) {
  bool ok = lt_cuda_event_wait(c, p->b->after);
  LT_HOST_TOUCH(p->b->memory, p->n, false, "staging");
  if (ok) memcpy(static_cast<char *>(dst) + p->at, p->b->memory, p->n);
  give(p->b);
  return ok;
}

/* One piece arrives while the one before it is copied out. */
bool lt_cuda_stage_out(lt_ctx *c, lt_stream *stream, void *dst, const void *src, size_t bytes) {
  piece now = begin_out(c, stream, src, 0, bytes);
  size_t done = 0;
  while (now.b != nullptr) {
    piece next = begin_out(c, stream, src, now.at + now.n, bytes);
    if (end_out(c, &now, dst)) done += now.n;
    now = next;
  }
  return done == bytes;
}
