/* runtime/data/images.c: a ring of batches that several threads fill.

   The unit of work is a sample, not a batch: with a batch each, the first batch would take as long
   as one thread needs for all of it, and the last threads would idle at the end. Samples are
   claimed in the order of the stream, so that the batch that the consumer waits for is always the
   one that is worked at.

   Who owns what: `source` is retained by the feed; a batch's pixels belong to the batch until the
   consumer takes them; each thread has a ctx of its own, as a ctx is used by one thread. What a
   sample draws depends on (seed, epoch, position), never on the thread or the order in which
   samples are done. */
#include "data/images.h"

#include <string.h>

#include "base/threads.h"

/* One batch. `next` samples were taken by somebody, `done` are finished. */
typedef struct batch {
  lt_span span;
  int64_t next, done;
  lt_storage *pixels[LT_VIEWS_MAX]; /* made by the first sample that is there */
  lt_picture form[LT_VIEWS_MAX];    /* depth, channels and sides of all others */
  int64_t first_file[LT_VIEWS_MAX]; /* whose they are */
  int64_t failed;                   /* the sample of `failure`, the first that failed; n: none */
  lt_failure failure;
} batch;

/* Works with a ctx of its own. */
typedef struct worker {
  lt_image_feed *feed;
  lt_ctx *c;
  lt_thread thread;
} worker;

struct lt_image_feed {
  lt_image_source source;
  lt_batching batching;
  int64_t position; /* where the next batch begins that nobody works at */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool stopping, ended; /* these, the ring and what is spare are guarded by the mutex */
  int depth, count, head;
  batch *ring;
  int n_spare[LT_VIEWS_MAX];
  lt_storage *spare[LT_VIEWS_MAX][LT_PREFETCH_MAX]; /* memory of the consumer for batches to come */
  int n_workers;
  worker workers[LT_IMAGE_THREADS_MAX];
};

static int64_t bytes_of(const lt_picture *p) {
  return (int64_t)p->channels * p->height * p->width * (int64_t)lt_depth_size(p->depth);
}

/* Memory for a batch's view: the consumer's, if there is some of this size. What threads ask for
   themselves goes with them at the end of an epoch, and new memory is slow at first touch. */
static lt_storage *pixels_for(lt_ctx *c, lt_image_feed *f, int v, size_t bytes) {
  if (f->source.pin.kind != 0) return lt_pinned_storage(c, f->source.pin, bytes);
  while (f->n_spare[v] > 0) {
    lt_storage *s = f->spare[v][--f->n_spare[v]];
    if (s->bytes >= bytes) return s;
    lt_storage_release(c, s);
  }
  return lt_storage_new(c, LT_CPU_DEVICE, bytes);
}

/* Memory for a view of all samples, or whether it has the form of this one. The first sample of a
   view decides for the others: sizes are known only when a file was read and transformed. Under the
   mutex, so that there is one first. */
static bool allocate_images(lt_ctx *c, lt_image_feed *f, batch *b, int v, const lt_picture *p,
                            int64_t file) {
  if (b->pixels[v] == NULL) {
    size_t bytes;
    if (__builtin_mul_overflow((size_t)b->span.n, (size_t)bytes_of(p), &bytes))
      return lt_fail(c, LT_EMEMORY, "data: a batch of %lld images", (long long)b->span.n);
    b->pixels[v] = pixels_for(c, f, v, bytes);
    b->form[v] = *p;
    b->first_file[v] = file;
    atomic_store_explicit(&f->source.view[v]->result_bytes, bytes_of(p), memory_order_relaxed);
    return b->pixels[v] != NULL;
  }
  const lt_picture *q = &b->form[v];
  if (q->depth == p->depth && q->channels == p->channels && q->height == p->height &&
      q->width == p->width)
    return true;
  return lt_fail(c, LT_ESHAPE, "data: images of a batch differ: [%d, %d, %d] of %s and [%d, %d, %d]"
                 " of %s: let the transform end with one size, as Resize({h, w}) or a crop gives",
                 q->channels, q->height, q->width, lt_path_at(f->source.paths, b->first_file[v]),
                 p->channels, p->height, p->width, lt_path_at(f->source.paths, file));
}

