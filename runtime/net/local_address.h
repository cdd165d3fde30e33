/* runtime/net/local_address.h: whether a name is one of this host, and listening there. */
#ifndef LT_NET_LOCAL_ADDRESS_H
#define LT_NET_LOCAL_ADDRESS_H

#include "base/ctx.h"

/* A socket that listens on the port (0: any, which *port gets) of this host, on all of its
   addresses unless `host` is 127.0.0.1 or ::1. -1 with LT_EIO, and -1 without a failure when `host`
   is not this one, or another process has the port. */
int lt_listen_at(lt_ctx *c, const char *op, const char *host, int *port);

#endif
