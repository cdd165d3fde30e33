/* spec/c/ctx_test.c: failures, frames, objects, memory, lines, random numbers, helper threads. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/ctx.h"
#include "base/script_lines.h"
#include "base/threads.h"
#include "registry.h"

static lt_ctx *fresh(void) { return lt_ctx_new(lt_registry_here(), NULL); }

static void first_failure_sticks(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  assert_true(lt_ok(c));
  assert_false(lt_fail(c, LT_ESHAPE, "first: %d", 1));
  assert_false(lt_fail(c, LT_EARG, "second"));
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_int_equal(f.code, LT_ESHAPE);
  assert_string_equal(f.text, "first: 1");
  assert_true(lt_ok(c));
  assert_false(lt_take_failure(c, &f));
  lt_ctx_release(c);
}

typedef struct chain_link {
  lt_object object;
  struct chain_link *next;
  int *drops;
} chain_link;

static void drop_link(lt_ctx *c, lt_object *o) {
  chain_link *l = (chain_link *)o;
  ++*l->drops;
  lt_release(c, l->next);
  lt_free(c, l, sizeof *l);
}

static chain_link *link_new(lt_ctx *c, chain_link *next, int *drops) {
  chain_link *l = lt_alloc(c, sizeof *l);
  l->object = (lt_object){.refs = 1, .drop = drop_link};
  l->next = next;
  l->drops = drops;
  return l;
}

static void a_million_links_drop_without_a_stack(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  int drops = 0;
  chain_link *head = NULL;
  for (int i = 0; i < 1000000; i++) head = link_new(c, head, &drops);
  lt_release(c, head);
  assert_int_equal(drops, 1000000);
  lt_ctx_release(c);
}

static void frames_release_all_but_what_is_kept(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  int drops = 0;
  lt_frame outer = lt_frame_open(c);
  lt_frame inner = lt_frame_open(c);
  chain_link *kept = link_new(c, NULL, &drops);
  lt_frame_add(c, kept);
  for (int i = 0; i < 100; i++) lt_frame_add(c, link_new(c, NULL, &drops));
  lt_frame_close(c, inner, 1, (void *[]){kept});
  assert_int_equal(drops, 100);
  lt_release(c, kept);
  assert_int_equal(drops, 101);
  lt_frame_close(c, outer, 0, NULL);
  lt_ctx_release(c);
}

static void small_blocks_are_zeroed_and_reused(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  unsigned char *p = lt_alloc(c, 40);
  memset(p, 0xaa, 40);
  lt_free(c, p, 40);
  unsigned char *q = lt_alloc(c, 33); /* same class of 16-byte steps */
#ifndef __SANITIZE_ADDRESS__ /* else they go back to the allocator (base/memory.c) */
  assert_ptr_equal(p, q);
#endif
  for (int i = 0; i < 33; i++) assert_int_equal(q[i], 0);
  lt_free(c, q, 33);
  lt_ctx_release(c);
}

/* An allocator that fails from its n-th allocation on, and counts what is live. */
typedef struct failing {
  int64_t left, live;
} failing;

static void *failing_fn(void *ud, void *ptr, size_t old_size, size_t new_size) {
  failing *f = ud;
  if (new_size == 0) {
    if (ptr != NULL) f->live -= (int64_t)old_size;
    free(ptr);
    return NULL;
  }
  if (f->left-- <= 0) return NULL;
  f->live += (int64_t)new_size;
  return malloc(new_size);
}

static void a_context_survives_each_failing_allocation(void **state) {
  (void)state;
  for (int n = 0; n < 20; n++) {
    failing f = {.left = n};
    lt_ctx *c = lt_ctx_new(lt_registry_here(), &(lt_allocator){failing_fn, &f});
    if (c != NULL) {
      for (int i = 0; i < 10; i++) {
        void *p = lt_alloc(c, 2000);
        if (p == NULL) assert_int_equal(c->failure.code, LT_EMEMORY);
        lt_free(c, p, 2000);
      }
      lt_line_id(c, "a.lua", 1);
      lt_ctx_release(c);
    }
    assert_int_equal(f.live, 0);
  }
}

static void lines_are_interned(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  char text[64];
  uint32_t a = lt_line_id(c, "model.lua", 14), b = lt_line_id(c, "model.lua", 15);
  assert_int_not_equal(a, b);
  assert_int_equal(a, lt_line_id(c, "model.lua", 14));
  assert_string_equal(lt_line_text(c, b, text, sizeof text), "model.lua:15");
  assert_string_equal(lt_line_text(c, 0, text, sizeof text), "?");
  for (int i = 0; i < 3000; i++) lt_line_id(c, "long.lua", i);
  assert_string_equal(lt_line_text(c, a, text, sizeof text), "model.lua:14");
  lt_ctx_release(c);
}

/* An allocator that counts what is held. */
static void *counting(void *ud, void *ptr, size_t old_size, size_t new_size) {
  size_t *held = ud;
  *held += new_size - old_size;
  if (new_size != 0) return realloc(ptr, new_size);
  free(ptr);
  return NULL;
}

