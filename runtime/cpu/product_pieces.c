/* runtime/cpu/product_pieces.c: products of bf16 and f16 through f32, a piece at a time.

   Converted as a whole, a large matrix would travel to memory and back before it is multiplied. So
   the largest of the three is cut into pieces that stay in the cache of a core, along the dim that
   is slowest in memory: the rows of a, the columns of b (`b` is the transpose of a weight), or the
   terms, whose products are added up. Products that are thick in all three sizes stay whole: there
   converting costs little beside multiplying. Pieces depend on the shape alone. */
#include "cpu/operands.h"
#include "cpu/scratch.h"

enum { ROWS, COLS, TERMS };
/* PIECE: elements of f32; a piece has a multiple of STEP rows, and FEWEST at least: for each piece
   the other operand is packed again. */
enum { STEP = 16, FEWEST = 32, THIN = 128, PIECE = 1 << 17 };

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

bool LT_CPU(lt_goes_in_pieces)(const lt_product *p, const lt_tensor *a, const lt_tensor *b,
                               const lt_tensor *out) {
  bool halves = lt_item_size(a) == 2 && lt_item_size(b) == 2 && lt_item_size(out) == 2;
  if (p->dtype != LT_F32 || !halves || b->ndim > 2 || !out->contiguous) return false;
  int64_t k = a->size[a->ndim - 1], m = a->numel / k, n = b->numel / k;
  return out->storage != a->storage && out->storage != b->storage &&
         least(least(m, n), k) <= THIN && a->numel + b->numel + out->numel > 2 * PIECE;
}

/* Which dim is cut, and into pieces of how much. */
static int cut_of(const lt_product *p, const lt_tensor *a, const lt_tensor *b, int64_t *piece) {
  int64_t left = p->m * p->k, right = p->k * p->n, out = p->m * p->n, each;
  bool by_left = left >= right && left > out, by_right = right > left && right > out;
  int dim = ROWS;
  if (by_left && a->stride[1] != 1 && b->stride[1] == 1) dim = TERMS;
  if (by_right) dim = b->stride[1] == 1 && p->n > 1 ? TERMS : COLS;
  each = dim == ROWS ? p->k + p->n : dim == COLS ? p->k + p->m : by_left ? p->m : p->n;
  *piece = PIECE / each / STEP * STEP;
  if (*piece < FEWEST) *piece = FEWEST;
  return dim;
}

/* `n` rows (dim 0) or columns of a matrix. */
static lt_tensor part_of(const lt_tensor *t, int dim, int64_t from, int64_t n) {
  lt_tensor v = *t;
  int64_t size[2] = {t->size[0], t->size[1]}, stride[2] = {t->stride[0], t->stride[1]};
  size[dim] = n;
  v.offset += from * t->stride[dim];
  lt_tensor_set_shape(&v, 2, size, stride);
  return v;
}

/* Rows or columns of the result: `cut` is the part of the operand that they are made of. */
static bool make_part(lt_ctx *c, lt_product *p, lt_tensor *cut, lt_matrix *into, lt_tensor *out) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor *to = lt_tensor_empty(c, LT_CPU_DEVICE, p->dtype, 2, out->size);
  bool ok = to != NULL && LT_CPU(lt_take_operand)(c, p, cut, into);
  if (ok) {
    p->out = (lt_matrix){.data = lt_data(to), .row = p->n, .col = 1};
    ok = lt_onednn_product(c, p) && lt_cpu_move(c, out, to);
  }
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

static bool by_parts(lt_ctx *c, lt_product *p, int dim, int64_t piece, lt_tensor *a, lt_tensor *b,
                     const lt_tensor *out) {
  lt_tensor *whole = dim == ROWS ? b : a, *cut = dim == ROWS ? a : b;
  lt_matrix *of_whole = dim == ROWS ? &p->b : &p->a, *of_cut = dim == ROWS ? &p->a : &p->b;
  int64_t *count = dim == ROWS ? &p->m : &p->n, all = *count;
  const float *bias = p->bias;
  if (!LT_CPU(lt_take_operand)(c, p, whole, of_whole)) return false;
  for (int64_t from = 0; from < all; from += piece) {
    *count = least(all - from, piece);
    lt_tensor part = part_of(cut, dim, from, *count), to = part_of(out, dim, from, *count);
    if (bias != NULL && dim == COLS) p->bias = bias + from;
    if (!make_part(c, p, &part, of_cut, &to)) return false;
  }
  return true;
}

/* Adds the products of `count` terms from `from` on. */
static bool add_terms(lt_ctx *c, lt_product *p, lt_tensor *a, lt_tensor *b, int64_t from,
                      int64_t count) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor left = part_of(a, 1, from, count), right = part_of(b, 0, from, count);
  p->k = count;
  bool ok = LT_CPU(lt_take_operand)(c, p, &left, &p->a) &&
            LT_CPU(lt_take_operand)(c, p, &right, &p->b) && lt_onednn_product(c, p);
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

/* Sums begin as the bias, or 0. */
static void begin_sums(const lt_product *p, float *to) {
  const float *bias = p->bias;
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) to[i * p->n + j] = bias != NULL ? bias[j] : 0;
}

static bool by_terms(lt_ctx *c, lt_product *p, int64_t piece, lt_tensor *a, lt_tensor *b,
                     lt_tensor *out) {
  int64_t terms = p->k;
  lt_tensor *sums = lt_tensor_empty(c, LT_CPU_DEVICE, p->dtype, 2, out->size);
  if (sums == NULL) return false;
  begin_sums(p, lt_data(sums));
  p->bias = NULL;
  p->adds = true;
  p->out = (lt_matrix){.data = lt_data(sums), .row = p->n, .col = 1};
  for (int64_t from = 0; from < terms; from += piece)
    if (!add_terms(c, p, a, b, from, least(terms - from, piece))) return false;
  return lt_cpu_move(c, out, sums);
}

bool LT_CPU(lt_product_in_pieces)(lt_ctx *c, lt_product *p, lt_tensor *a, lt_tensor *b,
                                  const lt_tensor *out) {
  lt_tensor to = *out;
  int64_t piece;
  p->m = a->size[0], p->k = a->size[1], p->n = b->size[1];
  lt_tensor_set_shape(&to, 2, (int64_t[]){p->m, p->n}, (int64_t[]){p->n, 1});
  int dim = cut_of(p, a, b, &piece);
  return dim == TERMS ? by_terms(c, p, piece, a, b, &to) : by_parts(c, p, dim, piece, a, b, &to);
}
