/* spec/c/device_link_test.c: ranks whose tensors are on devices: over a link of the device (here
   fake's memory, moved through a segment of shm), and through pinned memory without one. Rank r is
   a thread with device r.
   tags: waits */
#include "comm_test.h"

#include "comm/group.h"
#include "device/fake.h"
#include "ops/op.h"

/* The link between devices: shm's of a segment of its own. */
struct lt_comm_link {
  void *inner;
  int rank, size;
};

/* Segments of groups, by their id: the number that rank 0 made. */
enum { SEGMENTS = 256 };
static struct {
  void *memory;
  size_t bytes;
} segment[SEGMENTS];
static atomic_int n_segments;
static atomic_int n_moves; /* asked of links between devices */

static bool make_id(char id[LT_COMM_ID], char *text, size_t size) {
  (void)text, (void)size;
  int n = atomic_fetch_add(&n_segments, 1);
  segment[n].bytes = lt_shm_bytes(MOST_RANKS);
  segment[n].memory = mmap(NULL, segment[n].bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  memcpy(id, &n, sizeof n);
  return true;
}

static lt_comm_link *open_link(const lt_comm_host *host, const lt_comm_place *place, char *text,
                               size_t size) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  int n;
  memcpy(&n, place->id, sizeof n);
  pthread_mutex_lock(&lock);
  uint64_t first;
  memcpy(&first, segment[n].memory, sizeof first);
  if (first == 0) lt_shm_init(segment[n].memory, segment[n].bytes, place->size);
  pthread_mutex_unlock(&lock);
  lt_comm_place inner = {.rank = place->rank,
                         .size = place->size,
                         .memory = segment[n].memory,
                         .memory_bytes = segment[n].bytes};
  lt_comm_link *l = malloc(sizeof *l);
  *l = (lt_comm_link){lt_shm_ops()->open(host, &inner, text, size), place->rank, place->size};
  return l;
}

static void close_link(lt_comm_link *l) {
  lt_shm_ops()->close(l->inner);
  free(l);
}
static int rank_of(const lt_comm_link *l) { return l->rank; }
static int ranks_of(const lt_comm_link *l) { return l->size; }

static lt_progress move(lt_comm_link *l, lt_comm_move *m) {
  if (m->state == NULL) atomic_fetch_add(&n_moves, 1);
  return lt_shm_ops()->move(l->inner, m);
}

/* Adds in an order of its own, as far as ltrain knows. */
static const lt_comm_ops link_ops = {
    .size = sizeof(lt_comm_ops),
    .version = LT_COMM_VERSION,
    .name = "test",
    .device = "fake",
    .by_host = true,
    .make_id = make_id,
    .open = open_link,
    .close = close_link,
    .abandon = close_link,
    .rank = rank_of,
    .ranks = ranks_of,
    .move = move,
};
static lt_comm_ops gathering_ops;

/* What a test runs its ranks with. */
typedef struct how {
  const lt_comm_ops *link; /* NULL: through pinned memory */
} how;

static lt_device device_of(rank *r) {
  lt_device d = {0, 0};
  lt_device_parse(r->c, "fake", &d);
  d.index = (int16_t)(r->rank % 4);
  return d;
}

static void use_link(rank *r) {
  const how *h = r->all->ud;
  r->g->between.ops = h->link;
}

static float value(int of, int64_t i) {
  uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u + (uint64_t)(of + 1) * 0xbf58476d1ce4e5b9u;
  x ^= x >> 31;
  return (float)(x & 0xffff) / (float)(1 + (x >> 16 & 0xff)) * (x >> 24 & 1 ? 1.f : -1.f);
}

static lt_tensor *on_host(rank *r, int64_t n) {
  lt_tensor *t = rank_tensor(r, LT_F32, 1, &n);
  float *data = lt_data(t);
  for (int64_t i = 0; i < n; i++) data[i] = value(r->rank, i);
  return t;
}

static bool equal(rank *r, lt_tensor *on_device, const lt_tensor *host) {
  size_t bytes = (size_t)host->numel * lt_item_size(host);
  char *got = malloc(bytes + 1);
  bool same = on_device != NULL && lt_tensor_read(r->c, on_device, got) &&
              memcmp(got, lt_data(host), bytes) == 0;
  free(got);
  return same;
}

