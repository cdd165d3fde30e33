/* runtime/io/snapshot_slot.c: the header of a slot, its bytes, and saves by a helper thread.

   The hash of the bytes (base/hash.h) distinguishes a whole slot from one that was changed by
   accident; it is computed by the helper thread of what the slot has, not of what was meant. */
#include "io/snapshot_slot.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/threads.h"
#include "io/file.h"
#include "io/host_copy.h"

enum { PIECE = 1 << 17 }; /* bytes that are hashed at a time: they are in the cache then */

static const char MAGIC[8] = "LTSNAP1";
static const char WHO[] = "snapshot";

/* The header as it is stored; `check` is a hash of all before it. */
typedef struct stored_header {
  char magic[sizeof MAGIC];
  lt_slot_header header;
  uint64_t check;
} stored_header;

static uint64_t check_of(const stored_header *s) {
  return lt_hash_bytes(s, sizeof *s - sizeof s->check, 0);
}

/* A memory file has no name that could be left behind, and lives as long as any process has it
   open. */
int lt_slot_new(lt_ctx *c) {
  if (!lt_file_may_write(c, WHO, "a memory file")) return -1;
  int fd = memfd_create("ltrain-snapshot", MFD_CLOEXEC);
  if (fd < 0) lt_fail(c, LT_EIO, "%s: cannot make a memory file: %s", WHO, strerror(errno));
  return fd;
}

/* ---- bytes ---- */

static bool write_at(lt_ctx *c, int fd, const void *data, size_t n, size_t at) {
  for (size_t done = 0; done < n;) {
    ssize_t put = pwrite(fd, (const char *)data + done, n - done, (off_t)(at + done));
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC;
    if (put <= 0)
      return lt_fail(c, LT_EIO, "%s: cannot write %zu bytes: %s", WHO, n, strerror(errno));
    done += (size_t)put;
  }
  return true;
}

