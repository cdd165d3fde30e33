/* runtime/cpu/product_blocked.c: large products of bf16 and f16 in blocks that are converted to
   f32, for machines without such products.

   Converted as a whole, a large matrix would travel to memory and back before it is multiplied. So
   a, or the result, is cut into pieces that stay in the cache of a core: into rows, or into terms,
   whose products are added up, if those are slower in memory. Where b is the largest rows are few
   (product_skinny.c). Products that are thick in all three sizes stay whole: there converting costs
   little beside multiplying. Pieces depend on the shape alone. */
#include "base/round.h"
#include "cpu/operands.h"
#include "cpu/scratch.h"

/* PIECE: elements of f32; a piece has a multiple of STEP rows, and FEWEST at least: for each piece
   the other operand is packed again. */
enum { STEP = 16, FEWEST = 32, THIN = 128, PIECE = 1 << 17 };

bool LT_CPU(lt_goes_in_pieces)(const lt_product *p, const lt_tensor *a, const lt_tensor *b,
                               const lt_tensor *out) {
  bool halves = lt_item_size(a) == 2 && lt_item_size(b) == 2 && lt_item_size(out) == 2;
  if (p->dtype != LT_F32 || !halves || b->ndim > 2 || !out->contiguous) return false;
  int64_t k = a->size[a->ndim - 1], m = a->numel / k, n = b->numel / k;
  return out->storage != a->storage && out->storage != b->storage &&
         lt_least(lt_least(m, n), k) <= THIN && a->numel + b->numel + out->numel > 2 * PIECE;
}

/* Whether terms are cut, and into pieces of how much. */
static bool cuts_terms(const lt_product *p, const lt_tensor *a, const lt_tensor *b,
                       int64_t *piece) {
  bool by_left = p->m >= p->n && p->k > p->n;
  /* A transposed a has its terms one after the other in memory: rows of it would be gathered from
     all of it. */
  bool terms = by_left && a->stride[1] != 1 && b->stride[1] == 1;
  /* Of rows a piece reads k and writes n of each; of terms it reads m of each and adds to all of
     the result. */
  *piece = PIECE / (terms ? p->m : p->k + p->n) / STEP * STEP;
  if (*piece < FEWEST) *piece = FEWEST;
  return terms;
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

/* Rows of the result: `rows` are those of a. */
static bool make_rows(lt_ctx *c, lt_product *p, lt_tensor *rows, lt_tensor *out) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor *to = lt_tensor_empty(c, LT_CPU_DEVICE, p->dtype, 2, out->size);
  bool ok = to != NULL && LT_CPU(lt_take_operand)(c, p, rows, &p->a);
  if (ok) {
    p->out = (lt_matrix){.data = lt_data(to), .row = p->n, .col = 1};
    ok = lt_onednn_product(c, p) && lt_cpu_move(c, out, to);
  }
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

static bool by_rows(lt_ctx *c, lt_product *p, int64_t piece, lt_tensor *a, lt_tensor *b,
                    const lt_tensor *out) {
  int64_t all = p->m;
  if (!LT_CPU(lt_take_operand)(c, p, b, &p->b)) return false;
  for (int64_t from = 0; from < all; from += piece) {
    p->m = lt_least(all - from, piece);
    lt_tensor rows = part_of(a, 0, from, p->m), to = part_of(out, 0, from, p->m);
    if (!make_rows(c, p, &rows, &to)) return false;
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
    if (!add_terms(c, p, a, b, from, lt_least(terms - from, piece))) return false;
  return lt_cpu_move(c, out, sums);
}

bool LT_CPU(lt_product_in_pieces)(lt_ctx *c, lt_product *p, lt_tensor *a, lt_tensor *b,
                                  const lt_tensor *out) {
  lt_tensor to = *out;
  int64_t piece;
  p->m = a->size[0], p->k = a->size[1], p->n = b->size[1];
  lt_tensor_set_shape(&to, 2, (int64_t[]){p->m, p->n}, (int64_t[]){p->n, 1});
  return cuts_terms(p, a, b, &piece) ? by_terms(c, p, piece, a, b, &to)
                                     : by_rows(c, p, piece, a, b, &to);
}