/* ---- the collectives ---- */

static void reduce(rank *r, int64_t n, lt_comm_reduce by) {
  lt_tensor *host = on_host(r, n), *there = lt_to_device(r->c, host, device_of(r));
  lt_tensor *out = lt_tensor_empty(r->c, device_of(r), LT_F32, 1, &n);
  lt_tensor *wanted = rank_tensor(r, LT_F32, 1, &n);
  CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, host, wanted, by, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, there, out, by, HERE)));
  CHECK(r, equal(r, out, wanted));
  CHECK(r, equal(r, there, host));
  CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, there, there, by, HERE)));
  CHECK(r, equal(r, there, wanted));
}

static void parts(rank *r) {
  enum { PARTS = 5 };
  lt_tensor *host[PARTS], *there[PARTS];
  for (int k = 0; k < PARTS; k++) {
    host[k] = on_host(r, k * 301);
    there[k] = lt_to_device(r->c, host[k], device_of(r));
  }
  CHECK(r, finish_work(r, lt_comm_all_reduce_parts(r->c, r->g, PARTS, host, 0.25, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_reduce_parts(r->c, r->g, PARTS, there, 0.25, HERE)));
  for (int k = 0; k < PARTS; k++) CHECK(r, equal(r, there[k], host[k]));
}

/* Two tensors a rank; `apart`: this rank's share lies in one of its own. */
static void shares(rank *r, bool apart) {
  lt_tensor *host[2 * MOST_RANKS], *there[2 * MOST_RANKS];
  lt_tensor *own = on_host(r, 301 + 40 + r->rank);
  lt_tensor *own_there = lt_to_device(r->c, own, device_of(r));
  for (int k = 0; k < 2 * r->size; k++) {
    host[k] = on_host(r, k % 2 == 0 ? 301 : 40 + k / 2);
    there[k] = lt_to_device(r->c, host[k], device_of(r));
  }
  lt_parts a = {2 * r->size, apart, host, &own}, b = {2 * r->size, apart, there, &own_there};
  CHECK(r, finish_work(r, lt_comm_all_gather_parts(r->c, r->g, &a, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_gather_parts(r->c, r->g, &b, HERE)));
  for (int k = 0; k < 2 * r->size; k++) CHECK(r, equal(r, there[k], host[k]));
  CHECK(r, finish_work(r, lt_comm_reduce_scatter_parts(r->c, r->g, &a, 0.25, HERE)));
  CHECK(r, finish_work(r, lt_comm_reduce_scatter_parts(r->c, r->g, &b, 0.25, HERE)));
  CHECK(r, equal(r, own_there, own));
  for (int k = 2 * r->rank; k < 2 * r->rank + 2; k++) CHECK(r, equal(r, there[k], host[k]));
}

static void others(rank *r) {
  lt_device d = device_of(r);
  int64_t n = 37, all = n * r->size, cat = 3 + r->rank;
  lt_tensor *host = on_host(r, n), *there = lt_to_device(r->c, host, d);
  lt_tensor *wanted = rank_tensor(r, LT_F32, 1, &all);
  lt_tensor *out = lt_tensor_empty(r->c, d, LT_F32, 1, &all);
  CHECK(r, finish_work(r, lt_comm_all_gather(r->c, r->g, host, wanted, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_gather(r->c, r->g, there, out, HERE)));
  CHECK(r, equal(r, out, wanted));
  lt_tensor *part = rank_tensor(r, LT_F32, 1, &n), *shard = lt_tensor_empty(r->c, d, LT_F32, 1, &n);
  lt_comm_reduce mean = LT_COMM_MEAN;
  CHECK(r, finish_work(r, lt_comm_reduce_scatter(r->c, r->g, wanted, part, mean, HERE)));
  CHECK(r, finish_work(r, lt_comm_reduce_scatter(r->c, r->g, out, shard, mean, HERE)));
  CHECK(r, equal(r, shard, part));
  lt_tensor *a = on_host(r, cat), *b = lt_to_device(r->c, a, d);
  lt_work *v = lt_comm_all_gather_cat(r->c, r->g, a, HERE);
  lt_work *w = lt_comm_all_gather_cat(r->c, r->g, b, HERE);
  if (CHECK(r, lt_work_wait(r->c, w) && lt_work_wait(r->c, v)))
    CHECK(r, equal(r, lt_work_result(w), lt_work_result(v)));
  lt_work_release(r->c, v);
  lt_work_release(r->c, w);
  int root = r->size - 1;
  CHECK(r, finish_work(r, lt_comm_broadcast(r->c, r->g, host, root, HERE)));
  CHECK(r, finish_work(r, lt_comm_broadcast(r->c, r->g, there, root, HERE)));
  CHECK(r, equal(r, there, host));
  lt_tensor *gathered = r->rank == 0 ? out : NULL;
  CHECK(r, finish_work(r, lt_comm_gather(r->c, r->g, there, gathered, 0, HERE)));
  CHECK(r, finish_work(r, lt_comm_scatter(r->c, r->g, gathered, there, 0, HERE)));
  CHECK(r, equal(r, there, host));
}

/* All send to the right first. `there`: whether the receiver wants it on its device. */
static void around(rank *r, int64_t n, bool there) {
  if (r->size == 1) return;
  int right = (r->rank + 1) % r->size, left = (r->rank + r->size - 1) % r->size;
  lt_tensor *host = on_host(r, n), *x = lt_to_device(r->c, host, device_of(r));
  lt_tensor *wanted = rank_tensor(r, LT_F32, 1, &n), *const *list;
  for (int64_t i = 0; i < n; i++) ((float *)lt_data(wanted))[i] = value(left, i);
  lt_tensor *got = lt_tensor_empty(r->c, there ? device_of(r) : LT_CPU_DEVICE, LT_F32, 1, &n);
  lt_work *w = lt_comm_send(r->c, r->g, x, right, HERE);
  CHECK(r, finish_work(r, lt_comm_recv(r->c, r->g, got, left, HERE)));
  CHECK(r, finish_work(r, w) && equal(r, got, wanted));
  lt_tensor *both[] = {x, host};
  w = lt_comm_send_message(r->c, r->g, right, "two", 3, both, 2, HERE);
  lt_device on = got->storage->device;
  lt_work *v = lt_comm_recv_message(r->c, r->g, left, on, NULL, HERE);
  if (CHECK(r, lt_work_wait(r->c, v) && lt_work_tensors(v, &list) == 2))
    for (int k = 0; k < 2; k++)
      CHECK(r, lt_device_equal(list[k]->storage->device, on) && equal(r, list[k], wanted));
  CHECK(r, finish_work(r, w));
  lt_work_release(r->c, v);
}

static void all_collectives(rank *r) {
  use_link(r);
  static const int64_t sizes[] = {0, 1, 5, 1000, 20011};
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    reduce(r, sizes[k], LT_COMM_SUM);
    reduce(r, sizes[k], LT_COMM_MEAN);
    reduce(r, sizes[k], LT_COMM_MAX);
    around(r, sizes[k], true);
    around(r, sizes[k], false);
  }
  parts(r);
  shares(r, false);
  shares(r, true);
  others(r);
}

static void run_all(const lt_comm_ops *link) {
  const how h = {.link = link};
  for (int n = 1; n <= 5; n++) run_ranks_with(n, 0, all_collectives, &h, (uint64_t)n);
}

static void devices_give_the_bits_of_the_host_by_their_link(void **state) {
  (void)state;
  int before = atomic_load(&n_moves);
  run_all(&link_ops);
  assert_true(atomic_load(&n_moves) > before);
}

static void a_link_that_takes_parts_and_adds_in_the_tree_is_given_them(void **state) {
  (void)state;
  gathering_ops = link_ops;
  gathering_ops.gathers = gathering_ops.fixed_order = true;
  run_all(&gathering_ops);
}

static void devices_give_the_bits_of_the_host_through_pinned_memory(void **state) {
  (void)state;
  int before = atomic_load(&n_moves);
  run_all(NULL);
  assert_int_equal(atomic_load(&n_moves), before);
}

/* ---- what is copied ---- */

static void reduce_often(rank *r) {
  use_link(r);
  int64_t n = 1000;
  lt_tensor *t = lt_to_device(r->c, on_host(r, n), device_of(r));
  lt_tensor *own = lt_to_device(r->c, on_host(r, n), device_of(r)), *list[] = {t}, *all = NULL;
  if (r->rank == 1) all = lt_tensor_empty(r->c, device_of(r), LT_F32, 1, &(int64_t){3 * n});
  int to = (r->rank + 1) % 3, from = (r->rank + 2) % 3;
  finish_work(r, lt_comm_barrier(r->c, r->g, HERE));
  int64_t before = lt_fake_count().copies;
  finish_work(r, lt_comm_barrier(r->c, r->g, HERE));
  for (int k = 0; k < 10; k++) {
    CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_MAX, HERE)));
    CHECK(r, finish_work(r, lt_comm_broadcast(r->c, r->g, t, 0, HERE)));
    CHECK(r, finish_work(r, lt_comm_gather(r->c, r->g, t, all, 1, HERE)));
    CHECK(r, finish_work(r, lt_comm_scatter(r->c, r->g, all, t, 1, HERE)));
    lt_work *w = lt_comm_send(r->c, r->g, t, to, HERE);
    CHECK(r, finish_work(r, lt_comm_recv(r->c, r->g, own, from, HERE)) && finish_work(r, w));
    if (r->g->between.ops == &gathering_ops)
      CHECK(r, finish_work(r, lt_comm_all_reduce_parts(r->c, r->g, 1, list, 0.5, HERE)));
  }
  finish_work(r, lt_comm_barrier(r->c, r->g, HERE));
  CHECK(r, lt_fake_count().copies == before);
}

