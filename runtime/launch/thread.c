/* runtime/launch/thread.c: starts the threads of a rank that handle no signals, and signals
   its main thread. */
#include "launch/world.h"

/* Signals are for the main thread, whose handlers know what it does. */
int lt_launch_thread(pthread_t *thread, size_t stack, void *(*fn)(void *ud), void *ud) {
  sigset_t all, before;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: not even the first instruction */
  int status = pthread_create(thread, &attributes, fn, ud);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return status;
}

void lt_world_signal(lt_world *w) {
  if (w->signals) pthread_kill(w->main, lt_outcome_signal());
}

void lt_world_locate(lt_world *w) {
  if (w->signals) pthread_kill(w->main, lt_locate_signal());
}
