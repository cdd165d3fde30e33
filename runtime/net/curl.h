/* runtime/net/curl.h: what we use of libcurl, which is opened when it is first needed. */
#ifndef LT_NET_CURL_H
#define LT_NET_CURL_H

#include "base/ctx.h"

/* Numbers of libcurl's interface, which never change. */
enum {
  LT_CURL_WRITE_DATA = 10001,
  LT_CURL_URL = 10002,
  LT_CURL_PROXY = 10004,
  LT_CURL_ERROR_TEXT = 10010,
  LT_CURL_HEADERS = 10023,
  LT_CURL_CERT = 10025,
  LT_CURL_CA = 10065,
  LT_CURL_KEY = 10087,
  LT_CURL_COPY_BODY = 10165,
  LT_CURL_WRITE_FUNCTION = 20011,
  LT_CURL_BODY_SIZE = 30120,
  LT_CURL_HTTP_VERSION = 84,
  LT_CURL_NO_SIGNAL = 99,
  LT_CURL_MS = 155,
  LT_CURL_CONNECT_MS = 156,
  LT_CURL_PROTOCOLS = 181,
  LT_CURL_KEEP_ALIVE = 213,
  LT_CURL_STATUS = 0x200002,
  LT_CURL_HTTP_1_1 = 2,
  LT_CURL_HTTP_AND_HTTPS = 3,
  LT_CURL_DONE = 1,
  LT_CURL_ERROR_BYTES = 256,
  LT_CURL_GLOBAL_ALL = 3,
};

/* CURLMsg */
typedef struct lt_curl_message {
  int kind;
  void *easy;
  union {
    void *other;
    int result;
  } data;
} lt_curl_message;

typedef struct lt_curl {
  void *(*easy_init)(void);
  int (*easy_setopt)(void *easy, int option, ...);
  int (*easy_perform)(void *easy);
  int (*easy_getinfo)(void *easy, int info, ...);
  void (*easy_cleanup)(void *easy);
  const char *(*easy_strerror)(int result);
  void *(*multi_init)(void);
  int (*multi_add)(void *multi, void *easy);
  int (*multi_remove)(void *multi, void *easy);
  int (*multi_perform)(void *multi, int *running);
  int (*multi_poll)(void *multi, void *fds, unsigned n, int timeout_ms, int *ready);
  lt_curl_message *(*multi_read)(void *multi, int *left);
  int (*multi_cleanup)(void *multi);
  void *(*slist_append)(void *list, const char *text);
  void (*slist_free)(void *list);
} lt_curl;

/* NULL with LT_EDEVICE where libcurl is not installed. */
const lt_curl *lt_curl_open(lt_ctx *c, const char *op);

#endif
