/* runtime/device/segments.c: large blocks of a pool are cut from segments, which the device gives,
   and joined with their free neighbours when they are freed.

   Batches of changing length ask for other sizes each time: blocks that keep their size would pile
   up, and more than half of a device's memory would be in blocks of sizes that nobody asks for now.
   Best fit with boundary tags (D. E. Knuth, The Art of Computer Programming, 1.2.5), and as in
   PyTorch's caching allocator: a block of a segment knows its neighbours.

   A free block keeps where the last work on it stands. Two are joined where that is on one stream,
   or done: the joined one is used after the later of the two positions. A copy that is to run
   beside the computation needs memory with which the computation is done, which joining with
   memory in use by it would spoil: such blocks have segments of their own.

   Sizes grow, and segments that were large enough are then in the way. Before more is asked of the
   device than a ninth beyond the most that was in use, segments of which all is free go back.
   Each time that this happens without more in use it may be a sixty-fourth beyond that, so that a
   program with the same steps ends with the same segments, and asks the device for none. */
#include "device/segments.h"

#include <string.h>

#include "device/stream.h"

enum { GRAIN_SHIFT = 16 }; /* what is cut off is of this many bytes, as a power of two, or more */
static const size_t GRAIN = (size_t)1 << GRAIN_SHIFT, SEGMENT = (size_t)2 << 20,
                    JOINED = (size_t)64 << 20; /* below that segments stay as they are */

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

/* ---- free lists ---- */

/* Eighths of powers of two, rounded down: all blocks of higher classes are larger. */
static int class_of(size_t bytes) {
  int shift = 63 - __builtin_clzll(bytes);
  return 8 * (shift - GRAIN_SHIFT) + (int)(bytes >> (shift - 3) & 7);
}

static lt_block **list_of(lt_pool *p, const lt_block *b) {
  return &p->large.free_list[b->is_beside][class_of(b->capacity)];
}

/* All of a segment, of those that may be joined to one. */
static bool is_segment(const lt_block *b) { return b->left == NULL && b->right == NULL; }
static bool is_whole(const lt_block *b) { return is_segment(b) && !b->is_beside; }

static void put(lt_pool *p, lt_block *b) {
  lt_block **list = list_of(p, b);
  b->previous = NULL;
  b->next = *list;
  if (b->next != NULL) b->next->previous = b;
  *list = b;
  b->is_free = true;
  p->large.unused += b->capacity;
  if (is_whole(b)) p->large.whole += b->capacity;
}

static void take_off(lt_pool *p, lt_block *b) {
  if (b->previous != NULL)
    b->previous->next = b->next;
  else
    *list_of(p, b) = b->next;
  if (b->next != NULL) b->next->previous = b->previous;
  b->next = b->previous = NULL;
  b->is_free = false;
  p->large.unused -= b->capacity;
  if (is_whole(b)) p->large.whole -= b->capacity;
}

/* ---- order ---- */

static void set_order(lt_block *b, lt_event last) {
  b->storage.write = last;
  memset(b->storage.reads, 0, sizeof b->storage.reads);
}

/* The last position on a free block, whose work is on one stream. */
static lt_event last_of(const lt_block *b) {
  lt_event last = b->storage.write;
  for (int k = 0; k < LT_READERS; k++) {
    lt_event read = b->storage.reads[k];
    if (read.stream != NULL && (last.stream == NULL || read.position > last.position)) last = read;
  }
  return last;
}

static bool settle(lt_block *b) {
  if (!lt_order_done(&b->storage)) return false;
  set_order(b, (lt_event){0});
  return true;
}

static bool can_join(lt_block *a, lt_block *b) {
  if (a == NULL || b == NULL || !a->is_free || !b->is_free) return false;
  const lt_stream *one = last_of(a).stream, *other = last_of(b).stream;
  return one == NULL || other == NULL || one == other || settle(a) || settle(b);
}

/* ---- cutting and joining ---- */

static lt_block *block_new(lt_pool *p, char *data, size_t bytes, bool is_beside) {
  lt_block *b = lt_pool_raw(p, NULL, 0, sizeof *b);
  if (b == NULL) return NULL;
  memset(b, 0, sizeof *b);
  b->storage.data = data;
  b->storage.device = p->device;
  b->capacity = bytes;
  b->is_beside = is_beside;
  return b;
}

/* What the block, which is in no list, has beyond `bytes` becomes a free one. Without memory for
   that it stays whole. */
