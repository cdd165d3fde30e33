/* lua/host/isolate/worker.c: ltrain-worker, the process in which the scripts of an isolated state
   run. It is started by ltrain_open, and talks on descriptor 3.

   Single-threaded but for the watcher: it reads a request, answers it, and sends events (log,
   print, progress) in between. The state is opened before the process is sealed, since opening
   reads files; no script runs earlier. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <ltrain/version.h>

#include "host/isolate/messages.h"
#include "host/isolate/seccomp.h"
#include "host/protected_calls.h"

enum { FD = 3, WATCHER_STACK = 64 << 10 };

/* What was read last, what will be answered, and what is sent before. */
static lt_wire request, answer, event;

/* The host is gone, or has sent what it never sends: there is nobody to report to. */
static _Noreturn void leave(int status) { _exit(status); }

static void send_to_host(lt_wire *w) {
  if (lt_wire_send(FD, w, 0) != LT_WIRE_OK) leave(1);
}

static void receive(void) {
  if (lt_wire_receive(FD, &request, SIZE_MAX / 2, 0) != LT_WIRE_OK) leave(0);
}

/* A script may run for ever: it ends with its host. poll with no events asked for reports only the
   hang-up of the other end; the descriptor's data are not touched. */
static void *watch_host(void *unused) {
  struct pollfd host = {.fd = FD};
  for (;;)
    if (poll(&host, 1, -1) > 0) leave(0);
  return unused;
}

static bool start_watcher(void) {
  pthread_attr_t attr;
  pthread_t thread;
  if (pthread_attr_init(&attr) != 0) return false;
  bool ok = pthread_attr_setstacksize(&attr, WATCHER_STACK) == 0 &&
            pthread_create(&thread, &attr, watch_host, NULL) == 0;
  pthread_attr_destroy(&attr);
  return ok;
}

/* Events. */

static void log_event(void *ud, int level, const char *text) {
  (void)ud;
  lt_wire_begin(&event, LT_WIRE_LOG);
  lt_wire_put_integer(&event, level);
  lt_wire_put_text(&event, text, strlen(text));
  send_to_host(&event);
}

static void print_event(void *ud, const char *text, size_t n) {
  (void)ud;
  lt_wire_begin(&event, LT_WIRE_PRINT);
  lt_wire_put_text(&event, text, n);
  send_to_host(&event);
}

static void progress_event(void *ud, const char *stage, int64_t epoch, int64_t batch,
                           int64_t batches) {
  (void)ud;
  lt_wire_begin(&event, LT_WIRE_PROGRESS);
  lt_wire_put_text(&event, stage, strlen(stage));
  lt_wire_put_integer(&event, epoch);
  lt_wire_put_integer(&event, batch);
  lt_wire_put_integer(&event, batches);
  send_to_host(&event);
}

/* Requests. */

static void answer_results(lua_State *L, const lt_request *r, const char *letters) {
  int first = lua_gettop(L) - (int)strlen(letters) + 1;
  for (int k = 0; letters[k] != 0; k++) {
    lt_check_result(L, r->l->b, first + k, letters[k], r->name);
    lt_wire_put_value(L, r->l->b, &answer, first + k, letters[k]);
  }
}

static int serve_call(lua_State *L) {
  const lt_request *r = lua_touserdata(L, 1);
  const char *at = r->format;
  int n = lt_push_function(L, r->name);
  for (; *at != 0 && *at != '>'; at++, n++) lt_wire_push_value(L, r->l->b, &request, *at);
  if (*at == '>') at++;
  int results = (int)strlen(at);
  luaL_checkstack(L, results, "too many results");
  lua_call(L, n, results);
  answer_results(L, r, at);
  return 0;
}

static int serve_get(lua_State *L) {
  const lt_request *r = lua_touserdata(L, 1);
  lt_push_named(L, r->name);
  answer_results(L, r, r->format);
  return 0;
}

static int serve_set(lua_State *L) {
  const lt_request *r = lua_touserdata(L, 1);
  lt_wire_push_value(L, r->l->b, &request, r->format[0]);
  lt_store_named(L, r->name);
  return 0;
}