/* The copy is outside of the mutex: samples have places of their own in the batch. */
static bool put_view(lt_ctx *c, lt_image_feed *f, batch *b, int64_t i, int v, const lt_picture *p,
                     int64_t file) {
  pthread_mutex_lock(&f->mutex);
  bool ok = allocate_images(c, f, b, v, p, file);
  pthread_mutex_unlock(&f->mutex);
  if (ok) lt_picture_copy_out(p, (char *)b->pixels[v]->data + i * bytes_of(p));
  return ok;
}

/* Sample i of a batch: reads the file, makes the views. The decoded image is shared by the views,
   each of which has a draw of its own: two views of one image (contrastive learning) cost one
   reading. */
static bool produce_sample(lt_ctx *c, lt_image_feed *f, batch *b, int64_t i) {
  const lt_image_source *s = &f->source;
  int64_t at = b->span.first + i;
  int64_t position = lt_order_at(s->order, at), file = lt_order_at(s->files, at);
  if (file < 0 || file >= s->paths->n)
    return lt_fail(c, LT_EVALUE, "data: sample %lld of a data set of %lld", (long long)file + 1,
                   (long long)s->paths->n);
  lt_reading r = {"image.read", lt_path_at(s->paths, file), s->mode, s->orient};
  lt_picture decoded;
  if (!lt_image_load(c, &r, &decoded)) return false;
  lt_rng rng = lt_sample_rng(s->seed, s->epoch, position);
  bool ok = true;
  for (int v = 0; v < s->n_views && ok; v++) {
    lt_sample sample = {.image = decoded};
    sample.image.block = NULL; /* borrowed */
    ok = lt_chain_run(c, s->view[v], &sample, lt_rng_draw(&rng)) &&
         put_view(c, f, b, i, v, &sample.image, file);
    lt_sample_free(c, &sample);
  }
  lt_picture_free(c, &decoded);
  return ok;
}

/* The same; what fails is kept, of several the first in the order. Takes the mutex. */
static void finish_sample(lt_ctx *c, lt_image_feed *f, batch *b, int64_t i) {
  produce_sample(c, f, b, i);
  lt_failure failure;
  bool failed = lt_take_failure(c, &failure);
  pthread_mutex_lock(&f->mutex);
  if (failed && i < b->failed) {
    b->failed = i;
    b->failure = failure;
  }
  b->done++;
  if (b->done == b->span.n) pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->mutex);
}

static void drop_pixels(lt_ctx *c, batch *b, int n_views) {
  for (int v = 0; v < n_views; v++) {
    lt_storage_release(c, b->pixels[v]);
    b->pixels[v] = NULL;
  }
}

/* Begins the next batch of the stream at the ring's end. Behind the last one comes one of nothing.
 */
static void plan(lt_image_feed *f) {
  batch *b = &f->ring[(f->head + f->count) % f->depth];
  memset(b, 0, offsetof(batch, failure));
  b->span = lt_batch_at(&f->batching, f->source.order->n, f->position);
  b->failed = b->span.n;
  f->position += b->span.total;
  f->ended = b->span.total == 0;
  f->count++;
}

/* A sample that nobody has taken yet, in the order of the stream; NULL: there is none. */
static batch *claim(lt_image_feed *f, int64_t *i) {
  for (int k = 0; k < f->count; k++) {
    batch *b = &f->ring[(f->head + k) % f->depth];
    if (b->next < b->span.n) {
      *i = b->next++;
      return b;
    }
  }
  return NULL;
}

/* Planning is a matter of some integers and done under the mutex; reading is not. A thread that
   finds nothing to claim and a full ring waits. */
static void work(void *ud) {
  worker *w = ud;
  lt_image_feed *f = w->feed;
  pthread_mutex_lock(&f->mutex);
  while (!f->stopping) {
    int64_t i;
    batch *b = claim(f, &i);
    if (b != NULL) {
      pthread_mutex_unlock(&f->mutex);
      finish_sample(w->c, f, b, i);
      pthread_mutex_lock(&f->mutex);
    } else if (f->count < f->depth && !f->ended) {
      plan(f);
      pthread_cond_broadcast(&f->changed);
    } else {
      pthread_cond_wait(&f->changed, &f->mutex);
    }
  }
  pthread_mutex_unlock(&f->mutex);
}

