/* spec/c/segments_test.c: large blocks of a pool: cut, joined, given back; memory of the device beside
   what is in use, over steps whose sizes change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/ctx_devices.h"
#include "device/fake.h"
#include "ops/op.h"
#include "registry.h"

static const size_t MIB = (size_t)1 << 20;

static lt_ctx *fresh(void) { return lt_ctx_new(lt_registry_here(), NULL); }

static lt_device device_of(lt_ctx *c, const char *name) {
  lt_device d = {0, 0};
  assert_true(lt_device_parse(c, name, &d));
  return d;
}

static int64_t reserved(lt_ctx *c, lt_device d) {
  lt_memory_stats m = lt_device_memory(c, d);
  return m.live_bytes + m.cached_bytes;
}

/* ---- one segment ---- */

static void a_block_takes_what_it_needs(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_device d = device_of(c, "meta");
  lt_storage *s = lt_storage_new(c, d, 1024 * MIB + MIB);
  assert_in_range(reserved(c, d), 1025 * MIB, 1026 * MIB);
  lt_storage_release(c, s);
  s = lt_storage_new(c, d, MIB + 1);
  assert_in_range(lt_device_memory(c, d).live_bytes, MIB + 1, MIB + 65536);
  assert_int_equal(lt_device_memory(c, d).system_calls, 1); /* a part of the segment */
  lt_storage_release(c, s);
  lt_ctx_release(c);
}

/* Freed in any order, the parts of a segment are one block again. */
static void neighbours_are_joined(void **state) {
  (void)state;
  enum { N = 8 };
  for (unsigned seed = 0; seed < 50; seed++) {
    lt_ctx *c = fresh();
    lt_device d = device_of(c, seed % 2 == 0 ? "cpu" : "fake");
    lt_storage *whole = lt_storage_new(c, d, 64 * MIB), *part[N];
    char *data = whole->data;
    lt_storage_release(c, whole);
    for (int k = 0; k < N; k++) {
      part[k] = lt_storage_new(c, d, 8 * MIB);
      memset(part[k]->data, k, 8 * MIB);
    }
    for (int k = 0; k < N; k++) {
      assert_in_range((uintptr_t)part[k]->data, (uintptr_t)data, (uintptr_t)data + 56 * MIB);
      for (int other = 0; other < k; other++) assert_ptr_not_equal(part[k]->data, part[other]->data);
      assert_int_equal(*(char *)part[k]->data, k);
    }
    srand(seed);
    for (int left = N; left > 0; left--) {
      int k = rand() % left;
      lt_storage_release(c, part[k]);
      part[k] = part[left - 1];
    }
    whole = lt_storage_new(c, d, 64 * MIB);
    assert_ptr_equal(whole->data, data);
    assert_int_equal(lt_device_memory(c, d).system_calls, 1);
    lt_storage_release(c, whole);
    lt_device_empty_caches(c);
    assert_int_equal(reserved(c, d), 0);
    lt_ctx_release(c);
  }
}

static void a_segment_in_use_is_not_given_back(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_device d = device_of(c, "cpu");
  lt_storage *whole = lt_storage_new(c, d, 20 * MIB);
  lt_storage_release(c, whole);
  lt_storage *a = lt_storage_new(c, d, 6 * MIB), *b = lt_storage_new(c, d, 6 * MIB);
  memset(b->data, 1, 6 * MIB);
  lt_storage_release(c, a);
  lt_device_empty_caches(c);
  assert_int_equal(reserved(c, d), 20 * MIB);
  memset(b->data, 2, 6 * MIB);
  lt_storage_release(c, b);
  lt_device_empty_caches(c);
  assert_int_equal(reserved(c, d), 0);
  lt_ctx_release(c);
}

/* ---- streams ---- */

