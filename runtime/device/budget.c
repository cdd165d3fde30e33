/* runtime/device/budget.c: how much memory of all devices and of each a ctx may hold, and memory
   for its pools within that. */
#include <stdatomic.h>
#include <string.h>

#include "device/pool.h"

lt_budget *lt_budget_new(const lt_allocator *allocator) {
  lt_budget *g = allocator->fn(allocator->ud, NULL, 0, sizeof *g);
  if (g == NULL) return NULL;
  memset(g, 0, sizeof *g);
  g->allocator = *allocator;
  atomic_init(&g->users, 1);
  return g;
}

lt_budget *lt_budget_retain(lt_budget *g) {
  atomic_fetch_add_explicit(&g->users, 1, memory_order_relaxed);
  return g;
}

void lt_budget_release(lt_budget *g) {
  if (g == NULL || atomic_fetch_sub_explicit(&g->users, 1, memory_order_acq_rel) != 1) return;
  lt_allocator allocator = g->allocator;
  allocator.fn(allocator.ud, g, sizeof *g, 0);
}

static lt_allowance *of_device(const lt_pool *p) {
  return &p->budget->device[p->device.kind][p->device.index];
}

int64_t lt_budget_limit(const lt_pool *p) {
  int64_t limit = atomic_load(&of_device(p)->limit);
  return limit > 0 ? limit : atomic_load(&p->budget->all.limit);
}

/* Added first, then compared: two threads that ask at once cannot both pass by the last free
   bytes. */
static bool reserve(lt_allowance *a, size_t bytes) {
  int64_t reserved = atomic_fetch_add(&a->reserved, (int64_t)bytes) + (int64_t)bytes;
  int64_t limit = atomic_load(&a->limit);
  return limit <= 0 || reserved <= limit;
}

static void unreserve(lt_pool *p, size_t bytes) {
  atomic_fetch_sub(&p->budget->all.reserved, (int64_t)bytes);
  atomic_fetch_sub(&of_device(p)->reserved, (int64_t)bytes);
}

void *lt_pool_ask(lt_pool *p, size_t bytes) {
  bool all = reserve(&p->budget->all, bytes), own = reserve(of_device(p), bytes);
  void *data = all && own ? p->ops->alloc(p->device.index, bytes) : NULL;
  if (data == NULL) {
    unreserve(p, bytes);
    return NULL;
  }
  p->stats.system_calls++;
  return data;
}

void lt_pool_give_back(lt_pool *p, void *data, size_t bytes) {
  p->ops->free(p->device.index, data, bytes);
  unreserve(p, bytes);
}

void *lt_pool_raw(lt_pool *p, void *ptr, size_t old_size, size_t new_size) {
  return p->allocator.fn(p->allocator.ud, ptr, old_size, new_size);
}
