/* spec/c/shm_test.c: quick. */
#include "comm_test.h"

static void adds(rank *r) {
  for (int64_t n = 1; n < 300000; n = n * 7 + 1) {
    lt_tensor *t = rank_tensor(r, LT_F32, 1, &n);
    float *v = lt_data(t);
    for (int64_t i = 0; i < n; i++) v[i] = (float)(i % 100 + r->rank);
    CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE)));
    float wanted = (float)(r->size * (r->size - 1) / 2);
    for (int64_t i = 0; i < n; i++)
      if (!CHECK(r, v[i] == wanted + (float)(r->size * (i % 100)))) return;
  }
}

static void all_reduce_adds(void **state) {
  (void)state;
  for (int n = 1; n <= 5; n++) run_ranks(n, adds);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_reduce_adds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