static void a_link_copies_nothing(void **state) {
  (void)state;
  gathering_ops = link_ops;
  gathering_ops.gathers = gathering_ops.fixed_order = true;
  const lt_comm_ops *both[] = {&link_ops, &gathering_ops};
  for (int k = 0; k < 2; k++) run_ranks_with(3, 0, reduce_often, &(how){.link = both[k]}, 1);
}

/* ---- order ---- */

static void between_ops(rank *r) {
  use_link(r);
  int64_t n = 4;
  lt_device d = device_of(r);
  lt_tensor *ones = rank_tensor(r, LT_F32, 1, &n);
  for (int64_t i = 0; i < n; i++) ((float *)lt_data(ones))[i] = 1;
  lt_tensor *x = lt_to_device(r->c, ones, d);
  float wanted = 1;
  for (int k = 0; k < 12; k++) {
    x = lt_binary(r->c, LT_OP_add, x, x);
    CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, x, x, LT_COMM_SUM, HERE)));
    x = lt_binary_scalar(r->c, LT_OP_div, x, lt_scalar_of(r->size));
    wanted *= 2;
  }
  float got[4];
  CHECK(r, lt_tensor_read(r->c, x, got) && got[0] == wanted && got[3] == wanted);
}

static void movements_stand_in_the_order_of_ops(void **state) {
  (void)state;
  for (int order = LT_FAKE_TURNS; order <= LT_FAKE_OTHERS_FIRST; order++) {
    lt_fake_set_order((lt_fake_order)order);
    run_ranks_with(3, 0, between_ops, &(how){.link = &link_ops}, 1);
    run_ranks_with(3, 0, between_ops, &(how){.link = NULL}, 1);
  }
  lt_fake_set_order(LT_FAKE_TURNS);
}

