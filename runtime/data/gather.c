/* runtime/data/gather.c: copies rows of tensors by index into a batch. */
#include "data/gather.h"

#include <string.h>

/* Whether the elements of each row follow one another; rows may be anywhere, as those of an
   expanded tensor are in one place. */
static bool has_whole_rows(const lt_tensor *t) {
  int64_t next = 1;
  for (int i = t->ndim - 1; i > 0; i--) {
    if (t->size[i] != 1 && t->stride[i] != next) return false;
    next *= t->size[i];
  }
  return true;
}

bool lt_columns_check(lt_ctx *c, const char *op, int n_columns, const lt_column *columns) {
  if (!lt_ok(c)) return false;
  for (int i = 0; i < n_columns; i++) {
    const lt_tensor *t = columns[i].source;
    if (t->ndim < 1)
      return lt_fail(c, LT_ESHAPE, "%s: tensor %d has no dimension to count samples by", op, i + 1);
    if (t->size[0] != columns[0].source->size[0])
      return lt_fail(c, LT_ESHAPE, "%s: lengths differ: %s has %lld samples, %s has %lld", op,
                     LT_TENSOR_STR(columns[0].source), (long long)columns[0].source->size[0],
                     LT_TENSOR_STR(t), (long long)t->size[0]);
    if (!lt_device_table(c, t->storage->device)->host_memory)
      return lt_fail(c, LT_EDEVICE, "%s: tensor %d is not in the host's memory", op, i + 1);
    if (!lt_check_data(c, op, t)) return false;
    if (columns[i].divisor != 0 && t->dtype != LT_U8)
      return lt_fail(c, LT_EDTYPE, "%s: only u8 can be scaled, tensor %d is %s", op, i + 1,
                     lt_dtype_name((lt_dtype)t->dtype));
    if (!t->contiguous && !has_whole_rows(t))
      return lt_fail(c, LT_EARG, "%s: rows of tensor %d are not contiguous: %s", op, i + 1,
                     LT_TENSOR_STR(t));
  }
  return true;
}

static int64_t row_length(const lt_tensor *t) {
  int64_t n = 1;
  for (int i = 1; i < t->ndim; i++) n *= t->size[i];
  return n;
}

static lt_dtype result_dtype(const lt_column *column) {
  return column->divisor != 0 ? LT_F32 : (lt_dtype)column->source->dtype;
}

static void scale(float *out, const uint8_t *in, int64_t n, float divisor) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)in[i] / divisor;
}

lt_storage *lt_gather_rows(lt_ctx *c, const lt_column *column, const lt_order *order, int64_t first,
                           int64_t n) {
  const lt_tensor *t = column->source;
  int64_t length = row_length(t), rows = t->size[0];
  size_t from_bytes = (size_t)length * lt_item_size(t);
  int64_t step = t->contiguous ? length : t->stride[0]; /* elements from a row to the next */
  size_t to_bytes = (size_t)length * lt_dtype_size(result_dtype(column));
  size_t bytes;
  if (__builtin_mul_overflow((size_t)n, to_bytes, &bytes)) {
    lt_fail(c, LT_EMEMORY, "data: a batch of %lld samples of %zu bytes", (long long)n, to_bytes);
    return NULL;
  }
  lt_storage *s = column->pin.kind != 0 ? lt_pinned_storage(c, column->pin, bytes)
                                        : lt_storage_new(c, LT_CPU_DEVICE, bytes);
  if (s == NULL) return NULL;
  const char *from = lt_data(t);
  char *to = s->data;
  for (int64_t i = 0; i < n; i++, to += to_bytes) {
    int64_t row = lt_order_at(order, first + i);
    if (row < 0 || row >= rows) {
      lt_fail(c, LT_EVALUE, "data: sample %lld of a data set of %lld", (long long)row + 1,
              (long long)rows);
      lt_storage_release(c, s);
      return NULL;
    }
    const char *source = from + row * step * (int64_t)lt_item_size(t);
    if (column->divisor != 0)
      scale((float *)(void *)to, (const uint8_t *)source, length, column->divisor);
    else
      memcpy(to, source, from_bytes);
  }
  return s;
}

lt_tensor *lt_gathered(lt_ctx *c, const lt_column *column, lt_storage *rows, int64_t n) {
  int64_t size[LT_MAX_DIMS];
  memcpy(size, column->source->size, sizeof size);
  size[0] = n;
  return lt_tensor_make(c, rows, result_dtype(column), column->source->ndim, size, NULL, 0);
}
