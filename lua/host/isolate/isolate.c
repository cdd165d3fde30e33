/* lua/host/isolate/isolate.c: sends requests to the worker process of an isolated state, and
   validates its answers. */
#include "host/isolate/isolate.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <ltrain/version.h>

#include "bind/core/raise.h"
#include "bind/system/process.h"
#include "host/isolate/messages.h"
#include "host/isolate/process.h"
#include "io/file.h"
#include "io/memory_files.h"

/* Seconds a worker may take to open its state. A message has a cap's bytes of values, and something
   for what is around them. */
enum { OPENS_S = 60, AROUND = 1 << 20 };

struct lt_isolate {
  lt_worker process;
  lt_wire out, in;
};

const char *lt_isolate_fault(const ltrain_config *config) {
  if (!config->isolate)
    return config->max_seconds > 0 || config->worker != NULL
               ? "open: max_seconds and worker are for isolated states (isolate)"
               : NULL;
  if (config->allow != 0)
    return "open: scripts of an isolated state have no permissions: allow must be 0";
  if (config->threads > 1) return "open: an isolated state has one thread: threads must be 0 or 1";
  if (!(config->max_seconds >= 0)) return "open: max_seconds is negative or NaN";
  return NULL;
}

void lt_isolate_kill(const lt_isolate *w) { lt_worker_kill(&w->process); }

void lt_isolate_end(ltrain *l) {
  lt_isolate *w = l->worker;
  if (w == NULL) return;
  l->worker = NULL;
  lt_worker_close(&w->process);
  lt_wire_free(&w->out);
  lt_wire_free(&w->in);
  free(w);
}

/* Messages. */

/* An event's text is data of a script: it is handed to the host's callback and never interpreted
   here. */
static bool forward(ltrain *l, lt_wire *in) {
  const ltrain_config *to = &l->config;
  size_t n;
  if (lt_wire_kind(in) == LT_WIRE_LOG) {
    int64_t level = lt_wire_take_integer(in);
    const char *text = lt_wire_take_text(in, NULL);
    if (text == NULL || level < LTRAIN_DEBUG || level > LTRAIN_WARNING) return false;
    if (to->log != NULL) to->log(to->ud, (int)level, text);
  } else if (lt_wire_kind(in) == LT_WIRE_PRINT) {
    const char *text = lt_wire_take_text(in, &n);
    if (text == NULL) return false;
    if (to->print != NULL) to->print(to->ud, text, n);
  } else {
    const char *stage = lt_wire_take_text(in, NULL);
    int64_t epoch = lt_wire_take_integer(in), batch = lt_wire_take_integer(in),
            batches = lt_wire_take_integer(in);
    if (stage == NULL || in->bad) return false;
    if (to->progress != NULL) to->progress(to->ud, stage, epoch, batch, batches);
  }
  return lt_wire_is_complete(in);
}

static bool is_event(char kind) {
  return kind == LT_WIRE_LOG || kind == LT_WIRE_PRINT || kind == LT_WIRE_PROGRESS;
}

static const char *invalid(lt_isolate *w) {
  return lt_worker_end(&w->process, "was ended: it sent an invalid message");
}

/* One request is under way at a time, so that all that arrives before an answer belongs to it.
   Callbacks of the host run within; depth keeps them from asking again, which would mix two
   requests in one stream. */
static lt_wire_status exchange(ltrain *l, double deadline) {
  lt_isolate *w = l->worker;
  size_t cap = l->config.memory_cap, most = cap < SIZE_MAX / 2 ? cap + AROUND : cap;
  if (w->out.bad) return LT_WIRE_NO_MEMORY;
  lt_wire_status status = lt_wire_send(w->process.fd, &w->out, deadline);
  l->depth++; /* callbacks of the host's cannot call the state: it is asked already */
  while (status == LT_WIRE_OK) {
    status = lt_wire_receive(w->process.fd, &w->in, most, deadline);
    if (status != LT_WIRE_OK || !is_event(lt_wire_kind(&w->in))) break;
    if (!forward(l, &w->in)) status = LT_WIRE_INVALID;
  }
  l->depth--;
  return status;
}

/* Send `out` and wait for the answer, whose bytes are then in `in`. NULL: it is DONE; else why it
   is not. After an invalid message, a timeout or a lack of memory the stream's position is unknown:
   the worker is ended, and every later call gives the reason at once. */