/* ---- groups, and ranks that disagree ---- */

static void in_parts_of_the_group(rank *r) {
  use_link(r);
  lt_group *whole = r->g, *half = lt_group_split(r->c, whole, r->rank % 2, -r->rank);
  if (!CHECK(r, half != NULL)) return;
  half->between.ops = whole->between.ops;
  reduce(r, 100, LT_COMM_SUM);
  r->g = half;
  reduce(r, 1000, LT_COMM_SUM);
  CHECK(r, half->between.link != whole->between.link);
  r->g = whole;
  reduce(r, 100, LT_COMM_SUM);
  lt_group_release(r->c, half);
}

static void each_group_opens_its_own_link(void **state) {
  (void)state;
  run_ranks_with(4, 0, in_parts_of_the_group, &(how){.link = &link_ops}, 1);
}

static void on_another(rank *r) {
  use_link(r);
  lt_device d = device_of(r), next = d;
  next.index = (int16_t)((d.index + 1) % 4);
  lt_tensor *host = on_host(r, 300);
  lt_tensor *a = lt_to_device(r->c, host, d), *b = lt_to_device(r->c, host, next);
  lt_work *w = lt_comm_all_reduce(r->c, r->g, a, a, LT_COMM_SUM, HERE);
  CHECK(r, lt_comm_all_reduce(r->c, r->g, b, b, LT_COMM_SUM, HERE) == NULL);
  lt_failure f;
  CHECK(r, lt_take_failure(r->c, &f) && f.code == LT_EDEVICE);
  CHECK(r, strstr(f.text, "all_reduce: the link of this group is that of fake:") != NULL);
  lt_tensor *list[] = {b};
  CHECK(r, lt_comm_all_reduce_parts(r->c, r->g, 1, list, 1, HERE) == NULL);
  CHECK(r, lt_take_failure(r->c, &f) && f.code == LT_EDEVICE);
  CHECK(r, finish_work(r, w));
  reduce(r, 100, LT_COMM_SUM);
}