static void cut(lt_pool *p, lt_block *b, size_t bytes) {
  if (b->capacity < bytes + GRAIN) return;
  size_t rest = b->capacity - bytes;
  lt_block *r = block_new(p, (char *)b->storage.data + bytes, rest, b->is_beside);
  if (r == NULL) return;
  set_order(r, last_of(b));
  b->capacity = bytes;
  r->left = b;
  r->right = b->right;
  if (r->right != NULL) r->right->left = r;
  b->right = r;
  put(p, r);
}

/* `b` and its right neighbour are one, in no list. */
static void absorb(lt_pool *p, lt_block *b) {
  lt_block *right = b->right;
  lt_event own = last_of(b), other = last_of(right);
  set_order(b, other.stream != NULL && (own.stream == NULL || other.position > own.position) ? other
                                                                                            : own);
  b->capacity += right->capacity;
  b->right = right->right;
  if (b->right != NULL) b->right->left = b;
  lt_pool_raw(p, right, sizeof *right, 0);
}

/* A free block and its right neighbour, where both are free and may be. */
static bool join_right(lt_pool *p, lt_block *b) {
  if (!can_join(b, b->right)) return false;
  take_off(p, b->right);
  take_off(p, b);
  absorb(p, b);
  put(p, b);
  return true;
}

void lt_segments_give(lt_pool *p, lt_block *b) {
  if (!lt_order_single(&b->storage)) settle(b); /* it is done (pool.c) */
  put(p, b);
  join_right(p, b);
  if (b->left != NULL) join_right(p, b->left);
}

/* fn of all free blocks, until it says true: it may take the block off its list. */
static bool each_free(lt_ctx *c, lt_pool *p, bool (*fn)(lt_ctx *c, lt_pool *p, lt_block *b)) {
  for (int k = 0; k < LT_LARGE_CLASSES; k++)
    for (int beside = 0; beside < 2; beside++)
      for (lt_block *next, *b = p->large.free_list[beside][k]; b != NULL; b = next) {
        next = b->next;
        if (fn(c, p, b)) return true;
      }
  return false;
}

/* Of neighbours that could not be joined before, whose work is done now. */
static bool join_one(lt_ctx *c, lt_pool *p, lt_block *b) {
  (void)c;
  return join_right(p, b);
}

/* A join changes lists, so that the walk begins again. */
static void join_all(lt_pool *p) {
  while (each_free(NULL, p, join_one)) {
  }
}

/* ---- segments ---- */

static void segment_destroy(lt_pool *p, lt_block *b) {
  take_off(p, b);
  p->large.total -= b->capacity;
  p->stats.cached_bytes -= (int64_t)b->capacity;
  lt_pool_give_back(p, b->storage.data, b->capacity);
  lt_pool_raw(p, b, sizeof *b, 0);
}

static bool trim_one(lt_ctx *c, lt_pool *p, lt_block *b) {
  (void)c;
  if (is_segment(b)) segment_destroy(p, b);
  return false;
}

static bool forget_order(lt_ctx *c, lt_pool *p, lt_block *b) {
  (void)c, (void)p;
  set_order(b, (lt_event){0});
  return false;
}

void lt_segments_trim(lt_pool *p) {
  each_free(NULL, p, forget_order);
  join_all(p);
  each_free(NULL, p, trim_one);
}

/* Bytes of segments that there may be with `bytes` more in use. */
static size_t allowed(const lt_pool *p, size_t bytes) {
  const lt_large *l = &p->large;
  size_t used = l->total - l->unused + bytes, most = used > l->most ? used : l->most;
  return most + most / 9 + most / 64 * l->releases;
}

/* Gives free segments back, the smallest first, until there are at most `limit` bytes: a larger one
   serves what they served. */
static void give_segments_back(lt_ctx *c, lt_pool *p, size_t limit) {
  lt_large *l = &p->large;
  size_t before = l->total;
  for (int k = 0; k < LT_LARGE_CLASSES && l->total > limit; k++)
    for (int beside = 0; beside < 2; beside++)
      for (lt_block *next, *b = l->free_list[beside][k]; b != NULL; b = next) {
        next = b->next;
        if (!is_segment(b) || l->total <= limit) continue;
        lt_order_host(c, &b->storage, true);
        segment_destroy(p, b);
      }
  if (l->total == before) return;
  l->releases++;
  l->most_then = l->most;
}

