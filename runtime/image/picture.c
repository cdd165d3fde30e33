/* runtime/image/picture.c: memory of pictures, and their way to tensors and back. */
#include "image/picture.h"

#include <string.h>

#include "device/device.h"

/* Memory of pictures that are gone, for the next: a ctx makes and drops many of about one size, and
   the system would clear each. */
enum { KEPT = 6, KEPT_BYTES = 64 << 20 };
typedef struct block {
  void *memory;
  size_t bytes;
} block;
typedef struct pool {
  int n;
  size_t bytes;
  block kept[KEPT];
} pool;

static void pool_drop(lt_ctx *c, void *slot) {
  pool *p = slot;
  for (int k = 0; k < p->n; k++) lt_free(c, p->kept[k].memory, p->kept[k].bytes);
  lt_free(c, p, sizeof *p);
}

static pool *pool_of(lt_ctx *c) {
  if (c->slot[LT_SLOT_DATA] == NULL && (c->slot[LT_SLOT_DATA] = lt_alloc(c, sizeof(pool))) != NULL)
    c->slot_drop[LT_SLOT_DATA] = pool_drop;
  return c->slot[LT_SLOT_DATA];
}

/* The least of what is kept that suffices and is not four times too large, or new; bytes 0:
   none. */
static block take(lt_ctx *c, size_t bytes) {
  pool *p = pool_of(c);
  int best = -1;
  for (int k = 0; p != NULL && k < p->n; k++)
    if (p->kept[k].bytes >= bytes && p->kept[k].bytes / 4 <= bytes &&
        (best < 0 || p->kept[k].bytes < p->kept[best].bytes))
      best = k;
  if (best < 0) {
    void *memory = lt_alloc(c, bytes);
    return (block){memory, memory != NULL ? bytes : 0};
  }
  block found = p->kept[best];
  p->bytes -= found.bytes;
  p->kept[best] = p->kept[--p->n];
  return found;
}

/* Back to the pool, unless it is larger than a quarter of it: such a picture would push out all
   others. The oldest go first. */
static void give(lt_ctx *c, block b) {
  pool *p = pool_of(c);
  if (p == NULL || b.bytes > KEPT_BYTES / 4) {
    lt_free(c, b.memory, b.bytes);
    return;
  }
  while (p->n == KEPT || (p->n > 0 && p->bytes + b.bytes > KEPT_BYTES)) { /* the oldest goes */
    p->bytes -= p->kept[0].bytes;
    lt_free(c, p->kept[0].memory, p->kept[0].bytes);
    memmove(p->kept, p->kept + 1, (size_t)--p->n * sizeof *p->kept);
  }
  p->kept[p->n++] = b;
  p->bytes += b.bytes;
}

/* One byte more than the pixels: kernels of three channels write four bytes a pixel (resize.c). */
static bool allocate(lt_ctx *c, lt_picture *out, lt_depth depth, int channels, int height,
                     int width) {
  *out = (lt_picture){.depth = depth, .channels = channels, .height = height, .width = width};
  size_t n = (size_t)channels * (size_t)height * (size_t)width;
  block b = take(c, n * lt_depth_size(depth) + 1); /* of no pixels too */
  out->first = out->block = b.memory;
  out->bytes = b.bytes;
  return out->block != NULL;
}

/* Channels first: the layout of tensors, in which whole channels are transformed. */
bool lt_picture_new(lt_ctx *c, lt_picture *out, lt_depth depth, int channels, int height,
                    int width) {
  if (!allocate(c, out, depth, channels, height, width)) return false;
  out->stride_c = (int64_t)height * width;
  out->stride_y = width;
  out->stride_x = 1;
  return true;
}

/* Pixels first: the layout of decoders, and of kernels that take a pixel's channels together. */
bool lt_picture_interleaved(lt_ctx *c, lt_picture *out, lt_depth depth, int channels, int height,
                            int width) {
  if (!allocate(c, out, depth, channels, height, width)) return false;
  out->stride_c = 1;
  out->stride_y = (int64_t)width * channels;
  out->stride_x = channels;
  return true;
}

void lt_picture_free(lt_ctx *c, lt_picture *p) {
  if (p->block != NULL) give(c, (block){p->block, p->bytes});
  *p = (lt_picture){0};
}

void lt_picture_replace(lt_ctx *c, lt_picture *p, lt_picture next) {
  lt_picture_free(c, p);
  *p = next;
}

/* Steps of 1 and 3 are written out, as those of planes and of RGB pixels: the compiler makes vector
   code of a constant step. */
