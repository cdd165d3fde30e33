/* spec/c/device_moves.h: a movement over a device's link, of bytes that the caller has on the host:
   they go to the device, are moved there, and come back. For comm_conformance. */
#ifndef LT_SPEC_C_DEVICE_MOVES_H
#define LT_SPEC_C_DEVICE_MOVES_H

#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "comm/comm.h"
#include "device/stream.h"

typedef struct device_moves {
  lt_ctx *c;
  const lt_comm_ops *ops;
  lt_device at;
  int rank, size;
} device_moves;

static inline int64_t elements_of_all(const device_moves *d, const int64_t *counts) {
  int64_t n = 0;
  for (int r = 0; r < d->size; r++) n += counts[r];
  return n;
}

static inline bool write_id(const char *path, const char id[LT_COMM_ID]) {
  char fresh[PATH_MAX + 4];
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE *f = fopen(fresh, "wb");
  bool ok = f != NULL && fwrite(id, 1, LT_COMM_ID, f) == LT_COMM_ID;
  return f != NULL && fclose(f) == 0 && ok && rename(fresh, path) == 0;
}

static inline bool read_id(const char *path, char id[LT_COMM_ID]) {
  FILE *f;
  while ((f = fopen(path, "rb")) == NULL) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  bool ok = fread(id, 1, LT_COMM_ID, f) == LT_COMM_ID;
  fclose(f);
  return ok;
}

/* Finds the device of this rank, and hands the id of rank 0 out through the folder that the place's
   options name. */
static inline bool device_moves_join(device_moves *d, lt_comm_place *place, char id[LT_COMM_ID],
                                     char text[LT_COMM_TEXT]) {
  char path[PATH_MAX];
  lt_failure f;
  if (!lt_device_parse(d->c, d->ops->device, &d->at)) {
    lt_take_failure(d->c, &f);
    snprintf(text, LT_COMM_TEXT, "%.200s", f.text);
    return false;
  }
  d->at.index = (int16_t)(d->rank % lt_device_count(lt_device_kinds[d->at.kind]));
  place->device = d->at.index;
  place->id = id;
  snprintf(path, sizeof path, "%s/id", place->options);
  if (d->rank > 0) return read_id(path, id);
  bool made = d->ops->make_id == NULL || d->ops->make_id(id, text, LT_COMM_TEXT);
  return made && write_id(path, id);
}

/* Elements of `in`, or of `out`. */
static inline int64_t elements(const device_moves *d, const lt_comm_move *m, bool in) {
  switch ((lt_comm_op)m->op) {
    case LT_COMM_ALL_GATHER: return in ? m->counts[d->rank] : elements_of_all(d, m->counts);
    case LT_COMM_REDUCE_SCATTER: return in ? elements_of_all(d, m->counts) : m->counts[d->rank];
    case LT_COMM_ALL_TO_ALL:
      return in ? elements_of_all(d, m->counts) : d->size * m->counts[d->rank];
    case LT_COMM_BARRIER:
    case LT_COMM_ALL_REDUCE:
    case LT_COMM_BROADCAST:
    case LT_COMM_GATHER:
    case LT_COMM_SCATTER:
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_OP_COUNT: break;
  }
  return m->count;
}

static inline lt_tensor *bytes_on(const device_moves *d, int64_t bytes, const void *from) {
  lt_tensor *t = lt_tensor_empty(d->c, d->at, LT_U8, 1, &bytes);
  if (t != NULL) lt_tensor_write(d->c, t, from);
  return t;
}

static inline lt_progress move_there(const device_moves *d, lt_comm_link *l, lt_comm_move *m) {
  const lt_device_ops *ops = lt_device_kinds[d->at.kind];
  int64_t item = (int64_t)lt_dtype_size((lt_dtype)m->dtype);
  lt_frame frame = lt_frame_open(d->c);
  lt_comm_move there = *m;
  lt_stream *stream = there.stream = lt_stream_of(d->c, d->at, LT_STREAM_COMM);
  lt_tensor *in = NULL, *out = NULL;
  if (m->in != NULL) in = bytes_on(d, elements(d, m, true) * item, m->in);
  if (m->out != NULL && m->out == m->in) out = in;
  if (m->out != NULL && out == NULL) out = bytes_on(d, elements(d, m, false) * item, m->out);
  if (in != NULL) lt_order_before(d->c, in->storage, stream, true);
  if (out != NULL) lt_order_before(d->c, out->storage, stream, true);
  ops->event_record(d->c, stream, &there.after);
  there.device = d->at.index;
  if (ops->stream_native != NULL) there.native = ops->stream_native(stream);
  there.in = in != NULL ? lt_data(in) : NULL;
  there.out = out != NULL ? lt_data(out) : NULL;
  while (d->ops->by_host && ops->event_done(there.after) == LT_PENDING) continue;
  lt_progress at;
  while ((at = d->ops->move(l, &there)) == LT_PENDING) continue;
  m->state = there.state;
  memcpy(m->text, there.text, sizeof m->text);
  lt_event done;
  ops->event_record(d->c, stream, &done);
  if (in != NULL) lt_order_after(in->storage, done, true);
  if (out != NULL) lt_order_after(out->storage, done, true);
  if (out != NULL) lt_tensor_read(d->c, out, m->out);
  lt_frame_close(d->c, frame, 0, NULL);
  return lt_ok(d->c) ? at : LT_BROKEN;
}

#endif
