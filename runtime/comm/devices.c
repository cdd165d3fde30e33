/* runtime/comm/devices.c: asynchronous collectives and messages whose tensors are on a device.

   Where the device has a link of its own, the bytes move from where they lie, on its stream for
   communication: a work is done when it has been issued, and later work on its tensors comes after
   it. Otherwise they go through pinned memory over the host's link, which is exact and slower. The
   tensors are ordered like those of any op. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "comm/group.h"

static const lt_device_ops *ops_of(const lt_work *w) { return lt_device_kinds[w->device.at.kind]; }

/* What a device's link moves, beside messages. */
static bool is_between_devices(lt_comm_op op) {
  return op == LT_COMM_ALL_REDUCE || op == LT_COMM_BROADCAST || op == LT_COMM_ALL_GATHER ||
         op == LT_COMM_REDUCE_SCATTER || op == LT_COMM_GATHER || op == LT_COMM_SCATTER ||
         op == LT_COMM_ALL_TO_ALL || op == LT_COMM_REDUCE;
}

static bool is_host(lt_device d) {
  const lt_device_ops *ops = lt_device_kinds[d.kind];
  return ops->launch == NULL && ops->host_memory;
}

static bool computes(const lt_device_ops *ops) {
  return ops->combine != NULL && ops->divide != NULL && ops->scale != NULL;
}

/* A link moves bytes at addresses, which whole storages do not have. */
bool lt_comm_has_link(lt_ctx *c, lt_group *g, lt_device d) {
  const lt_device_ops *ops = lt_device_kinds[d.kind];
  bool moves = computes(ops) && !ops->whole_storages && !ops->no_data && !is_host(d);
  return moves && lt_device_link_of(c, g, d) != NULL;
}

lt_way lt_way_of(lt_ctx *c, lt_group *g, lt_comm_op op, lt_device d) {
  const lt_device_ops *ops = lt_device_kinds[d.kind];
  if (is_host(d)) return LT_WAY_HOST;
  bool reduces =
      op == LT_COMM_ALL_REDUCE || op == LT_COMM_REDUCE_SCATTER || op == LT_COMM_REDUCE;
  if (ops->no_data) return LT_WAY_LINK; /* of one rank: nothing moves */
  if (g->size == 1) return computes(ops) || !reduces ? LT_WAY_LINK : LT_WAY_STAGED;
  return is_between_devices(op) && lt_comm_has_link(c, g, d) ? LT_WAY_LINK : LT_WAY_STAGED;
}

static size_t bytes_of(const lt_tensor *t) { return (size_t)t->numel * lt_item_size(t); }

/* A copy between a tensor and memory of the work, on its stream, in order. */
static bool copy(lt_ctx *c, lt_work *w, lt_tensor *t, char *memory, bool back) {
  int index = w->device.at.index;
  char *data = lt_data(t);
  lt_copying m = {.device = w->device.at,
                  .stream = w->move.stream,
                  .way = w->device.way == LT_WAY_LINK ? LT_WITHIN
                         : back                       ? LT_TO_DEVICE
                                                      : LT_TO_HOST,
                  .from = back ? NULL : t->storage,
                  .to = back ? t->storage : NULL,
                  .src = back ? memory : data,
                  .dst = back ? data : memory,
                  .from_index = index,
                  .bytes = bytes_of(t),
                  .dtype = (lt_dtype)t->dtype};
  return m.bytes == 0 || lt_copy_issue(c, &m, &w->device.ready);
}

/* The parts into the buffer that moves, or back. */
static bool copy_parts(lt_ctx *c, lt_work *w, bool back) {
  lt_parts_copy run = lt_parts_to_copy(w, back);
  for (int k = 0; k < run.n; run.at += bytes_of(run.list[k++]))
    if (!copy(c, w, run.list[k], run.at, back)) return false;
  return true;
}

/* ---- beginning ---- */

static void *take(lt_ctx *c, const lt_work *w, lt_pinned **p, size_t bytes) {
  *p = lt_pinned_take(c, w->device.at, bytes);
  return *p != NULL ? lt_pinned_memory(*p) : NULL;
}

