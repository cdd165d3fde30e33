/* runtime/net/line_link.c: sending and receiving lines over a socket (line_link.h). */
#include "net/line_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16 };

/* Lines are requests and answers: waiting to fill a packet would only delay them. */
void lt_line_link_open(lt_line_link *l, int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  *l = (lt_line_link){.fd = fd};
}

void lt_line_link_close(lt_ctx *c, lt_line_link *l) {
  if (l->fd >= 0) close(l->fd);
  lt_line_buffer_free(c, &l->in);
  lt_line_buffer_free(c, &l->out);
  l->fd = -1;
}

static bool would_block(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

bool lt_line_link_read(lt_ctx *c, lt_line_link *l, size_t most) {
  if (lt_line_buffer_left(&l->in) > most) return false;
  char *end = lt_line_buffer_reserve(c, &l->in, READ_BYTES);
  if (end == NULL) return false;
  ssize_t n = recv(l->fd, end, READ_BYTES, 0);
  if (n < 0) return would_block();
  l->in.size += (size_t)n;
  return n > 0;
}

bool lt_line_link_flush(lt_line_link *l) {
  lt_line_buffer *b = &l->out;
  while (b->start < b->size) {
    ssize_t n = send(l->fd, b->data + b->start, b->size - b->start, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return would_block();
    b->start += (size_t)n;
  }
  b->start = b->size = 0;
  return true;
}

bool lt_line_link_send(lt_ctx *c, lt_line_link *l, const char *line, size_t n, size_t most) {
  if (lt_line_buffer_left(&l->out) + n > most) return false;
  return lt_line_buffer_add(c, &l->out, line, n) && lt_line_buffer_add(c, &l->out, "\n", 1) &&
         lt_line_link_flush(l);
}
