/* spec/c/comm_device_link.c: a link between devices: how its ranks meet, its movements, and those
   that links of the host do not have. For comm_conformance. */
#include "comm_conformance.h"

#include <limits.h>

#include "device/stream.h"

static lt_ctx *ctx;
static lt_device at; /* the device of this rank */

static int64_t elements_of_all(const int64_t *counts) {
  int64_t n = 0;
  for (int r = 0; r < size; r++) n += counts[r];
  return n;
}

static bool write_id(const char *path, const char id[LT_COMM_ID]) {
  char fresh[PATH_MAX + 4];
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE *f = fopen(fresh, "wb");
  bool ok = f != NULL && fwrite(id, 1, LT_COMM_ID, f) == LT_COMM_ID;
  return f != NULL && fclose(f) == 0 && ok && rename(fresh, path) == 0;
}

static bool read_id(const char *path, char id[LT_COMM_ID]) {
  FILE *f;
  while ((f = fopen(path, "rb")) == NULL) nap();
  bool ok = fread(id, 1, LT_COMM_ID, f) == LT_COMM_ID;
  fclose(f);
  return ok;
}

bool join_devices(lt_ctx *c, lt_comm_place *place, char id[LT_COMM_ID], char text[LT_COMM_TEXT]) {
  ctx = c;
  char path[PATH_MAX];
  lt_failure f;
  if (!lt_device_parse(ctx, ops->device, &at)) {
    lt_take_failure(ctx, &f);
    snprintf(text, LT_COMM_TEXT, "%.200s", f.text);
    return false;
  }
  at.index = (int16_t)(rank % lt_device_count(lt_device_kinds[at.kind]));
  place->device = at.index;
  place->messages = size == 2;
  place->id = id;
  lt_stream_of(ctx, at, LT_STREAM_COMM); /* the device is this thread's now */
  if (!lt_ok(ctx)) return false;
  snprintf(path, sizeof path, "%s/id", place->options);
  if (rank > 0) return read_id(path, id);
  bool made = ops->make_id == NULL || ops->make_id(id, text, LT_COMM_TEXT);
  return made && write_id(path, id);
}

/* Elements of `in`, or of `out`. */
static int64_t elements(const lt_comm_move *m, bool in) {
  switch ((lt_comm_op)m->op) {
    case LT_COMM_ALL_GATHER: return in ? m->counts[rank] : elements_of_all(m->counts);
    case LT_COMM_REDUCE_SCATTER: return in ? elements_of_all(m->counts) : m->counts[rank];
    case LT_COMM_ALL_TO_ALL: return elements_of_all(in ? m->in_counts : m->counts);
    case LT_COMM_BARRIER:
    case LT_COMM_ALL_REDUCE:
    case LT_COMM_BROADCAST:
    case LT_COMM_GATHER:
    case LT_COMM_SCATTER:
    case LT_COMM_SEND:
    case LT_COMM_RECV:
    case LT_COMM_SPLIT:
    case LT_COMM_REDUCE:
    case LT_COMM_OP_COUNT: break;
  }
  return m->count;
}

static lt_tensor *bytes_on(int64_t bytes, const void *from) {
  lt_tensor *t = lt_tensor_empty(ctx, at, LT_U8, 1, &bytes);
  if (t != NULL) lt_tensor_write(ctx, t, from);
  return t;
}

/* What was moved comes after the work before it, and before the work after it. */
static lt_progress issue(lt_comm_link *l, lt_comm_move *m, lt_tensor *in, lt_tensor *out) {
  const lt_device_ops *device = lt_device_kinds[at.kind];
  lt_stream *stream = m->stream = lt_stream_of(ctx, at, LT_STREAM_COMM);
  bool is_late = device->launch != NULL;
  lt_event done;
  lt_progress p;
  if (in != NULL) lt_order_before(ctx, in->storage, stream, true);
  if (out != NULL) lt_order_before(ctx, out->storage, stream, true);
  if (is_late && !lt_order_record(ctx, at, stream, &m->after)) return LT_BROKEN;
  if (is_late && device->stream_native != NULL) m->native = device->stream_native(stream);
  while (is_late && ops->by_host && device->event_done(m->after) == LT_PENDING) continue;
  while ((p = ops->move(l, m)) == LT_PENDING) continue;
  if (is_late && device->stream_native != NULL) device->stream_native(stream);
  if (!is_late || !lt_order_record(ctx, at, stream, &done)) return p;
  if (in != NULL) lt_order_after(in->storage, done, true);
  if (out != NULL) lt_order_after(out->storage, done, true);
  return p;
}

/* Of a link of two ranks: from rank 0 to rank 1, in order. */
void test_messages(void) {
  static const int64_t counts[] = {1, 0, 1003, 100001, 5};
  for (int k = 0; k < 5 && size == 2; k++) {
    lt_dtype d = k % 2 == 0 ? LT_F32 : LT_U8;
    char *sent = filled(d, k, counts[k], false), *got = room(d, counts[k]);
    lt_comm_move m = {.op = rank == 0 ? LT_COMM_SEND : LT_COMM_RECV,
                      .dtype = (int8_t)d,
                      .count = counts[k],
                      .root = 1 - rank,
                      .in = rank == 0 ? sent : NULL,
                      .out = rank == 0 ? NULL : got,
                      .chunk_bytes = GIB};
    moved(all, &m);
    if (rank == 1) same("recv", &m, got, sent, counts[k]);
    free(sent);
    free(got);
  }
}

lt_progress move_there(lt_comm_link *l, lt_comm_move *m) {
  int64_t item = (int64_t)lt_dtype_size((lt_dtype)m->dtype);
  lt_frame frame = lt_frame_open(ctx);
  lt_comm_move there = *m;
  lt_tensor *in = NULL, *out = NULL;
  if (m->in != NULL) in = bytes_on(elements(m, true) * item, m->in);
  if (m->out != NULL && m->out == m->in) out = in;
  if (m->out != NULL && out == NULL) out = bytes_on(elements(m, false) * item, m->out);
  there.device = at.index;
  there.in = in != NULL ? lt_data(in) : NULL;
  there.out = out != NULL ? lt_data(out) : NULL;
  lt_progress p = issue(l, &there, in, out);
  m->state = there.state;
  memcpy(m->text, there.text, sizeof m->text);
  if (out != NULL) lt_tensor_read(ctx, out, m->out);
  lt_frame_close(ctx, frame, 0, NULL);
  return lt_ok(ctx) ? p : LT_BROKEN;
}
