/* runtime/net/http_client.c: requests over HTTP by libcurl (http_client.h).

   Proxies are not asked: what is reached here is a service of the cluster itself. */
#include "net/http_client.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/curl.h"
#include "net/line_buffer.h"

enum { ANSWER_BYTES = 1 << 28, PATH_BYTES = 1024 };

/* One transfer: a request and what came of the answer. */
typedef struct transfer {
  lt_ctx *c;
  void *easy, *fields;
  lt_line_buffer in;
  char error[LT_CURL_ERROR_BYTES];
  char url[PATH_BYTES];
} transfer;

struct lt_http_client {
  const lt_curl *curl;
  const char *op;
  char ca[PATH_BYTES], cert[PATH_BYTES], key[PATH_BYTES];
  long connect_ms;
  transfer transfer;
};

struct lt_http_reader {
  lt_http_client *client;
  void *multi;
  transfer transfer;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long milliseconds(double seconds) {
  return seconds <= 0 ? 1 : seconds > 1e6 ? INT_MAX : (long)(seconds * 1e3) + 1;
}

/* ---- transfers ---- */

/* Less than n makes libcurl end the transfer with an error: so an answer without an end does not
   fill the memory. */
static size_t receive(const char *bytes, size_t one, size_t n, void *ud) {
  transfer *t = ud;
  bool fits = lt_line_buffer_left(&t->in) + n <= ANSWER_BYTES;
  return fits && lt_line_buffer_add(t->c, &t->in, bytes, n) ? n * one : 0;
}

/* NO_SIGNAL: libcurl would else use SIGALRM for time limits, in a process whose signals belong to
   the script. Only HTTP and HTTPS: a redirect must not lead to file:. */
static bool init_transfer(lt_ctx *c, lt_http_client *h, transfer *t) {
  const lt_curl *curl = h->curl;
  t->c = c;
  t->easy = curl->easy_init();
  if (t->easy == NULL) return lt_fail(c, LT_EMEMORY, "%s: no memory for a request", h->op);
  curl->easy_setopt(t->easy, LT_CURL_NO_SIGNAL, 1L);
  curl->easy_setopt(t->easy, LT_CURL_PROTOCOLS, (long)LT_CURL_HTTP_AND_HTTPS);
  curl->easy_setopt(t->easy, LT_CURL_HTTP_VERSION, (long)LT_CURL_HTTP_1_1);
  curl->easy_setopt(t->easy, LT_CURL_PROXY, "");
  curl->easy_setopt(t->easy, LT_CURL_KEEP_ALIVE, 1L);
  curl->easy_setopt(t->easy, LT_CURL_CONNECT_MS, h->connect_ms);
  curl->easy_setopt(t->easy, LT_CURL_WRITE_FUNCTION, receive);
  curl->easy_setopt(t->easy, LT_CURL_WRITE_DATA, t);
  curl->easy_setopt(t->easy, LT_CURL_ERROR_TEXT, t->error);
  if (h->ca[0] != 0) curl->easy_setopt(t->easy, LT_CURL_CA, h->ca);
  if (h->cert[0] != 0) curl->easy_setopt(t->easy, LT_CURL_CERT, h->cert);
  if (h->key[0] != 0) curl->easy_setopt(t->easy, LT_CURL_KEY, h->key);
  return true;
}

static void end_transfer(const lt_http_client *h, transfer *t) {
  if (t->easy != NULL) h->curl->easy_cleanup(t->easy);
  h->curl->slist_free(t->fields);
  lt_line_buffer_free(t->c, &t->in);
  t->easy = t->fields = NULL;
}

/* A long body would wait for "100 Continue", which etcd does not send. */
static void set_request(const lt_http_client *h, transfer *t, const lt_http_post *post) {
  const lt_curl *curl = h->curl;
  curl->slist_free(t->fields);
  t->fields = curl->slist_append(NULL, "Expect:");
  for (const char *const *f = post->fields; *f != NULL; f++)
    t->fields = curl->slist_append(t->fields, *f);
  snprintf(t->url, sizeof t->url, "%s", post->url);
  t->error[0] = 0;
  curl->easy_setopt(t->easy, LT_CURL_URL, post->url);
  curl->easy_setopt(t->easy, LT_CURL_HEADERS, t->fields);
  curl->easy_setopt(t->easy, LT_CURL_BODY_SIZE, (int64_t)post->size);
  curl->easy_setopt(t->easy, LT_CURL_COPY_BODY, post->body);
}

static void fail(lt_ctx *c, const lt_http_client *h, const transfer *t, int result) {
  const char *why = t->error[0] != 0 ? t->error : h->curl->easy_strerror(result);
  if (lt_ok(c)) lt_fail(c, LT_EIO, "%s: %s: %s", h->op, t->url, why);
}

/* ---- clients ---- */

static bool copy(lt_ctx *c, const char *op, char to[PATH_BYTES], const char *from) {
  if (from == NULL) from = "";
  if (strlen(from) >= PATH_BYTES) return lt_fail(c, LT_EIO, "%s: too long a path: %s", op, from);
  memcpy(to, from, strlen(from) + 1);
  return true;
}

lt_http_client *lt_http_client_open(lt_ctx *c, const char *op, const lt_http_settings *settings) {
  const lt_curl *curl = lt_curl_open(c, op);
  if (curl == NULL) return NULL;
  lt_http_client *h = lt_alloc(c, sizeof *h);
  if (h == NULL) return NULL;
  h->curl = curl;
  h->op = op;
  h->connect_ms = milliseconds(settings->connect_seconds);
  h->transfer.c = c;
  if (copy(c, op, h->ca, settings->ca) && copy(c, op, h->cert, settings->cert) &&
      copy(c, op, h->key, settings->key) && init_transfer(c, h, &h->transfer))
    return h;
  lt_http_client_close(c, h);
  return NULL;
}

void lt_http_client_close(lt_ctx *c, lt_http_client *h) {
  if (h == NULL) return;
  end_transfer(h, &h->transfer);
  lt_free(c, h, sizeof *h);
}

int lt_http_client_post(lt_ctx *c, lt_http_client *h, const lt_http_post *post, double seconds,
                        const char **text, size_t *n) {
  transfer *t = &h->transfer;
  t->in.start = t->in.size = t->in.scanned = 0;
  set_request(h, t, post);
  h->curl->easy_setopt(t->easy, LT_CURL_MS, milliseconds(seconds));
  int result = h->curl->easy_perform(t->easy);
  long status = 0;
  if (result == 0) h->curl->easy_getinfo(t->easy, LT_CURL_STATUS, &status);
  if (result != 0) fail(c, h, t, result);
  if (!lt_ok(c)) status = -result;
  *text = t->in.size == 0 ? "" : t->in.data;
  *n = t->in.size;
  return (int)status;
}

/* ---- answers without an end ---- */

lt_http_reader *lt_http_reader_open(lt_ctx *c, lt_http_client *h, const lt_http_post *post) {
  lt_http_reader *r = lt_alloc(c, sizeof *r);
  if (r == NULL) return NULL;
  r->client = h;
  r->transfer.c = c;
  r->multi = h->curl->multi_init();
  if (r->multi != NULL && init_transfer(c, h, &r->transfer)) {
    set_request(h, &r->transfer, post);
    h->curl->multi_add(r->multi, r->transfer.easy);
    return r;
  }
  if (lt_ok(c)) lt_fail(c, LT_EMEMORY, "%s: no memory for a request", h->op);
  lt_http_reader_close(c, r);
  return NULL;
}

void lt_http_reader_close(lt_ctx *c, lt_http_reader *r) {
  if (r == NULL) return;
  const lt_curl *curl = r->client->curl;
  if (r->multi != NULL && r->transfer.easy != NULL)
    curl->multi_remove(r->multi, r->transfer.easy);
  end_transfer(r->client, &r->transfer);
  if (r->multi != NULL) curl->multi_cleanup(r->multi);
  lt_free(c, r, sizeof *r);
}

/* The answer has ended, which it never should. */
static void fail_ended(lt_ctx *c, lt_http_reader *r) {
  const lt_curl *curl = r->client->curl;
  int left, result = 0;
  for (const lt_curl_message *m; (m = curl->multi_read(r->multi, &left)) != NULL;)
    if (m->kind == LT_CURL_DONE) result = m->data.result;
  if (result != 0)
    fail(c, r->client, &r->transfer, result);
  else
    lt_fail(c, LT_EIO, "%s: %s: the answer has ended", r->client->op, r->transfer.url);
}

/* The line that is there comes before the network is asked: several lines often come in one packet.
   After the transfer has run, lines are taken before its end is reported, so that the last one is
   not lost. */
const char *lt_http_reader_read(lt_ctx *c, lt_http_reader *r, double seconds, size_t *n) {
  const lt_curl *curl = r->client->curl;
  double deadline = now() + seconds;
  for (;;) {
    int running = 0;
    const char *line = lt_line_buffer_take(&r->transfer.in, n);
    if (line != NULL) return line;
    curl->multi_perform(r->multi, &running);
    if (!lt_ok(c)) return NULL;
    line = lt_line_buffer_take(&r->transfer.in, n);
    if (line != NULL) return line;
    if (running == 0) {
      fail_ended(c, r);
      return NULL;
    }
    double left = deadline - now();
    if (left <= 0) return NULL;
    curl->multi_poll(r->multi, NULL, 0, (int)milliseconds(left), NULL);
  }
}
