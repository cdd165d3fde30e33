/* runtime/io/async_save.c: safetensors files that a helper thread writes.

   The script's thread only issues copies to the host, ordered on the stream behind what wrote the
   tensors; the thread waits for them, sums and writes. Cost for the script: the issue, and host
   memory for one copy of everything. A file waits for the file before it, so that those of a run
   appear in the order of its steps. The thread has a ctx of its own (lt_ctx_child): failures,
   frames and allocations do not meet the script's. */
#include "io/async_save.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/threads.h"
#include "io/file.h"
#include "io/host_copy.h"

/* Whether a file is written, or never will be: shared by its thread and the one of the next file,
   freed by whichever is the last. By malloc: it belongs to no ctx. */
typedef struct turn {
  atomic_bool is_over;
  atomic_int owners;
} turn;

struct lt_async_save {
  lt_async_file file; /* its lists are those below */
  lt_ctx *child;      /* the thread's */
  lt_thread thread;
  lt_named_tensor *tensors; /* copies on the host */
  lt_arrival *arrivals;
  lt_metadata *metadata;
  turn *own, *before; /* before: NULL when it waits for no file */
  bool failed;
  lt_failure failure;
};

static size_t bytes_of(const lt_tensor *t) { return (size_t)t->numel * lt_item_size(t); }

/* ---- the thread ---- */

static void release_turn(turn *t) {
  if (t != NULL && atomic_fetch_sub(&t->owners, 1) == 1) free(t);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const lt_named_tensor *)a)->name, ((const lt_named_tensor *)b)->name);
}

/* The CRC-32 of a tensor, or the list of those of its blocks. */
static void write_sum(lt_ctx *c, lt_json *w, lt_tensor *t, size_t block) {
  uint32_t crc = 0;
  if (block == 0) {
    lt_tensor_crc32(c, t, &crc);
    lt_json_integer(w, crc);
    return;
  }
  size_t n = bytes_of(t);
  const unsigned char *bytes = n > 0 ? lt_tensor_ptr(c, t, LT_READ) : NULL;
  lt_json_char(w, '[');
  for (size_t at = 0; at < n && bytes != NULL; at += block) {
    if (at > 0) lt_json_char(w, ',');
    lt_json_integer(w, (int64_t)crc32_z(0, bytes + at, n - at < block ? n - at : block));
  }
  lt_json_char(w, ']');
}

/* {"name":sum,...}, by name. */
static void write_sums(lt_ctx *c, const lt_async_save *l, lt_json *w) {
  int64_t n = l->file.n_sums;
  size_t bytes = (size_t)n * sizeof *l->tensors;
  lt_named_tensor *list = lt_alloc(c, bytes + 1);
  if (list == NULL) return;
  memcpy(list, l->tensors, bytes);
  if (n > 1) qsort(list, (size_t)n, sizeof *list, by_name);
  lt_json_char(w, '{');
  for (int64_t i = 0; i < n && lt_ok(c); i++) {
    if (i > 0) lt_json_char(w, ',');
    lt_json_string(w, list[i].name, strlen(list[i].name));
    lt_json_char(w, ':');
    write_sum(c, w, list[i].tensor, l->file.block);
  }
  lt_json_char(w, '}');
  lt_free(c, list, bytes + 1);
}

/* Puts the sums into the metadata value that has the mark; `text` holds it. */
static void insert_sums(lt_ctx *c, lt_async_save *l, lt_json *text) {
  for (int64_t k = 0; k < l->file.n_metadata; k++) {
    lt_metadata *m = &l->metadata[k];
    const char *at = strstr(m->value, l->file.mark);
    if (at == NULL) continue;
    size_t head = (size_t)(at - m->value), length = strlen(l->file.mark);
    lt_json_raw(text, m->value, head);
    write_sums(c, l, text);
    lt_json_raw(text, at + length, m->value_size - head - length);
    m->value = text->data;
    m->value_size = text->size;
    return;
  }
}

static void write_file(void *ud) {
  lt_async_save *l = ud;
  const lt_async_file *f = &l->file;
  lt_ctx *c = l->child;
  lt_json text = {.c = c};
  bool ok = true;
  for (int64_t i = 0; i < f->n && ok; i++) ok = lt_host_copy_wait(c, f->op, &l->arrivals[i]);
  if (ok) insert_sums(c, l, &text);
  while (l->before != NULL && !atomic_load(&l->before->is_over)) usleep(LT_HOST_COPY_POLL);
  if (ok && lt_ok(c))
    lt_safetensors_save(c, f->op, f->path, f->n, l->tensors, f->n_metadata, l->metadata, NULL);
  lt_json_free(&text);
  l->failed = lt_take_failure(c, &l->failure);
  atomic_store(&l->own->is_over, true);
}

/* ---- copies ---- */