/* Issues something on a stream, and returns where it then is. */
static lt_event work_on(lt_ctx *c, lt_device d, lt_stream_role role) {
  lt_event at;
  int64_t n = 16;
  lt_stream *stream = lt_stream_of(c, d, role);
  assert_true(lt_stream_set(c, d, stream));
  assert_non_null(lt_full(c, lt_shape_of(1, &n), (lt_scalar){0}, LT_F32, d));
  assert_true(lt_stream_set(c, d, NULL));
  assert_true(lt_order_record(c, d, stream, &at));
  return at;
}

/* Two blocks, one segment, freed behind work of these streams: how many calls of the device it takes
   to have them again as one, and what that one waits for. */
static int64_t calls_for_both(lt_stream_role one, lt_stream_role other, bool wait, lt_event *last) {
  lt_ctx *c = fresh();
  lt_device d = device_of(c, "fake");
  lt_storage_release(c, lt_storage_new(c, d, 32 * MIB));
  lt_storage *a = lt_storage_new(c, d, 16 * MIB), *b = lt_storage_new(c, d, 16 * MIB);
  lt_event first = work_on(c, d, one), second = work_on(c, d, other);
  lt_order_after(a, first, true);
  lt_order_after(b, second, true);
  lt_storage_release(c, b);
  lt_storage_release(c, a);
  if (wait) assert_true(lt_device_synchronize(c, d));
  int64_t before = lt_device_memory(c, d).system_calls;
  lt_storage *both = lt_storage_new(c, d, 32 * MIB);
  int64_t calls = lt_device_memory(c, d).system_calls - before;
  *last = both->write;
  if (calls == 0 && !wait) assert_ptr_equal(both->write.stream, lt_stream_of(c, d, other));
  lt_storage_release(c, both);
  lt_ctx_release(c);
  return calls;
}

static void blocks_of_one_stream_are_joined_and_wait_for_the_later_position(void **state) {
  (void)state;
  lt_event last;
  assert_int_equal(calls_for_both(LT_STREAM_COMPUTE, LT_STREAM_COMPUTE, false, &last), 0);
  assert_true(last.position > 0);
  assert_int_equal(calls_for_both(LT_STREAM_COMPUTE, LT_STREAM_COMPUTE, true, &last), 0);
}

static void blocks_of_two_streams_are_joined_when_one_is_done(void **state) {
  (void)state;
  lt_event last;
  assert_int_equal(calls_for_both(LT_STREAM_COMPUTE, LT_STREAM_COMM, false, &last), 1);
  assert_int_equal(calls_for_both(LT_STREAM_COMPUTE, LT_STREAM_COMM, true, &last), 0);
}

/* Copies beside the computation take memory of their own, again and again. */
static void copies_beside_the_computation_have_segments_of_their_own(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  lt_device d = device_of(c, "fake");
  lt_stream *copies = lt_stream_of(c, d, LT_STREAM_COPY);
  int64_t calls = 0;
  for (int step = 0; step < 20; step++) {
    assert_true(lt_stream_set(c, d, copies));
    lt_storage *batch = lt_storage_new(c, d, 3 * MIB);
    assert_true(lt_stream_set(c, d, NULL));
    lt_storage *x = lt_storage_new(c, d, 5 * MIB);
    lt_event at = work_on(c, d, LT_STREAM_COMPUTE);
    lt_order_after(batch, at, false);
    lt_order_after(x, at, true);
    lt_storage_release(c, batch);
    lt_storage_release(c, x);
    assert_true(lt_device_synchronize(c, d));
    if (step == 1) calls = lt_device_memory(c, d).system_calls;
  }
  assert_int_equal(lt_device_memory(c, d).system_calls, calls);
  assert_in_range(reserved(c, d), 8 * MIB, 24 * MIB);
  lt_ctx_release(c);
}

/* ---- steps of changing sizes ---- */

/* What a model has taken: of meta, whose pool counts what it would take. */
enum { MOST_SAVED = 512 };
typedef struct steps {
  lt_ctx *c;
  lt_device d;
  lt_frame frame;
  int64_t used, peak, reserved; /* bytes: in use, the most of that, the most of the device */
  lt_storage *saved[MOST_SAVED];
  int64_t bytes[MOST_SAVED];
  int n;
  uint32_t drawn;
} steps;

