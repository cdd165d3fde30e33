/* runtime/image/picture.h: the pixels of one image, in host memory.

   A picture is a view: where its first element is, and how far it is to the next channel, row and
   column. So a crop and a flip cost nothing, and what a decoder gives interleaved (R G B R G B)
   is read in the order of a tensor, channel by channel, by who needs it so. */
#ifndef LT_IMAGE_PICTURE_H
#define LT_IMAGE_PICTURE_H

#include "tensor/tensor.h"

/* No image has more pixels, whatever its file says: that of PIL's "decompression bomb". */
#define LT_PIXELS_MAX ((int64_t)178956970)
enum { LT_SIDE_MAX = 65535, LT_CHANNELS_MAX = 4 };

typedef enum lt_depth { LT_DEPTH_U8, LT_DEPTH_F32, LT_DEPTH_I32 } lt_depth;

typedef struct lt_picture {
  lt_depth depth;
  int channels, height, width;
  int64_t stride_c, stride_y, stride_x; /* in elements */
  void *first;  /* the element of channel 0, row 0, column 0 */
  void *block;  /* what is owned: NULL: the memory is somebody else's */
  size_t bytes;
} lt_picture;

static inline size_t lt_depth_size(lt_depth depth) { return depth == LT_DEPTH_U8 ? 1 : 4; }

/* Memory for a picture, channel after channel, or (interleaved) pixel after pixel; not cleared. */
bool lt_picture_new(lt_ctx *c, lt_picture *out, lt_depth depth, int channels, int height,
                    int width);
bool lt_picture_interleaved(lt_ctx *c, lt_picture *out, lt_depth depth, int channels, int height,
                            int width);

/* Frees what is owned; the picture is empty then. */
void lt_picture_free(lt_ctx *c, lt_picture *p);

/* `next` in the place of `*p`, which is freed. */
void lt_picture_replace(lt_ctx *c, lt_picture *p, lt_picture next);

/* The address of a row of a channel. */
static inline void *lt_picture_row(const lt_picture *p, int channel, int y) {
  int64_t at = channel * p->stride_c + y * p->stride_y;
  return (char *)p->first + at * (int64_t)lt_depth_size(p->depth);
}

/* The view from the other side: left and right, or (upright) top and bottom, change places. */
void lt_picture_mirror(lt_picture *p, bool upright);

/* The view whose rows were columns. */
void lt_picture_transpose(lt_picture *p);

/* All elements, in the order of a tensor [C, H, W], into `out`. */
void lt_picture_copy_out(const lt_picture *p, void *out);

/* The elements of `from`, of the same depth and sides, into those of `to`. */
void lt_picture_store(lt_picture *to, const lt_picture *from);

/* Makes the elements its own and contiguous, for who writes them in place. */
bool lt_picture_own(lt_ctx *c, lt_picture *p);

/* A view of a tensor [C, H, W] of u8, f32 or i32, which must live as long; false with a failure in
   the name of `op` where it has no data. */
bool lt_picture_of(lt_ctx *c, const char *op, const lt_tensor *t, lt_picture *out);

/* A tensor with the elements, in the open frame. */
lt_tensor *lt_picture_tensor(lt_ctx *c, const lt_picture *p);

#endif
