/* spec/c/data_memory_test.c: every allocation of saving, loading, reading and prefetching fails in
   turn, once or from then on: an error each time, nothing lost, nothing kept. */
/* tags: threads */
#include "io_test.h"

#include <stdatomic.h>
#include <zlib.h>

#include "data/prefetch.h"
#include "io/idx.h"
#include "io/safetensors.h"

static atomic_long calls, live;
static long fail_at;
static bool for_ever;

static void *failing(void *ud, void *ptr, size_t old_size, size_t new_size) {
  (void)ud, (void)old_size;
  if (new_size == 0) {
    if (ptr != NULL) atomic_fetch_sub(&live, 1);
    free(ptr);
    return NULL;
  }
  long n = atomic_fetch_add(&calls, 1) + 1;
  if (for_ever ? n >= fail_at : n == fail_at) return NULL;
  if (ptr == NULL) atomic_fetch_add(&live, 1);
  return realloc(ptr, new_size);
}

static bool save_and_load(lt_ctx *c) {
  lt_tensor *w = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 2, (int64_t[]){40, 30});
  if (w == NULL) return false;
  memset(lt_data(w), 0, 4800);
  lt_named_tensor t[] = {{"a", w}, {"b", w}};
  lt_metadata m = {"k", "v", 1};
  if (!lt_safetensors_save(c, "save", IO_PATH("a"), 2, t, 1, &m, NULL)) return false;
  lt_safetensors s;
  if (!lt_safetensors_open(c, &s, "load", IO_PATH("a"))) return false;
  lt_tensor *back = lt_safetensors_read(c, &s, 0);
  lt_safetensors_close(c, &s);
  return back != NULL;
}

static bool read_idx(lt_ctx *c) {
  return lt_idx_read(c, "idx", IO_PATH("idx")) != NULL && lt_idx_read(c, "idx", IO_PATH("idx.gz"));
}

static bool prefetch(lt_ctx *c) {
  lt_tensor *x = lt_tensor_empty(c, LT_CPU_DEVICE, LT_U8, 2, (int64_t[]){50, 5000});
  if (x == NULL) return false;
  memset(lt_data(x), 1, 250000);
  lt_column columns[] = {{.source = x, .divisor = 255}, {.source = x}};
  lt_batching batching = {.batch = 8, .world = 1};
  lt_order *order = lt_order_shuffled(c, 50, 1, 0);
  if (order == NULL) return false;
  lt_prefetch *p = lt_prefetch_new(c, order, &batching, 0, 2, columns, 2);
  lt_release(c, order);
  lt_span span = {.total = 1};
  while (p != NULL && span.total > 0) {
    lt_tensor *out[2];
    lt_frame frame = lt_frame_open(c);
    bool ok = lt_prefetch_next(c, p, out, &span);
    lt_frame_close(c, frame, 0, NULL);
    if (!ok) break;
  }
  lt_prefetch_release(c, p);
  return lt_ok(c);
}

/* Runs fn with its first, second, ... allocation failing until it works. */
static void check(bool (*fn)(lt_ctx *c)) {
  bool done = false;
  for (int way = 0; way < 2; way++, done = false) {
    for_ever = way == 1;
    for (fail_at = 1; !done; fail_at++) {
      atomic_store(&calls, 0);
      lt_ctx *c = lt_ctx_new(lt_registry_here(), &(lt_allocator){.fn = failing});
      if (c != NULL) {
        c->policy = (lt_policy){.read_files = true, .write_files = true};
        bool ok = fn(c); /* also when the pool has asked a second time */
        lt_failure f = {.code = LT_OK};
        assert_true(lt_take_failure(c, &f) != ok);
        if (!ok) assert_int_equal(f.code, LT_EMEMORY);
        done = ok && atomic_load(&calls) < fail_at;
        lt_ctx_release(c);
      }
      assert_int_equal(atomic_load(&live), 0);
      if (done) assert_true(fail_at > 8);
    }
  }
}

static void saving_and_loading(void **state) {
  (void)state;
  check(save_and_load);
}

static void reading_idx(void **state) {
  (void)state;
  char bytes[8 + 300] = {0, 0, 8, 1, 0, 0, 1, 44};
  io_write(IO_PATH("idx"), bytes, sizeof bytes);
  gzFile f = gzopen(IO_PATH("idx.gz"), "wb");
  gzwrite(f, bytes, sizeof bytes);
  gzclose(f);
  check(read_idx);
}

static void prefetching(void **state) {
  (void)state;
  check(prefetch);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, io_setup, io_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(saving_and_loading),
      TEST(reading_idx),
      TEST(prefetching),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
