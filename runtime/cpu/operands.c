/* runtime/cpu/operands.c: operands of products in a form that oneDNN takes (operands.h).

   oneDNN wants one stride of 1 and the other not below the row's length; a transposed view is such
   a matrix, so that most operands are passed where they are. What is neither (a slice with a step,
   a window that overlaps itself) is copied. */
#include "cpu/operands.h"

#include "cpu/scratch.h"
#include "ops/math/matrix_strides.h"

lt_matrix LT_CPU(lt_matrix_of)(const lt_product *p, const lt_tensor *t) {
  lt_matrix m = {.data = lt_data(t), .row = t->stride[t->ndim - 2], .col = t->stride[t->ndim - 1]};
  int lead = p->n_batch - (t->ndim - 2);
  for (int i = 0; i < t->ndim - 2; i++) m.batch[lead + i] = t->size[i] == 1 ? 0 : t->stride[i];
  return m;
}

static bool normalise(lt_matrix *m, int64_t rows, int64_t cols) {
  return lt_normalise_strides(&m->row, &m->col, rows, cols);
}

/* Whether no two elements share memory, apart from batch dims of stride 0: each stride reaches
   beyond all that smaller ones cover. */
static bool separate(const lt_product *p, const lt_matrix *m, int64_t rows, int64_t cols) {
  int64_t size[LT_MAX_DIMS] = {rows, cols}, stride[LT_MAX_DIMS] = {m->row, m->col};
  int n = 2;
  for (int i = 0; i < p->n_batch; i++)
    if (m->batch[i] != 0) size[n] = p->batch[i], stride[n++] = m->batch[i];
  int64_t reach = 1;
  for (int round = 0; round < n; round++) {
    int next = round;
    for (int i = round + 1; i < n; i++)
      if (stride[i] < stride[next] || (stride[i] == stride[next] && size[i] < size[next])) next = i;
    if (size[next] > 1 && stride[next] < reach) return false;
    if (size[next] > 1) reach = stride[next] * size[next];
    size[next] = size[round], stride[next] = stride[round];
  }
  return true;
}

static void swap(int64_t *x, int64_t *y) {
  int64_t kept = *x;
  *x = *y, *y = kept;
}

/* A copy has the order of the original in memory: transposing while converting costs more than
   many a product. */
static bool take_copy(lt_ctx *c, const lt_product *p, lt_tensor *t, lt_matrix *m) {
  lt_tensor plain = *t;
  int row = t->ndim - 2, col = t->ndim - 1;
  bool turned = t->stride[row] == 1 && t->stride[col] > 1;
  if (turned) swap(&plain.size[row], &plain.size[col]);
  if (turned) swap(&plain.stride[row], &plain.stride[col]);
  lt_tensor *copy = lt_tensor_empty(c, LT_CPU_DEVICE, p->dtype, plain.ndim, plain.size);
  if (copy == NULL || !lt_cpu_move(c, copy, &plain)) return false;
  *m = LT_CPU(lt_matrix_of)(p, copy);
  if (turned) swap(&m->row, &m->col);
  return normalise(m, t->size[row], t->size[col]);
}

bool LT_CPU(lt_take_operand)(lt_ctx *c, const lt_product *p, lt_tensor *t, lt_matrix *m) {
  int64_t rows = t->size[t->ndim - 2], cols = t->size[t->ndim - 1];
  bool any_strides = p->dtype != LT_F32 && p->dtype != LT_BF16;
  if ((lt_dtype)t->dtype != p->dtype) return take_copy(c, p, t, m);
  *m = LT_CPU(lt_matrix_of)(p, t);
  if (any_strides || (normalise(m, rows, cols) && separate(p, m, rows, cols))) return true;
  return take_copy(c, p, t, m);
}

/* A batch dim that both operands broadcast is repeated in one of them: the product has the dim, and
   oneDNN would refuse it. */
bool LT_CPU(lt_take_operands)(lt_ctx *c, lt_product *p, lt_tensor *a, lt_tensor *b) {
  if (!LT_CPU(lt_take_operand)(c, p, a, &p->a) || !LT_CPU(lt_take_operand)(c, p, b, &p->b))
    return false;
  for (int i = 0; i < p->n_batch; i++) {
    if (p->batch[i] == 1 || p->a.batch[i] != 0 || p->b.batch[i] != 0) continue;
    int at = i - (p->n_batch - (a->ndim - 2));
    bool in_a = at >= 0 && a->size[at] > 1;
    if (!(in_a ? take_copy(c, p, a, &p->a) : take_copy(c, p, b, &p->b))) return false;
  }
  return true;
}