static void a_link_is_that_of_one_device(void **state) {
  (void)state;
  run_ranks_with(3, 0, on_another, &(how){.link = &link_ops}, 1);
}

static void one_is_on_the_host(rank *r) {
  use_link(r);
  lt_tensor *t = on_host(r, 3);
  if (r->rank == 1) t = lt_to_device(r->c, t, device_of(r));
  CHECK(r, !finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE)));
  lt_failure f;
  CHECK(r, lt_take_failure(r->c, &f) && f.code == LT_ERANKS);
  CHECK(r, strstr(f.text, "rank 0: all_reduce sum [3] f32 at spec.lua") != NULL);
  CHECK(r, strstr(f.text, "rank 1: all_reduce sum [3] f32 between devices at spec.lua") != NULL);
}

static void a_rank_on_the_host_and_one_on_a_device_disagree(void **state) {
  (void)state;
  run_ranks_with(2, 0, one_is_on_the_host, &(how){.link = &link_ops}, 1);
}

static void reduce_mixed(rank *r) {
  lt_tensor *t = on_host(r, 300), *host = on_host(r, 300);
  if (r->rank == 1) t = lt_to_device(r->c, t, device_of(r));
  CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, host, host, LT_COMM_SUM, HERE)));
  CHECK(r, equal(r, t, host));
}

static void pinned_memory_meets_the_host_of_another_rank(void **state) {
  (void)state;
  run_ranks_with(3, 0, reduce_mixed, &(how){.link = NULL}, 1);
}

static void without_the_others(rank *r) {
  use_link(r);
  lt_tensor *t = lt_to_device(r->c, on_host(r, 3), device_of(r));
  if (r->rank == 1) {
    usleep(20000);
    report_to_all(r->all, LT_EXITED, "rank 1 ended");
    return;
  }
  CHECK(r, !finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE)));
  lt_failure f;
  CHECK(r, lt_take_failure(r->c, &f) && strcmp(f.text, "rank 1 ended") == 0);
}

static void an_outcome_ends_the_wait(void **state) {
  (void)state;
  run_ranks_with(3, 0, without_the_others, &(how){.link = &link_ops}, 1);
  run_ranks_with(3, 0, without_the_others, &(how){.link = NULL}, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(devices_give_the_bits_of_the_host_by_their_link),
      cmocka_unit_test(a_link_that_takes_parts_and_adds_in_the_tree_is_given_them),
      cmocka_unit_test(devices_give_the_bits_of_the_host_through_pinned_memory),
      cmocka_unit_test(a_link_copies_nothing),
      cmocka_unit_test(movements_stand_in_the_order_of_ops),
      cmocka_unit_test(each_group_opens_its_own_link),
      cmocka_unit_test(a_link_is_that_of_one_device),
      cmocka_unit_test(a_rank_on_the_host_and_one_on_a_device_disagree),
      cmocka_unit_test(pinned_memory_meets_the_host_of_another_rank),
      cmocka_unit_test(an_outcome_ends_the_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
