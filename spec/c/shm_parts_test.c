/* spec/c/shm_parts_test.c: sums, gathers and reduce-scatters of many tensors at once, in their own
   memory, by N ranks as threads over one segment: against a serial oracle, and nothing beside the
   parts is written. */
#include "comm_oracle.h"

enum { MOST_PARTS = 8, GAP = 3 };

/* Parts in one memory, the first at its end, with elements between them that belong to none. */
typedef struct parts {
  int n;
  lt_tensor *part[MOST_PARTS], *memory;
  lt_tensor *wanted; /* the memory afterwards */
} parts;

static void *element(const lt_tensor *t, int64_t i) {
  return (char *)lt_data(t) + (size_t)i * lt_item_size(t);
}

static void multiply(lt_dtype dtype, double by, void *at) {
  float x;
  double d;
  uint16_t h;
  switch ((int)dtype) {
    case LT_F32: memcpy(&x, at, 4), x *= (float)by, memcpy(at, &x, 4); break;
    case LT_F64: memcpy(&d, at, 8), d *= by, memcpy(at, &d, 8); break;
    case LT_F16:
      memcpy(&h, at, 2), h = lt_f32_to_f16(lt_f16_to_f32(h) * (float)by), memcpy(at, &h, 2);
      break;
    case LT_BF16:
      memcpy(&h, at, 2), h = lt_f32_to_bf16(lt_bf16_to_f32(h) * (float)by), memcpy(at, &h, 2);
      break;
    default: break; /* integers are summed with the scale 1 */
  }
}

/* `size` ends with -1. */
static parts laid(rank *r, const int64_t *size, lt_dtype dtype, double scale, uint64_t seed) {
  parts p = {0};
  int64_t at = GAP, n = 0;
  for (; size[p.n] >= 0; p.n++) at += size[p.n] + GAP;
  p.memory = made(r, dtype, at, 0);
  p.wanted = made(r, dtype, at, 0);
  for (int k = 0; k < p.n; k++) {
    at -= size[k] + GAP;
    p.part[k] = lt_tensor_make(r->c, p.memory->storage, dtype, 1, &size[k], NULL, at);
    for (int64_t i = 0; i < size[k]; i++, n++) {
      uint64_t sum;
      make(dtype, r->rank, n, seed, element(p.memory, at + i));
      wanted_of(r->size, n, seed, dtype, LT_COMM_SUM, &sum);
      multiply(dtype, scale, &sum);
      memcpy(element(p.wanted, at + i), &sum, lt_dtype_size(dtype));
    }
  }
  return p;
}

static bool as_wanted(rank *r, const parts *p, double scale) {
  for (int64_t i = 0; i < p->memory->numel; i++) {
    if (memcmp(element(p->memory, i), element(p->wanted, i), lt_item_size(p->memory)) == 0)
      continue;
    wrong(r, "rank %d: element %d of %d, dtype %d, scale %g", r->rank, (int)i,
          (int)p->memory->numel, p->memory->dtype, scale);
    return false;
  }
  return true;
}

static lt_work *issue(rank *r, const parts *p, double scale) {
  return lt_comm_all_reduce_parts(r->c, r->g, p->n, p->part, scale, HERE);
}

/* What ranks sum: lists of sizes, ended by NULL. */
static const int64_t mixed[] = {0, 1, 5, 0, 1030, 31, 0, -1}, one[] = {1, -1},
                     small[] = {7, 0, 30, 1, -1}, none[] = {0, 0, -1},
                     whole[] = {1000, 24, -1}, /* 4 KiB of f32: one rank adds all */
    large[] = {70001, 3, 0, 50000, 4096, -1};

static void sums(rank *r) {
  const int64_t *const *sizes = r->all->ud;
  uint64_t seed = 1;
  for (int k = 0; sizes[k] != NULL; k++)
    for (int d = 0; d < LT_DTYPE_COUNT; d++)
      for (int s = 0; s < (lt_dtype_is_float((lt_dtype)d) ? 3 : 1); s++, seed++) {
        double scale = s == 0 ? 1 : s == 1 ? 0.25 : 1.0 / 3;
        lt_frame frame = lt_frame_open(r->c);
        parts p = laid(r, sizes[k], (lt_dtype)d, scale, seed);
        uint64_t version = p.memory->storage->version;
        if (!CHECK(r, finish_work(r, issue(r, &p, scale)))) return;
        if (!as_wanted(r, &p, scale)) return;
        CHECK(r, p.memory->storage->version > version); /* autograd and caches see the write */
        lt_frame_close(r->c, frame, 0, NULL);
      }
}

static void parts_are_summed_where_they_lie(void **state) {
  (void)state;
  const int64_t *all[] = {mixed, one, whole, none, NULL}, *few[] = {small, none, NULL};
  for (int n = 1; n <= 5; n++) {
    run_ranks_with(n, 0, sums, all, 1);
    run_ranks_with(n, 1, sums, few, 1);
    run_ranks_with(n, 40, sums, few, 1);
  }
  run_ranks_with(9, 0, sums, all, 1);
  run_ranks_with(11, 40, sums, few, 1);
}

