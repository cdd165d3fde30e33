/* runtime/base/threads.c: the list of helper threads. */
#include "base/threads.h"

#include "base/locale.h"

struct lt_helpers {
  pthread_mutex_t mutex;
  lt_thread *first;
};

lt_helpers *lt_helpers_new(lt_ctx *c) {
  lt_helpers *h = lt_alloc(c, sizeof *h);
  if (h != NULL) pthread_mutex_init(&h->mutex, NULL);
  return h;
}

void lt_helpers_free(lt_ctx *c, lt_helpers *h) {
  if (h == NULL) return;
  pthread_mutex_destroy(&h->mutex);
  lt_free(c, h, sizeof *h);
}

static void *thread_main(void *argument) {
  lt_thread *t = argument;
  lt_locale_enter();
  t->fn(t->ud);
  return NULL;
}

void lt_signals_block(sigset_t *before) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  sigset_t others;
  sigfillset(&others);
  for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) sigdelset(&others, faults[k]);
  pthread_sigmask(SIG_BLOCK, &others, before);
}

void lt_signals_restore(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

/* Signals are for the main thread, whose handlers know what it does. */
static int create(lt_thread *t) {
  sigset_t before;
  lt_signals_block(&before); /* inherited: not even the first instruction */
  int status = pthread_create(&t->handle, NULL, thread_main, t);
  lt_signals_restore(&before);
  return status;
}

bool lt_thread_start(lt_ctx *c, lt_thread *t) {
  if (create(t) != 0)
    return lt_fail(c, LT_EMEMORY, "%s: the system cannot create more threads", t->name);
  t->running = true;
  pthread_mutex_lock(&c->helpers->mutex);
  t->next = c->helpers->first;
  c->helpers->first = t;
  pthread_mutex_unlock(&c->helpers->mutex);
  return true;
}

void lt_thread_join(lt_ctx *c, lt_thread *t) {
  if (!t->running) return;
  if (t->stop != NULL) t->stop(t->ud);
  pthread_join(t->handle, NULL);
  t->running = false;
  pthread_mutex_lock(&c->helpers->mutex);
  lt_thread **link = &c->helpers->first;
  while (*link != NULL && *link != t) link = &(*link)->next;
  if (*link == t) *link = t->next;
  pthread_mutex_unlock(&c->helpers->mutex);
}

void lt_quiesce(lt_ctx *c) {
  while (c->helpers->first != NULL) lt_thread_join(c, c->helpers->first);
}

void lt_threads_forked(lt_ctx *c) {
  pthread_mutex_init(&c->helpers->mutex, NULL); /* another thread may have held it */
  for (lt_thread *t = c->helpers->first; t != NULL; t = t->next) {
    t->running = false;
    t->lost = true;
  }
  c->helpers->first = NULL;
}
