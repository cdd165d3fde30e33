/* runtime/base/memory.c: free lists of small blocks over the host's allocator.

   Segregated free lists, one for each multiple of LT_SMALL_STEP (P. Wilson and others, Dynamic
   Storage Allocation: A Survey, 1995): an operation makes and frees some ten structs of a few
   sizes. Callers know the sizes, so that blocks have no headers. */
#include "base/memory.h"

#include <string.h>

#include "base/ctx.h"

/* With AddressSanitizer what is freed goes back to the allocator, which detects its later use. */
#ifdef __SANITIZE_ADDRESS__
enum { KEEPS_FREED = 0 };
#else
enum { KEEPS_FREED = 1 };
#endif

static size_t class_of(size_t size) { return (size + LT_SMALL_STEP - 1) / LT_SMALL_STEP; }

static void *raw(lt_ctx *c, void *ptr, size_t old_size, size_t new_size) {
  return c->memory.allocator.fn(c->memory.allocator.ud, ptr, old_size, new_size);
}

static void *no_memory(lt_ctx *c, size_t size) {
  lt_fail(c, LT_EMEMORY, "%s%sout of memory: %zu bytes requested, %lld bytes of structs in use",
          lt_op_name(c), lt_op_colon(c), size, (long long)c->memory.live_bytes);
  return NULL;
}

void *lt_alloc(lt_ctx *c, size_t size) {
  if (size == 0) size = 1;
  size_t k = class_of(size);
  void *block;
  if (k < LT_SMALL_CLASSES) {
    size = k * LT_SMALL_STEP;
    block = c->memory.free_list[k];
    if (block != NULL)
      memcpy(&c->memory.free_list[k], block, sizeof(void *));
    else
      block = raw(c, NULL, 0, size);
  } else {
    block = raw(c, NULL, 0, size);
  }
  if (block == NULL) return no_memory(c, size);
  c->memory.live_bytes += (int64_t)size;
  return memset(block, 0, size);
}

void lt_free(lt_ctx *c, void *ptr, size_t size) {
  if (ptr == NULL) return;
  if (size == 0) size = 1;
  size_t k = class_of(size);
  if (k < LT_SMALL_CLASSES) size = k * LT_SMALL_STEP;
  c->memory.live_bytes -= (int64_t)size;
  if (KEEPS_FREED && k < LT_SMALL_CLASSES) {
    memcpy(ptr, &c->memory.free_list[k], sizeof(void *));
    c->memory.free_list[k] = ptr;
    return;
  }
  raw(c, ptr, size, 0);
}

void *lt_realloc(lt_ctx *c, void *ptr, size_t old_size, size_t new_size) {
  void *block = lt_alloc(c, new_size);
  if (block == NULL) return NULL;
  if (ptr != NULL) memcpy(block, ptr, old_size < new_size ? old_size : new_size);
  lt_free(c, ptr, old_size);
  return block;
}

void lt_memory_trim(lt_ctx *c) {
  for (size_t k = 0; k < LT_SMALL_CLASSES; k++) {
    void *block;
    while ((block = c->memory.free_list[k]) != NULL) {
      memcpy(&c->memory.free_list[k], block, sizeof(void *));
      raw(c, block, k * LT_SMALL_STEP, 0);
    }
  }
}