static const char *ask(ltrain *l, double seconds) {
  lt_isolate *w = l->worker;
  lt_worker *p = &w->process;
  if (p->ended[0] != 0) return p->ended;
  lt_wire_status status = exchange(l, seconds > 0 ? lt_seconds_now() + seconds : 0);
  if (status == LT_WIRE_ENDED) return lt_worker_end(p, NULL);
  if (status == LT_WIRE_INVALID) return invalid(w);
  if (status == LT_WIRE_LATE)
    return lt_worker_end(p, "was ended: it took longer than max_seconds");
  if (status == LT_WIRE_NO_MEMORY)
    return lt_worker_end(p, "was ended: no memory for a message of it or to it");
  if (lt_wire_kind(&w->in) == LT_WIRE_DONE) return NULL;
  bool failed = lt_wire_kind(&w->in) == LT_WIRE_FAILED;
  const char *why = failed ? lt_wire_take_text(&w->in, NULL) : NULL;
  return why != NULL && lt_wire_is_complete(&w->in) ? why : invalid(w);
}

/* As the error's text: what the worker says, or what became of it. */
static void push_reason(lua_State *L, const lt_isolate *w, const char *why) {
  lua_pushfstring(L, "%s%s", why == w->process.ended ? "the worker process " : "", why);
}

static void must_ask(lua_State *L, ltrain *l) {
  const char *why = ask(l, l->config.max_seconds);
  if (why == NULL) return;
  push_reason(L, l->worker, why);
  lua_error(L);
}

/* All of the answer has been read. */
static void check_end(lua_State *L, lt_isolate *w) {
  if (lt_wire_is_complete(&w->in)) return;
  push_reason(L, w, invalid(w));
  lua_error(L);
}

static lt_wire *begin(ltrain *l, char kind, const char *text) {
  lt_wire *out = &l->worker->out;
  lt_wire_begin(out, kind);
  lt_wire_put_text(out, text, strlen(text));
  return out;
}

/* OPEN has the library's version, limits, and which events to send, so that what nobody
   listens to does not cross the socket. */
bool lt_isolate_start(ltrain *l, char *text, size_t size) {
  lt_isolate *w = calloc(1, sizeof *w);
  if (w == NULL) snprintf(text, size, "open: not enough memory");
  if (w == NULL || !lt_worker_start(&w->process, l->config.worker, text, size)) {
    free(w);
    return false;
  }
  l->worker = w;
  lt_wire *out = begin(l, LT_WIRE_OPEN, LT_VERSION);
  lt_wire_put_integer(out, l->config.max_instructions);
  lt_wire_put_integer(out, (int64_t)l->config.memory_cap);
  lt_wire_put_integer(out, (l->config.log != NULL ? LT_WIRE_LOGS : 0) |
                               (l->config.print != NULL ? LT_WIRE_PRINTS : 0) |
                               (l->config.progress != NULL ? LT_WIRE_PROGRESSES : 0));
  const char *why = ask(l, OPENS_S);
  if (why != NULL)
    snprintf(text, size, "open: %s%s", why == w->process.ended ? "the worker process " : "", why);
  return why == NULL;
}

/* Calls. */

/* Ask for what has no results. */
static int run(lua_State *L, ltrain *l) {
  must_ask(L, l);
  check_end(L, l->worker);
  return 0;
}

int lt_isolate_run_string(lua_State *L) {
  const lt_request *r = lua_touserdata(L, 1);
  lt_wire_put_text(begin(r->l, LT_WIRE_RUN, r->name), r->code, strlen(r->code));
  return run(L, r->l);
}

/* The host may read its own script, whatever the state may; with a 0 after it. */
static char *read_script(ltrain *l, const char *path, size_t *n) {
  lt_ctx *c = l->b->c;
  lt_policy before = c->policy;
  c->policy.read_files = true;
  char *text = lt_file_load(c, "dofile", path, l->config.memory_cap, n);
  c->policy = before;
  return text;
}

