/* spec/c/data_test.c: orders, batches dealt to ranks, gathering, drawn digits. */
/* tags: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "data/digits.h"
#include "data/gather.h"
#include "registry.h"

static lt_ctx *fresh(void) { return lt_ctx_new(lt_registry_here(), NULL); }

static void assert_failure(lt_ctx *c, const char *text) {
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, text);
}

static void assert_permutation(const lt_order *o) {
  uint8_t *seen = calloc((size_t)o->n + 1, 1);
  for (int64_t i = 0; i < o->n; i++) {
    int64_t k = lt_order_at(o, i);
    assert_in_range(k, 0, o->n - 1);
    assert_int_equal(seen[k]++, 0);
  }
  free(seen);
}

static void orders_are_functions_of_seed_and_epoch(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  int64_t sizes[] = {0, 1, 2, 3, 1000, 1001};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    int64_t n = sizes[s];
    size_t bytes = (size_t)n * sizeof(int64_t);
    lt_order *a = lt_order_shuffled(c, n, 7, 0), *b = lt_order_shuffled(c, n, 7, 0);
    lt_order *e = lt_order_shuffled(c, n, 7, 1), *f = lt_order_shuffled(c, n, 8, 0);
    assert_permutation(a);
    assert_permutation(e);
    assert_memory_equal(a->index, b->index, bytes);
    if (n >= 1000) {
      assert_memory_not_equal(a->index, e->index, bytes);
      assert_memory_not_equal(a->index, f->index, bytes);
    }
    lt_release(c, a), lt_release(c, b), lt_release(c, e), lt_release(c, f);
  }
  lt_order *o = lt_order_sequential(c, 5);
  for (int i = 0; i < 15; i++) assert_int_equal(lt_order_at(o, i), i % 5);
  lt_order *p = lt_order_sequential(c, 6);
  assert_true(lt_order_hash(o, 9) != lt_order_hash(p, 9));
  lt_release(c, p);
  lt_release(c, o);
  lt_ctx_release(c);
}

/* Every permutation of 4 about equally often: chi-squared over 24 cells, 23 degrees of freedom. */
static void shuffling_is_fair(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  int cells[256] = {0}, used = 0;
  double sum = 0;
  enum { rounds = 24000 };
  for (int e = 0; e < rounds; e++) {
    lt_order *o = lt_order_shuffled(c, 4, 1, (uint32_t)e);
    cells[o->index[0] << 6 | o->index[1] << 4 | o->index[2] << 2 | o->index[3]]++;
    lt_release(c, o);
  }
  for (int i = 0; i < 256; i++)
    if (cells[i] > 0) {
      double d = cells[i] - rounds / 24.0;
      sum += d * d / (rounds / 24.0);
      used++;
    }
  assert_int_equal(used, 24);
  assert_true(sum < 50); /* 1 in 1000 by chance */
  lt_ctx_release(c);
}

/* Walk a stream on every rank: parts meet without gap or overlap, and all ranks agree. */
static void check_batches(int64_t n, lt_batching b, int64_t position) {
  int64_t seen = position, steps = 0;
  for (;;) {
    lt_span whole = lt_batch_at(&b, n, seen);
    int64_t at = seen;
    assert_int_equal(lt_batch_skip(&b, n, position, steps), seen);
    for (int r = 0; r < b.world; r++) {
      b.rank = r;
      lt_span s = lt_batch_at(&b, n, seen);
      assert_int_equal(s.begin, seen);
      assert_int_equal(s.total, whole.total);
      assert_int_equal(s.first, at);
      assert_int_equal(s.n > 0, r < s.ranks);
      if (!b.dealt) assert_in_range(s.n, s.total / b.world, s.total / b.world + 1);
      at += s.n;
    }
    b.rank = 0;
    assert_int_equal(at, seen + whole.total);
    if (whole.total == 0) break;
    if (b.evaluation && n - position >= b.world) assert_true(whole.total >= b.world);
    if (b.wrap) assert_true(whole.total == b.batch || whole.total % b.world == 0);
    if (!b.evaluation && !b.wrap && !b.dealt) assert_true(whole.total <= b.batch);
    seen += whole.total;
    steps++;
  }
  assert_int_equal(steps, lt_batch_count(&b, n, position));
  assert_int_equal(lt_batch_skip(&b, n, position, steps + 3), seen);
  if (b.drop_last)
    assert_true(n - seen < b.batch);
  else
    assert_in_range(seen, n, b.wrap ? n + b.world - 1 : n);
}

