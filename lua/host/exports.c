/* lua/host/exports.c: tensors exported to other libraries: releasing their memory from any thread.

   While a state is open its own thread frees, since nothing of a ctx may be touched by two; after
   that whoever comes first, for all who come meanwhile. No lock is held then: what is freed may be
   memory of another library, whose deleter takes locks of its own (Python's). */
#include "host/exports.h"

#include <stdlib.h>

#include "device/device.h"
#include "host/state.h"
#include "registry.h"

void lt_exports_begin(lt_exports *e) {
  pthread_mutex_init(&e->lock, NULL);
  e->users = 1;
  e->open = true;
}

static lt_ctx *heir_of(ltrain *l) {
  lt_exports *e = &l->exports;
  if (e->heir == NULL) e->heir = lt_ctx_new(lt_registry_here(), &l->allocator);
  if (e->heir == NULL) lt_fail(l->b->c, LT_EMEMORY, "to_dlpack: out of memory");
  return e->heir;
}

lt_export *lt_export_new(ltrain *l, lt_storage *s) {
  if (heir_of(l) == NULL) return NULL;
  lt_export *one = lt_host_allocate(l, NULL, 0, sizeof *one);
  if (one == NULL) {
    lt_fail(l->b->c, LT_EMEMORY, "to_dlpack: out of memory");
    return NULL;
  }
  *one = (lt_export){.l = l, .storage = lt_storage_retain(s)};
  pthread_mutex_lock(&l->exports.lock);
  l->exports.users++;
  pthread_mutex_unlock(&l->exports.lock);
  return one;
}

static void destroy(ltrain *l) {
  if (l->exports.heir != NULL) lt_ctx_release(l->exports.heir);
  pthread_mutex_destroy(&l->exports.lock);
  if (l->config.alloc != NULL)
    l->config.alloc(l->config.ud, l, sizeof *l, 0);
  else
    free(l);
}

/* A GPU may still read or write what its owner has released: that work comes first. A device that
   cannot be waited for says so to whoever uses it next. */
static void settle(lt_ctx *c, const lt_storage *s) {
  bool ok = lt_ok(c);
  const lt_device_ops *ops = lt_device_table(c, s->device);
  if (ops->launch != NULL) ops->synchronize(c, s->device.index);
  if (ok) lt_take_failure(c, NULL);
}

/* Called with the lock, which it gives up. */
static void release_all(ltrain *l, lt_ctx *c) {
  lt_exports *e = &l->exports;
  e->releasing = true;
  for (lt_export *one; (one = e->returned) != NULL; e->users--) {
    e->returned = one->next;
    pthread_mutex_unlock(&e->lock);
    settle(c, one->storage);
    lt_storage_release(c, one->storage);
    lt_host_allocate(l, one, sizeof *one, 0);
    pthread_mutex_lock(&e->lock);
  }
  e->releasing = false;
  bool last = e->users == 0;
  pthread_mutex_unlock(&e->lock);
  if (last) destroy(l);
}

void lt_export_drop(lt_export *one) {
  ltrain *l = one->l;
  lt_exports *e = &l->exports;
  pthread_mutex_lock(&e->lock);
  one->next = e->returned;
  e->returned = one;
  if (e->open || e->releasing)
    pthread_mutex_unlock(&e->lock);
  else
    release_all(l, e->heir);
}

void lt_exports_release(ltrain *l) {
  lt_exports *e = &l->exports;
  pthread_mutex_lock(&e->lock);
  if (e->returned == NULL || e->releasing)
    pthread_mutex_unlock(&e->lock);
  else
    release_all(l, l->b->c);
}

void lt_exports_end(ltrain *l) {
  lt_exports *e = &l->exports;
  pthread_mutex_lock(&e->lock);
  e->open = false;
  e->users--;
  release_all(l, e->heir);
}
