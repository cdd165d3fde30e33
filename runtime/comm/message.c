/* runtime/comm/message.c: messages between two ranks: bytes, and tensors straight from and into
   their memory.

   Of a message only the sender knows the length. That of its head travels with the fingerprint,
   and the other way which devices' memory the receiver takes over a link between devices; the head
   lists the tensors and ends with the sender's own bytes; then follow the tensors, one movement
   each, by that link or the host's. */
#include <string.h>

#include "comm/group.h"

typedef struct described {
  int64_t dtype, ndim;
  int64_t by_link;
  int64_t size[LT_MAX_DIMS];
} described;

static int64_t head_bytes(int n_tensors) {
  return (int64_t)sizeof(int64_t) + n_tensors * (int64_t)sizeof(described);
}

static lt_work *begin(lt_ctx *c, lt_group *g, lt_comm_op op, int peer, lt_plan *plan) {
  lt_work *w = lt_work_new(c, g, op);
  if (w == NULL) return NULL;
  lt_group_check_peer(c, g, op, peer);
  *plan = (lt_plan){.op = op,
                    .reduce = LT_COMM_NO_REDUCE,
                    .dtype = LT_DTYPE_NONE,
                    .form = LT_FORM_VALUE,
                    .root = peer};
  w->move.root = w->peer = peer;
  w->round.extents = w->extents;
  return w;
}

static void set_move(lt_work *w, void *data, int64_t bytes) {
  w->move.in = w->move.out = data;
  w->move.count = bytes;
}

/* Where a head describes tensor k. */
static size_t place_of(int64_t k) { return (size_t)head_bytes((int)k); }

/* After a step: the next tensor. Step 1 moves the head, step k + 1 tensor k: both sides count the
   same steps, so neither says which tensor comes. */
static bool next_tensor(lt_ctx *c, lt_work *w, const char *head) {
  described d;
  if (w->step > w->message.n) return false;
  memcpy(&d, head + place_of(w->step - 1), sizeof d);
  if (w->step > 1) {
    lt_device_end(c, w);
    lt_device_drop(c, w);
  }
  if (lt_ok(c)) lt_message_move(c, w, w->message.tensors[w->step - 1], d.by_link != 0);
  return lt_ok(c);
}

static lt_tensor **reserve_tensors(lt_ctx *c, lt_work *w, int n) {
  if (n == 0) return NULL;
  w->message.tensors = lt_alloc(c, (size_t)n * sizeof(lt_tensor *));
  w->message.capacity = w->message.tensors != NULL ? n : 0;
  return w->message.tensors;
}

/* Sending. */

/* `agreed` and `next_step` are called on both sides at the same point: when the fingerprints have
   been compared, the receiver knows how long the head is. */
static bool send_head(lt_ctx *c, lt_work *w) {
  int64_t other = w->extents[w->peer];
  for (int k = 0; k < w->message.n && other != 0; k++) {
    char *at = w->data.sent + place_of(k);
    described d;
    memcpy(&d, at, sizeof d);
    int64_t own = lt_message_key(c, w, w->message.tensors[k]->storage->device);
    d.by_link = lt_message_by_link(own, other);
    memcpy(at, &d, sizeof d);
  }
  set_move(w, w->data.sent, (int64_t)w->data.sent_bytes);
  return lt_ok(c);
}

static bool send_tensor(lt_ctx *c, lt_work *w) { return next_tensor(c, w, w->data.sent); }

static void write_head(lt_work *w, const void *bytes, int64_t n) {
  int64_t count = w->message.n;
  char *to = w->data.sent;
  memcpy(to, &count, sizeof count);
  to += sizeof count;
  for (int k = 0; k < w->message.n; k++) {
    const lt_tensor *t = w->message.tensors[k];
    described d = {.dtype = t->dtype, .ndim = t->ndim};
    memcpy(d.size, t->size, (size_t)t->ndim * sizeof *t->size);
    memcpy(to, &d, sizeof d);
    to += sizeof d;
    w->bytes += t->numel * (int64_t)lt_item_size(t);
  }
  if (n > 0) memcpy(to, bytes, (size_t)n);
}

