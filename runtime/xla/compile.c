/* runtime/xla/compile.c: executables of programs, from the cache of earlier runs or compiled.

   A plugin says nothing while it compiles, for seconds or minutes: a thread of its own says after a
   second what is compiled, where somebody is at a terminal. */
#include "xla/compile.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xla/cache.h"
#include "xla/plugin.h"

enum { PATIENCE = 1 }; /* seconds */

typedef struct announcement {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t over;
  bool is_over;
  size_t operations;
} announcement;

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* In place of a progress bar's line, which is drawn again below. */
static void announce(size_t operations) {
  char text[96];
  const char *term = getenv("TERM");
  bool plain = term == NULL || strcmp(term, "dumb") == 0;
  int n = snprintf(text, sizeof text, "%scompiling the step: %zu operations\n",
                   plain ? "" : "\r\033[K", operations);
  ssize_t done = write(STDERR_FILENO, text, (size_t)n);
  (void)done;
}

static void *wait_and_announce(void *ud) {
  announcement *a = ud;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += PATIENCE;
  pthread_mutex_lock(&a->mutex);
  int why = 0;
  while (!a->is_over && why == 0) why = pthread_cond_timedwait(&a->over, &a->mutex, &until);
  if (!a->is_over) announce(a->operations);
  pthread_mutex_unlock(&a->mutex);
  return NULL;
}

/* Signals stay with the thread that runs the script. False: nothing will be said. */
static bool announcement_begin(announcement *a, size_t operations) {
  if (!isatty(STDERR_FILENO)) return false;
  pthread_condattr_t clock;
  sigset_t all, before;
  *a = (announcement){.operations = operations};
  pthread_mutex_init(&a->mutex, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&a->over, &clock);
  pthread_condattr_destroy(&clock);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool ok = pthread_create(&a->thread, NULL, wait_and_announce, a) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return ok;
}

static void announcement_end(announcement *a) {
  pthread_mutex_lock(&a->mutex);
  a->is_over = true;
  pthread_cond_signal(&a->over);
  pthread_mutex_unlock(&a->mutex);
  pthread_join(a->thread, NULL);
  pthread_cond_destroy(&a->over);
  pthread_mutex_destroy(&a->mutex);
}

/* An executable that the plugin does not take any more is removed, and compiled again. */
static pjrt_loaded *load(const lt_cache_key *key) {
  lt_cached found;
  if (!lt_xla_has(PJRT_DESERIALIZE_AND_LOAD) || !lt_cache_read(key, &found)) return NULL;
  pjrt_load a = {.head = {.size = sizeof a}, .client = lt_xla_client(), .bytes = found.executable,
                 .size = found.size};
  bool ok = lt_xla_passed(lt_xla_call(PJRT_DESERIALIZE_AND_LOAD, &a));
  free(found.memory);
  if (!ok) lt_cache_remove(key);
  return ok ? a.loaded : NULL;
}

static void keep(const lt_cache_key *key, pjrt_loaded *loaded) {
  static const int slots[] = {PJRT_LOADED_EXECUTABLE, PJRT_EXECUTABLE_SERIALIZE,
                              PJRT_EXECUTABLE_DESTROY, PJRT_DESERIALIZE_AND_LOAD};
  for (size_t k = 0; k < sizeof slots / sizeof *slots; k++)
    if (!lt_xla_has(slots[k])) return;
  pjrt_loaded_executable get = {.head = {.size = sizeof get}, .loaded = loaded};
  if (lt_cache_folder()[0] == 0 || !lt_xla_passed(lt_xla_call(PJRT_LOADED_EXECUTABLE, &get)))
    return;
  pjrt_serialize a = {.head = {.size = sizeof a}, .executable = get.executable};
  if (lt_xla_passed(lt_xla_call(PJRT_EXECUTABLE_SERIALIZE, &a))) {
    lt_cache_write(key, a.bytes, a.size);
    if (a.release != NULL) a.release(a.owner);
  }
  pjrt_of_executable destroy = {.head = {.size = sizeof destroy}, .executable = get.executable};
  lt_xla_passed(lt_xla_call(PJRT_EXECUTABLE_DESTROY, &destroy));
}

/* The node whose text has a line of the program, by the comments between nodes (program.c); -1:
   none. */
static long node_at(const char *text, size_t size, long line) {
  long node = -1;
  for (const char *at = text, *end = text + size; at < end && line > 0; line--) {
    if (at[0] == '/' && at[1] == '/') node = strtol(at + 2, NULL, 10);
    const char *next = memchr(at, '\n', (size_t)(end - at));
    at = next != NULL ? next + 1 : end;
  }
  return node;
}

/* Plugins name the place in the program that they do not take: "...:12:5: error: ...". */
static long line_in(const char *message) {
  for (const char *at = strchr(message, ':'); at != NULL; at = strchr(at + 1, ':')) {
    char *end;
    long line = strtol(at + 1, &end, 10);
    if (line > 0 && end[0] == ':' && end[1] >= '0' && end[1] <= '9') return line;
  }
  return 0;
}

static void fail(lt_ctx *c, const lt_graph *g, const char *text, size_t size, pjrt_error *error) {
  char message[400], what[256], call[160];
  lt_xla_message(error, message, sizeof message);
  long node = node_at(text, size, line_in(message));
  if (node < 0 || !lt_report_call(c, g, (size_t)node, call, sizeof call))
    lt_report_program(c, g, call, sizeof call);
  snprintf(what, sizeof what, "xla: %s does not compile", call);
  lt_xla_ok(c, error, what);
}

static pjrt_loaded *compile(lt_ctx *c, const lt_graph *g, const char *text, size_t size) {
  announcement a;
  pjrt_loaded *loaded;
  bool announces = announcement_begin(&a, g->nodes.n);
  pjrt_error *error = lt_xla_compile(text, size, &loaded);
  if (announces) announcement_end(&a);
  if (error != NULL) fail(c, g, text, size, error);
  return loaded;
}

pjrt_loaded *lt_xla_executable(lt_ctx *c, const lt_graph *g, const char *text, size_t size,
                               lt_program_record *about) {
  lt_cache_key key = {.text = text, .text_size = size};
  key.identity = lt_xla_identity(&key.identity_size);
  double began = seconds_now();
  pjrt_loaded *loaded = load(&key);
  about->is_loaded = loaded != NULL;
  if (loaded == NULL) loaded = compile(c, g, text, size);
  about->seconds = seconds_now() - began;
  if (loaded != NULL && !about->is_loaded) keep(&key, loaded);
  return loaded;
}
