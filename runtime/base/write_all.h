/* runtime/base/write_all.h: writes to a file descriptor until all is written: for the core and for
   backends, which link nothing of it. */
#ifndef LT_BASE_WRITE_ALL_H
#define LT_BASE_WRITE_ALL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* False: errno says why not. */
static inline bool lt_write_all(int file, const void *from, size_t size) {
  const char *at = from;
  while (size > 0) {
    ssize_t n = write(file, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

#endif
