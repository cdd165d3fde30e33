/* runtime/io/byte_order.h: numbers of files with the other byte order. */
#ifndef LT_IO_BYTE_ORDER_H
#define LT_IO_BYTE_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of each of n items, the last first. */
static inline void lt_swap_bytes(unsigned char *p, int64_t n, size_t item) {
  for (; n > 0; n--, p += item)
    for (size_t i = 0; i < item / 2; i++) {
      unsigned char b = p[i];
      p[i] = p[item - 1 - i];
      p[item - 1 - i] = b;
    }
}

#endif
