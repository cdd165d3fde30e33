/* runtime/apps/microhttpd.h: libmicrohttpd, opened when a server is first wanted.

   What we call of it is declared here, so that a build needs neither its headers nor it, and a
   start of the program pays nothing. spec/c/net_test.c compares the numbers with the header where
   that is installed. */
#ifndef LT_APPS_MICROHTTPD_H
#define LT_APPS_MICROHTTPD_H

#include <sys/types.h>

#include "base/ctx.h"

/* enum MHD_FLAG */
enum { LT_MHD_EPOLL = 512, LT_MHD_SUSPEND = 8192 | 1024 };
/* enum MHD_OPTION */
enum {
  LT_MHD_END = 0, LT_MHD_MEMORY_LIMIT = 1, LT_MHD_CONNECTIONS = 2, LT_MHD_COMPLETED = 4,
  LT_MHD_URI_LOG = 7, LT_MHD_LISTEN_SOCKET = 12, LT_MHD_NOTIFY_CONNECTION = 27, LT_MHD_STRICT = 29
};
enum { LT_MHD_YES = 1, LT_MHD_STARTED = 0, LT_MHD_CLOSED = 1 };
enum { LT_MHD_HEADERS = 1 };                             /* enum MHD_ValueKind */
enum { LT_MHD_MUST_COPY = 2 };                           /* enum MHD_ResponseMemoryMode */
enum { LT_MHD_OF_FD = 6, LT_MHD_OF_CONTEXT = 7 };        /* enum MHD_ConnectionInfoType */
enum { LT_MHD_OF_EPOLL = 3 };                            /* enum MHD_DaemonInfoType */
#define LT_MHD_UNKNOWN_SIZE UINT64_MAX
enum { LT_MHD_STREAM_ENDS = -1, LT_MHD_STREAM_FAILS = -2 };

typedef struct lt_mhd_daemon lt_mhd_daemon;
typedef struct lt_mhd_connection lt_mhd_connection;
typedef struct lt_mhd_response lt_mhd_response;

typedef int (*lt_mhd_accept_fn)(void *ud, const void *address, unsigned length);
typedef int (*lt_mhd_request_fn)(void *ud, lt_mhd_connection *, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **of_request);
typedef int (*lt_mhd_value_fn)(void *ud, int kind, const char *name, const char *value);
typedef ssize_t (*lt_mhd_reader_fn)(void *ud, uint64_t position, char *out, size_t n);

typedef struct lt_microhttpd {
  lt_mhd_daemon *(*start)(unsigned flags, uint16_t port, lt_mhd_accept_fn, void *accept_ud,
                          lt_mhd_request_fn, void *request_ud, ...);
  void (*stop)(lt_mhd_daemon *);
  int (*run)(lt_mhd_daemon *);
  int (*timeout)(lt_mhd_daemon *, unsigned long long *milliseconds);
  const void *(*daemon_info)(lt_mhd_daemon *, int kind, ...);
  const void *(*connection_info)(lt_mhd_connection *, int kind, ...);
  int (*values)(lt_mhd_connection *, int kind, lt_mhd_value_fn, void *ud);
  void (*suspend)(lt_mhd_connection *);
  void (*resume)(lt_mhd_connection *);
  lt_mhd_response *(*from_buffer)(size_t n, void *data, int mode);
  lt_mhd_response *(*from_reader)(uint64_t size, size_t block, lt_mhd_reader_fn, void *ud,
                                  void (*drop)(void *ud));
  int (*header)(lt_mhd_response *, const char *name, const char *value);
  int (*queue)(lt_mhd_connection *, unsigned status, lt_mhd_response *);
  void (*release)(lt_mhd_response *);
} lt_microhttpd;

/* NULL, with a failure that says what to install, where the library is not. */
const lt_microhttpd *lt_microhttpd_open(lt_ctx *c, const char *op);

#endif