static void stage(lt_ctx *c, lt_work *w) {
  lt_comm_move *m = &w->move;
  if (w->n_parts > 0) {
    char *buffer = take(c, w, &w->device.out, lt_parts_bytes(w));
    if (buffer == NULL) return;
    lt_parts_in_buffer(w, buffer);
    copy_parts(c, w, false);
    return;
  }
  if (w->out != NULL) m->out = take(c, w, &w->device.out, bytes_of(w->out));
  if (w->in == NULL || !lt_ok(c)) return;
  bool same = w->in == w->out;
  char *memory = same ? m->out : take(c, w, &w->device.in, bytes_of(w->in));
  m->in = memory;
  if (memory != NULL) copy(c, w, w->in, memory, false);
}

/* Parts to a link that knows none, or that would add them in another order; of one rank alone,
   whose share lies elsewhere, by way of the buffer. */
static void pack(lt_ctx *c, lt_work *w) {
  w->device.buffer = lt_device_buffer(c, w, lt_parts_bytes(w));
  if (w->device.buffer == NULL) return;
  lt_parts_in_buffer(w, w->device.buffer->data);
  copy_parts(c, w, false);
}

/* A link knows no gather: all send to the root, and nothing to others. */
static void send_to_root(lt_work *w) {
  const lt_group *g = w->group;
  for (int r = 0; r < g->size; r++) {
    w->in_counts[r] = r == w->move.root ? w->move.count : 0;
    w->counts[r] = g->rank == w->move.root ? w->move.count : 0;
  }
  w->move.op = LT_COMM_ALL_TO_ALL;
}

/* Nor a scatter: the root sends to all. */
static void send_from_root(lt_work *w) {
  const lt_group *g = w->group;
  for (int r = 0; r < g->size; r++) {
    w->in_counts[r] = g->rank == w->move.root ? w->move.count : 0;
    w->counts[r] = r == w->move.root ? w->move.count : 0;
  }
  w->move.op = LT_COMM_ALL_TO_ALL;
}

/* To the link; again after its work, so that positions from now on lie behind it. */
static void lend_stream(lt_work *w) {
  const lt_device_ops *ops = ops_of(w);
  if (ops->stream_native != NULL) w->move.native = ops->stream_native(w->move.stream);
}

/* That of the link: of messages by a link its own, for what one of them waits for may come after
   what another one waits for. */
static lt_stream *stream_for(lt_ctx *c, const lt_work *w) {
  bool by_link = w->pair && w->device.way == LT_WAY_LINK;
  lt_device_link *b = by_link ? lt_device_link_for(c, w) : NULL;
  if (b == NULL) return lt_stream_of(c, w->device.at, LT_STREAM_COMM);
  if (b->stream == NULL && ops_of(w)->launch != NULL)
    b->stream = lt_stream_lease(c, b->at, LT_STREAM_COMM);
  return b->stream;
}

void lt_device_begin(lt_ctx *c, lt_work *w) {
  if (w->device.way == LT_WAY_HOST || !lt_ok(c)) return;
  const lt_device_ops *ops = ops_of(w);
  w->move.device = w->device.at.index;
  w->move.stream = stream_for(c, w);
  if (w->move.stream == NULL && ops->launch != NULL) return;
  if (w->move.stream != NULL) lend_stream(w);
  if (w->device.way == LT_WAY_LINK && w->group->size > 1 && !w->pair)
    w->device.number = ++w->group->root->moves;
  if (w->device.way == LT_WAY_STAGED)
    stage(c, w);
  else if (w->move.op == LT_COMM_GATHER && w->group->size > 1)
    send_to_root(w);
  else if (w->move.op == LT_COMM_SCATTER && w->group->size > 1)
    send_from_root(w);
  else if (w->n_parts > 0 && w->move.n_parts == 0 && (w->group->size > 1 || w->n_own > 0))
    pack(c, w);
  if (lt_ok(c) && lt_ordered_wanted(w)) lt_ordered_begin(c, w);
}

void lt_device_made(lt_ctx *c, lt_work *w) {
  bool staged = w->device.way == LT_WAY_STAGED;
  w->move.out =
      staged ? take(c, w, &w->device.out, bytes_of(w->result)) : lt_data(w->result);
}

/* ---- messages ---- */

/* The kind in the upper half, the device in the lower one: libraries refuse a link between two
   ranks on one device. */