static bool read_at(lt_ctx *c, int fd, void *out, size_t n, size_t at) {
  for (size_t done = 0; done < n;) {
    ssize_t got = pread(fd, (char *)out + done, n - done, (off_t)(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return lt_fail(c, LT_EIO, "%s: cannot read: %s", WHO, got < 0 ? strerror(errno) : "cut off");
    done += (size_t)got;
  }
  return true;
}

/* A sum of the hashes of pieces, each with its number: the order of pieces counts, and readers can
   take turns with them. */
static bool hash_pieces(lt_ctx *c, int fd, size_t n, uint64_t share, uint64_t shares,
                        uint64_t *out) {
  void *piece = lt_alloc(c, PIECE);
  uint64_t hash = 0;
  bool ok = piece != NULL;
  for (uint64_t k = share; k * PIECE < n && ok; k += shares) {
    size_t at = k * PIECE, part = n - at < PIECE ? n - at : PIECE;
    ok = read_at(c, fd, piece, part, LT_SLOT_START + at);
    if (ok) hash += lt_hash_bytes(piece, part, k);
  }
  lt_free(c, piece, PIECE);
  *out = hash;
  return ok;
}

/* ---- the header ---- */

bool lt_slot_read(int fd, lt_slot_header *out) {
  stored_header s;
  if (pread(fd, &s, sizeof s, 0) != (ssize_t)sizeof s) return false;
  *out = s.header;
  return memcmp(s.magic, MAGIC, sizeof MAGIC) == 0 && s.check == check_of(&s);
}

static bool write_header(lt_ctx *c, int fd, const lt_slot_header *header) {
  stored_header s;
  memset(&s, 0, sizeof s);
  memcpy(s.magic, MAGIC, sizeof MAGIC);
  s.header = *header;
  s.check = check_of(&s);
  return write_at(c, fd, &s, sizeof s, 0);
}

/* Always before the bytes change: a process that is killed while it writes leaves a slot without a
   header, which no reader takes, and never one whose header speaks of other bytes. */
static bool remove_header(lt_ctx *c, int fd) {
  static const stored_header none;
  return lt_file_may_write(c, WHO, "a memory file") && write_at(c, fd, &none, sizeof none, 0);
}

bool lt_slot_hash(lt_ctx *c, int fd, const lt_slot_header *header, uint64_t share, uint64_t shares,
                  uint64_t *out) {
  lt_failure none;
  bool ok = lt_ok(c) &&
            hash_pieces(c, fd, header->number[LT_SLOT_BYTES], share, shares, out);
  if (!ok) lt_take_failure(c, &none);
  return ok;
}

lt_tensor *lt_slot_bytes(lt_ctx *c, int fd, const lt_slot_header *header) {
  int64_t n = (int64_t)header->number[LT_SLOT_BYTES];
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_U8, 1, &n);
  return t != NULL && read_at(c, fd, lt_data(t), (size_t)n, LT_SLOT_START) ? t : NULL;
}

bool lt_slot_put(lt_ctx *c, int fd, const lt_slot_header *header, const void *bytes) {
  return lt_ok(c) && remove_header(c, fd) &&
         write_at(c, fd, bytes, header->number[LT_SLOT_BYTES], LT_SLOT_START) &&
         write_header(c, fd, header);
}

/* ---- saving ---- */

/* The copy of a device's tensor, and where it comes. */
typedef struct piece {
  lt_storage *copy;
  lt_arrival arrival;
  size_t at, n;
} piece;

struct lt_slot_save {
  lt_ctx *child; /* the thread's */
  lt_thread thread;
  int fd;
  lt_slot_header header;
  piece *pieces;
  int64_t n_pieces;
  atomic_bool is_over;
  bool failed;
  lt_failure failure;
};

/* The header comes last, and only when all bytes are there: it is what makes the slot valid. The
   hash is of what was read back. */
static void complete(void *ud) {
  lt_slot_save *l = ud;
  lt_ctx *c = l->child;
  bool ok = true;
  for (int64_t i = 0; i < l->n_pieces && ok; i++) {
    const piece *p = &l->pieces[i];
    ok = lt_host_copy_wait(c, WHO, &p->arrival) && write_at(c, l->fd, p->copy->data, p->n, p->at);
  }
  if (ok && hash_pieces(c, l->fd, l->header.number[LT_SLOT_BYTES], 0, 1, &l->header.hash))
    write_header(c, l->fd, &l->header);
  l->failed = lt_take_failure(c, &l->failure);
  atomic_store(&l->is_over, true);
}

/* One tensor, to its place in the slot or on its way there. */
static bool take(lt_ctx *c, lt_slot_save *l, lt_tensor *t, size_t at,
                 lt_tensor *(*dense)(lt_ctx *c, lt_tensor *t)) {
  if (!t->contiguous && dense != NULL) t = dense(c, t);
  if (t == NULL || !lt_assert(c, t->contiguous)) return false;
  size_t n = (size_t)t->numel * lt_item_size(t);
  if (n == 0) return true;
  if (lt_needs_host_copy(c, t)) {
    piece *p = &l->pieces[l->n_pieces];
    *p = (piece){.at = at, .n = n};
    p->copy = lt_host_copy_begin(c, t, &p->arrival);
    l->n_pieces += p->copy != NULL;
    return p->copy != NULL;
  }
  if (lt_device_table(c, t->storage->device)->host_memory) {
    const void *bytes = lt_tensor_ptr(c, t, LT_READ);
    return bytes != NULL && write_at(c, l->fd, bytes, n, at);
  }
  void *bounce = lt_alloc(c, n);
  bool ok = bounce != NULL && lt_tensor_read(c, t, bounce) && write_at(c, l->fd, bounce, n, at);
  lt_free(c, bounce, n);
  return ok;
}

/* Tensors that are on the host are copied here, by the script's thread: the script may change them
   as soon as this returns. Those of a device are only issued; their copies are ordered on its
   stream before any later work. */
static bool take_all(lt_ctx *c, lt_slot_save *l, int64_t n, const lt_named_tensor *tensors,
                     const lt_json *head, const int64_t *places,
                     lt_tensor *(*dense)(lt_ctx *c, lt_tensor *t)) {
  size_t first = LT_SLOT_START + head->size, last = first;
  bool ok = remove_header(c, l->fd) && write_at(c, l->fd, head->data, head->size, LT_SLOT_START);
  for (int64_t i = 0; i < n && ok; i++) {
    if (places[i] < 0) continue;
    size_t at = first + (size_t)places[i];
    size_t end = at + (size_t)tensors[i].tensor->numel * lt_item_size(tensors[i].tensor);
    if (end > last) last = end;
    lt_frame frame = lt_frame_open(c);
    ok = take(c, l, tensors[i].tensor, at, dense);
    lt_frame_close(c, frame, 0, NULL);
  }
  l->header.number[LT_SLOT_BYTES] = last - LT_SLOT_START;
  return ok;
}

static void discard(lt_ctx *c, lt_slot_save *l) {
  for (int64_t i = 0; i < l->n_pieces; i++) lt_storage_release(c, l->pieces[i].copy);
  if (l->child != NULL) lt_ctx_release(l->child);
  free(l->pieces);
  free(l);
}

/* All allocation is done here, by the script's thread, which reports a failure at once. */
lt_slot_save *lt_slot_save_begin(lt_ctx *c, int fd, const lt_slot_header *header, int64_t n,
                                 const lt_named_tensor *tensors, int64_t n_metadata,
                                 lt_metadata *metadata,
                                 lt_tensor *(*dense)(lt_ctx *c, lt_tensor *t)) {
  lt_json head = {.c = c};
  size_t bytes = (size_t)n * sizeof(int64_t) + 1;
  int64_t *places = lt_alloc(c, bytes);
  lt_slot_save *l = places != NULL ? calloc(1, sizeof *l) : NULL;
  if (l != NULL) {
    l->fd = fd;
    l->header = *header;
    l->pieces = calloc((size_t)n + 1, sizeof *l->pieces);
    l->child = lt_ctx_child(c);
    l->thread = (lt_thread){.name = "snapshot", .fn = complete, .ud = l};
    atomic_init(&l->is_over, false);
  }
  if (lt_ok(c) && (l == NULL || l->pieces == NULL || l->child == NULL))
    lt_fail(c, LT_EMEMORY, "%s: out of memory", WHO);
  bool ok = lt_ok(c) && lt_device_share_limit(l->child) &&
            lt_safetensors_layout(c, WHO, n, tensors, n_metadata, metadata, &head, places) &&
            take_all(c, l, n, tensors, &head, places, dense) && lt_thread_start(c, &l->thread);
  lt_json_free(&head);
  if (places != NULL) lt_free(c, places, bytes);
  if (ok) return l;
  if (l != NULL) discard(c, l);
  return NULL;
}

bool lt_slot_save_done(lt_slot_save *l) { return atomic_load(&l->is_over) || l->thread.lost; }

/* The thread's failure becomes the caller's, with its text. */
bool lt_slot_save_end(lt_ctx *c, lt_slot_save *l) {
  lt_thread_join(c, &l->thread);
  lt_failure failure = l->failure;
  bool failed = l->failed;
  discard(c, l);
  return !failed || lt_fail(c, failure.code, "%s", failure.text);
}