static void early_lines_are_forgotten(void **state) {
  (void)state;
  size_t bytes = 0;
  lt_ctx *c = lt_ctx_new(lt_registry_here(), &(lt_allocator){counting, &bytes});
  char text[64];
  uint32_t early = lt_line_id(c, "model.lua", 14), late = 0;
  for (int i = 0; i < 70000; i++) late = lt_line_id(c, "loaded.lua", i);
  size_t held = bytes;
  for (int i = 70000; i < 300000; i++) late = lt_line_id(c, "loaded.lua", i);
  assert_true(bytes == held);
  assert_string_equal(lt_line_text(c, early, text, sizeof text), "?");
  assert_string_equal(lt_line_text(c, late, text, sizeof text), "loaded.lua:299999");
  assert_int_equal(late, lt_line_id(c, "loaded.lua", 299999));
  early = lt_line_id(c, "model.lua", 14);
  assert_string_equal(lt_line_text(c, early, text, sizeof text), "model.lua:14");
  lt_ctx_release(c);
}

/* No memory above a limit. */
typedef struct bounded {
  size_t held, limit;
} bounded;

static void *refusing(void *ud, void *ptr, size_t old_size, size_t new_size) {
  bounded *b = ud;
  if (new_size > old_size && b->held + new_size - old_size > b->limit) return NULL;
  return counting(&b->held, ptr, old_size, new_size);
}

static uint32_t intern_a_line(void *ud) { return lt_line_id(ud, "model.lua", 14); }

/* The failure asks for the line of the running call while the table grows. */
static void lines_without_memory_fail(void **state) {
  (void)state;
  bounded memory = {.limit = SIZE_MAX};
  lt_ctx *c = lt_ctx_new(lt_registry_here(), &(lt_allocator){refusing, &memory});
  c->find_line = intern_a_line;
  c->line_ud = c;
  memory.limit = memory.held + 4096;
  for (int i = 0; lt_ok(c); i++) {
    assert_in_range(i, 0, 100000);
    c->line = LT_LINE_LATER;
    lt_line_id(c, "loaded.lua", i);
  }
  lt_failure f;
  assert_true(lt_take_failure(c, &f));
  assert_int_equal(f.code, LT_EMEMORY);
  memory.limit = SIZE_MAX;
  lt_ctx_release(c);
}

/* Known answers of Random123's kat_vectors for philox4x32-10. */
static void philox_gives_the_published_words(void **state) {
  (void)state;
  lt_random4 r = lt_philox((lt_rng_key){0, 0, 0, true}, 0);
  const uint32_t zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  assert_memory_equal(r.word, zeros, sizeof zeros);
  r = lt_philox((lt_rng_key){~0ull, ~0ull, 0, true}, ~0ull);
  const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  assert_memory_equal(r.word, ones, sizeof ones);
  r = lt_philox((lt_rng_key){0x299f31d0a4093822ull, 0x0370734413198a2eull, 0, true},
                0x85a308d3243f6a88ull);
  const uint32_t pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  assert_memory_equal(r.word, pi, sizeof pi);
}

static void keys_differ_by_draw_batch_and_stream(void **state) {
  (void)state;
  lt_rng rng = {.seed = 7, .stream = LT_RNG_TRAIN, .batch = 3};
  lt_rng_key a = lt_rng_draw(&rng), b = lt_rng_draw(&rng);
  assert_int_not_equal(a.position, b.position);
  rng.ordinal = 1 << 16; /* overflows into the block index, not into the batch */
  lt_rng_key wide = lt_rng_draw(&rng);
  assert_int_equal(wide.position, a.position);
  assert_int_equal(wide.base, 1ull << 48);
}

static void count_up(void *ud) { ++*(int *)ud; }

static void quiesce_joins_every_helper(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  int ran = 0;
  lt_thread t = {.name = "counter", .fn = count_up, .ud = &ran};
  assert_true(lt_thread_start(c, &t));
  lt_quiesce(c);
  assert_int_equal(ran, 1);
  assert_false(t.running);
  lt_ctx_release(c);
}

static void read_mask(void *ud) { pthread_sigmask(SIG_BLOCK, NULL, ud); }

static void helpers_take_no_signals(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  sigset_t before, of_helper, after;
  lt_thread t = {.name = "mask", .fn = read_mask, .ud = &of_helper};
  read_mask(&before);
  assert_true(lt_thread_start(c, &t));
  lt_thread_join(c, &t);
  read_mask(&after);
  assert_true(sigismember(&of_helper, SIGINT) && sigismember(&of_helper, SIGUSR1));
  assert_false(sigismember(&of_helper, SIGSEGV)); /* a host's handler reports it */
  for (int k = 1; k < 32; k++) assert_int_equal(sigismember(&before, k), sigismember(&after, k));
  lt_ctx_release(c);
}

static void mark_chunk(void *ud, int64_t chunk) { ((char *)ud)[chunk]++; }

static void parallel_loops_run_each_chunk_once(void **state) {
  (void)state;
  lt_ctx *c = fresh();
  char seen[1000] = {0};
  c->threads = 2;
  lt_parallel(c, 1000, mark_chunk, seen);
  for (int i = 0; i < 1000; i++) assert_int_equal(seen[i], 1);
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_failure_sticks),
      cmocka_unit_test(a_million_links_drop_without_a_stack),
      cmocka_unit_test(frames_release_all_but_what_is_kept),
      cmocka_unit_test(small_blocks_are_zeroed_and_reused),
      cmocka_unit_test(a_context_survives_each_failing_allocation),
      cmocka_unit_test(lines_are_interned),
      cmocka_unit_test(early_lines_are_forgotten),
      cmocka_unit_test(lines_without_memory_fail),
      cmocka_unit_test(philox_gives_the_published_words),
      cmocka_unit_test(keys_differ_by_draw_batch_and_stream),
      cmocka_unit_test(quiesce_joins_every_helper),
      cmocka_unit_test(helpers_take_no_signals),
      cmocka_unit_test(parallel_loops_run_each_chunk_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
