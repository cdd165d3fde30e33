/* runtime/tensor/storage.c: counting references to bytes. */
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

void lt_storage_stray(lt_ctx *c, lt_storage *s) {
  c->strays++;
  if (s->strayed) return;
  s->strayed = true;
  s->stray_writer = c->op;
  s->stray_line = lt_ctx_line(c);
}

typedef struct wrapped {
  lt_storage storage;
  void (*release)(void *ud);
  void *ud;
} wrapped;

static void drop_wrapped(lt_ctx *c, lt_storage *s) {
  wrapped *w = (wrapped *)s;
  if (w->release != NULL) w->release(w->ud);
  lt_free(c, w, sizeof *w);
}

lt_storage *lt_storage_wrap(lt_ctx *c, void *data, size_t bytes, void (*release)(void *ud),
                            void *ud) {
  wrapped *w = lt_alloc(c, sizeof *w);
  if (w == NULL) return NULL;
  lt_storage_init(c, &w->storage);
  w->storage.data = data;
  w->storage.bytes = bytes;
  w->storage.external = true;
  w->storage.drop = drop_wrapped;
  w->release = release;
  w->ud = ud;
  return &w->storage;
}

void lt_storage_on_drop(lt_storage *s, void (*release)(void *ud), void *ud) {
  wrapped *w = (wrapped *)s;
  w->release = release;
  w->ud = ud;
}
