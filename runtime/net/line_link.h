/* runtime/net/line_link.h: one end of a connection that carries lines of text both ways. */
#ifndef LT_NET_LINE_LINK_H
#define LT_NET_LINE_LINK_H

#include "net/line_buffer.h"

typedef struct lt_line_link {
  int fd; /* -1: closed */
  lt_line_buffer in, out;
} lt_line_link;

/* Take over a connected socket, which does not block. */
void lt_line_link_open(lt_line_link *l, int fd);
void lt_line_link_close(lt_ctx *c, lt_line_link *l);

/* Read once what has come; false when the connection has ended, or has sent over `most` bytes
   without a line break. */
bool lt_line_link_read(lt_ctx *c, lt_line_link *l, size_t most);

/* Send a line; what the other end does not take now is kept, at most `most` bytes, for
   lt_line_link_flush. False when the connection has ended, or reads too slowly. */
bool lt_line_link_send(lt_ctx *c, lt_line_link *l, const char *line, size_t n, size_t most);
bool lt_line_link_flush(lt_line_link *l);

#endif
