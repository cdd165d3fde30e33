/* runtime/comm/fingerprint.c: the 64-bit fingerprint of a collective, which ranks compare before
   data moves.

   Compared are group, number, operation, reduction, root, dtype, the shape by the operation's own
   rule, and of a gradient which message it is of. The script's line is only reported: two ranks may
   broadcast from different lines. */
#include "comm/fingerprint.h"

#include <string.h>

#include "base/hash.h"

/* Which dims of the shape must agree: from this one on. */
static int first_compared(const lt_plan *plan) {
  if (plan->form == LT_FORM_VALUE) return LT_MAX_DIMS;
  /* First sizes travel with the fingerprint, or were exchanged before. */
  if (plan->op == LT_COMM_ALL_GATHER || plan->form == LT_FORM_CAT) return 1;
  return 0;
}

static uint64_t hash_of(const lt_plan *plan) {
  /* Both ends of a message say the same. */
  bool pair = plan->op == LT_COMM_SEND || plan->op == LT_COMM_RECV;
  uint64_t h = lt_hash_mix(plan->group, plan->seq);
  h = lt_hash_mix(h, pair ? LT_COMM_SEND : (uint64_t)plan->op);
  h = lt_hash_mix(h, pair ? plan->from << 32 | plan->to : (uint64_t)(int64_t)plan->root);
  h = lt_hash_mix(h,
                  (uint64_t)plan->reduce << 16 | (uint64_t)plan->form << 8 | (uint8_t)plan->dtype);
  if (plan->form != LT_FORM_VALUE) h = lt_hash_mix(h, (uint64_t)plan->shape.ndim);
  for (int d = first_compared(plan); d < plan->shape.ndim; d++)
    h = lt_hash_mix(h, (uint64_t)plan->shape.size[d]);
  if (plan->by_device) h = lt_hash_mix(h, LT_BY_DEVICE_LINK);
  if (plan->of != 0) h = lt_hash_mix(h, plan->of);
  return h;
}

static bool is_inside(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }

/* Cut in the middle, and between characters: "/home/...runs/train_model.lua". The name of the file
   itself says most. */
static void cut_middle(char *to, size_t capacity, const char *text, size_t n) {
  static const char cut[] = "...";
  enum { TAIL = 18, MOST = 23 };
  const char *slash = strrchr(text, '/');
  size_t tail = slash != NULL ? n - (size_t)(slash - text) : n;
  tail = tail < TAIL ? TAIL : tail > MOST ? MOST : tail;
  size_t head = capacity - tail - strlen(cut);
  while (tail > 0 && is_inside(text[n - tail])) tail--;
  while (head > 0 && is_inside(text[head])) head--;
  memcpy(to, text, head);
  memcpy(to + head, cut, strlen(cut));
  memcpy(to + head + strlen(cut), text + n - tail, tail);
}

void lt_mark_set_file(lt_mark *mark, const char *file) {
  size_t n = file != NULL ? strlen(file) : 0, capacity = sizeof mark->file - 1;
  memset(mark->file, 0, sizeof mark->file);
  if (n > capacity)
    cut_middle(mark->file, capacity, file, n);
  else if (n > 0)
    memcpy(mark->file, file, n);
}

lt_mark lt_mark_of(const lt_plan *plan, lt_origin at) {
  lt_mark m;
  memset(&m, 0, sizeof m); /* holes too: marks are compared and copied as bytes */
  m.hash = hash_of(plan);
  m.seq = plan->seq;
  m.group = plan->group;
  m.kind = LT_MARK_CALL;
  m.op = (uint8_t)plan->op;
  m.reduce = (uint8_t)plan->reduce;
  m.form = (uint8_t)plan->form;
  m.dtype = (int8_t)plan->dtype;
  m.ndim = (int8_t)plan->shape.ndim;
  m.status = plan->by_device ? LT_BY_DEVICE_LINK : 0;
  m.root = plan->root_world;
  m.line = at.line;
  for (int d = 0; d < plan->shape.ndim && d < LT_MARK_DIMS; d++) m.size[d] = plan->shape.size[d];
  lt_mark_set_file(&m, at.file);
  if (at.hook != NULL) strncpy(m.hook, at.hook, sizeof m.hook - 1);
  return m;
}
