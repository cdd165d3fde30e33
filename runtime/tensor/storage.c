/* runtime/tensor/storage.c: reference counts of storages.

   Memory order as for any atomic count: taking a reference needs no order, since the caller has one
   already; the last release must see all writes of the others before it frees (acquire,
   release). */
#include "tensor/storage.h"

lt_storage *lt_storage_retain(lt_storage *s) {
  atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
  return s;
}

void lt_storage_release(lt_ctx *c, lt_storage *s) {
  if (s == NULL) return;
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) s->drop(c, s);
}

/* Ids come from the root context, because storages move between a context and its children;
   addresses would be used again. */
void lt_storage_init(lt_ctx *c, lt_storage *s) {
  atomic_init(&s->refs, 1);
  s->id = atomic_fetch_add(&c->root->storage_ids, 1) + 1;
}

/* Only the first write is kept: it is the one that broke what the optimizer assumed, later ones may
   be consequences. */
void lt_storage_note_external_write(lt_ctx *c, lt_storage *s) {
  c->external_writes++;
  if (s->written_externally) return;
  s->written_externally = true;
  s->external_writer = c->op;
  s->external_line = lt_ctx_line(c);
}
