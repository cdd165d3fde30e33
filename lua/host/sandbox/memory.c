/* lua/host/sandbox/memory.c: the allocator of a host's state, of Lua and of the library's structs
   alike, with a memory limit.

   One counter for all memory of a state, so that a script cannot choose where to hide it. Freeing
   and shrinking never fail. The cap counts what was asked for, not malloc's overhead. */
#include <stdlib.h>

#include "bind/core/garbage_collection.h"
#include "device/device.h"
#include "host/sandbox/budget.h"

static void *from_malloc(void *ptr, size_t new_size) {
  if (new_size != 0) return realloc(ptr, new_size);
  free(ptr);
  return NULL;
}

/* Several threads may be in it. The counter is raised before memory is asked for: two threads that
   ask at once cannot both pass a cap that has space for one. */
static void *ask(ltrain *l, void *ptr, size_t old_size, size_t new_size) {
  size_t grown = new_size > old_size ? new_size - old_size : 0;
  size_t before = atomic_fetch_add(&l->used, grown);
  bool beyond = l->config.memory_cap != 0 && before + grown > l->config.memory_cap;
  bool refused = grown != 0 && (beyond || !lt_host_afford(l, grown));
  void *fresh = refused                   ? NULL
                : l->config.alloc != NULL ? l->config.alloc(l->config.ud, ptr, old_size, new_size)
                                          : from_malloc(ptr, new_size);
  if (fresh == NULL && new_size != 0)
    atomic_fetch_sub(&l->used, grown);
  else if (new_size < old_size)
    atomic_fetch_sub(&l->used, old_size - new_size);
  return fresh;
}

/* When memory is refused, caches are freed and it is asked once more. Lua itself runs an emergency
   collection after a NULL and tries again; finalizers do not run in that, which lt_collect_soon
   makes up for. */
void *lt_host_allocate(void *ud, void *ptr, size_t old_size, size_t new_size) {
  ltrain *l = ud;
  if (ptr == NULL) old_size = 0; /* Lua passes there what it is for */
  void *fresh = ask(l, ptr, old_size, new_size);
  if (fresh != NULL || new_size == 0) return fresh;
  /* The free lists of structs are emptied first; they belong to the state's thread. */
  if (!pthread_equal(l->thread, pthread_self())) return NULL;
  l->starved = true;
  if (l->b == NULL || l->b->c == NULL) return NULL;
  lt_collect_soon(l->b);
  lt_memory_trim(l->b->c);
  return ask(l, ptr, old_size, new_size);
}

bool lt_host_is_full(const ltrain *l) {
  return l->config.memory_cap > 0 && atomic_load(&l->used) > l->config.memory_cap / 2;
}

/* Called between calls of the host, where a full collection is safe. A state that is still more
   than half full stays `starved`, and is cleaned again after the next call. */
void lt_host_recover(ltrain *l) {
  if (!l->starved) return;
  lua_gc(l->L, LUA_GCCOLLECT);
  lua_gc(l->L, LUA_GCCOLLECT); /* what finalizers of the first round released */
  lt_memory_trim(l->b->c);
  lt_device_empty_caches(l->b->c);
  l->starved = lt_host_is_full(l);
}