static void batches_cover_the_stream_on_any_number_of_ranks(void **state) {
  (void)state;
  for (int64_t n = 0; n <= 40; n++)
    for (int world = 1; world <= 4; world++)
      for (int64_t batch = world; batch <= 12; batch++)
        for (int kind = 0; kind < 7; kind++)
          for (int64_t position = 0; position <= n; position += 5)
            check_batches(n,
                          (lt_batching){.batch = batch,
                                        .drop_last = kind & 1,
                                        .evaluation = kind == 2 || kind == 3,
                                        .dealt = kind == 4 || kind == 5,
                                        .wrap = kind == 6,
                                        .world = world},
                          position);
}

/* Batches of 1, 2, ..., k samples and again, dealt whole. */
static void batches_of_any_size_are_dealt_whole(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  for (int64_t count = 0; count <= 9; count++)
    for (int world = 1; world <= 4; world++) {
      lt_order *lasts = lt_order_empty(c, count);
      int64_t n = 0;
      for (int64_t k = 0; k < count; k++) lasts->index[k] = (n += 1 + k % 3) - 1;
      lt_batching b = {.batch = 1, .dealt = true, .lasts = lasts, .world = world};
      check_batches(n, b, 0);
      for (int64_t k = 0; k < count; k++) {
        check_batches(n, b, lasts->index[k] + 1); /* continues behind any batch */
        b.rank = (int)(k % world);
        int64_t step = lt_batch_skip(&b, n, 0, k / world);
        lt_span s = lt_batch_at(&b, n, step);
        assert_int_equal(s.first + s.n - 1, lasts->index[k]); /* batch k: rank k mod world */
        assert_int_equal(s.n, 1 + k % 3);
      }
      lt_release(c, lasts);
    }
  lt_ctx_release(c);
}

static void the_rules_of_the_last_batch(void **state) {
  (void)state;
  lt_batching train = {.batch = 8, .rank = 2, .world = 4};
  lt_span s = lt_batch_at(&train, 100, 0);
  assert_int_equal(s.first, 4); /* the third contiguous slice of two */
  assert_int_equal(s.n, 2);
  s = lt_batch_at(&train, 22, 16); /* 6 samples for 4 ranks: 2 2 1 1 */
  assert_int_equal(s.first, 20);
  assert_int_equal(s.n, 1);
  s = lt_batch_at(&train, 18, 16); /* 2 samples: ranks 2 and 3 have none */
  assert_int_equal(s.total, 2);
  assert_int_equal(s.n, 0);
  lt_batching eval = train;
  eval.evaluation = true;
  s = lt_batch_at(&eval, 18, 8); /* 8 + 2 become 6 + 4 */
  assert_int_equal(s.total, 6);
  assert_int_equal(lt_batch_at(&eval, 18, 14).total, 4);
  eval.batch = 4;
  assert_int_equal(lt_batch_at(&eval, 6, 0).total, 6); /* too few for two: one batch */
  s = lt_batch_at(&train, 10, 90);                     /* a position behind the end */
  assert_int_equal(s.total, 0);
  assert_int_equal(lt_batch_count(&train, 10, 90), 0);
  lt_batching wrap = train;
  wrap.wrap = true;
  s = lt_batch_at(&wrap, 21, 16); /* 5 samples become 8: two each, three of them the first again */
  assert_int_equal(s.total, 8);
  assert_int_equal(s.first, 20);
  assert_int_equal(s.n, 2);
  lt_batching one = {.batch = 1, .world = 1};
  assert_int_equal(lt_batch_count(&one, (int64_t)1 << 60, 3), ((int64_t)1 << 60) - 3);
}

