/* runtime/cpu/float8.c: conversions to and from 8-bit floats, and products of them.

   CPUs have no such products: the bits are made floats, which is exact, and multiplied as those,
   so that a script that trains in 8 bits on a GPU gets the same numbers here, more slowly. */
#include "ops/math/float8.h"

#include "cpu/scratch.h"

#include "base/threads.h"

typedef struct job {
  const float *x;
  const uint8_t *bits;
  float *out;
  uint8_t *out_bits;
  int64_t n;
  float scale;
  bool e5m2;
} job;

static int64_t end_of(const job *j, int64_t chunk) {
  int64_t end = (chunk + 1) * LT_CHUNK;
  return end < j->n ? end : j->n;
}

static void quantize_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  for (int64_t i = chunk * LT_CHUNK, end = end_of(j, chunk); i < end; i++)
    j->out_bits[i] = lt_f32_to_float8(j->x[i] * j->scale, j->e5m2);
}

static void dequantize_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  for (int64_t i = chunk * LT_CHUNK, end = end_of(j, chunk); i < end; i++)
    j->out[i] = lt_float8_to_f32(j->bits[i], j->e5m2);
}

static void scale_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  for (int64_t i = chunk * LT_CHUNK, end = end_of(j, chunk); i < end; i++) j->out[i] *= j->scale;
}

static void run(lt_ctx *c, job *j, void (*fn)(void *ud, int64_t chunk)) {
  lt_parallel_work(c, j->n, (j->n + LT_CHUNK - 1) / LT_CHUNK, fn, j);
}

static bool quantize(lt_ctx *c, const lt_call *call) {
  const lt_args_quantize_float8 *a = call->args;
  lt_tensor *out = call->out[0], *to = lt_cpu_result(c, out, LT_U8, NULL);
  lt_tensor *x = lt_cpu_contiguous(c, call->in[0], LT_F32);
  if (x == NULL || to == NULL) return false;
  job j = {.x = lt_data(x), .out_bits = lt_data(to), .n = out->numel};
  j.e5m2 = a->format == LT_FLOAT8_E5M2;
  j.scale = *(const float *)lt_data(call->in[1]);
  run(c, &j, quantize_chunk);
  return to == out || lt_cpu_move(c, out, to);
}

LT_KERNEL(quantize_float8) { return lt_cpu_in_frame(c, call, quantize); }

/* The values of `t` as a new tensor of f32, row-major. */
static lt_tensor *values_of(lt_ctx *c, lt_tensor *t, int64_t format) {
  lt_tensor *out = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, t->ndim, t->size);
  if ((t = lt_cpu_contiguous(c, t, LT_U8)) == NULL || out == NULL) return NULL;
  job j = {.bits = lt_data(t), .out = lt_data(out), .n = t->numel};
  j.e5m2 = format == LT_FLOAT8_E5M2;
  run(c, &j, dequantize_chunk);
  return out;
}

static bool dequantize(lt_ctx *c, const lt_call *call) {
  const lt_args_dequantize_float8 *a = call->args;
  lt_tensor *values = values_of(c, call->in[0], a->format);
  return values != NULL && lt_cpu_move(c, call->out[0], values);
}

LT_KERNEL(dequantize_float8) { return lt_cpu_in_frame(c, call, dequantize); }

/* Scaled in f32 and rounded once, as the product is of GPUs. */
static bool multiply(lt_ctx *c, const lt_call *call) {
  const lt_args_scaled_mm *args = call->args;
  lt_tensor *out = call->out[0], *to = lt_cpu_result(c, out, LT_F32, NULL);
  lt_tensor *in[2] = {values_of(c, call->in[0], args->format_a),
                      values_of(c, call->in[1], args->format_b)};
  if (in[0] == NULL || in[1] == NULL || to == NULL) return false;
  const lt_call product = {.op = LT_OP_linear, .n_in = 2, .n_out = 1, .in = in, .out = &to};
  if (!LT_CPU(lt_cpu_linear)(c, &product)) return false;
  job j = {.out = lt_data(to), .n = to->numel};
  j.scale = *(const float *)lt_data(call->in[2]) * *(const float *)lt_data(call->in[3]);
  run(c, &j, scale_chunk);
  return to == out || lt_cpu_move(c, out, to);
}

LT_KERNEL(scaled_mm) { return lt_cpu_in_frame(c, call, multiply); }