static void stop(void *ud) {
  lt_image_feed *f = ((worker *)ud)->feed;
  pthread_mutex_lock(&f->mutex);
  f->stopping = true;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->mutex);
}

static void retain(lt_image_source *s) {
  lt_retain(s->paths);
  lt_retain(s->order);
  lt_retain(s->files);
  for (int v = 0; v < s->n_views; v++) lt_retain(s->view[v]);
}

/* All threads' memory counts against the one limit of the parent (lt_device_share_limit). */
static bool start_workers(lt_ctx *c, lt_image_feed *f, int n) {
  for (int k = 0; k < n; k++) {
    worker *w = &f->workers[k];
    *w = (worker){.feed = f, .c = lt_ctx_child(c)};
    w->thread = (lt_thread){.name = "images", .fn = work, .stop = stop, .ud = w};
    if (w->c == NULL || !lt_device_share_limit(w->c))
      return lt_fail(c, LT_EMEMORY, "data: out of memory for a thread");
    f->n_workers = k + 1;
    if (!lt_thread_start(c, &w->thread)) return false;
  }
  return true;
}

/* One more batch's memory, by the consumer, as large as the chains' last results. Threads do
   without it where memory is short. */
static void spare_batch(lt_ctx *c, lt_image_feed *f, int64_t samples) {
  lt_storage *made[LT_VIEWS_MAX] = {NULL};
  if (f->n_workers == 0 || f->source.pin.kind != 0) return;
  for (int v = 0; v < f->source.n_views; v++) {
    int64_t each = atomic_load_explicit(&f->source.view[v]->result_bytes, memory_order_relaxed);
    size_t bytes;
    if (each == 0 || __builtin_mul_overflow((size_t)each, (size_t)samples, &bytes)) continue;
    made[v] = lt_storage_new(c, LT_CPU_DEVICE, bytes);
    lt_failure short_of_memory;
    if (made[v] == NULL) lt_take_failure(c, &short_of_memory);
  }
  pthread_mutex_lock(&f->mutex);
  for (int v = 0; v < f->source.n_views; v++)
    if (made[v] != NULL && f->n_spare[v] < f->depth) {
      f->spare[v][f->n_spare[v]++] = made[v];
      made[v] = NULL;
    }
  pthread_mutex_unlock(&f->mutex);
  for (int v = 0; v < f->source.n_views; v++) lt_storage_release(c, made[v]);
}

static void drop_spare(lt_ctx *c, lt_image_feed *f) {
  for (int v = 0; v < f->source.n_views; v++)
    while (f->n_spare[v] > 0) lt_storage_release(c, f->spare[v][--f->n_spare[v]]);
}

/* Without threads (depth or threads 0) the consumer makes each batch itself, by the same functions:
   the same samples, bit for bit. */
lt_image_feed *lt_image_feed_new(lt_ctx *c, const lt_image_source *source,
                                 const lt_batching *batching, int64_t position, int depth,
                                 int threads) {
  if (!lt_ok(c) || !lt_assert(c, source->n_views >= 1 && source->n_views <= LT_VIEWS_MAX))
    return NULL;
  if (!lt_assert(c, lt_batching_fits(batching, source->order->n, position))) return NULL;
  lt_image_feed *f = lt_alloc(c, sizeof *f);
  if (f == NULL) return NULL;
  bool ahead = depth > 0 && threads > 0;
  f->source = *source;
  retain(&f->source);
  f->batching = *batching;
  lt_retain(batching->lasts);
  f->position = position;
  f->depth = !ahead ? 1 : depth < LT_PREFETCH_MAX ? depth : LT_PREFETCH_MAX;
  pthread_mutex_init(&f->mutex, NULL);
  pthread_cond_init(&f->changed, NULL);
  f->ring = lt_alloc(c, (size_t)f->depth * sizeof *f->ring);
  int n = threads < LT_IMAGE_THREADS_MAX ? threads : LT_IMAGE_THREADS_MAX;
  if (f->ring == NULL || (ahead && !start_workers(c, f, n))) {
    lt_image_feed_release(c, f);
    return NULL;
  }
  int64_t samples = lt_batch_at(&f->batching, f->source.order->n, position).n;
  for (int k = 0; k < f->depth && samples > 0; k++) spare_batch(c, f, samples);
  return f;
}