static void sample_numbers_depend_on_all_three(void **state) {
  (void)state;
  uint64_t a = lt_sample_rng(1, 2, 3).seed;
  assert_true(a == lt_sample_rng(1, 2, 3).seed);
  assert_true(a != lt_sample_rng(2, 2, 3).seed);
  assert_true(a != lt_sample_rng(1, 3, 3).seed);
  assert_true(a != lt_sample_rng(1, 2, 4).seed);
}

static void gathers_rows_of_any_type(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_order *o = lt_order_empty(c, 4);
  memcpy(o->index, (int64_t[]){3, 0, 3, 1}, 4 * sizeof(int64_t));
  for (int d = 0; d < LT_DTYPE_COUNT; d++) {
    lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, (lt_dtype)d, 3, (int64_t[]){4, 2, 3});
    size_t row = 6 * lt_item_size(t);
    uint8_t *bytes = lt_data(t);
    for (size_t i = 0; i < 4 * row; i++) bytes[i] = (uint8_t)(i * 5);
    lt_column column = {.source = t};
    assert_true(lt_columns_check(c, "loader", 1, &column));
    lt_storage *s = lt_gather_rows(c, &column, o, 0, 4);
    for (size_t i = 0; i < 4; i++)
      assert_memory_equal((char *)s->data + i * row, bytes + (size_t)o->index[i] * row, row);
    lt_tensor *out = lt_gathered(c, &column, s, 4);
    lt_storage_release(c, s);
    assert_int_equal(out->dtype, d);
    assert_int_equal(out->ndim, 3);
    assert_int_equal(out->size[0], 4);
    assert_int_equal(out->size[2], 3);
  }
  lt_tensor *u = lt_tensor_empty(c, LT_CPU_DEVICE, LT_U8, 2, (int64_t[]){4, 256});
  for (int i = 0; i < 1024; i++) ((uint8_t *)lt_data(u))[i] = (uint8_t)i;
  lt_column scaled = {.source = u, .divisor = 255};
  lt_storage *s = lt_gather_rows(c, &scaled, o, 1, 2);
  for (int i = 0; i < 256; i++) assert_true(((float *)s->data)[i] == (float)i / 255.0f);
  assert_int_equal(lt_gathered(c, &scaled, s, 2)->dtype, LT_F32);
  lt_storage_release(c, s);
  lt_release(c, o);
  lt_ctx_release(c);
}

static void says_what_cannot_be_gathered(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_tensor *a = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 2, (int64_t[]){4, 2});
  lt_tensor *b = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 1, (int64_t[]){5});
  lt_tensor *scalar = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 0, NULL);
  lt_tensor *turned =
      lt_tensor_make(c, a->storage, LT_F32, 2, (int64_t[]){2, 4}, (int64_t[]){1, 2}, 0);
  lt_column two[] = {{.source = a}, {.source = b}};
  assert_false(lt_columns_check(c, "loader", 2, two));
  assert_failure(c, "loader: lengths differ: [4, 2] has 4 samples, [5] has 5");
  assert_false(lt_columns_check(c, "loader", 1, &(lt_column){.source = scalar}));
  assert_failure(c, "loader: tensor 1 has no dimension to count samples by");
  assert_false(lt_columns_check(c, "loader", 1, &(lt_column){.source = a, .divisor = 255}));
  assert_failure(c, "loader: only u8 can be scaled, tensor 1 is f32");
  assert_false(lt_columns_check(c, "loader", 1, &(lt_column){.source = turned}));
  assert_failure(c, "loader: rows of tensor 1 are not contiguous: [2, 4]");
  lt_order *o = lt_order_empty(c, 2);
  o->index[1] = 4;
  assert_null(lt_gather_rows(c, &two[0], o, 0, 2));
  assert_failure(c, "data: sample 5 of a data set of 4");
  o->index[1] = -1;
  assert_null(lt_gather_rows(c, &two[0], o, 0, 2));
  assert_failure(c, "data: sample 0 of a data set of 4");
  lt_release(c, o);
  lt_ctx_release(c);
}

