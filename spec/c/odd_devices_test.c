/* spec/c/odd_devices_test.c: devices that are neither the CPU nor like a GPU: one whose library
   fails between the issue of work and its event, and a synchronous one with memory of its own. */
#include "comm_test.h"

#include "device/fake.h"
#include "device/stream.h"
#include "ops/op.h"

enum { N = 16 };

/* ---- events that cannot be recorded ---- */

static const lt_device FAKE = {1, 0};
static const lt_device_ops *fake; /* as it is */
static bool fails;

static bool record(lt_ctx *c, lt_stream *stream, lt_event *out) {
  if (fails) return lt_fail(c, LT_EDEVICE, "no event");
  return fake->event_record(c, stream, out);
}

/* What follows is issued on a stream of this role. */
static void use(lt_ctx *c, lt_stream_role role) {
  assert_true(lt_stream_set(c, FAKE, lt_stream_of(c, FAKE, role)));
}

static float last_of(lt_ctx *c, lt_tensor *t) {
  float out[N];
  assert_true(lt_tensor_read(c, t, out));
  return out[N - 1];
}

/* fn(c, x) fails though its work was issued; what is issued on another stream then comes after. */
static float after_a_failure(bool (*fn)(lt_ctx *c, lt_tensor *x)) {
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_tensor *x = lt_full(c, lt_shape_of(1, &(int64_t){N}), lt_scalar_of(3), LT_F32, FAKE);
  lt_failure f;
  use(c, LT_STREAM_COMM);
  fails = true;
  assert_false(fn(c, x));
  fails = false;
  assert_true(lt_take_failure(c, &f));
  assert_string_equal(f.text, "no event");
  use(c, LT_STREAM_COMPUTE);
  float last = last_of(c, x);
  lt_ctx_release(c);
  return last;
}

static bool multiply(lt_ctx *c, lt_tensor *x) {
  return lt_apply(c, LT_OP_mul, 1, &x, &(lt_args_binary){.b = lt_scalar_of(4)}, 1, &x);
}

static bool overwrite(lt_ctx *c, lt_tensor *x) {
  float values[N];
  for (int k = 0; k < N; k++) values[k] = 8;
  return lt_tensor_write(c, x, values);
}

static void work_whose_event_fails_has_run_before_what_follows(void **state) {
  (void)state;
  lt_registry_here();
  fake = lt_device_kinds[FAKE.kind];
  lt_device_ops own = *fake;
  own.event_record = record;
  lt_device_kinds[FAKE.kind] = &own;
  lt_fake_set_order(LT_FAKE_OTHERS_LAST);
  assert_true(after_a_failure(multiply) == 12);
  assert_true(after_a_failure(overwrite) == 8);
  lt_fake_set_order(LT_FAKE_TURNS);
  lt_device_kinds[FAKE.kind] = fake;
}

/* ---- a synchronous device with memory of its own ---- */

/* No address of it is one of the host's. */
static const uintptr_t APART = (uintptr_t)1 << 46;
static void *shown(void *p) { return p != NULL ? (void *)((uintptr_t)p + APART) : NULL; }
static void *real(const void *p) { return (void *)((uintptr_t)p - APART); }

static int one(void) { return 1; }
static void *allocate(int index, size_t bytes) {
  (void)index;
  return shown(aligned_alloc(64, (bytes + 63) / 64 * 64));
}
static void release(int index, void *data, size_t bytes) {
  (void)index, (void)bytes;
  free(real(data));
}

static bool copy(lt_ctx *c, lt_stream *stream, lt_copy way, int index, void *dst, int from,
                 const void *src, size_t bytes, lt_dtype dtype) {
  (void)index, (void)from, (void)dtype;
  if (!lt_assert(c, stream == NULL)) return false;
  memcpy(way == LT_TO_HOST ? dst : real(dst), way == LT_TO_DEVICE ? src : real(src), bytes);
  return true;
}

static const lt_kernel no_kernels[LT_OP_COUNT];
static lt_device_ops apart = {.size = sizeof apart,
                              .version = LT_BACKEND_VERSION,
                              .name = "apart",
                              .for_specs = true,
                              .kernels = no_kernels,
                              .count = one,
                              .alloc = allocate,
                              .free = release,
                              .copy = copy};

static lt_device device_of(rank *r) {
  lt_device d = {0, 0};
  CHECK(r, lt_device_parse(r->c, "apart", &d));
  return d;
}