static int64_t key_of(const lt_group *g, lt_device d) {
  const lt_device_ops *ops = lt_device_kinds[d.kind];
  char place[160] = "";
  gethostname(place, 64);
  size_t n = strnlen(place, 64);
  if (ops->bus_address == NULL || !ops->bus_address(d.index, place + n, sizeof place - n))
    snprintf(place, sizeof place, "%d", g->world[g->rank]);
  uint64_t kind = lt_hash_bytes(ops->name, strlen(ops->name), 0) | 1;
  return (int64_t)(kind << 32 | (uint32_t)lt_hash_bytes(place, strnlen(place, sizeof place), 0));
}

bool lt_message_by_link(int64_t own, int64_t other) {
  return own != 0 && own != other && (own ^ other) >> 32 == 0;
}

int64_t lt_message_key(lt_ctx *c, lt_work *w, lt_device d) {
  if (!lt_ok(c) || !lt_comm_has_link(c, w->group, d)) return 0;
  lt_device_link *b = lt_device_link_for(c, w);
  if (b == NULL || (b->taken && !lt_device_equal(b->at, d))) return 0;
  if (!b->taken) b->key = key_of(w->group, d);
  b->taken = true;
  b->at = d;
  return b->key;
}

void lt_message_move(lt_ctx *c, lt_work *w, lt_tensor *t, bool by_link) {
  bool sends = w->move.op == LT_COMM_SEND;
  lt_device d = t->storage->device;
  lt_retain(t);
  lt_release(c, w->in);
  lt_release(c, w->out);
  w->in = sends ? t : NULL;
  w->out = sends ? NULL : t;
  w->device.at = d;
  w->device.way = by_link ? LT_WAY_LINK : is_host(d) ? LT_WAY_HOST : LT_WAY_STAGED;
  w->device.ready = w->device.before = w->move.after = (lt_event){0};
  w->device.ordered = w->device.begun = false;
  w->move.dtype = LT_U8;
  w->move.in = w->move.out = lt_data(t);
  w->move.count = (int64_t)bytes_of(t);
  w->move.root = !by_link ? w->peer : sends ? 1 : 0;
  lt_device_begin(c, w);
}

/* ---- moving ---- */

/* fn(storage, writes) for all that the link itself reads and writes. */
static bool each_storage(lt_ctx *c, lt_work *w,
                         bool (*fn)(lt_ctx *c, lt_work *w, lt_storage *s, bool writes)) {
  bool ok = true, listed = w->device.buffer == NULL;
  if (w->in != NULL && w->in != w->out) ok = fn(c, w, w->in->storage, false);
  if (w->out != NULL) ok = ok && fn(c, w, w->out->storage, true);
  if (w->result != NULL) ok = ok && fn(c, w, w->result->storage, true);
  for (int k = 0; k < w->n_parts + w->n_own && listed; k++)
    ok = ok && fn(c, w, w->parts[k]->storage, true);
  return ok;
}

static bool before(lt_ctx *c, lt_work *w, lt_storage *s, bool writes) {
  return lt_order_before(c, s, w->move.stream, writes);
}

static bool after(lt_ctx *c, lt_work *w, lt_storage *s, bool writes) {
  (void)c;
  lt_order_after(s, w->device.ready, writes);
  return true;
}

/* What moves is there; signal that to the link where it needs it. */
static lt_progress reach(lt_ctx *c, lt_work *w) {
  const lt_device_ops *ops = ops_of(w);
  if (ops->launch == NULL) return LT_DONE;
  bool links = w->device.way == LT_WAY_LINK;
  bool by_host = !links || (w->group->size > 1 && w->group->between.ops->by_host);
  if (links && w->move.after.stream == NULL) {
    if (!w->device.ordered && !each_storage(c, w, before)) return LT_BROKEN;
    if (!lt_order_record(c, w->device.at, w->move.stream, &w->device.ready)) return LT_BROKEN;
    w->move.after = w->device.ready;
    if (links) ops->event_done(w->move.after); /* asked for later it would stand for more */
    ops->event_record(c, lt_stream_current(c, w->device.at), &w->device.before);
    w->device.ordered = true;
  }
  return by_host && w->device.ready.stream != NULL ? ops->event_done(w->device.ready) : LT_DONE;
}

static bool move_alone(lt_ctx *c, const lt_work *w) {
  const lt_comm_move *m = &w->move;
  const lt_tensor *to = w->result != NULL ? w->result : w->out;
  if (w->in == NULL || to == NULL || m->in == m->out || to->numel == 0) return true;
  int index = w->device.at.index;
  return ops_of(w)->copy(c, m->stream, LT_WITHIN, index, m->out, index, m->in, bytes_of(to),
                         (lt_dtype)to->dtype);
}