enum { drawn = 300 };

static void digits_are_functions_of_seed_and_index(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  uint8_t *a = malloc(drawn * LT_DIGITS_PIXELS), *b = malloc(drawn * LT_DIGITS_PIXELS);
  int64_t la[drawn], lb[drawn];
  lt_digits_draw(c, 1, LT_DIGITS_TRAIN, 0, drawn, a, la);
  c->threads = 2;
  lt_digits_draw(c, 1, LT_DIGITS_TRAIN, 100, drawn - 100, b, lb);
  assert_memory_equal(a + 100 * LT_DIGITS_PIXELS, b, (drawn - 100) * LT_DIGITS_PIXELS);
  assert_memory_equal(la + 100, lb, (drawn - 100) * sizeof *la);
  lt_digits_draw(c, 2, LT_DIGITS_TRAIN, 0, drawn, b, lb);
  assert_memory_not_equal(la, lb, sizeof la);
  lt_digits_draw(c, 1, LT_DIGITS_TEST, 0, drawn, b, lb);
  assert_memory_not_equal(la, lb, sizeof la);
  for (int i = 0; i < drawn; i++)
    assert_memory_not_equal(a + i * LT_DIGITS_PIXELS, b + i * LT_DIGITS_PIXELS, LT_DIGITS_PIXELS);
  for (int ten = 0; ten < drawn; ten += 10) {
    int seen = 0;
    for (int i = 0; i < 10; i++) seen |= 1 << la[ten + i];
    assert_int_equal(seen, 1023);
  }
  free(a), free(b);
  lt_ctx_release(c);
}

/* Each image has ink in the middle and mostly paper at the edge; the nearest mean of 2,000 others
   names far more than a tenth of them right, but not all: there is something to learn. */
static void digits_look_like_digits(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  enum { known = 2000, asked = 500, side = LT_DIGITS_SIDE };
  uint8_t *images = malloc((known + asked) * LT_DIGITS_PIXELS);
  int64_t labels[known + asked];
  lt_digits_draw(c, 1, LT_DIGITS_TRAIN, 0, known + asked, images, labels);
  static double mean[10][LT_DIGITS_PIXELS];
  int right = 0;
  for (int i = 0; i < known + asked; i++) {
    const uint8_t *image = images + i * LT_DIGITS_PIXELS;
    int edge = 0, ink = 0, best = 0;
    double least = 1e30;
    for (int k = 0; k < LT_DIGITS_PIXELS; k++) {
      int y = k / side, x = k % side;
      bool outside = y < 1 || x < 1 || y >= side - 1 || x >= side - 1;
      if (outside) edge += image[k];
      if (!outside && image[k] > 120) ink++;
    }
    assert_in_range(ink, 20, 400);
    assert_true(edge / (4 * side) < 128);
    for (int d = 0; d < 10 && i >= known; d++) {
      double far = 0;
      for (int k = 0; k < LT_DIGITS_PIXELS; k++) {
        double e = image[k] - mean[d][k] * 10 / known;
        far += e * e;
      }
      if (far < least) least = far, best = d;
    }
    if (i >= known) right += best == labels[i];
    for (int k = 0; k < LT_DIGITS_PIXELS && i < known; k++) mean[labels[i]][k] += image[k];
  }
  assert_in_range(right, asked * 55 / 100, asked * 90 / 100);
  free(images);
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(orders_are_functions_of_seed_and_epoch),
      cmocka_unit_test(shuffling_is_fair),
      cmocka_unit_test(batches_cover_the_stream_on_any_number_of_ranks),
      cmocka_unit_test(batches_of_any_size_are_dealt_whole),
      cmocka_unit_test(the_rules_of_the_last_batch),
      cmocka_unit_test(sample_numbers_depend_on_all_three),
      cmocka_unit_test(gathers_rows_of_any_type),
      cmocka_unit_test(says_what_cannot_be_gathered),
      cmocka_unit_test(digits_are_functions_of_seed_and_index),
      cmocka_unit_test(digits_look_like_digits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