lt_work *lt_comm_send_message(lt_ctx *c, lt_group *g, int to, const void *bytes, int64_t n,
                              lt_tensor *const *tensors, int n_tensors, lt_origin at) {
  lt_plan plan;
  lt_work *w = begin(c, g, LT_COMM_SEND, to, &plan);
  if (w == NULL) return NULL;
  for (int k = 0; k < n_tensors; k++)
    lt_work_check_tensor(c, LT_COMM_SEND, tensors[k], tensors[k]->storage->device);
  w->bytes = head_bytes(n_tensors) + n;
  w->data.sent = lt_alloc(c, (size_t)w->bytes);
  if (w->data.sent != NULL) w->data.sent_bytes = (size_t)w->bytes;
  if (w->data.sent != NULL && (n_tensors == 0 || reserve_tensors(c, w, n_tensors) != NULL)) {
    for (; w->message.n < n_tensors; w->message.n++)
      w->message.tensors[w->message.n] = lt_retain(tensors[w->message.n]);
    w->round.extent = w->bytes;
    write_head(w, bytes, n);
  }
  w->agreed = send_head;
  w->next_step = send_tensor;
  return lt_work_issue(c, w, &plan, at);
}

/* Receiving. */

/* The sender's length came with its fingerprint (round.extent): the only number that this side
   cannot compute. */
static bool recv_head(lt_ctx *c, lt_work *w) {
  int64_t n = w->extents[w->move.root];
  w->data.got = lt_alloc(c, (size_t)n);
  if (w->data.got == NULL) return false;
  w->data.got_bytes = (size_t)n;
  w->bytes = n;
  set_move(w, w->data.got, n);
  return true;
}

static lt_tensor *made(lt_ctx *c, lt_device on, const described *d) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor *t = lt_tensor_empty(c, on, (lt_dtype)d->dtype, (int)d->ndim, d->size);
  void *keep[] = {t};
  lt_frame_close(c, frame, 1, keep);
  return t;
}

/* The tensor that waits for this message. */
static bool fits(const lt_tensor *into, const described *d) {
  return into != NULL && into->dtype == d->dtype && into->ndim == d->ndim &&
         memcmp(into->size, d->size, (size_t)into->ndim * sizeof *into->size) == 0;
}

/* The list of tensors, as far as it makes sense. Checked although a rank of the same job sent it: a
   count that is wrong would be read from beyond this memory. A single tensor goes straight into the
   one that waits for it, where dtype and shape are equal. */
static bool read_head(lt_ctx *c, lt_work *w) {
  int64_t count = -1,
          most = ((int64_t)w->data.got_bytes - (int64_t)sizeof count) / (int64_t)sizeof(described);
  if (w->data.got_bytes >= sizeof count) memcpy(&count, w->data.got, sizeof count);
  if (count < 0 || count > most)
    return lt_fail(c, LT_EIO, "recv: the received bytes are not a message");
  if (count > 0 && reserve_tensors(c, w, (int)count) == NULL) return false;
  bool bare = count == 1 && w->data.got_bytes == (size_t)head_bytes(1);
  for (int64_t k = 0; k < count; k++) {
    described d;
    memcpy(&d, w->data.got + place_of(k), sizeof d);
    if (d.dtype < 0 || d.dtype >= LT_DTYPE_COUNT || d.ndim < 0 || d.ndim > LT_MAX_DIMS)
      return lt_fail(c, LT_EIO, "recv: the received bytes are not a message");
    bool is_awaited = bare && fits(w->message.into, &d);
    lt_tensor *t = is_awaited ? lt_retain(w->message.into) : made(c, w->message.at, &d);
    if (t == NULL) return false;
    w->message.tensors[w->message.n++] = t;
    w->bytes += t->numel * (int64_t)lt_item_size(t);
  }
  return true;
}

static bool recv_tensor(lt_ctx *c, lt_work *w) {
  if (w->step == 1 && !read_head(c, w)) return false;
  return next_tensor(c, w, w->data.got);
}

lt_work *lt_comm_recv_message(lt_ctx *c, lt_group *g, int from, lt_device on, lt_tensor *into,
                              lt_origin at) {
  lt_plan plan;
  lt_work *w = begin(c, g, LT_COMM_RECV, from, &plan);
  if (w == NULL) return NULL;
  w->round.extent = lt_message_key(c, w, on);
  w->message.at = on;
  w->message.into = lt_retain(into);
  w->agreed = recv_head;
  w->next_step = recv_tensor;
  return lt_work_issue(c, w, &plan, at);
}

int lt_work_tensors(const lt_work *w, lt_tensor *const **tensors) {
  bool there = w->stage == LT_STAGE_DONE && w->failed == LT_OK;
  *tensors = w->message.tensors;
  return there ? w->message.n : 0;
}

const void *lt_work_text(const lt_work *w, int64_t *n) {
  int64_t head = head_bytes(w->message.n);
  bool there = w->stage == LT_STAGE_DONE && w->failed == LT_OK && w->data.got != NULL;
  *n = there ? (int64_t)w->data.got_bytes - head : 0;
  return there ? w->data.got + head : NULL;
}
