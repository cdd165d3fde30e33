/* runtime/net/line_buffer.c: buffers of lines (line_buffer.h). */
#include "net/line_buffer.h"

#include <string.h>

void lt_line_buffer_free(lt_ctx *c, lt_line_buffer *b) {
  lt_free(c, b->data, b->capacity);
  *b = (lt_line_buffer){0};
}

char *lt_line_buffer_reserve(lt_ctx *c, lt_line_buffer *b, size_t more) {
  if (b->start > 0 && b->capacity - b->size < more) {
    memmove(b->data, b->data + b->start, b->size - b->start);
    b->size -= b->start;
    b->start = 0;
  }
  if (b->capacity - b->size < more) {
    size_t capacity = 2 * b->capacity > b->size + more ? 2 * b->capacity : b->size + more;
    char *data = b->data == NULL ? lt_alloc(c, capacity)
                                 : lt_realloc(c, b->data, b->capacity, capacity);
    if (data == NULL) return NULL;
    b->data = data;
    b->capacity = capacity;
  }
  return b->data + b->size;
}

bool lt_line_buffer_add(lt_ctx *c, lt_line_buffer *b, const void *bytes, size_t n) {
  char *end = lt_line_buffer_reserve(c, b, n);
  if (end == NULL) return false;
  if (n > 0) memcpy(end, bytes, n);
  b->size += n;
  return true;
}

const char *lt_line_buffer_take(lt_line_buffer *b, size_t *n) {
  size_t left = lt_line_buffer_left(b);
  if (left == 0) return NULL;
  const char *line = b->data + b->start;
  const char *end = memchr(line + b->scanned, '\n', left - b->scanned);
  b->scanned = end == NULL ? left : 0;
  if (end == NULL) return NULL;
  *n = (size_t)(end - line);
  b->start += *n + 1;
  if (b->start == b->size) b->start = b->size = 0; /* the line itself stays where it is */
  return line;
}
