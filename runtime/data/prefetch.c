/* runtime/data/prefetch.c: one producer, one consumer, a ring of batches between them.

   One thread suffices here: gathering is a copy of rows, limited by memory's bandwidth, where
   images.c decodes. The mutex guards indices only; a slot belongs to the producer while it is
   behind the ring's end and to the consumer when it is the first. */
#include "data/prefetch.h"

#include <string.h>

#include "base/threads.h"

/* One gathered batch, or the failure that ended the gathering. */
typedef struct ready {
  lt_span span;
  lt_storage *rows[LT_COLUMNS_MAX];
  lt_failure *failure;
} ready;

struct lt_prefetch {
  lt_ctx *child; /* the thread's; the consumer uses it only when the thread is gone */
  lt_order *order;
  lt_batching batching;
  int64_t position; /* where the next gathering begins */
  int n_columns, depth;
  lt_column columns[LT_COLUMNS_MAX];
  lt_thread thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool stopping, finished; /* these and the ring are guarded by the mutex */
  int count, head;
  ready ring[LT_PREFETCH_MAX];
  lt_failure failures[LT_PREFETCH_MAX];
};

static void drop_ready(lt_ctx *c, lt_prefetch *p, ready *r) {
  for (int i = 0; i < p->n_columns; i++) lt_storage_release(c, r->rows[i]);
  memset(r->rows, 0, sizeof r->rows);
}

/* Gather the batch at p->position with `c`; a failure of c moves into *failure. The position moves
   on also after a failure, so that the stream has the same batches whether or not somebody catches
   the error; `produce` takes it back where only memory was short. */
static void gather(lt_ctx *c, lt_prefetch *p, ready *r, lt_failure *failure) {
  *r = (ready){.span = lt_batch_at(&p->batching, p->order->n, p->position)};
  for (int i = 0; i < p->n_columns && r->span.n > 0 && lt_ok(c); i++)
    r->rows[i] = lt_gather_rows(c, &p->columns[i], p->order, r->span.first, r->span.n);
  if (lt_take_failure(c, failure)) {
    drop_ready(c, p, r);
    r->failure = failure;
  }
  p->position += r->span.total;
}

/* Without memory the thread leaves: the consumer gathers from there on, for it can free what its
   own ctx has cached, and what the script holds no more. */
static void produce(void *ud) {
  lt_prefetch *p = ud;
  for (bool more = true; more;) {
    pthread_mutex_lock(&p->mutex);
    while (p->count == p->depth && !p->stopping) pthread_cond_wait(&p->changed, &p->mutex);
    more = !p->stopping;
    int slot = (p->head + p->count) % p->depth;
    pthread_mutex_unlock(&p->mutex);
    if (!more) return;
    /* the slot behind the ring's end is the producer's alone */
    ready *r = &p->ring[slot];
    int64_t position = p->position;
    gather(p->child, p, r, &p->failures[slot]);
    more = r->failure == NULL && r->span.total > 0;
    bool starved = r->failure != NULL && r->failure->code == LT_EMEMORY;
    if (starved) p->position = position;
    pthread_mutex_lock(&p->mutex);
    if (!starved) p->count++;
    p->finished = !more;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
  }
}

static void stop(void *ud) {
  lt_prefetch *p = ud;
  pthread_mutex_lock(&p->mutex);
  p->stopping = true;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->mutex);
}

/* The system gives none, or a sandbox: the consumer gathers the same batches itself. */
static lt_prefetch *without_thread(lt_ctx *c, lt_prefetch *p) {
  lt_take_failure(c, NULL);
  lt_ctx_release(p->child);
  p->child = NULL;
  p->depth = 0;
  return p;
}

lt_prefetch *lt_prefetch_new(lt_ctx *c, lt_order *order, const lt_batching *batching,
                             int64_t position, int n_columns, const lt_column *columns, int depth) {
  if (!lt_ok(c) || !lt_assert(c, n_columns <= LT_COLUMNS_MAX && depth >= 0)) return NULL;
  if (!lt_assert(c, lt_batching_fits(batching, order->n, position))) return NULL;
  lt_prefetch *p = lt_alloc(c, sizeof *p);
  if (p == NULL) return NULL;
  p->order = lt_retain(order);
  p->batching = *batching;
  lt_retain(batching->lasts);
  p->position = position;
  p->n_columns = n_columns;
  p->depth = depth < LT_PREFETCH_MAX ? depth : LT_PREFETCH_MAX;
  for (int i = 0; i < n_columns; i++) {
    p->columns[i] = columns[i];
    lt_retain(columns[i].source);
  }
  pthread_mutex_init(&p->mutex, NULL);
  pthread_cond_init(&p->changed, NULL);
  if (p->depth == 0) return p;
  p->child = lt_ctx_child(c);
  p->thread = (lt_thread){.name = "prefetch", .fn = produce, .stop = stop, .ud = p};
  if (p->child == NULL || !lt_device_share_limit(p->child))
    lt_fail(c, LT_EMEMORY, "prefetch: out of memory");
  else if (lt_thread_start(c, &p->thread))
    return p;
  else
    return without_thread(c, p);
  lt_prefetch_release(c, p);
  return NULL;
}

/* The ring's first entry into *r; waits for the thread, or gathers when there is none. */
static void take(lt_ctx *c, lt_prefetch *p, ready *r, lt_failure *failure) {
  pthread_mutex_lock(&p->mutex);
  while (p->count == 0 && p->thread.running && !p->stopping && !p->finished)
    pthread_cond_wait(&p->changed, &p->mutex);
  bool ringed = p->count > 0;
  if (ringed) {
    *r = p->ring[p->head];
    if (r->failure != NULL) {
      *failure = *r->failure;
      r->failure = failure;
    }
    p->head = (p->head + 1) % p->depth;
    p->count--;
    pthread_cond_broadcast(&p->changed);
  }
  bool over = !ringed && p->finished;
  pthread_mutex_unlock(&p->mutex);
  if (over) { /* what the thread's ctx has cached is within our limit */
    lt_thread_join(c, &p->thread);
    lt_ctx_release(p->child);
    p->child = NULL;
  }
  if (!ringed) gather(c, p, r, failure);
}

/* A failure of the thread is raised here, in the consumer's ctx, at the batch that it belongs to:
   those gathered before it are handed out first. */
bool lt_prefetch_next(lt_ctx *c, lt_prefetch *p, lt_tensor **out, lt_span *span) {
  if (!lt_ok(c)) return false;
  ready r;
  lt_failure failure;
  take(c, p, &r, &failure);
  *span = r.span;
  if (r.failure != NULL) return lt_fail(c, failure.code, "%s", failure.text);
  for (int i = 0; i < p->n_columns && r.span.n > 0; i++)
    out[i] = lt_gathered(c, &p->columns[i], r.rows[i], r.span.n);
  drop_ready(c, p, &r);
  return lt_ok(c);
}

/* A thread that is lost (a forked child has none of its parent's threads) may have held the mutex,
   which is then not destroyed. */
void lt_prefetch_release(lt_ctx *c, lt_prefetch *p) {
  if (p == NULL) return;
  lt_thread_join(c, &p->thread);
  for (; p->count > 0; p->count--, p->head = (p->head + 1) % p->depth)
    drop_ready(c, p, &p->ring[p->head]);
  if (p->child != NULL) lt_ctx_release(p->child);
  for (int i = 0; i < p->n_columns; i++) lt_release(c, p->columns[i].source);
  lt_release(c, p->order);
  lt_release(c, p->batching.lasts);
  if (!p->thread.lost) {
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
  }
  lt_free(c, p, sizeof *p);
}
