/* runtime/device/idle_streams.c: the process's streams that no ctx uses. */
#include <pthread.h>
#include <stdlib.h>

#include "device/ctx_devices.h"

/* A stream that no ctx has at the moment. */
typedef struct idle {
  struct idle *next;
  lt_stream *stream;
} idle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static idle *idles[LT_DEVICE_KINDS][LT_MAX_DEVICES][LT_STREAM_ROLES];

lt_stream *lt_stream_lease(lt_ctx *c, lt_device d, lt_stream_role role) {
  pthread_mutex_lock(&lock);
  idle *first = idles[d.kind][d.index][role];
  if (first != NULL) idles[d.kind][d.index][role] = first->next;
  pthread_mutex_unlock(&lock);
  if (first == NULL)
    return lt_device_table(c, d)->stream_new(c, d.index, role == LT_STREAM_COMM ? 1 : 0);
  lt_stream *stream = first->stream;
  free(first);
  return stream;
}

/* Without memory for the note the stream is not found again, which is harmless. */
void lt_stream_return(lt_device d, lt_stream_role role, lt_stream *stream) {
  idle *note = malloc(sizeof *note);
  if (note == NULL) return;
  pthread_mutex_lock(&lock);
  *note = (idle){idles[d.kind][d.index][role], stream};
  idles[d.kind][d.index][role] = note;
  pthread_mutex_unlock(&lock);
}
