/* runtime/cpu/embedding.c: rows of a table, chosen by ids of any shape. */
#include "cpu/index.h"

/* The table is read, never copied where it is contiguous; ids of any shape count as one list. The
   gradient is index_select_backward (cpu/index.c). */
LT_KERNEL(embedding) {
  lt_tensor *out = call->out[0], *table = call->in[0], *ids = call->in[1];
  lt_frame frame = lt_frame_open(c);
  lt_tensor *weight = lt_cpu_contiguous(c, table, (lt_dtype)table->dtype);
  const int64_t *index = LT_CPU(lt_index_values)(c, call->op, ids, table, 0);
  lt_tensor *y = lt_cpu_result(c, out, (lt_dtype)table->dtype, NULL);
  if (lt_ok(c)) {
    const lt_rows r = {.from = lt_data(weight), .to = lt_data(y), .index = index, .outer = 1,
                       .n_from = table->size[0], .n_to = ids->numel,
                       .bytes = table->size[1] * (int64_t)lt_item_size(table)};
    LT_CPU(lt_rows_take)(c, &r);
    if (y != out) lt_cpu_move(c, out, y);
  }
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}