/* As Lua: without a byte order mark and a first line for a shell. */
static int run_script(lua_State *L, const lt_request *r) {
  size_t n;
  char *text = read_script(r->l, r->name, &n);
  if (text == NULL) lt_raise_failure(L, r->l->b);
  size_t from = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  bool has_zero = strlen(text) < n;
  if (text[from] == '#') from += strcspn(text + from, "\n");
  if (!has_zero) lt_wire_put_text(begin(r->l, LT_WIRE_RUN, r->name), text + from, n - from);
  lt_free(r->l->b->c, text, n + 1);
  if (has_zero) return luaL_error(L, "%s: a script must not contain bytes that are 0", r->name);
  return run(L, r->l);
}

int lt_isolate_run_file(lua_State *L) {
  const lt_request *r = lua_touserdata(L, 1);
  if (!lt_is_memory_file(r->l->b->c, r->name)) return run_script(L, r);
  begin(r->l, LT_WIRE_RUN_FILE, r->name);
  return run(L, r->l);
}

/* Arguments go out and results come in by the letters of the format, which the host wrote: the
   worker cannot choose the types that are read. */
int lt_isolate_call(lua_State *L) {
  lt_request *r = lua_touserdata(L, 1);
  lt_isolate *w = r->l->worker;
  lt_wire *out = begin(r->l, LT_WIRE_CALL, r->name);
  lt_wire_put_text(out, r->format, strlen(r->format));
  for (; *r->format != 0 && *r->format != '>'; r->format++) {
    lt_push_argument(L, r->l->b, *r->format, &r->values);
    lt_wire_put_value(L, r->l->b, out, -1, *r->format);
    lua_pop(L, 1);
  }
  if (*r->format == '>') r->format++;
  must_ask(L, r->l);
  for (const char *at = r->format; *at != 0; at++) lt_wire_push_value(L, r->l->b, &w->in, *at);
  check_end(L, w);
  return (int)strlen(r->format);
}

int lt_isolate_get(lua_State *L) {
  const lt_request *r = lua_touserdata(L, 1);
  lt_wire_put_text(begin(r->l, LT_WIRE_GET, r->name), r->format, 1);
  must_ask(L, r->l);
  lt_wire_push_value(L, r->l->b, &r->l->worker->in, r->format[0]);
  check_end(L, r->l->worker);
  return 1;
}

int lt_isolate_set(lua_State *L) {
  lt_request *r = lua_touserdata(L, 1);
  lt_wire *out = begin(r->l, LT_WIRE_SET, r->name);
  lt_wire_put_text(out, r->format, 1);
  lt_push_argument(L, r->l->b, r->format[0], &r->values);
  lt_wire_put_value(L, r->l->b, out, -1, r->format[0]);
  return run(L, r->l);
}

/* Files in memory. */

/* Ask what `out` asks, outside of Lua. */
static bool ask_plainly(ltrain *l) {
  lt_isolate *w = l->worker;
  const char *why = l->depth > 0 ? "the state is in a call" : ask(l, l->config.max_seconds);
  if (why == NULL) return true;
  const char *who = why == w->process.ended ? "the worker process " : "";
  snprintf(l->message, sizeof l->message, "%s%s", who, why);
  return false;
}

bool lt_isolate_put_file(ltrain *l, const char *path, const void *data, size_t size) {
  if (l->depth == 0)
    lt_wire_put_text(begin(l, LT_WIRE_PUT_FILE, path), size > 0 ? data : "", size);
  return ask_plainly(l);
}

bool lt_isolate_read_file(ltrain *l, const char *path) {
  size_t n;
  if (l->depth == 0) begin(l, LT_WIRE_READ_FILE, path);
  if (!ask_plainly(l)) return false;
  const char *bytes = lt_wire_take_text(&l->worker->in, &n);
  if (bytes != NULL && lt_wire_is_complete(&l->worker->in))
    return lt_memory_file_put(l->b->c, "get_file", path, bytes, n) || !lt_host_take_failure(l);
  snprintf(l->message, sizeof l->message, "the worker process %s",
           invalid(l->worker));
  return false;
}

bool lt_isolate_remove_file(ltrain *l, const char *path) {
  if (l->depth == 0) begin(l, LT_WIRE_REMOVE_FILE, path);
  if (!ask_plainly(l)) return false;
  lt_memory_file_remove(l->b->c, path); /* what was read of it */
  return true;
}

bool lt_isolate_permits(ltrain *l, const char *who) {
  if (l->worker == NULL) return true;
  snprintf(l->message, sizeof l->message, "%s: not in an isolated state, whose scripts run in "
                                          "another process", who);
  return false;
}