static int64_t draw(steps *s, int64_t from, int64_t to) {
  s->drawn = s->drawn * 1664525u + 1013904223u;
  return from + (int64_t)((uint64_t)(s->drawn >> 8) * (uint64_t)(to - from + 1) >> 24);
}

static lt_storage *take(steps *s, int64_t bytes) {
  lt_storage *t = lt_storage_new(s->c, s->d, (size_t)bytes);
  assert_non_null(t);
  s->used += bytes;
  if (s->used > s->peak) s->peak = s->used;
  int64_t now = reserved(s->c, s->d);
  if (now > s->reserved) s->reserved = now;
  return t;
}

static void let_go(steps *s, lt_storage *t, int64_t bytes) {
  lt_storage_release(s->c, t);
  s->used -= bytes;
}

static void save(steps *s, int64_t bytes) {
  assert_true(s->n < MOST_SAVED);
  s->saved[s->n] = take(s, bytes);
  s->bytes[s->n++] = bytes;
}

/* A temporary between two that are saved. */
static void save_by(steps *s, int64_t bytes, int64_t temporary) {
  lt_storage *t = take(s, temporary);
  save(s, bytes);
  let_go(s, t, temporary);
}

/* Back to where `first` was saved: the gradient of each, from that of the one after it. */
static void go_back(steps *s, int first) {
  int64_t bytes = s->bytes[s->n - 1];
  lt_storage *grad = take(s, bytes);
  while (s->n > first) {
    int64_t own = s->bytes[--s->n];
    lt_storage *t = take(s, own);
    let_go(s, grad, bytes);
    let_go(s, s->saved[s->n], own);
    grad = t;
    bytes = own;
  }
  let_go(s, grad, bytes);
}

/* Weights, and with the first step two moments of each. */
static void keep_weights(steps *s, const int64_t *bytes, int n) {
  for (int k = 0; k < n; k++) save(s, bytes[k]);
}

/* A language model of 12 layers over sequences of any length. */
static void sequence_step(steps *s, int64_t t) {
  const int64_t b = 8, channels = 768, heads = 12, words = 50257;
  int64_t x = 4 * b * t * channels;
  int first = s->n;
  save(s, x);
  for (int layer = 0; layer < 12; layer++) {
    save(s, x);                                   /* norm */
    save(s, 3 * x);                               /* queries, keys, values */
    save_by(s, 4 * b * heads * t * t, 4 * b * heads * t * t); /* attention */
    save_by(s, x, x);
    save(s, x);
    save_by(s, 4 * x, 4 * x);
    save_by(s, x, x);
  }
  save_by(s, 4 * b * t * words, 4 * b * t * words);
  go_back(s, first);
}

/* Convolutions of one size of images, the batch of any size. */
static void batch_step(steps *s, int64_t b) {
  int first = s->n;
  for (int stage = 0, size = 56, channels = 64; stage < 4; stage++, size /= 2, channels *= 2)
    for (int block = 0; block < 4; block++) {
      int64_t x = 4 * b * channels * size * size;
      save(s, x);
      save_by(s, 4 * x, x + (3 << 20));
      save_by(s, x, 4 * x);
    }
  go_back(s, first);
}

/* A convolution, which has workspace, and what follows it. */
static void save_block(steps *s, int64_t x) {
  const int64_t most = 96 << 20;
  save_by(s, x, x < most ? x : most);
  save(s, x); /* norm */
  save(s, x); /* activation */
}

/* A U-Net: what the way down has at each level is read again on the way up. */
static void unet_step(steps *s, int64_t b, int64_t size) {
  int first = s->n;
  int64_t x = 4 * b * 64 * size * size;
  for (int level = 0; level < 5; level++, x /= 2) {
    save_block(s, x);
    save_block(s, x);
    save(s, x / 4); /* pooled */
  }
  for (int level = 0; level < 5; level++) {
    x *= 2;
    save_by(s, 2 * x, x); /* the level's, and what came from below */
    save_block(s, x);
    save_block(s, x);
  }
  go_back(s, first);
}