static bool serve_named(ltrain *l, lua_CFunction run, const char *name) {
  lt_request r = {.l = l, .name = name, .format = lt_wire_take_text(&request, NULL)};
  if (r.format == NULL) leave(1);
  return lt_request_run(l, run, &r);
}

static bool serve_file(ltrain *l, const char *path) {
  size_t n;
  const char *bytes = ltrain_get_file(l, path, &n);
  if (bytes != NULL) lt_wire_put_text(&answer, bytes, n);
  return bytes != NULL;
}

/* Requests come from the host, which is trusted with everything but its own mistakes: a malformed
   one ends the process. */
static bool serve(ltrain *l) {
  size_t n;
  const char *name = lt_wire_take_text(&request, NULL), *bytes;
  if (name == NULL) leave(1);
  switch (lt_wire_kind(&request)) {
  case LT_WIRE_RUN:
    return ltrain_dostring(l, lt_wire_take_text(&request, NULL), name);
  case LT_WIRE_RUN_FILE:
    return ltrain_dofile(l, name);
  case LT_WIRE_CALL:
    return serve_named(l, serve_call, name);
  case LT_WIRE_GET:
    return serve_named(l, serve_get, name);
  case LT_WIRE_SET:
    return serve_named(l, serve_set, name);
  case LT_WIRE_PUT_FILE:
    bytes = lt_wire_take_text(&request, &n);
    return ltrain_put_file(l, name, bytes, n);
  case LT_WIRE_READ_FILE:
    return serve_file(l, name);
  case LT_WIRE_REMOVE_FILE:
    return ltrain_remove_file(l, name);
  default:
    leave(1);
  }
}

static void send_failure(const char *why) {
  lt_wire_begin(&answer, LT_WIRE_FAILED);
  lt_wire_put_text(&answer, why, strlen(why));
  send_to_host(&answer);
}

/* The address space beyond what there is: Lua, tensors, and a message each way have a cap each. */
static size_t memory_for(int64_t cap) {
  return cap < INT64_MAX / 16 ? 4 * (size_t)cap + (128 << 20) : SIZE_MAX / 4;
}

static ltrain *open_sealed(void) {
  static char text[200];
  receive();
  const char *version = lt_wire_take_text(&request, NULL);
  if (version == NULL || lt_wire_kind(&request) != LT_WIRE_OPEN) leave(1);
  if (strcmp(version, LT_VERSION) != 0) {
    send_failure("ltrain-worker is of version " LT_VERSION ", which is not the library's");
    leave(1);
  }
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_instructions = lt_wire_take_integer(&request);
  config.memory_cap = (size_t)lt_wire_take_integer(&request);
  int64_t events = lt_wire_take_integer(&request);
  if ((events & LT_WIRE_LOGS) != 0) config.log = log_event;
  if ((events & LT_WIRE_PRINTS) != 0) config.print = print_event;
  if ((events & LT_WIRE_PROGRESSES) != 0) config.progress = progress_event;
  ltrain *l = ltrain_open(&config);
  if (l == NULL) {
    send_failure(ltrain_errmsg(NULL));
  } else if (!start_watcher()) {
    send_failure("the worker process cannot watch its host");
  } else if (!lt_isolate_seal(memory_for((int64_t)config.memory_cap), text, sizeof text)) {
    send_failure(text);
  } else {
    return l;
  }
  leave(1);
}

/* close_range: descriptors that the host had open without CLOEXEC must not be in reach of a
   script's exploit. */
int main(void) {
  if (close_range(FD + 1, ~0u, 0) != 0) leave(1);
  ltrain *l = open_sealed();
  lt_wire_begin(&answer, LT_WIRE_DONE);
  send_to_host(&answer);
  for (;;) {
    receive();
    lt_wire_begin(&answer, LT_WIRE_DONE);
    if (!serve(l)) send_failure(ltrain_errmsg(l));
    else if (answer.bad) send_failure("not enough memory");
    else send_to_host(&answer);
  }
}
