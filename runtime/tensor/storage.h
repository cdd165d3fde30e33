/* runtime/tensor/storage.h: reference-counted bytes on a device.

   Counts are atomic: storages cross threads (a prefetched batch). The storage carries its own
   drop pointer, so nothing here knows allocators. */
#ifndef LT_TENSOR_STORAGE_H
#define LT_TENSOR_STORAGE_H

#include <stdatomic.h>

#include "base/ctx.h"

enum { LT_READERS = 3 }; /* streams whose last read is kept apart */

struct lt_storage {
  atomic_long refs;
  void *data;
  size_t bytes;
  lt_device device;
  bool read_only;     /* its owner lends it for reading: in-place writes are refused */
  uint32_t line;      /* script line, for storages over 1 MiB; 0 otherwise */
  uint64_t id;        /* never reused within a root ctx */
  uint64_t version;   /* bumped by every in-place write */
  uint64_t recorded;  /* version at the last in-place write that the tape knows */
  const char *writer; /* op that wrote last, for messages */
  uint32_t writer_line;
  bool watched; /* an optimizer's: other writers are noted */
  bool written_externally; /* one of them wrote; which, and where, stands in the next two */
  const char *external_writer;
  uint32_t external_line;
  void (*drop)(lt_ctx *c, lt_storage *s); /* frees the bytes and the struct */
  void *owner;                            /* for drop */
  char *away; /* NULL, or why it has no memory now (lt_storage_empty) */
  lt_object *made; /* of a meta device, or NULL: the calls that made it (ops/deferred_init.h) */
  /* On an asynchronous device (device/stream.h): the last write, the last reads since, a stream. */
  lt_event write, reads[LT_READERS];
};

lt_storage *lt_storage_retain(lt_storage *s);
void lt_storage_release(lt_ctx *c, lt_storage *s);

/* Fill the common fields of a fresh storage (refs 1, a new id). */
void lt_storage_init(lt_ctx *c, lt_storage *s);

/* A write into a watched storage that is not an update: the first is kept. */
void lt_storage_note_external_write(lt_ctx *c, lt_storage *s);

/* Note an in-place write by the current op and line. */
static inline void lt_storage_bump(lt_ctx *c, lt_storage *s) {
  s->version++;
  s->writer = c->op;
  s->writer_line = lt_ctx_line(c);
  if (s->watched && !c->modes.update) lt_storage_note_external_write(c, s);
}

#endif