/* Threads that were stopped have finished their samples, or not begun them. */
static bool is_worked_at(const lt_image_feed *f) {
  return f->n_workers > 0 && !f->stopping;
}

/* The first batch of the ring, whole: by the threads, or here where there are none. */
static batch *wait_for_first(lt_ctx *c, lt_image_feed *f) {
  pthread_mutex_lock(&f->mutex);
  while (is_worked_at(f) && (f->count == 0 || f->ring[f->head].done < f->ring[f->head].span.n))
    pthread_cond_wait(&f->changed, &f->mutex);
  if (f->count == 0) plan(f);
  batch *b = &f->ring[f->head];
  while (b->next < b->span.n) { /* only without threads */
    int64_t i = b->next++;
    pthread_mutex_unlock(&f->mutex);
    finish_sample(c, f, b, i);
    pthread_mutex_lock(&f->mutex);
  }
  pthread_mutex_unlock(&f->mutex);
  return b;
}

/* Threads have no memory to free; here the script's is freed before somebody fails for it. */
static void repeat_here(lt_ctx *c, lt_image_feed *f, batch *b) {
  drop_pixels(c, b, f->source.n_views);
  b->failed = b->span.n;
  b->done = 0;
  for (int64_t i = 0; i < b->span.n; i++) finish_sample(c, f, b, i);
}

static lt_tensor *tensor_of(lt_ctx *c, const batch *b, int v) {
  const lt_picture *p = &b->form[v];
  int64_t size[] = {b->span.n, p->channels, p->height, p->width};
  lt_dtype dtype = p->depth == LT_DEPTH_U8 ? LT_U8 : p->depth == LT_DEPTH_F32 ? LT_F32 : LT_I32;
  return lt_tensor_make(c, b->pixels[v], dtype, 4, size, NULL, 0);
}

/* The ring's first batch leaves at the end: until then its slot cannot be planned anew. An error
   names the sample by its position in the data set, as the script can look it up. */
bool lt_image_feed_next(lt_ctx *c, lt_image_feed *f, lt_tensor **out, lt_span *span) {
  if (!lt_ok(c)) return false;
  batch *b = wait_for_first(c, f);
  if (b->failed < b->span.n && b->failure.code == LT_EMEMORY) repeat_here(c, f, b);
  *span = b->span;
  if (b->failed < b->span.n) {
    int64_t at = lt_order_at(f->source.order, b->span.first + b->failed);
    lt_fail(c, b->failure.code, "%s (in sample %lld)", b->failure.text, (long long)at + 1);
  }
  for (int v = 0; v < f->source.n_views && b->span.n > 0 && lt_ok(c); v++)
    out[v] = tensor_of(c, b, v);
  drop_pixels(c, b, f->source.n_views);
  if (lt_ok(c) && b->span.n > 0) spare_batch(c, f, b->span.n);
  pthread_mutex_lock(&f->mutex);
  f->head = (f->head + 1) % f->depth;
  f->count--;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->mutex);
  return lt_ok(c);
}

/* Threads are joined first: after that nobody uses the ring, and the children's caches can go. */
void lt_image_feed_release(lt_ctx *c, lt_image_feed *f) {
  if (f == NULL) return;
  for (int k = 0; k < f->n_workers; k++) lt_thread_join(c, &f->workers[k].thread);
  for (int k = 0; k < f->count; k++)
    drop_pixels(c, &f->ring[(f->head + k) % f->depth], f->source.n_views);
  drop_spare(c, f);
  for (int k = 0; k < LT_IMAGE_THREADS_MAX; k++)
    if (f->workers[k].c != NULL) lt_ctx_release(f->workers[k].c);
  lt_image_source *s = &f->source;
  lt_release(c, s->paths);
  lt_release(c, s->order);
  lt_release(c, s->files);
  for (int v = 0; v < s->n_views; v++) lt_release(c, s->view[v]);
  lt_release(c, f->batching.lasts);
  if (f->ring != NULL) lt_free(c, f->ring, (size_t)f->depth * sizeof *f->ring);
  pthread_cond_destroy(&f->changed);
  pthread_mutex_destroy(&f->mutex);
  lt_free(c, f, sizeof *f);
}