/* The state of training: the weights and, from the first step on, the moments. */
static void warm_up(steps *s, void (*step)(steps *s), const int64_t *weights, int n) {
  keep_weights(s, weights, n);
  step(s);
  keep_weights(s, weights, n);
  keep_weights(s, weights, n);
}

static steps begin(void) {
  steps s = {.c = fresh(), .drawn = 7};
  s.d = device_of(s.c, "meta");
  return s;
}

static int64_t calls_of(const steps *s) { return lt_device_memory(s->c, s->d).system_calls; }

static void end(steps *s, const char *name) {
  print_message("# %s: %.3f of the most in use (%.0f MiB), %lld calls of the device\n", name,
                (double)s->reserved / (double)s->peak, (double)s->peak / (double)MIB,
                (long long)calls_of(s));
  assert_true((double)s->reserved <= 1.15 * (double)s->peak);
  while (s->n > 0) {
    s->n--;
    let_go(s, s->saved[s->n], s->bytes[s->n]);
  }
  lt_device_empty_caches(s->c);
  assert_int_equal(reserved(s->c, s->d), 0);
  lt_ctx_release(s->c);
}

static const int64_t MATRICES[] = {154389504, 9437184, 7077888, 9437184, 2359296, 9437184,
                                   7077888,   9437184, 2359296, 9437184, 7077888, 9437184};
enum { N_MATRICES = sizeof MATRICES / sizeof *MATRICES };

static void first_sequences(steps *s) { sequence_step(s, draw(s, 64, 1024)); }

static void sequences_of_changing_length(void **state) {
  (void)state;
  steps s = begin();
  int64_t calls = 0;
  warm_up(&s, first_sequences, MATRICES, N_MATRICES);
  for (int step = 0; step < 300; step++) {
    first_sequences(&s);
    if (step == 149) calls = calls_of(&s);
  }
  assert_int_equal(calls_of(&s), calls);
  end(&s, "sequences of changing length");
}

static void one_image(steps *s) { batch_step(s, 8); }

static void batches_that_grow(void **state) {
  (void)state;
  steps s = begin();
  warm_up(&s, one_image, MATRICES + 1, N_MATRICES - 1);
  for (int64_t b = 8; b <= 256; b += 3)
    for (int again = 0; again < 3; again++) batch_step(&s, b);
  int64_t calls = calls_of(&s);
  for (int again = 0; again < 20; again++) batch_step(&s, 254);
  assert_int_equal(calls_of(&s), calls);
  end(&s, "batches that grow");
}

static void an_image(steps *s) {
  int64_t size = 16 * draw(s, 12, 32);
  unet_step(s, draw(s, 1, 8), size);
}

static void images_of_a_unet(void **state) {
  (void)state;
  steps s = begin();
  int64_t calls = 0;
  warm_up(&s, an_image, MATRICES + 1, N_MATRICES - 1);
  for (int step = 0; step < 600; step++) {
    an_image(&s);
    if (step == 299) calls = calls_of(&s);
  }
  assert_int_equal(calls_of(&s), calls);
  end(&s, "images of a U-Net");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_block_takes_what_it_needs),
      cmocka_unit_test(neighbours_are_joined),
      cmocka_unit_test(a_segment_in_use_is_not_given_back),
      cmocka_unit_test(blocks_of_one_stream_are_joined_and_wait_for_the_later_position),
      cmocka_unit_test(blocks_of_two_streams_are_joined_when_one_is_done),
      cmocka_unit_test(copies_beside_the_computation_have_segments_of_their_own),
      cmocka_unit_test(sequences_of_changing_length),
      cmocka_unit_test(batches_that_grow),
      cmocka_unit_test(images_of_a_unet),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
