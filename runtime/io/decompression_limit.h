/* runtime/io/decompression_limit.h: limits on the size of decompressed files.

   No stream of deflate yields more than 1032 bytes for one, but a file of a megabyte could take a
   gigabyte. What is trained on is compressed 2 to 20 times, so that a file may become large, or far
   larger than it is, but not both. */
#ifndef LT_IO_DECOMPRESSION_LIMIT_H
#define LT_IO_DECOMPRESSION_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum { LT_DEFLATE_RATIO = 1032, LT_DECOMPRESSION_RATIO = 100, LT_DECOMPRESSION_FREE = 256 << 20 };

static inline bool lt_decompression_fits(int64_t packed, int64_t size) {
  return size <= LT_DECOMPRESSION_FREE || size / LT_DECOMPRESSION_RATIO <= packed;
}

#endif
