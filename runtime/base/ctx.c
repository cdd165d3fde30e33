/* runtime/base/ctx.c: creation and destruction of contexts, cancelling, and frames, which own
   temporaries. */
#include "base/ctx.h"

#include <stdlib.h>
#include <string.h>

#include "base/script_lines.h"
#include "base/cpu_load.h"
#include "base/threads.h"

static void *malloc_allocator(void *ud, void *ptr, size_t old_size, size_t new_size) {
  (void)ud, (void)old_size;
  if (new_size == 0) {
    free(ptr);
    return NULL;
  }
  return realloc(ptr, new_size);
}

static lt_ctx *ctx_make(const lt_registry *registry, const lt_allocator *allocator) {
  static const lt_allocator standard = {.fn = malloc_allocator};
  if (allocator == NULL) allocator = &standard;
  lt_ctx *c = allocator->fn(allocator->ud, NULL, 0, sizeof *c);
  if (c == NULL) return NULL;
  memset(c, 0, sizeof *c);
  c->memory.allocator = *allocator;
  c->registry = registry;
  c->threads = 1;
  c->modes = (lt_modes){.grad = true, .autocast_dtype = LT_BF16};
  return c;
}

lt_ctx *lt_ctx_new(const lt_registry *registry, const lt_allocator *allocator) {
  lt_ctx *c = ctx_make(registry, allocator);
  if (c == NULL) return NULL;
  c->root = c;
  c->cancel = &c->cancel_flag;
  c->lines = lt_lines_new(c);
  c->helpers = lt_helpers_new(c);
  if (c->lines == NULL || c->helpers == NULL) {
    lt_ctx_release(c);
    return NULL;
  }
  return c;
}

/* For another thread: memory, frames and the first failure are its own, so that nothing needs a
   lock; cancelling, lines and helper threads are the root's. The random generator is copied, not
   shared: what the child draws does not depend on how threads interleave. */
lt_ctx *lt_ctx_child(lt_ctx *parent) {
  lt_ctx *c = ctx_make(parent->registry, &parent->memory.allocator);
  if (c == NULL) return NULL;
  c->root = parent->root;
  c->cancel = parent->cancel;
  c->lines = parent->lines;
  c->helpers = parent->helpers;
  c->rng = parent->rng;
  c->policy = parent->policy;
  c->log = parent->log;
  c->log_ud = parent->log_ud;
  return c;
}

void lt_ctx_release(lt_ctx *c) {
  if (c == NULL) return;
  bool is_root = c->root == c;
  /* Helper threads first, as they use what follows; then temporaries, whose storages go back to
     pools that the slots own; then devices are waited for. Slots end in the reverse order of their
     numbers: later ones rest on earlier ones. */
  if (is_root && c->helpers != NULL) lt_quiesce(c);
  lt_frame_close(c, 0, 0, NULL);
  if (c->settle != NULL) c->settle(c);
  for (int i = LT_SLOT_COUNT - 1; i >= 0; i--)
    if (c->slot[i] != NULL && c->slot_drop[i] != NULL) c->slot_drop[i](c, c->slot[i]);
  if (is_root) {
    lt_load_free(c);
    lt_helpers_free(c, c->helpers);
    lt_lines_free(c, c->lines);
  }
  lt_free(c, c->frame.items, (size_t)c->frame.capacity * sizeof *c->frame.items);
  lt_memory_trim(c);
  lt_allocator allocator = c->memory.allocator;
  allocator.fn(allocator.ud, c, sizeof *c, 0);
}

void lt_cancel(lt_ctx *c, bool on) { atomic_store(c->cancel, on); }

lt_frame lt_frame_open(lt_ctx *c) { return c->frame.count; }

/* Takes the reference in any case: without memory for the list the object is released, so that
   callers need no second path. The list never shrinks; a step reaches its full length once. */
bool lt_frame_add(lt_ctx *c, void *object) {
  if (c->frame.count == c->frame.capacity) {
    int64_t capacity = c->frame.capacity == 0 ? 64 : 2 * c->frame.capacity;
    lt_object **items = lt_realloc(c, c->frame.items, (size_t)c->frame.capacity * sizeof *items,
                                   (size_t)capacity * sizeof *items);
    if (items == NULL) {
      lt_release(c, object);
      return false;
    }
    c->frame.items = items;
    c->frame.capacity = capacity;
  }
  c->frame.items[c->frame.count++] = object;
  return true;
}

/* What is kept gets a reference before the others lose theirs: it may be among them, or a view of
   one. */
void lt_frame_close(lt_ctx *c, lt_frame frame, int n_keep, void *const *keep) {
  for (int i = 0; i < n_keep; i++) lt_retain(keep[i]);
  while (c->frame.count > frame) lt_release(c, c->frame.items[--c->frame.count]);
}
