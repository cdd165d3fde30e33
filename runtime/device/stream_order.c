/* runtime/device/stream_order.c: dependencies between work on streams, from the stream positions
   that storages keep.

   Readers and writers of a storage (E. Courtois and others, 1971), by positions in streams in
   place of locks: a read waits for the last write, a write for that and for all reads. Only the
   host's order of issue decides who comes first, so there can be no deadlock. */
#include "device/graph.h"
#include "device/stream.h"
#include "device/wait.h"

static bool wait_for(lt_ctx *c, const lt_device_ops *ops, lt_stream *stream, lt_event event) {
  return event.stream == NULL || event.stream == stream || ops->stream_wait(c, stream, event);
}

/* The place of the stream's last read; of a stream that has none a free one, else the first, for
   which the stream has waited: its later reads imply it. */
static int place_of(const lt_storage *s, const lt_stream *stream) {
  int free = -1;
  for (int k = 0; k < LT_READERS; k++) {
    if (s->reads[k].stream == stream) return k;
    if (s->reads[k].stream == NULL && free < 0) free = k;
  }
  return free < 0 ? 0 : free;
}

bool lt_order_before(lt_ctx *c, lt_storage *s, lt_stream *stream, bool writes) {
  const lt_device_ops *ops = lt_device_table(c, s->device);
  lt_graph *g = lt_graph_captures(c);
  if (ops->launch == NULL) return true;
  if (g != NULL && !lt_graph_note_use(c, g, s, stream, writes)) return false;
  if (!wait_for(c, ops, stream, s->write)) return false;
  /* A read does not wait for other reads; where its place in the list is taken over from another
     stream, it does for that one, so that the list keeps standing for all. */
  if (!writes) return wait_for(c, ops, stream, s->reads[place_of(s, stream)]);
  for (int k = 0; k < LT_READERS; k++)
    if (!wait_for(c, ops, stream, s->reads[k])) return false;
  return true;
}

void lt_order_after(lt_storage *s, lt_event at, bool writes) {
  if (!writes) {
    s->reads[place_of(s, at.stream)] = at;
    return;
  }
  /* A write has waited for the reads: whoever waits for it waits for them as well. */
  s->write = at;
  for (int k = 0; k < LT_READERS; k++) s->reads[k] = (lt_event){0};
}

bool lt_order_record(lt_ctx *c, lt_device d, lt_stream *stream, lt_event *at) {
  const lt_device_ops *ops = lt_device_table(c, d);
  if (ops->event_record(c, stream, at)) return true;
  *at = (lt_event){0};
  /* Without an event nothing could wait for this work: wait for all of it here. */
  ops->synchronize(c, d.index);
  return false;
}

bool lt_order_call(lt_ctx *c, const lt_call *call, lt_stream *stream,
                   bool (*writes)(const lt_call *call, int k)) {
  for (int k = 0; k < call->n_in; k++)
    if (call->in[k] != NULL &&
        !lt_order_before(c, call->in[k]->storage, stream, writes(call, k)))
      return false;
  for (int k = 0; k < call->n_out; k++)
    if (!lt_order_before(c, call->out[k]->storage, stream, true)) return false;
  return true;
}

bool lt_order_called(lt_ctx *c, const lt_call *call, lt_stream *stream,
                     bool (*writes)(const lt_call *call, int k)) {
  const lt_tensor *first = call->n_out > 0 ? call->out[0] : call->in[0];
  lt_event at;
  if (!lt_order_record(c, first->storage->device, stream, &at)) return false;
  for (int k = 0; k < call->n_in; k++)
    if (call->in[k] != NULL) lt_order_after(call->in[k]->storage, at, writes(call, k));
  for (int k = 0; k < call->n_out; k++) lt_order_after(call->out[k]->storage, at, true);
  return true;
}

bool lt_order_host(lt_ctx *c, lt_storage *s, bool writes) {
  const lt_device_ops *ops = lt_device_table(c, s->device);
  if (ops->launch == NULL) return true;
  bool ok = lt_wait_event(c, s->device, s->write);
  /* All of them, also after a failure: the host is about to write to the memory. */
  for (int k = 0; k < LT_READERS && writes; k++)
    ok = lt_wait_event(c, s->device, s->reads[k]) && ok;
  return ok;
}

static bool is_done(const lt_device_ops *ops, lt_event event) {
  return event.stream == NULL || ops->event_done(event) != LT_PENDING;
}

bool lt_order_done(const lt_storage *s) {
  const lt_device_ops *ops = lt_device_kinds[s->device.kind];
  bool done = ops->launch == NULL || is_done(ops, s->write);
  for (int k = 0; k < LT_READERS && ops->launch != NULL; k++)
    done = done && is_done(ops, s->reads[k]);
  return done;
}

bool lt_order_single(const lt_storage *s) {
  const lt_stream *one = s->write.stream;
  for (int k = 0; k < LT_READERS; k++) {
    const lt_stream *other = s->reads[k].stream;
    if (one != NULL && other != NULL && other != one) return false;
    if (one == NULL) one = other;
  }
  return true;
}
