/* runtime/cuda/float8.cu: conversions to and from 8-bit floats, and products of them: by cuBLASLt
   from compute capability 8.9 on, else as products of f32. */
#include "cuda/elementwise.h"
#include "cuda/gemm.h"
#include "ops/math/float8.h"

enum { PIECE = 16 }; /* the library takes dims that it divides, and memory on as many bytes */

static lt_scalar format_of(int64_t format) { return lt_cuda_number(static_cast<double>(format)); }

static bool dequantize(lt_ctx *c, const lt_view *to, const lt_view *from, int64_t format) {
  lt_view views[2] = {*to, *from};
  lt_scalar none = {};
  return lt_cuda_row(c, LT_ROW_OF_FLOAT8, LT_F32, 2, views, nullptr, format_of(format), none);
}

LT_CUDA_KERNEL(quantize_float8) {
  lt_view v[3];
  lt_scalar none = {};
  return lt_cuda_view(c, call->out[0], &v[0]) && lt_cuda_view(c, call->in[0], &v[1]) &&
         lt_cuda_view(c, call->in[1], &v[2]) &&
         lt_cuda_row(c, LT_ROW_TO_FLOAT8, LT_F32, 3, v, nullptr,
                     format_of(lt_cuda_args<lt_args_quantize_float8>(call)->format), none);
}

LT_CUDA_KERNEL(dequantize_float8) {
  lt_view to, from;
  return lt_cuda_view(c, call->out[0], &to) && lt_cuda_view(c, call->in[0], &from) &&
         dequantize(c, &to, &from, lt_cuda_args<lt_args_dequantize_float8>(call)->format);
}

static bool is_row_major(const lt_view *v) {
  return (v->stride[1] == 1 || v->size[1] == 1) && (v->stride[0] == v->size[1] || v->size[0] == 1);
}

/* A contiguous copy of a matrix, of another dtype where it is not made of bits. */
static bool new_matrix(lt_ctx *c, lt_view *v, lt_dtype dtype) {
  v->dtype = dtype;
  v->stride[0] = v->size[1], v->stride[1] = 1;
  v->data = lt_cuda_scratch<char>(c, lt_cuda_numel(v) * lt_cuda_item_size(dtype));
  return v->data != nullptr;
}

static bool in_rows(lt_ctx *c, lt_view *v) {
  lt_view from = *v;
  return is_row_major(v) || (new_matrix(c, v, LT_U8) && lt_cuda_move(c, v, &from));
}

static bool on_pieces(const lt_view *v) {
  return reinterpret_cast<uintptr_t>(v->data) % PIECE == 0 && v->size[0] % PIECE == 0 &&
         v->size[1] % PIECE == 0;
}

/* The library has no product of two e5m2. */
static bool suits_library(lt_ctx *c, const lt_args_scaled_mm *args, const lt_view *a,
                          const lt_view *b, const lt_view *out, bool *suits) {
  int major = 0, minor = 0;
  if (!lt_cuda_ok(c, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                            lt_cuda_now.index), "compute capability") ||
      !lt_cuda_ok(c, cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor,
                                            lt_cuda_now.index), "compute capability"))
    return false;
  *suits = 10 * major + minor >= 89 && on_pieces(a) && on_pieces(b) && is_row_major(out) &&
           reinterpret_cast<uintptr_t>(out->data) % PIECE == 0 &&
           !(args->format_a == LT_FLOAT8_E5M2 && args->format_b == LT_FLOAT8_E5M2) &&
           lt_cuda_gemm_has_library(c);
  return true;
}

static lt_cuda_product product_of(const lt_view *a, const lt_view *b, const lt_view *out) {
  lt_cuda_product p = {};
  p.m = a->size[0], p.k = a->size[1], p.n = b->size[0];
  p.a = lt_cuda_matrix_of(a->data, a->dtype, p.k, false);
  p.b = lt_cuda_matrix_of(b->data, b->dtype, p.k, true);
  p.d = lt_cuda_matrix_of(out->data, out->dtype, p.n, false);
  p.alpha = 1;
  return p;
}

/* As on the CPU: factors as f32, the product scaled in f32 and rounded once. */
static bool by_floats(lt_ctx *c, const lt_args_scaled_mm *args, const lt_view *v) {
  lt_view a = v[1], b = v[2], d = v[0], scale = v[3];
  lt_scalar none = {};
  if (!new_matrix(c, &a, LT_F32) || !new_matrix(c, &b, LT_F32) || !new_matrix(c, &d, LT_F32) ||
      !dequantize(c, &a, &v[1], args->format_a) || !dequantize(c, &b, &v[2], args->format_b))
    return false;
  lt_cuda_product p = product_of(&a, &b, &d);
  scale.data = lt_cuda_scratch<float>(c, 1);
  lt_view scales[3] = {scale, v[3], v[4]}, out[3] = {v[0], d, scale};
  return scale.data != nullptr && lt_cuda_gemm(c, &p) &&
         lt_cuda_row(c, LT_OP_mul, LT_F32, 3, scales, nullptr, none, none) &&
         lt_cuda_row(c, LT_OP_mul, LT_F32, 3, out, nullptr, none, none);
}

LT_CUDA_KERNEL(scaled_mm) {
  const lt_args_scaled_mm *args = lt_cuda_args<lt_args_scaled_mm>(call);
  lt_view v[5];
  bool taken = false;
  if (!lt_cuda_view(c, call->out[0], &v[0])) return false;
  for (int k = 0; k < 4; k++)
    if (!lt_cuda_view(c, call->in[k], &v[k + 1])) return false;
  if (lt_cuda_numel(&v[0]) == 0) return true;
  if (v[1].size[1] == 0) return lt_cuda_fill_view(c, &v[0], lt_cuda_number(0));
  if (!in_rows(c, &v[1]) || !in_rows(c, &v[2]) ||
      !suits_library(c, args, &v[1], &v[2], &v[0], &taken))
    return false;
  if (taken) {
    lt_cuda_product p = product_of(&v[1], &v[2], &v[0]);
    p.scale_a = static_cast<const float *>(v[3].data);
    p.scale_b = static_cast<const float *>(v[4].data);
    p.e5m2_a = args->format_a == LT_FLOAT8_E5M2, p.e5m2_b = args->format_b == LT_FLOAT8_E5M2;
    if (!lt_cuda_gemm_library(c, &p, &taken)) return false;
  }
  return taken || by_floats(c, args, v);
}
