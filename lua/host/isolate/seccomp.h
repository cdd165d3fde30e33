/* lua/host/isolate/seccomp.h: the sandbox of the worker process of an isolated state: resource
   limits and seccomp. */
#ifndef LT_HOST_ISOLATE_SECCOMP_H
#define LT_HOST_ISOLATE_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>

/* From here on the process, all of its threads, computes and talks over the descriptors that it
   has: it opens no file or socket, starts no process or thread, sends no signal, and has at most
   `memory` bytes more. False: `text` says why that cannot be had. */
bool lt_isolate_seal(size_t memory, char *text, size_t size);

#endif
