/* spec/c/device_reductions.c: part of device_conformance: reductions between ranks, on device
   memory, give the CPU's bits. */
#include <string.h>

#include "device/host.h"
#include "device_conformance.h"
#include "ops/op.h"

enum { MOST = 1003 };

typedef struct bench {
  lt_ctx *c;
  int index;
  lt_stream *stream;
  char *there[3]; /* of the device: two operands and a result */
  lt_dtype dtype;
  int64_t n;
  size_t bytes;
} bench;

/* Operand `which`: numbers from 1 to 3, which all dtypes have. */
static void *operand(const bench *t, int which) {
  lt_tensor *x = lt_tensor_empty(t->c, LT_CPU_DEVICE, LT_F64, 1, &t->n);
  for (int64_t k = 0; x != NULL && k < t->n; k++)
    ((double *)lt_data(x))[k] = 1 + (double)((k * 7 + which) % 3);
  x = lt_cast(t->c, x, t->dtype);
  return x != NULL ? lt_data(x) : NULL;
}

static void put(const bench *t, int which) {
  good(t->c, ops->copy(t->c, t->stream, LT_TO_DEVICE, t->index, t->there[which], t->index,
                       operand(t, which), t->bytes, t->dtype),
       "copy");
}

static void expect(const bench *t, int which, const void *wanted, const char *what, int how) {
  static char got[8 * MOST];
  good(t->c, ops->copy(t->c, t->stream, LT_TO_HOST, t->index, got, t->index, t->there[which],
                       t->bytes, t->dtype),
       "copy");
  if (memcmp(got, wanted, t->bytes) != 0)
    fault("%s: reduction %d of %lld elements of %s: not the CPU's bits", what, how,
          (long long)t->n, lt_dtype_name(t->dtype));
}

static void combine_once(const bench *t, lt_comm_reduce how) {
  static char wanted[8 * MOST];
  lt_comm_host_here()->combine(wanted, operand(t, 0), operand(t, 1), t->n, t->dtype, how);
  for (int result = 0; result < 3; result++) { /* apart, or in place of an operand */
    put(t, 0);
    put(t, 1);
    good(t->c, ops->combine(t->c, t->index, t->stream, t->there[result], t->there[0], t->there[1],
                            t->n, t->dtype, how),
         "combine");
    expect(t, result, wanted, "combine", (int)how);
  }
}

/* By powers of 2, so that nothing is rounded. */
static void scale_once(const bench *t) {
  char *wanted = operand(t, 0);
  put(t, 0);
  lt_comm_host_here()->scale(wanted, t->n, t->dtype, 0.25);
  good(t->c, ops->scale(t->c, t->index, t->stream, t->there[0], t->n, t->dtype, 0.25), "scale");
  expect(t, 0, wanted, "scale", 0);
  if (ops->divide == NULL) return;
  put(t, 0);
  good(t->c, ops->divide(t->c, t->index, t->stream, t->there[0], t->n, t->dtype, 4), "divide");
  expect(t, 0, wanted, "divide", 0);
}

void test_reductions(lt_ctx *c, int index) {
  static const int64_t counts[] = {1, 7, MOST};
  static const lt_comm_reduce hows[] = {LT_COMM_SUM, LT_COMM_MIN, LT_COMM_MAX, LT_COMM_PROD};
  if (ops->combine == NULL || ops->copy == NULL) return;
  bench t = {.c = c, .index = index, .stream = stream_of(c, index, STREAM_A)};
  for (int k = 0; k < 3; k++)
    if ((t.there[k] = ops->alloc(index, 8 * MOST)) == NULL) return fault("alloc: no memory");
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
      lt_frame frame = lt_frame_open(c);
      t.dtype = (lt_dtype)d;
      t.n = counts[k];
      t.bytes = (size_t)t.n * lt_dtype_size(t.dtype);
      for (size_t h = 0; h < sizeof hows / sizeof *hows; h++) combine_once(&t, hows[h]);
      if (lt_dtype_is_float(t.dtype) && ops->scale != NULL) scale_once(&t);
      lt_frame_close(c, frame, 0, NULL);
    }
  for (int k = 0; k < 3; k++) ops->free(index, t.there[k], 8 * MOST);
}