static lt_tensor *there_of(rank *r, lt_tensor *host) {
  lt_tensor *t = lt_tensor_empty(r->c, device_of(r), LT_F32, host->ndim, host->size);
  CHECK(r, lt_tensor_write(r->c, t, lt_data(host)));
  return t;
}

static lt_tensor *on_host(rank *r, int64_t n) {
  lt_tensor *t = rank_tensor(r, LT_F32, 1, &n);
  for (int64_t i = 0; i < n; i++) ((float *)lt_data(t))[i] = (float)(i % 7) / (float)(r->rank + 3);
  return t;
}

static bool equal(rank *r, lt_tensor *there, const lt_tensor *host) {
  size_t bytes = (size_t)host->numel * sizeof(float);
  char *got = malloc(bytes + 1);
  bool same = lt_tensor_read(r->c, there, got) && memcmp(got, lt_data(host), bytes) == 0;
  free(got);
  return same;
}

static void reductions(rank *r) {
  static const lt_comm_reduce ways[] = {LT_COMM_SUM, LT_COMM_MEAN, LT_COMM_MAX};
  for (int k = 0; k < 3; k++) {
    lt_tensor *host = on_host(r, 500), *there = there_of(r, host);
    CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, host, host, ways[k], HERE)));
    CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, there, there, ways[k], HERE)));
    CHECK(r, equal(r, there, host));
  }
  lt_tensor *host[] = {on_host(r, 5), on_host(r, 300)};
  lt_tensor *there[] = {there_of(r, host[0]), there_of(r, host[1])};
  CHECK(r, finish_work(r, lt_comm_all_reduce_parts(r->c, r->g, 2, host, 0.25, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_reduce_parts(r->c, r->g, 2, there, 0.25, HERE)));
  for (int k = 0; k < 2; k++) CHECK(r, equal(r, there[k], host[k]));
  if (r->size != 2) return;
  lt_parts a = {2, 0, host, NULL}, b = {2, 0, there, NULL};
  CHECK(r, finish_work(r, lt_comm_reduce_scatter_parts(r->c, r->g, &a, 0.25, HERE)));
  CHECK(r, finish_work(r, lt_comm_reduce_scatter_parts(r->c, r->g, &b, 0.25, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_gather_parts(r->c, r->g, &a, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_gather_parts(r->c, r->g, &b, HERE)));
  for (int k = 0; k < 2; k++) CHECK(r, equal(r, there[k], host[k]));
}

static void movements(rank *r) {
  int64_t n = 21, all = n * r->size, cat = 2 + r->rank;
  lt_tensor *host = on_host(r, n), *there = there_of(r, host);
  lt_tensor *wanted = rank_tensor(r, LT_F32, 1, &all);
  lt_tensor *out = lt_tensor_empty(r->c, device_of(r), LT_F32, 1, &all);
  CHECK(r, finish_work(r, lt_comm_all_gather(r->c, r->g, host, wanted, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_gather(r->c, r->g, there, out, HERE)));
  CHECK(r, equal(r, out, wanted));
  lt_tensor *joined = on_host(r, cat);
  lt_work *v = lt_comm_all_gather_cat(r->c, r->g, joined, HERE);
  lt_work *w = lt_comm_all_gather_cat(r->c, r->g, there_of(r, joined), HERE);
  if (CHECK(r, lt_work_wait(r->c, w) && lt_work_wait(r->c, v)))
    CHECK(r, equal(r, lt_work_result(w), lt_work_result(v)));
  lt_work_release(r->c, v);
  lt_work_release(r->c, w);
  CHECK(r, finish_work(r, lt_comm_broadcast(r->c, r->g, host, r->size - 1, HERE)));
  CHECK(r, finish_work(r, lt_comm_broadcast(r->c, r->g, there, r->size - 1, HERE)));
  CHECK(r, equal(r, there, host));
}

static void all_collectives(rank *r) {
  reductions(r);
  movements(r);
}

static void ranks_on_a_synchronous_device_give_the_bits_of_the_host(void **state) {
  (void)state;
  char why[LT_BACKEND_TEXT];
  lt_registry_here(); /* the CPU is kind 0 */
  assert_true(lt_device_add(&apart, why, sizeof why));
  for (int n = 1; n <= 3; n++) run_ranks_with(n, 0, all_collectives, NULL, (uint64_t)n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(work_whose_event_fails_has_run_before_what_follows),
      cmocka_unit_test(ranks_on_a_synchronous_device_give_the_bits_of_the_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
