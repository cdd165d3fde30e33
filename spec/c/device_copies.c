/* spec/c/device_copies.c: part of device_conformance: bytes in, out, within and between devices. */
#include <string.h>

#include "device_conformance.h"

enum { GUARD = 64, ROOM = (1 << 20) + 4096 };

typedef struct bench {
  lt_ctx *c;
  int index;
  lt_stream *stream;
  char *host;     /* plain */
  char *pinned;
  char *there;    /* ROOM bytes of the device */
} bench;

static bool copy(const bench *b, lt_copy way, void *dst, const void *src, size_t bytes) {
  return good(b->c, ops->copy(b->c, b->stream, way, b->index, dst, b->index, src, bytes, LT_U8), "copy");
}

static void wait_all(const bench *b) {
  lt_event e;
  if (ops->launch == NULL) return;
  good(b->c, ops->event_record(b->c, b->stream, &e) && ops->event_wait(b->c, e), "event_wait");
}

/* A source that is not pinned is the caller's again when the copy returns; bytes are there when one
   to such memory returns. */
static void plain(const bench *b, size_t offset, size_t bytes) {
  pattern(b->host, ROOM, 1);
  copy(b, LT_TO_DEVICE, b->there, b->host, ROOM);
  pattern(b->host, bytes, 2);
  copy(b, LT_TO_DEVICE, b->there + GUARD + offset, b->host, bytes);
  memset(b->host, 0, ROOM);
  copy(b, LT_TO_HOST, b->host, b->there + GUARD + offset, bytes);
  if (!is_pattern(b->host, bytes, 2))
    fault("copy: %zu bytes to offset %zu of a device and back: not what was there", bytes, offset);
  copy(b, LT_TO_HOST, b->host, b->there, ROOM);
  char *end = b->host + GUARD + offset + bytes;
  char before[2 * GUARD];
  pattern(before, sizeof before, 1);
  if (memcmp(b->host, before, GUARD + offset) != 0)
    fault("copy: %zu bytes to offset %zu: bytes before them changed", bytes, offset);
  memset(b->pinned, 0, ROOM);
  pattern(b->pinned, ROOM, 1);
  if (memcmp(end, b->pinned + (end - b->host), (size_t)(b->host + ROOM - end)) != 0)
    fault("copy: %zu bytes to offset %zu: bytes after them changed", bytes, offset);
}

static void pinned(const bench *b, size_t bytes) {
  pattern(b->pinned, bytes, 3);
  copy(b, LT_TO_DEVICE, b->there, b->pinned, bytes);
  wait_all(b);
  memset(b->pinned, 0, bytes);
  copy(b, LT_TO_HOST, b->pinned, b->there, bytes);
  wait_all(b);
  if (!is_pattern(b->pinned, bytes, 3))
    fault("copy: %zu bytes from pinned memory and back: not what was there", bytes);
}

static void within(const bench *b, size_t bytes) {
  char *half = b->there + ROOM / 2;
  pattern(b->host, ROOM, 4);
  copy(b, LT_TO_DEVICE, b->there, b->host, ROOM);
  copy(b, LT_WITHIN, half, b->there, bytes);
  copy(b, LT_TO_HOST, b->host, half, bytes + 1);
  char after;
  memcpy(&after, b->host + bytes, 1);
  if (!is_pattern(b->host, bytes, 4)) fault("copy: LT_WITHIN: %zu bytes are not the same", bytes);
  pattern(b->pinned, ROOM, 4);
  if (after != b->pinned[ROOM / 2 + bytes]) fault("copy: LT_WITHIN: more than %zu bytes", bytes);
}

/* From every other device of the kind. */
static void peer(const bench *b, size_t bytes) {
  for (int from = 0; from < devices; from++) {
    if (from == b->index) continue;
    bench other = *b;
    other.index = from;
    other.stream = stream_of(b->c, from, STREAM_A);
    other.there = ops->alloc(from, ROOM);
    if (other.there == NULL) return fault("alloc: no memory on device %d", from);
    pattern(b->host, bytes, 5 + (unsigned)from);
    copy(&other, LT_TO_DEVICE, other.there, b->host, bytes);
    wait_all(&other);
    good(b->c, ops->copy(b->c, b->stream, LT_PEER, b->index, b->there, from, other.there, bytes, LT_U8),
         "copy: LT_PEER");
    memset(b->host, 0, bytes);
    copy(b, LT_TO_HOST, b->host, b->there, bytes);
    if (!is_pattern(b->host, bytes, 5 + (unsigned)from))
      fault("copy: LT_PEER: %zu bytes from device %d to %d are not the same", bytes, from,
            b->index);
    ops->free(from, other.there, ROOM);
  }
}

static void wrong_index(const bench *b) {
  const int wrong[] = {-1, devices};
  for (int k = 0; k < 2; k++)
    bad(b->c, ops->copy(b->c, b->stream, LT_TO_DEVICE, wrong[k], b->there, wrong[k], b->host, 4, LT_U8),
        "copy: to a device that is not there");
}

void test_copies(lt_ctx *c, int index) {
  if (ops->copy == NULL) return;
  static const size_t sizes[] = {1, 3, 64, 4097, (1 << 19) - 5};
  static char host[ROOM];
  bench b = {.c = c, .index = index, .host = host, .pinned = host_new(ROOM)};
  b.stream = stream_of(c, index, STREAM_A);
  b.there = ops->alloc(index, ROOM);
  if (b.there == NULL) return fault("alloc: no memory on device %d", index);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    plain(&b, 0, sizes[k]);
    plain(&b, 1, sizes[k]);
    plain(&b, 8, sizes[k]);
    pinned(&b, sizes[k]);
    within(&b, sizes[k]);
    peer(&b, sizes[k]);
  }
  copy(&b, LT_TO_DEVICE, b.there, host, 0);
  wrong_index(&b);
  wait_all(&b);
  ops->free(index, b.there, ROOM);
  host_free(b.pinned, ROOM);
}
