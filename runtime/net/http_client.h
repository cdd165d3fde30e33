/* runtime/net/http_client.h: a client of HTTP and HTTPS (libcurl): requests with a body, and
   answers without an end that are read line by line. Connections are kept between requests. */
#ifndef LT_NET_HTTP_CLIENT_H
#define LT_NET_HTTP_CLIENT_H

#include "base/ctx.h"

typedef struct lt_http_client lt_http_client;
typedef struct lt_http_reader lt_http_reader;

/* Each is copied; NULL or "": none. */
typedef struct lt_http_settings {
  const char *ca, *cert, *key; /* files in PEM: of whom the server's certificate is, and our own */
  double connect_seconds;
} lt_http_settings;

/* `fields`: lines of the head ("Authorization: ..."), with a NULL at their end. */
typedef struct lt_http_post {
  const char *url, *body;
  size_t size;
  const char *const *fields;
} lt_http_post;

/* NULL with LT_EDEVICE where libcurl is not installed. */
lt_http_client *lt_http_client_open(lt_ctx *c, const char *op, const lt_http_settings *settings);
void lt_http_client_close(lt_ctx *c, lt_http_client *h);

/* POST: the status of the answer and its text, valid until the next request; with LT_EIO, when
   there was none within `seconds`, libcurl's number of what went wrong (CURLcode), negative. */
int lt_http_client_post(lt_ctx *c, lt_http_client *h, const lt_http_post *post, double seconds,
                        const char **text, size_t *n);

/* The same with an answer that is read while it comes. NULL without memory; whether it can be
   reached is found out by reading. The client must stay open. */
lt_http_reader *lt_http_reader_open(lt_ctx *c, lt_http_client *h, const lt_http_post *post);
void lt_http_reader_close(lt_ctx *c, lt_http_reader *r);

/* The next line, valid until the next call; NULL after `seconds`, and with LT_EIO where the answer
   has ended. */
const char *lt_http_reader_read(lt_ctx *c, lt_http_reader *r, double seconds, size_t *n);

#endif