/* More than the pieces that a rank may be ahead. */
static void sums_much(rank *r) {
  for (int d = LT_F32; d <= LT_F64; d++) {
    parts p = laid(r, large, (lt_dtype)d, 0.25, 5);
    if (CHECK(r, finish_work(r, issue(r, &p, 0.25)))) as_wanted(r, &p, 0.25);
  }
}

static void large_parts_go_in_pieces(void **state) {
  (void)state;
  for (int n = 2; n <= 5; n++) run_ranks(n, sums_much);
  run_ranks_with(3, 8192, sums_much, NULL, 1);
}

/* Sums under way together, as the gradients of a backward: each rank waits in its own order. */
static void flies(rank *r) {
  enum { FLIGHT = 6 };
  const int64_t *sizes[] = {mixed, small, whole};
  for (int round = 0; round < 10 && r->all->wrong[0] == 0; round++) {
    lt_frame frame = lt_frame_open(r->c);
    parts p[FLIGHT];
    lt_work *w[FLIGHT];
    for (int k = 0; k < FLIGHT; k++) {
      p[k] = laid(r, sizes[k % 3], LT_F32, 0.5, (uint64_t)(round * FLIGHT + k));
      w[k] = issue(r, &p[k], 0.5);
      rank_delay(r, 300);
    }
    int first = (int)(rank_random(r) % FLIGHT);
    for (int k = 0; k < FLIGHT; k++) {
      int at = (first + k) % FLIGHT;
      if (CHECK(r, finish_work(r, w[at]))) as_wanted(r, &p[at], 0.5);
    }
    lt_frame_close(r->c, frame, 0, NULL);
  }
}

static void sums_are_waited_for_in_any_order(void **state) {
  (void)state;
  for (int n = 1; n <= 5; n++) run_ranks_with(n, 0, flies, NULL, (uint64_t)n);
  run_ranks_with(10, 0, flies, NULL, 10);
}

/* A sum that nobody waits for is made with those that follow, or ends with the group. */
static void forgets(rank *r) {
  parts p = laid(r, mixed, LT_F32, 0.5, 3), last = laid(r, mixed, LT_F32, 0.5, 4);
  lt_work_release(r->c, issue(r, &p, 0.5));
  CHECK(r, finish_work(r, lt_comm_barrier(r->c, r->g, HERE)));
  as_wanted(r, &p, 0.5);
  lt_work_release(r->c, issue(r, &last, 0.5));
}

static void released_sums_go_on(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n++) run_ranks(n, forgets);
}

/* Shares: EACH tensors for each rank, of sizes of their own. */

enum { EACH = 3 };

typedef struct shares {
  lt_tensor *part[EACH * MOST_RANKS], *own[2];
  lt_parts list;
  int64_t count, first; /* of this rank's share, and where it begins among all */
} shares;

/* Of `large` ones more than the pieces that a rank may be ahead. `apart`: this rank's share lies in
   two tensors that are cut elsewhere than the parts. */
static shares shares_of(rank *r, lt_dtype dtype, bool is_large, bool apart) {
  shares s = {0};
  for (int k = 0; k < EACH * r->size; k++) {
    int64_t n = (k * 37 + 5) % 61 % (k % 4 == 2 ? 1 : 40) * (is_large ? 2500 : 1);
    s.part[k] = made(r, dtype, n, 0);
    if (k / EACH < r->rank) s.first += n;
    if (k / EACH == r->rank) s.count += n;
  }
  s.own[0] = made(r, dtype, s.count / 3, 0);
  s.own[1] = made(r, dtype, s.count - s.count / 3, 0);
  s.list = (lt_parts){EACH * r->size, apart ? 2 : 0, NULL, NULL};
  return s;
}

/* fn(r, s, element of all, its memory) for this rank's share, or for the parts of all. */
typedef void (*visit)(rank *r, lt_dtype dtype, uint64_t seed, int64_t i, void *at);

static void each_element(rank *r, shares *s, bool own, uint64_t seed, visit fn) {
  bool apart = own && s->list.n_own > 0;
  lt_tensor **list = apart ? s->own : own ? s->part + EACH * r->rank : s->part;
  int n = apart ? 2 : own ? EACH : s->list.n;
  int64_t at = own ? s->first : 0;
  for (int k = 0; k < n; k++)
    for (int64_t i = 0; i < list[k]->numel; i++)
      fn(r, (lt_dtype)list[k]->dtype, seed, at++, element(list[k], i));
}

static void put_value(rank *r, lt_dtype dtype, uint64_t seed, int64_t i, void *at) {
  (void)r;
  make(dtype, 0, i, seed, at);
}

static void put_own(rank *r, lt_dtype dtype, uint64_t seed, int64_t i, void *at) {
  make(dtype, r->rank, i, seed, at);
}

