/* runtime/tensor/storage.c: reference counts of storages. */
#include "tensor/storage.h"

lt_storage *lt_storage_retain(lt_storage *s) {
  atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
  return s;
}

void lt_storage_release(lt_ctx *c, lt_storage *s) {
  if (s == NULL) return;
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) s->drop(c, s);
}

void lt_storage_init(lt_ctx *c, lt_storage *s) {
  atomic_init(&s->refs, 1);
  s->id = atomic_fetch_add(&c->root->storage_ids, 1) + 1;
}

void lt_storage_note_external_write(lt_ctx *c, lt_storage *s) {
  c->external_writes++;
  if (s->written_externally) return;
  s->written_externally = true;
  s->external_writer = c->op;
  s->external_line = lt_ctx_line(c);
}
