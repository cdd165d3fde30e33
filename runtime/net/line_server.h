/* runtime/net/line_server.h: a server of lines of text over TCP, for thousands of clients.

   One thread does all: lt_line_server_wait serves sockets until a client has sent a line or has
   gone, and the caller answers by lt_line_server_send. No call waits for a client: what one does
   not read is kept for it up to a limit, beyond which it is cut off. */
#ifndef LT_NET_LINE_SERVER_H
#define LT_NET_LINE_SERVER_H

#include "base/ctx.h"

typedef struct lt_line_server lt_line_server;

typedef struct lt_line_limits {
  size_t line_bytes;   /* of a line that a client sends */
  size_t unread_bytes; /* that may wait for a client that does not read */
} lt_line_limits;

typedef struct lt_line_event {
  int64_t client;   /* its number, never used again */
  const char *line; /* without its break, valid until the next call; NULL: the client has gone */
  size_t size;
} lt_line_event;

/* Listen on the port (0: any) of this host, on all of its addresses unless `host` is the
   loopback's. NULL with LT_EIO, and NULL without a failure when `host` is not this one, or another
   process has the port. */
lt_line_server *lt_line_server_open(lt_ctx *c, const char *op, const char *host, int port,
                                    lt_line_limits limits);
void lt_line_server_close(lt_ctx *c, lt_line_server *s);
int lt_line_server_port(const lt_line_server *s);

/* Serve until there is an event; false after `seconds`, or at a signal. */
bool lt_line_server_wait(lt_ctx *c, lt_line_server *s, double seconds, lt_line_event *event);

/* False when the client has gone, or is cut off now. */
bool lt_line_server_send(lt_ctx *c, lt_line_server *s, int64_t client, const char *line, size_t n);

#endif
