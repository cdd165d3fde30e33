/* runtime/ops/spatial.h: what convolutions and pooling of 1 to 3 dims share.

   Their rows are named by the number of dims that windows move along, their tensors are
   [N, C, ...] or [C, ...] with as many dims behind. After infer each argument of type EACH or
   PADDING has that many sizes. */
#ifndef LT_OPS_SPATIAL_H
#define LT_OPS_SPATIAL_H

#include "ops/op.h"

int lt_spatial_dims(const lt_op_info *op);

/* "L", "H, W" or "D, H, W". */
const char *lt_spatial_letters(int n);

/* Whether input 0 is [N, C, ...] or [C, ...], floating if it must be. */
bool lt_spatial_input(lt_ctx *c, const lt_infer *i, bool floats);

/* Spreads an argument over the dims; its sizes must be at least `least`. */
bool lt_spatial_each(lt_ctx *c, const lt_infer *i, const char *name, lt_sizes *s, int64_t least);

/* "{1, 2}", into `text`, for messages. */
enum { LT_EACH_TEXT = 72 };
const char *lt_each_text(const lt_sizes *s, char *text);
#define LT_EACH_STR(s) lt_each_text((s), (char[LT_EACH_TEXT]){0})

/* How many windows there are; with `ceil` also one that reaches beyond the end. */
int64_t lt_window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                        int64_t dilation, bool ceil);

/* The meta of a channels-last result; plain strides where both mean the same. */
lt_meta lt_meta_channels_last(lt_shape s, lt_dtype dtype);

/* Where a dim was cut into windows: [windows, kernel] positions o stride + k dilation, as i64. */
lt_tensor *lt_window_places(lt_ctx *c, int64_t windows, int64_t stride, int64_t kernel,
                            int64_t dilation, lt_device device);

/* Part o of n elements of a dim begins at floor(o n / parts) and ends before ceil((o + 1) n /
   parts): both as [parts, 1]. */
void lt_part_bounds(lt_ctx *c, int64_t n, int64_t parts, lt_device device, lt_tensor **from,
                    lt_tensor **to);

/* Where the results of max_window were found, counted in an image of that width. */
lt_tensor *lt_window_indices(lt_ctx *c, lt_tensor *positions, const lt_args_max_window *a,
                             int64_t width);

/* Runs the op of `call` with a batch of one for x without N, and takes that away again.
   Whether x was without N; then the results are made. */
bool lt_spatial_unbatched(lt_ctx *c, const lt_call *call, lt_tensor **out);

/* x [N, C, ...] of one dim more or less than two, as [N, C, H, W] with an H of 1. */
lt_tensor *lt_as_image(lt_ctx *c, lt_tensor *x);

/* The planes of volumes [N, C, D, H, W] as images: [N D, C, H, W] where channels lie last, else
   [N C, D, H, W]; and what was made of them as volumes. */
lt_tensor *lt_planes(lt_ctx *c, lt_tensor *volumes);
lt_tensor *lt_volumes(lt_ctx *c, lt_tensor *planes, const lt_tensor *of);

/* The H and W of an argument; H is `one` where there is none. */
static inline lt_pair lt_image_pair(const lt_sizes *s, int64_t one) {
  return (lt_pair){s->n > 1 ? s->size[s->n - 2] : one, s->size[s->n - 1]};
}

#endif