static void expect(rank *r, const void *at, const void *wanted, lt_dtype dtype, int64_t i) {
  if (memcmp(at, wanted, lt_dtype_size(dtype)) != 0)
    wrong(r, "rank %d: element %d, dtype %d", r->rank, (int)i, (int)dtype);
}

static void expect_number(rank *r, lt_dtype dtype, uint64_t seed, int64_t i, void *at) {
  uint64_t wanted;
  make(dtype, 0, i, seed, &wanted);
  expect(r, at, &wanted, dtype, i);
}

static void expect_sum(rank *r, lt_dtype dtype, uint64_t seed, int64_t i, void *at) {
  uint64_t sum;
  wanted_of(r->size, i, seed, dtype, LT_COMM_SUM, &sum);
  multiply(dtype, 0.25, &sum);
  expect(r, at, &sum, dtype, i);
}

static void exchange_shares(rank *r, lt_dtype dtype, bool is_large, bool apart, uint64_t seed) {
  shares s = shares_of(r, dtype, is_large, apart);
  s.list.parts = s.part, s.list.own = s.own;
  uint64_t version = s.part[0]->storage->version;
  each_element(r, &s, true, seed, put_value);
  CHECK(r, finish_work(r, lt_comm_all_gather_parts(r->c, r->g, &s.list, HERE)));
  each_element(r, &s, false, seed, expect_number);
  CHECK(r, (s.part[0]->storage->version > version) == !apart);
  if (!lt_dtype_is_float(dtype)) return;
  each_element(r, &s, false, seed, put_own);
  CHECK(r, finish_work(r, lt_comm_reduce_scatter_parts(r->c, r->g, &s.list, 0.25, HERE)));
  each_element(r, &s, true, seed, expect_sum);
}

static void shares_of_all(rank *r) {
  static const lt_dtype dtypes[] = {LT_F32, LT_F64, LT_BF16, LT_I64, LT_U8};
  bool large_too = has_all_orders() || (r->size == 3 && r->all->chunk == 0);
  for (int k = 0; k < 5 * 4 && r->all->wrong[0] == 0; k++) {
    if (k / 2 % 2 == 1 && !large_too) continue;
    lt_frame frame = lt_frame_open(r->c);
    exchange_shares(r, dtypes[k / 4], k / 2 % 2 == 1, k % 2 == 1, (uint64_t)k);
    lt_frame_close(r->c, frame, 0, NULL);
  }
}

static void shares_are_gathered_and_reduced_where_they_lie(void **state) {
  (void)state;
  for (int n = 2; n <= 5; n++) run_ranks(n, shares_of_all);
  run_ranks_with(3, 40, shares_of_all, NULL, 1);
  run_ranks_with(9, 0, shares_of_all, NULL, 1);
}

static void gives_too_little(rank *r) {
  shares s = shares_of(r, LT_F32, false, true);
  lt_failure f = {0};
  s.list.parts = s.part, s.list.own = s.own, s.list.n_own = 1;
  CHECK(r, lt_comm_all_gather_parts(r->c, r->g, &s.list, HERE) == NULL);
  CHECK(r, lt_take_failure(r->c, &f) && f.code == LT_ESHAPE &&
               strstr(f.text, "all_gather: this rank's share has") == f.text);
}

static void a_share_of_another_size_is_reported(void **state) {
  (void)state;
  run_ranks(2, gives_too_little);
}

static void mixes_dtypes(rank *r) {
  lt_tensor *part[] = {made(r, LT_F32, 2, 1), made(r, LT_F64, 2, 1)};
  lt_failure f = {0};
  CHECK(r, lt_comm_all_reduce_parts(r->c, r->g, 2, part, 1, HERE) == NULL);
  CHECK(r, lt_take_failure(r->c, &f) && f.code == LT_EDTYPE &&
               strcmp(f.text, "all_reduce: dtypes differ: f32 and f64") == 0);
  CHECK(r, finish_work(r, lt_comm_barrier(r->c, r->g, HERE)));
}

static void parts_of_two_dtypes_are_reported(void **state) {
  (void)state;
  run_ranks(2, mixes_dtypes);
}

/* The group of one has no links: its parts go through a buffer. */
static void sums_alone(rank *r) {
  lt_group *all = r->g;
  r->g = lt_group_self(r->c, r->heartbeat);
  sums(r);
  lt_group_release(r->c, r->g);
  r->g = all;
}

static void one_rank_alone_scales_its_own(void **state) {
  (void)state;
  const int64_t *sizes[] = {mixed, one, none, NULL};
  run_ranks_with(1, 0, sums_alone, sizes, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_are_summed_where_they_lie),
      cmocka_unit_test(large_parts_go_in_pieces),
      cmocka_unit_test(sums_are_waited_for_in_any_order),
      cmocka_unit_test(released_sums_go_on),
      cmocka_unit_test(shares_are_gathered_and_reduced_where_they_lie),
      cmocka_unit_test(a_share_of_another_size_is_reported),
      cmocka_unit_test(parts_of_two_dtypes_are_reported),
      cmocka_unit_test(one_rank_alone_scales_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
