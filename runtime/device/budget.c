/* runtime/device/budget.c: how much memory of all devices a ctx may hold, and memory for its pools
   within that. */
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

void *lt_pool_ask(lt_pool *p, size_t bytes) {
  /* Added first, then compared: two threads that ask at once cannot both pass by the last free
     bytes. */
  int64_t reserved = atomic_fetch_add(&p->budget->reserved, (int64_t)bytes) + (int64_t)bytes;
  int64_t limit = atomic_load(&p->budget->limit);
  void *data = limit > 0 && reserved > limit ? NULL : p->ops->alloc(p->device.index, bytes);
  if (data == NULL) {
    atomic_fetch_sub(&p->budget->reserved, (int64_t)bytes);
    return NULL;
  }
  p->stats.system_calls++;
  return data;
}

void lt_pool_give_back(lt_pool *p, void *data, size_t bytes) {
  p->ops->free(p->device.index, data, bytes);
  atomic_fetch_sub(&p->budget->reserved, (int64_t)bytes);
}

void *lt_pool_raw(lt_pool *p, void *ptr, size_t old_size, size_t new_size) {
  return p->allocator.fn(p->allocator.ud, ptr, old_size, new_size);
}
