/* runtime/apps/http.h: a small HTTP server that listens on 127.0.0.1 alone.

   One thread does all: lt_http_wait serves clients until one of them has asked something, the
   caller answers, or begins a stream and sends to it as it likes. No call waits for a client: what
   one does not read is kept for it, up to a limit, and one that is slow to ask or to read is cut
   off. What is sent here is shown to who has connected: who that may be is the caller's affair. */
#ifndef LT_APPS_HTTP_H
#define LT_APPS_HTTP_H

#include "base/ctx.h"

typedef struct lt_http lt_http;

typedef struct lt_http_field {
  const char *name, *value;
} lt_http_field;

enum { LT_HTTP_FIELDS = 64 };

/* Valid until the request is answered. Targets are as they came: nothing is decoded. */
typedef struct lt_http_request {
  int64_t id;
  const char *method, *target, *version;
  int n_fields;
  lt_http_field fields[LT_HTTP_FIELDS];
} lt_http_request;

typedef struct lt_http_options {
  int port;            /* 0: any that is free */
  int connections;     /* at a time: beyond these who has asked nothing yet is cut off */
  double ask_seconds;  /* within which a request must have come whole */
  double read_seconds; /* within which an answer must have been read */
  size_t head_bytes;   /* of a request and its fields */
  size_t stream_bytes; /* that may wait for the reader of a stream */
} lt_http_options;

/* NULL with a failure where there is no library, or the port is taken. */
lt_http *lt_http_open(lt_ctx *c, const char *op, const lt_http_options *o);
void lt_http_close(lt_ctx *c, lt_http *h);
int lt_http_port(const lt_http *h);

/* Serve until somebody asks: the request, to be answered once. NULL after `seconds`, or at a
   signal. Requests with a body are refused before. */
const lt_http_request *lt_http_wait(lt_http *h, double seconds);

/* Each gives false when the client has gone, or there is no memory. */
bool lt_http_answer(lt_http *h, int64_t id, int status, int n, const lt_http_field *fields,
                    const void *data, size_t size);
/* An answer without an end: what lt_http_send sends until lt_http_finish. */
bool lt_http_stream(lt_http *h, int64_t id, int status, int n, const lt_http_field *fields);
bool lt_http_send(lt_http *h, int64_t id, const void *data, size_t size);
void lt_http_finish(lt_http *h, int64_t id);

#endif