/* A link's library must be called in the same order on all ranks, across all groups: that in which
   the script issued them. */
static bool has_turn(const lt_work *w) {
  for (const lt_group *g = w->group->root; g != NULL; g = g->next)
    for (const lt_work *k = g->queue.first; k != NULL; k = k->next)
      if (k->device.number > 0 && k->device.number < w->device.number &&
          k->stage != LT_STAGE_DONE)
        return false;
  return true;
}

lt_progress lt_device_move(lt_ctx *c, lt_work *w) {
  lt_group *g = w->group;
  bool between = w->device.way == LT_WAY_LINK && g->size > 1;
  lt_device_link *b = between ? lt_device_link_for(c, w) : NULL;
  lt_progress p = LT_DONE;
  if (between && b == NULL) return LT_BROKEN;
  if (between && !has_turn(w)) return LT_PENDING;
  if (between && b->link == NULL) {
    p = lt_device_link_open(c, w, b);
    if (p == LT_DONE && ops_of(w)->launch != NULL) lt_device_wait_begin(c, g->root);
  }
  if (p == LT_DONE && !w->device.begun) p = reach(c, w);
  if (p != LT_DONE) return p;
  w->device.begun = true;
  if (between) {
    p = b->ops->move(b->link, &w->move);
    return p == LT_BROKEN ? lt_link_patience(g, b) : p;
  }
  if (w->device.way == LT_WAY_STAGED) return g->ops->move(g->link, &w->move);
  return move_alone(c, w) ? LT_DONE : LT_BROKEN;
}

/* ---- the end ---- */

static bool put_back(lt_ctx *c, lt_work *w) {
  if (w->n_parts > 0) return copy_parts(c, w, true);
  lt_tensor *to = w->result != NULL ? w->result : w->out;
  return to == NULL || copy(c, w, to, w->move.out, true);
}

void lt_device_end(lt_ctx *c, lt_work *w) {
  if (w->device.way == LT_WAY_HOST || !lt_ok(c)) return;
  bool copied = w->device.way == LT_WAY_STAGED;
  if ((copied || w->device.buffer != NULL) && !put_back(c, w)) return;
  if (copied || ops_of(w)->launch == NULL) return;
  lend_stream(w);
  if (!lt_order_record(c, w->device.at, w->move.stream, &w->device.ready)) return;
  each_storage(c, w, after);
  if (w->group->size > 1) lt_device_wait_add(c, w);
}

static void drop_buffer(lt_ctx *c, const lt_work *w, lt_storage **s) {
  if (*s == NULL) return;
  if (w->device.ready.stream != NULL) lt_order_after(*s, w->device.ready, true);
  lt_storage_release(c, *s);
  *s = NULL;
}

void lt_device_drop(lt_ctx *c, lt_work *w) {
  if (w->device.in != NULL) lt_pinned_give(w->device.in, w->device.ready);
  if (w->device.out != NULL) lt_pinned_give(w->device.out, w->device.ready);
  drop_buffer(c, w, &w->device.buffer);
  drop_buffer(c, w, &w->device.operands);
  w->device.in = w->device.out = NULL;
}

/* ---- arithmetic in the memory that moved ---- */

bool lt_device_divide(lt_ctx *c, const lt_work *w, void *data, int64_t n, int by) {
  bool there = w->device.way == LT_WAY_LINK;
  lt_device d = there ? w->device.at : LT_CPU_DEVICE;
  return lt_device_kinds[d.kind]->divide(c, d.index, there ? w->move.stream : NULL, data, n,
                                         (lt_dtype)w->move.dtype, by);
}

bool lt_device_scale(lt_ctx *c, const lt_work *w, void *data, int64_t n, double by) {
  bool there = w->device.way == LT_WAY_LINK;
  lt_device d = there ? w->device.at : LT_CPU_DEVICE;
  return lt_device_kinds[d.kind]->scale(c, d.index, there ? w->move.stream : NULL, data, n,
                                        (lt_dtype)w->move.dtype, by);
}

bool lt_work_is_staged(const lt_work *w) {
  return w->device.way == LT_WAY_STAGED && w->group->size > 1 &&
         is_between_devices((lt_comm_op)w->mark.op);
}
