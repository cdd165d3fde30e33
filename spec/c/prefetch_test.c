/* spec/c/prefetch_test.c: batches from the helper thread equal those without one, and it ends. */
/* tags: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "data/prefetch.h"
#include "registry.h"

enum { rows = 103, batch = 8 };

typedef struct setting {
  lt_ctx *c;
  lt_order *order;
  lt_batching batching;
  lt_column columns[2];
} setting;

static setting begin(void) {
  setting s = {.c = lt_ctx_new(lt_registry_here(), NULL), .batching = {.batch = batch, .world = 1}};
  s.order = lt_order_shuffled(s.c, rows, 3, 0);
  lt_tensor *x = lt_tensor_empty(s.c, LT_CPU_DEVICE, LT_U8, 2, (int64_t[]){rows, 50});
  lt_tensor *y = lt_tensor_empty(s.c, LT_CPU_DEVICE, LT_I64, 1, (int64_t[]){rows});
  for (int i = 0; i < rows; i++) {
    memset((uint8_t *)lt_data(x) + 50 * i, i, 50);
    ((int64_t *)lt_data(y))[i] = i;
  }
  s.columns[0] = (lt_column){.source = x, .divisor = 255};
  s.columns[1] = (lt_column){.source = y};
  return s;
}

static void end(setting *s) {
  lt_release(s->c, s->order);
  lt_ctx_release(s->c);
}

static lt_prefetch *start(setting *s, int64_t position, int depth) {
  lt_prefetch *p = lt_prefetch_new(s->c, s->order, &s->batching, position, 2, s->columns, depth);
  assert_non_null(p);
  return p;
}

/* Take one batch and compare it with the order; returns how many samples it held. */
static int64_t check_next(setting *s, lt_prefetch *p, int64_t position) {
  lt_tensor *out[2];
  lt_span span;
  lt_frame frame = lt_frame_open(s->c);
  assert_true(lt_prefetch_next(s->c, p, out, &span));
  assert_int_equal(span.begin, position);
  if (span.total > 0) {
    assert_int_equal(out[0]->size[0], span.n);
    assert_int_equal(out[0]->size[1], 50);
    assert_int_equal(out[0]->dtype, LT_F32);
  }
  for (int64_t i = 0; i < span.n; i++) {
    int64_t sample = s->order->index[position + i];
    assert_int_equal(((int64_t *)lt_data(out[1]))[i], sample);
    assert_true(((float *)lt_data(out[0]))[50 * i + 49] == (float)sample / 255.0f);
  }
  lt_frame_close(s->c, frame, 0, NULL);
  return span.total;
}

static void gives_every_batch_in_order(void **state) {
  (void)state;
  setting s = begin();
  for (int depth = 0; depth <= 20; depth += depth < 4 ? 1 : 16)
    for (int64_t from = 0; from <= rows; from += 24) {
      lt_prefetch *p = start(&s, from, depth);
      int64_t position = from, n;
      while ((n = check_next(&s, p, position)) > 0) position += n;
      assert_int_equal(position, rows);
      assert_int_equal(check_next(&s, p, rows), 0); /* the end stays the end */
      lt_prefetch_release(s.c, p);
    }
  end(&s);
}

static void stops_at_any_moment(void **state) {
  (void)state;
  setting s = begin();
  for (int i = 0; i < 60; i++) {
    lt_prefetch *p = start(&s, 0, 1 + i % 3);
    for (int k = 0; k < i % 5; k++) check_next(&s, p, k * batch);
    lt_prefetch_release(s.c, p);
  }
  end(&s);
}

static void goes_on_without_its_thread(void **state) {
  (void)state;
  setting s = begin();
  for (int taken = 0; taken < 4; taken++) {
    lt_prefetch *p = start(&s, 0, 2);
    int64_t position = 0, n;
    for (int i = 0; i < taken; i++) position += check_next(&s, p, position);
    lt_quiesce(s.c);
    while ((n = check_next(&s, p, position)) > 0) position += n;
    assert_int_equal(position, rows);
    lt_prefetch_release(s.c, p);
  }
  end(&s);
}

static void carries_a_failure_over(void **state) {
  (void)state;
  setting s = begin();
  s.order->index[20] = rows;
  for (int depth = 0; depth <= 2; depth++) {
    lt_prefetch *p = start(&s, 0, depth);
    check_next(&s, p, 0);
    check_next(&s, p, 8);
    lt_tensor *out[2];
    lt_span span;
    assert_false(lt_prefetch_next(s.c, p, out, &span));
    lt_failure f;
    assert_true(lt_take_failure(s.c, &f));
    assert_int_equal(f.code, LT_EVALUE);
    assert_string_equal(f.text, "data: sample 104 of a data set of 103");
    assert_int_equal(check_next(&s, p, 24), 8); /* asking again does not hang */
    lt_prefetch_release(s.c, p);
  }
  end(&s);
}

/* Batches outlive the prefetch, its ctx and the source. */
static void batches_outlive_all(void **state) {
  (void)state;
  setting s = begin();
  lt_tensor *out[2];
  lt_span span;
  lt_prefetch *p = start(&s, 0, 2);
  lt_frame frame = lt_frame_open(s.c);
  assert_true(lt_prefetch_next(s.c, p, out, &span));
  lt_prefetch_release(s.c, p);
  for (int i = 0; i < batch; i++)
    assert_int_equal(((int64_t *)lt_data(out[1]))[i], s.order->index[i]);
  lt_frame_close(s.c, frame, 0, NULL);
  end(&s);
}

/* Blocks come back to the thread's pool: it never holds more than the ring, the batch that it
   gathers and the consumer's one. */
static long asked;
static void *counting(void *ud, void *ptr, size_t old_size, size_t new_size) {
  (void)ud, (void)old_size;
  if (ptr == NULL && new_size > 0) __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
  if (new_size > 0) return realloc(ptr, new_size);
  free(ptr);
  return NULL;
}

static void steady_state_asks_for_no_memory(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  skip(); /* small blocks go back to the allocator (base/memory.c) */
#endif
  lt_ctx *c = lt_ctx_new(lt_registry_here(), &(lt_allocator){.fn = counting});
  lt_tensor *x = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 2, (int64_t[]){400, 1000});
  memset(lt_data(x), 0, 400 * 4000);
  lt_column column = {.source = x};
  lt_order *o = lt_order_sequential(c, 400);
  lt_batching b = {.batch = 4, .world = 1};
  lt_prefetch *p = lt_prefetch_new(c, o, &b, 0, 1, &column, 2);
  long early = 0;
  for (int i = 0; i < 100; i++) {
    lt_tensor *out;
    lt_span span;
    lt_frame frame = lt_frame_open(c);
    assert_true(lt_prefetch_next(c, p, &out, &span));
    lt_frame_close(c, frame, 0, NULL);
    if (i == 0) early = __atomic_load_n(&asked, __ATOMIC_RELAXED);
  }
  assert_in_range(__atomic_load_n(&asked, __ATOMIC_RELAXED) - early, 0, 8);
  lt_prefetch_release(c, p);
  lt_release(c, o);
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_every_batch_in_order),
      cmocka_unit_test(stops_at_any_moment),
      cmocka_unit_test(goes_on_without_its_thread),
      cmocka_unit_test(carries_a_failure_over),
      cmocka_unit_test(batches_outlive_all),
      cmocka_unit_test(steady_state_asks_for_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
