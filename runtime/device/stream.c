/* runtime/device/stream.c: which of the process's streams a ctx uses. */
#include "device/ctx_devices.h"

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
