/* lua/host/host_tensors.c: the tensors that a host program has, by address. */
#include "host/host_tensors.h"

#include <string.h>

#include "base/object.h"
#include "host/state.h"

enum { FIRST_SIZE = 16 };

static size_t home_of(const lt_host_tensor_table *all, const lt_tensor *t) {
  uint64_t mixed = (uint64_t)(uintptr_t)t * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(mixed >> 32) & (all->size - 1);
}

/* The tensor's slot, or the free one where it belongs; NULL: there are none at all. */
static lt_host_tensor *slot_of(const lt_host_tensor_table *all, const lt_tensor *t) {
  if (all->size == 0) return NULL;
  size_t at = home_of(all, t);
  while (all->slots[at].t != NULL && all->slots[at].t != t) at = (at + 1) & (all->size - 1);
  return &all->slots[at];
}

bool lt_host_tensors_reserve(ltrain *l, int n) {
  lt_host_tensor_table *all = &l->host_tensors,
                       fresh = {.size = all->size == 0 ? FIRST_SIZE : all->size};
  while (fresh.size < 2 * (all->used + (size_t)n)) fresh.size *= 2;
  if (fresh.size == all->size) return true;
  fresh.slots = lt_host_allocate(l, NULL, 0, fresh.size * sizeof *fresh.slots);
  if (fresh.slots == NULL) return false;
  memset(fresh.slots, 0, fresh.size * sizeof *fresh.slots);
  fresh.used = all->used;
  for (size_t k = 0; k < all->size; k++)
    if (all->slots[k].t != NULL) *slot_of(&fresh, all->slots[k].t) = all->slots[k];
  if (all->slots != NULL)
    lt_host_allocate(l, all->slots, all->size * sizeof *all->slots, 0);
  *all = fresh;
  return true;
}

void lt_host_tensors_add(ltrain *l, lt_tensor *t, int how) {
  lt_host_tensor *slot = slot_of(&l->host_tensors, t);
  if (slot->t == NULL) {
    *slot = (lt_host_tensor){.t = t};
    l->host_tensors.used++;
  }
  ++*(how == LT_OWNED ? &slot->owned : &slot->borrowed);
}

/* Free a slot; those behind it that are not at home move up. */
static void remove_slot(lt_host_tensor_table *all, size_t at) {
  size_t mask = all->size - 1;
  all->used--;
  for (size_t next = (at + 1) & mask; all->slots[next].t != NULL; next = (next + 1) & mask) {
    size_t home = home_of(all, all->slots[next].t);
    if (((next - home) & mask) < ((next - at) & mask)) continue; /* its home is behind `at` */
    all->slots[at] = all->slots[next];
    at = next;
  }
  all->slots[at] = (lt_host_tensor){0};
}

bool lt_host_tensors_remove(ltrain *l, const lt_tensor *t, int how) {
  lt_host_tensor *slot = slot_of(&l->host_tensors, t);
  if (slot == NULL || slot->t == NULL) return false;
  int64_t *n = how == LT_OWNED ? &slot->owned : &slot->borrowed;
  if (*n == 0) return false;
  --*n;
  if (slot->owned == 0 && slot->borrowed == 0)
    remove_slot(&l->host_tensors, (size_t)(slot - l->host_tensors.slots));
  return true;
}

const char *lt_host_tensors_fault(const ltrain *l, const lt_tensor *t) {
  const lt_host_tensor *slot = slot_of(&l->host_tensors, t);
  if (t == NULL) return "NULL";
  return slot != NULL && slot->t != NULL ? NULL : "of another state, or was released";
}

/* Slots that move up while one is freed come to this one or to a later one. */
void lt_host_tensors_release(ltrain *l) {
  for (size_t k = 0; k < l->host_tensors.size; k++) {
    while (l->host_tensors.slots[k].t != NULL) {
      lt_tensor *t = l->host_tensors.slots[k].t;
      int64_t owned = l->host_tensors.slots[k].owned;
      remove_slot(&l->host_tensors, k);
      for (; owned > 0; owned--) lt_release(l->b->c, t); /* `drop` may come */
    }
  }
  if (l->host_tensors.slots != NULL)
    lt_host_allocate(l, l->host_tensors.slots, l->host_tensors.size * sizeof *l->host_tensors.slots,
                     0);
  l->host_tensors = (lt_host_tensor_table){0};
}
