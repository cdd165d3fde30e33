/* runtime/net/line_buffer.h: bytes that come and go in pieces, and the lines of text among them. */
#ifndef LT_NET_LINE_BUFFER_H
#define LT_NET_LINE_BUFFER_H

#include "base/ctx.h"

/* Bytes from `start` to `size`; the first `scanned` of them have no line break. */
typedef struct lt_line_buffer {
  char *data;
  size_t start, size, capacity, scanned;
} lt_line_buffer;

void lt_line_buffer_free(lt_ctx *c, lt_line_buffer *b);

/* Room for `more` bytes behind its end, which it returns; NULL with LT_EMEMORY. */
char *lt_line_buffer_reserve(lt_ctx *c, lt_line_buffer *b, size_t more);

bool lt_line_buffer_add(lt_ctx *c, lt_line_buffer *b, const void *bytes, size_t n);

/* Take the next line, without its break; NULL while it is not whole. Valid until the next call. */
const char *lt_line_buffer_take(lt_line_buffer *b, size_t *n);

static inline size_t lt_line_buffer_left(const lt_line_buffer *b) { return b->size - b->start; }

#endif
