/* runtime/comm/atomic_copy.h: copies of records that another thread may read meanwhile. */
#ifndef LT_COMM_ATOMIC_COPY_H
#define LT_COMM_ATOMIC_COPY_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t __attribute__((may_alias)) lt_word;

/* `bytes` is a multiple of 8. Each word is stored after what was stored before (release) and read
   before what is read after (acquire): who sees a new word also sees the number before it. */
static inline void lt_string_table_put(void *shared, const void *from, size_t bytes) {
  lt_word *to = shared;
  const lt_word *words = from;
  for (size_t i = 0; i < bytes / 8; i++) __atomic_store_n(&to[i], words[i], __ATOMIC_RELEASE);
}

static inline void lt_string_table_get(void *to, const void *shared, size_t bytes) {
  lt_word *words = to;
  const lt_word *from = shared;
  for (size_t i = 0; i < bytes / 8; i++) words[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
}

#endif
