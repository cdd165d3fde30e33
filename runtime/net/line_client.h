/* runtime/net/line_client.h: a client of a server of lines (line_server.h). */
#ifndef LT_NET_LINE_CLIENT_H
#define LT_NET_LINE_CLIENT_H

#include "base/ctx.h"

typedef struct lt_line_client lt_line_client;

/* Connect within `seconds` to one of the addresses of a host; NULL with LT_EIO. Resolving its name
   may take longer. */
lt_line_client *lt_line_client_open(lt_ctx *c, const char *op, const char *host, int port,
                                    double seconds);
void lt_line_client_close(lt_ctx *c, lt_line_client *k);

/* Send a line within `seconds`; false with LT_EIO where that fails. */
bool lt_line_client_send(lt_ctx *c, lt_line_client *k, const char *line, size_t n, double seconds);

/* The next line, valid until the next call; NULL after `seconds`, or at a signal, and with LT_EIO
   where the connection has ended. */
const char *lt_line_client_receive(lt_ctx *c, lt_line_client *k, double seconds, size_t *n);

#endif