static void copy_bytes(const uint8_t *from, int64_t step, uint8_t *to, int n) {
  if (step == 1)
    memcpy(to, from, (size_t)n);
  else if (step == 3)
    for (int x = 0; x < n; x++) to[x] = from[3 * x];
  else
    for (int x = 0; x < n; x++) to[x] = from[x * step];
}

static void copy_words(const uint32_t *from, int64_t step, uint32_t *to, int n) {
  if (step == 1)
    memcpy(to, from, (size_t)n * sizeof *to);
  else
    for (int x = 0; x < n; x++) to[x] = from[x * step];
}

/* Strides change their sign and the first element its place: nothing is copied. */
void lt_picture_mirror(lt_picture *p, bool upright) {
  if (p->channels == 0 || p->width == 0 || p->height == 0) return;
  int64_t n = upright ? (p->height - 1) * p->stride_y : (p->width - 1) * p->stride_x;
  p->first = (char *)p->first + n * (int64_t)lt_depth_size(p->depth);
  if (upright)
    p->stride_y = -p->stride_y;
  else
    p->stride_x = -p->stride_x;
}

/* Strides and sides change places: nothing is copied. */
void lt_picture_transpose(lt_picture *p) {
  int64_t stride = p->stride_y;
  int side = p->height;
  p->stride_y = p->stride_x;
  p->stride_x = stride;
  p->height = p->width;
  p->width = side;
}

/* Row by row to channels first: `out` has the picture's bytes without a gap. */
void lt_picture_copy_out(const lt_picture *p, void *out) {
  size_t row = (size_t)p->width * lt_depth_size(p->depth);
  char *to = out;
  for (int ch = 0; ch < p->channels; ch++)
    for (int y = 0; y < p->height; y++, to += row) {
      const void *from = lt_picture_row(p, ch, y);
      if (p->depth == LT_DEPTH_U8)
        copy_bytes(from, p->stride_x, (uint8_t *)to, p->width);
      else
        copy_words(from, p->stride_x, (uint32_t *)(void *)to, p->width);
    }
}

void lt_picture_store(lt_picture *to, const lt_picture *from) {
  size_t size = lt_depth_size(to->depth);
  for (int ch = 0; ch < to->channels; ch++)
    for (int y = 0; y < to->height; y++) {
      char *out = lt_picture_row(to, ch, y);
      const char *in = lt_picture_row(from, ch, y);
      for (int x = 0; x < to->width; x++)
        memcpy(out + x * to->stride_x * (int64_t)size, in + x * from->stride_x * (int64_t)size,
               size);
    }
}

/* A view, or memory of a tensor that was passed in, is copied; what is contiguous and its own
   stays. */
bool lt_picture_own(lt_ctx *c, lt_picture *p) {
  bool is_dense =
      p->stride_x == 1 && p->stride_y == p->width && p->stride_c == (int64_t)p->height * p->width;
  if (p->block != NULL && is_dense) return true;
  lt_picture next;
  if (!lt_picture_new(c, &next, p->depth, p->channels, p->height, p->width)) return false;
  lt_picture_copy_out(p, next.first);
  lt_picture_replace(c, p, next);
  return true;
}

static const lt_dtype dtypes[] = {
    [LT_DEPTH_U8] = LT_U8, [LT_DEPTH_F32] = LT_F32, [LT_DEPTH_I32] = LT_I32};

/* A view without memory of its own (block NULL): the tensor must outlive it. lt_check_data refuses
   a tensor whose storage was emptied, whose pointer leads nowhere. */
bool lt_picture_of(lt_ctx *c, const char *op, const lt_tensor *t, lt_picture *out) {
  if (!lt_check_data(c, op, t)) return false;
  lt_dtype dtype = (lt_dtype)t->dtype;
  *out = (lt_picture){
      .depth = dtype == LT_U8    ? LT_DEPTH_U8
               : dtype == LT_F32 ? LT_DEPTH_F32
                                 : LT_DEPTH_I32,
      .channels = (int)t->size[0],
      .height = (int)t->size[1],
      .width = (int)t->size[2],
      .stride_c = t->stride[0],
      .stride_y = t->stride[1],
      .stride_x = t->stride[2],
      .first = lt_data(t),
  };
  return true;
}

lt_tensor *lt_picture_tensor(lt_ctx *c, const lt_picture *p) {
  int64_t size[] = {p->channels, p->height, p->width};
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, dtypes[p->depth], 3, size);
  if (t != NULL) lt_picture_copy_out(p, lt_data(t));
  return t;
}
