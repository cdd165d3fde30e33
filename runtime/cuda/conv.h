/* runtime/cuda/conv.h: convolutions, as the files of convolution share them.

   N images, C input channels, O output channels, G groups, K kernel positions (taps) of a channel,
   P output positions of a channel. */
#ifndef LT_CUDA_CONV_H
#define LT_CUDA_CONV_H

#include "cuda/cuda.h"

/* Of one dtype. Each pass writes one of the three, which is row-major; the weight always is, the
   others have any strides. Sizes of an image with its padding fit into 31 bits. */
typedef struct lt_cuda_conv {
  int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
  lt_pair stride, padding, dilation;
  lt_view x, weight, y; /* [N, C, H, W], [O, C / G, KH, KW], [N, O, OH, OW] */
} lt_cuda_conv;

typedef enum lt_cuda_conv_pass {
  LT_CUDA_CONV_FORWARD,
  LT_CUDA_CONV_INPUT,
  LT_CUDA_CONV_WEIGHT
} lt_cuda_conv_pass;

/* conv_cudnn.cu, which is there where cuDNN's headers are: by cuDNN. *taken false: it has no
   algorithm for this. Without a bias. */
__attribute__((weak)) bool lt_cuda_conv_library(lt_ctx *c, const lt_cuda_conv *v,
                                                lt_cuda_conv_pass pass, bool *taken);

/* conv_product.cu: as products of matrices. With `add` the result of a forward pass is added to
   what y holds, the bias. */
bool lt_cuda_conv_forward(lt_ctx *c, const lt_cuda_conv *v, bool add);
bool lt_cuda_conv_input(lt_ctx *c, const lt_cuda_conv *v);
bool lt_cuda_conv_weight(lt_ctx *c, const lt_cuda_conv *v);

/* conv_columns.cu: what a kernel position sees of each output position, side by side: element
   (n, c, k, p) is n * image + c * channel + k * tap + p. */
typedef struct lt_cuda_columns {
  void *data;
  int64_t image, channel, tap;
} lt_cuda_columns;

/* Which of them are made at a time: images first_n on, of them positions (forward) or channels of
   each group (input) `first` on. */
typedef struct lt_cuda_conv_tile {
  int64_t first_n, n, first, count;
} lt_cuda_conv_tile;

/* Copies x into columns of its dtype. */
bool lt_cuda_conv_spread(lt_ctx *c, const lt_cuda_conv *v, lt_cuda_conv_tile tile,
                         lt_cuda_columns to);
/* Adds columns, in f32 or f64, up in x. The tile's channels lie side by side. */
bool lt_cuda_conv_collect(lt_ctx *c, const lt_cuda_conv *v, lt_cuda_conv_tile tile,
                          lt_cuda_columns from);

#endif