static bool same_view(const lt_tensor *x, const lt_tensor *y) {
  return x->storage == y->storage && x->offset == y->offset && x->dtype == y->dtype &&
         lt_shape_equal(lt_tensor_shape(x), lt_tensor_shape(y)) &&
         memcmp(x->stride, y->stride, (size_t)x->ndim * sizeof *x->stride) == 0;
}

/* A copy of tensor i, or that of one before it which shows the same memory. Pinned memory, so that
   the copy runs beside kernels. Tied weights are copied once; the search is quadratic in the number
   of tensors, some hundreds. */
static lt_tensor *host_copy(lt_ctx *c, lt_async_save *l, const lt_named_tensor *list, int64_t i) {
  lt_tensor *t = list[i].tensor;
  for (int64_t k = 0; k < i; k++)
    if (same_view(list[k].tensor, t)) return l->tensors[k].tensor;
  if (!t->contiguous) t = l->file.dense(c, t);
  if (t == NULL) return NULL;
  bool there = lt_needs_host_copy(c, t);
  lt_storage *s = there ? lt_host_copy_begin(c, t, &l->arrivals[i])
                        : lt_storage_new(c, LT_CPU_DEVICE, bytes_of(t));
  if (s == NULL) return NULL;
  bool ok = there || lt_tensor_read(c, t, s->data);
  if (ok) t = lt_tensor_make(c, s, (lt_dtype)t->dtype, t->ndim, t->size, NULL, 0);
  lt_storage_release(c, s);
  return ok ? t : NULL;
}

static bool take_copies(lt_ctx *c, lt_async_save *l, const lt_named_tensor *list) {
  for (int64_t i = 0; i < l->file.n; i++) {
    lt_frame frame = lt_frame_open(c);
    lt_tensor *t = host_copy(c, l, list, i);
    l->tensors[i] = (lt_named_tensor){list[i].name, t != NULL ? lt_retain(t) : NULL};
    lt_frame_close(c, frame, 0, NULL);
    if (t == NULL) return false;
  }
  return true;
}

/* ---- beginning and ending ---- */

static void discard(lt_ctx *c, lt_async_save *l) {
  for (int64_t i = 0; i < l->file.n && l->tensors != NULL; i++) lt_release(c, l->tensors[i].tensor);
  if (l->child != NULL) lt_ctx_release(l->child);
  release_turn(l->own);
  release_turn(l->before);
  free(l->tensors);
  free(l->arrivals);
  free(l->metadata);
  free(l);
}

/* The turn of the file before, which a thread that a fork has left behind will never write. */
static turn *turn_before(const lt_async_file *file) {
  if (file->before == NULL || file->before->thread.lost) return NULL;
  atomic_fetch_add(&file->before->own->owners, 1);
  return file->before->own;
}

/* All allocation is done here, by the script's thread, which reports a failure at once; the thread
   cannot fail for memory of its lists. */
lt_async_save *lt_async_save_begin(lt_ctx *c, const lt_async_file *file) {
  if (!lt_ok(c) || !lt_file_may_write(c, file->op, file->path)) return NULL;
  size_t n = (size_t)file->n, n_metadata = (size_t)file->n_metadata;
  lt_async_save *l = calloc(1, sizeof *l);
  if (l == NULL) {
    lt_fail(c, LT_EMEMORY, "%s: out of memory", file->op);
    return NULL;
  }
  l->file = *file;
  l->tensors = calloc(n + 1, sizeof *l->tensors);
  l->arrivals = calloc(n + 1, sizeof *l->arrivals);
  l->metadata = calloc(n_metadata + 1, sizeof *l->metadata);
  l->child = lt_ctx_child(c);
  l->own = calloc(1, sizeof *l->own);
  l->thread = (lt_thread){.name = "save", .fn = write_file, .ud = l};
  if (l->tensors == NULL || l->arrivals == NULL || l->metadata == NULL || l->child == NULL ||
      l->own == NULL) {
    lt_fail(c, LT_EMEMORY, "%s: out of memory", file->op);
  } else {
    memcpy(l->metadata, file->metadata, n_metadata * sizeof *l->metadata);
    atomic_init(&l->own->owners, 1);
    l->before = turn_before(file);
  }
  if (lt_ok(c) && lt_device_share_limit(l->child) && take_copies(c, l, file->tensors) &&
      lt_thread_start(c, &l->thread))
    return l;
  discard(c, l);
  return NULL;
}

bool lt_async_save_done(lt_async_save *l) { return atomic_load(&l->own->is_over); }

/* The thread's failure becomes the caller's, with its text. */
bool lt_async_save_end(lt_ctx *c, lt_async_save *l) {
  lt_thread_join(c, &l->thread);
  lt_failure failure = l->failure;
  bool failed = l->failed;
  discard(c, l);
  return !failed || lt_fail(c, failure.code, "%s", failure.text);
}
