/* lua/host/isolate/process.h: starts and ends the worker process of an isolated state. */
#ifndef LT_HOST_ISOLATE_PROCESS_H
#define LT_HOST_ISOLATE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct lt_worker {
  int fd, pidfd; /* the socket */
  pid_t pid, owner; /* the process that started it: a fork of that does not end it */
  char ended[80]; /* how; "": it runs */
} lt_worker;

/* Start the program `path` (NULL: ltrain-worker beside the library). False: `text` says why not. */
bool lt_worker_start(lt_worker *w, const char *path, char *text, size_t size);

/* From any thread and from signal handlers. */
void lt_worker_kill(const lt_worker *w);

/* Kill the worker for the reason `why`, or NULL: it has closed its socket. Returns how it ended,
   first. */
const char *lt_worker_end(lt_worker *w, const char *why);

void lt_worker_close(lt_worker *w);

#endif
