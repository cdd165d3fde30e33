/* runtime/base/memory.h: allocation of structs: the host's allocator, and free lists of small
   blocks. */
#ifndef LT_BASE_MEMORY_H
#define LT_BASE_MEMORY_H

#include "ltrain/tensor.h"

/* As lua_Alloc: new_size 0 frees; NULL when there is no memory. Called from helper threads too. */
typedef struct lt_allocator {
  void *(*fn)(void *ud, void *ptr, size_t old_size, size_t new_size);
  void *ud;
} lt_allocator;

enum { LT_SMALL_STEP = 16, LT_SMALL_CLASSES = 64 }; /* free lists for blocks up to 1 KiB */

typedef struct lt_memory {
  lt_allocator allocator;
  void *free_list[LT_SMALL_CLASSES];
  int64_t live_bytes;
} lt_memory;

/* `size` bytes, zeroed; NULL with LT_EMEMORY in the ctx. lt_free needs the same size back. */
void *lt_alloc(lt_ctx *c, size_t size);
void *lt_realloc(lt_ctx *c, void *ptr, size_t old_size, size_t new_size);
void lt_free(lt_ctx *c, void *ptr, size_t size);

/* Give the free lists back to the allocator. */
void lt_memory_trim(lt_ctx *c);

#endif