static void make_room(lt_ctx *c, lt_pool *p, size_t more, size_t bytes) {
  lt_large *l = &p->large;
  if (l->most > l->most_then + l->most_then / 32) l->releases = 0;
  size_t limit = allowed(p, bytes);
  give_segments_back(c, p, limit > more ? limit - more : 0);
}

static lt_block *segment_of(lt_pool *p, size_t bytes, bool is_beside) {
  void *data = lt_pool_ask(p, bytes);
  lt_block *b = data != NULL ? block_new(p, data, bytes, is_beside) : NULL;
  if (b != NULL) p->large.total += bytes;
  if (b == NULL && data != NULL) lt_pool_give_back(p, data, bytes);
  return b;
}

/* How large a segment is for a block that needs `least`: a sixteenth of all that there is, where
   that is more: few large segments leave less that does not fit than many. The host's memory is
   asked for as it is needed. */
static size_t segment_size(const lt_pool *p, size_t bytes, size_t least, bool is_beside) {
  size_t more = round_up(p->large.total / 16, SEGMENT);
  bool may = !p->ops->host_memory && !is_beside && p->large.total + more <= allowed(p, bytes);
  return may && more > least ? more : least;
}

static lt_block *segment_new(lt_pool *p, size_t bytes, bool is_beside) {
  size_t exact = round_up(bytes, GRAIN);
  size_t least = p->ops->host_memory ? exact : round_up(bytes, SEGMENT);
  const size_t sizes[] = {segment_size(p, bytes, least, is_beside), least, exact};
  lt_block *b = NULL;
  for (int k = 0; k < 3 && b == NULL; k++)
    if (k == 0 || sizes[k] != sizes[k - 1]) b = segment_of(p, sizes[k], is_beside);
  return b;
}

/* Most of the memory is free, in several segments: one takes their place. Pages of the host's
   memory would have to be cleared again. */
static void join_segments(lt_ctx *c, lt_pool *p) {
  lt_large *l = &p->large;
  if (p->ops->host_memory || l->whole < JOINED || l->whole < l->total / 2) return;
  l->is_scattered = false;
  make_room(c, p, l->total + l->total / 2, 0); /* all of them */
  size_t limit = allowed(p, 0);
  if (l->total + JOINED > limit) return;
  lt_block *b = segment_of(p, round_up(limit - l->total, SEGMENT), false);
  if (b == NULL) return;
  p->stats.cached_bytes += (int64_t)b->capacity;
  put(p, b);
}

/* ---- taking ---- */

static lt_block *best_of(lt_pool *p, size_t bytes, bool is_beside, bool idle) {
  for (int k = class_of(bytes); k < LT_LARGE_CLASSES; k++) {
    lt_block *best = NULL;
    for (lt_block *b = p->large.free_list[is_beside][k]; b != NULL; b = b->next)
      if (b->capacity >= bytes && (best == NULL || b->capacity < best->capacity) &&
          (!idle || lt_order_done(&b->storage)))
        best = b;
    if (best != NULL) return best;
  }
  return NULL;
}

static void note_used(lt_pool *p) {
  size_t used = p->large.total - p->large.unused;
  if (used > p->large.most) p->large.most = used;
}

lt_block *lt_segments_find(lt_ctx *c, lt_pool *p, size_t bytes, lt_take how) {
  size_t size = round_up(bytes, GRAIN);
  bool idle = how == LT_TAKE_IDLE;
  if (p->large.is_scattered) join_segments(c, p);
  lt_block *b = best_of(p, size, idle, idle);
  if (b == NULL && how == LT_TAKE_ANY) b = best_of(p, size, true, false);
  if (b == NULL) return NULL;
  take_off(p, b);
  cut(p, b, size);
  p->stats.cached_bytes -= (int64_t)b->capacity;
  note_used(p);
  return b;
}

lt_block *lt_segments_new(lt_ctx *c, lt_pool *p, size_t bytes, lt_take how) {
  join_all(p);
  lt_block *b = lt_segments_find(c, p, bytes, how);
  if (b != NULL) return b;
  p->large.is_scattered = p->large.total > 0 && how != LT_TAKE_IDLE;
  make_room(c, p, round_up(bytes, SEGMENT), bytes);
  b = segment_new(p, bytes, how == LT_TAKE_IDLE);
  if (b == NULL) return NULL;
  size_t whole = b->capacity;
  cut(p, b, round_up(bytes, GRAIN));
  p->stats.cached_bytes += (int64_t)(whole - b->capacity);
  note_used(p);
  return b;
}
