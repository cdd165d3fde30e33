/* runtime/data/images.h: batches of images, read and transformed ahead by threads.

   Each sample is one piece of work: the threads take them in the order of the stream, over the
   borders of batches, and a batch is handed over when all of it is there. What a sample becomes
   does not depend on who does it: random numbers are keyed by (seed, epoch, position). When the
   threads have been stopped (before a fork), the consumer does the work. */
#ifndef LT_DATA_IMAGES_H
#define LT_DATA_IMAGES_H

#include "data/paths.h"
#include "data/prefetch.h"
#include "image/chain.h"
#include "image/format.h"

enum { LT_VIEWS_MAX = 8, LT_IMAGE_THREADS_MAX = 64 };

/* Retained while a feed uses them. */
typedef struct lt_image_source {
  lt_paths *paths;
  lt_order *order; /* positions of samples, which key random numbers */
  lt_order *files; /* of each the file; may be the same */
  int n_views;     /* how many images are made of a file, each by its chain */
  lt_chain *view[LT_VIEWS_MAX];
  lt_image_mode mode;
  bool orient;
  uint64_t seed;
  uint32_t epoch;
  lt_device pin; /* see lt_column */
} lt_image_source;

typedef struct lt_image_feed lt_image_feed;

/* At most `depth` batches ahead, by `threads` threads; depth 0: none. */
lt_image_feed *lt_image_feed_new(lt_ctx *c, const lt_image_source *source,
                                 const lt_batching *batching, int64_t position, int depth,
                                 int threads);

/* The next batch, a tensor [N, C, H, W] a view, as lt_prefetch_next. */
bool lt_image_feed_next(lt_ctx *c, lt_image_feed *f, lt_tensor **out, lt_span *span);

void lt_image_feed_release(lt_ctx *c, lt_image_feed *f); /* NULL is allowed */

#endif
