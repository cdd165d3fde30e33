/* runtime/launch/thread.c: threads beside the main one: they get no signals and a small stack.

   Signals are for the main thread, whose handlers know what it does. */
#include "launch/world.h"

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
