/* lua/bind/net/net.h: declarations that the files of `c.net` share. */
#ifndef LT_BIND_NET_NET_H
#define LT_BIND_NET_NET_H

#include "bind/core/state.h"

/* net.http{ca =, cert =, key =, connect_seconds =} -> a client of HTTP (http.c) */
int lt_net_http(lua_State *L);
/* The results of a call that reads a line (http.c): the line; false where it is NULL; nil and a
   reason after a failure. */
int lt_net_line(lua_State *L, lt_bind *b, const char *line, size_t n);
void lt_bind_net_http(lua_State *L, lt_bind *b);

#endif
