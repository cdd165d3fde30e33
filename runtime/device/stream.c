/* runtime/device/stream.c: the process's streams, and which of them a ctx uses. */
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

lt_stream *lt_stream_of(lt_ctx *c, lt_device d, lt_stream_role role) {
  if (lt_device_table(c, d)->launch == NULL || !lt_device_open(c, d)) return NULL;
  lt_device_state *st = lt_device_state_of(c);
  lt_stream **place = &st->streams[d.kind][d.index].role[role];
  if (*place == NULL) *place = lt_stream_lease(c, d, role);
  return *place;
}

lt_stream *lt_stream_current(lt_ctx *c, lt_device d) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  lt_stream *set = st != NULL ? st->streams[d.kind][d.index].current : NULL;
  return set != NULL ? set : lt_stream_of(c, d, LT_STREAM_COMPUTE);
}

lt_stream *lt_stream_next(lt_ctx *c, lt_device d) {
  if (lt_stream_of(c, d, LT_STREAM_COMPUTE) == NULL) return NULL;
  lt_device_streams *own = &lt_device_state_of(c)->streams[d.kind][d.index];
  lt_stream **place = &own->scripts[own->n_scripts++ % LT_STREAMS];
  if (*place == NULL) *place = lt_stream_lease(c, d, LT_STREAM_COMPUTE);
  return *place;
}

bool lt_stream_set(lt_ctx *c, lt_device d, lt_stream *stream) {
  lt_device_state *st = lt_device_state_of(c);
  if (st == NULL) return false;
  st->streams[d.kind][d.index].current = stream;
  return true;
}
