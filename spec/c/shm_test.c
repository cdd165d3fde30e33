/* spec/c/shm_test.c: collectives of N ranks as threads over one segment: every operation, dtype and
   reduction against a serial oracle, any order of waiting, groups. Failures: shm_failure_test.c. */
#include "comm_oracle.h"

static void reduces(rank *r) {
  const int64_t *sizes = r->all->ud;
  uint64_t seed = 1;
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    for (int k = 0; k < LT_COMM_REDUCE_COUNT; k++)
      for (int s = 0; sizes[s] >= 0; s++, seed++) {
        lt_dtype dtype = (lt_dtype)d;
        lt_comm_reduce reduce = (lt_comm_reduce)k;
        if (reduce == LT_COMM_MEAN && !lt_dtype_is_float(dtype)) continue;
        lt_frame frame = lt_frame_open(r->c);
        int64_t n = sizes[s], per = n / r->size;
        lt_tensor *in = made(r, dtype, n, seed), *out = s % 2 ? in : made(r, dtype, n, 0);
        if (!CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, in, out, reduce, HERE))))
          return;
        if (!is_sum(r, lt_data(out), dtype, reduce, 0, n, seed)) return;
        int64_t whole = per * r->size;
        in = made(r, dtype, whole, seed);
        out = made(r, dtype, per, 0);
        if (!CHECK(r, finish_work(r, lt_comm_reduce_scatter(r->c, r->g, in, out, reduce, HERE))))
          return;
        if (!is_sum(r, lt_data(out), dtype, reduce, r->rank * per, per, seed)) return;
        lt_frame_close(r->c, frame, 0, NULL);
      }
}

static void reductions_are_the_tree_of_ranks(void **state) {
  (void)state;
  const int64_t sizes[] = {0, 1, 2, 31, 1030, 4099, -1}, few[] = {0, 1, 100, 301, -1};
  for (int n = 1; n <= 5; n++) {
    if (n == 4 && !has_all_orders()) continue;
    run_ranks_with(n, 0, reduces, sizes, 1);
    if (n == 3 || has_all_orders()) run_ranks_with(n, 1, reduces, few, 1);
    if (n == 5 || has_all_orders()) run_ranks_with(n, 40, reduces, few, 1);
  }
  run_ranks_with(9, 0, reduces, (const int64_t[]){0, 1, 31, 1030, -1}, 1);
  if (has_all_orders()) run_ranks_with(11, 40, reduces, few, 1);
}

static void reduces_much(rank *r) {
  int64_t n = (1 << 20) + 5;
  lt_tensor *t = made(r, LT_F32, n, 9), *out = made(r, LT_F32, n, 0);
  CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, t, out, LT_COMM_SUM, HERE)));
  CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE)));
  CHECK(r, memcmp(lt_data(t), lt_data(out), (size_t)n * 4) == 0);
  is_sum(r, lt_data(t), LT_F32, LT_COMM_SUM, 0, n, 9);
}

static void large_tensors_go_in_pieces(void **state) {
  (void)state;
  for (int n = 2; n <= 4; n++) run_ranks(n, reduces_much);
}

static lt_tensor *shaped(rank *r, lt_tensor *t, int ndim, const int64_t *size) {
  return lt_tensor_make(r->c, t->storage, (lt_dtype)t->dtype, ndim, size, NULL, 0);
}

/* Every way of moving, for n elements of one dtype. */
static void moves_n(rank *r, lt_dtype dtype, int64_t n, uint64_t seed) {
  int root = (int)(seed % (uint64_t)r->size);
  lt_tensor *in = made(r, dtype, n, seed), *all = made(r, dtype, n * r->size, 0);
  all = shaped(r, all, 2, (int64_t[]){r->size, n});
  lt_tensor *t = made(r, dtype, n, seed);
  CHECK(r, finish_work(r, lt_comm_broadcast(r->c, r->g, t, root, HERE)));
  is_of(r, lt_data(t), dtype, root, 0, n, seed);
  CHECK(r, finish_work(r, lt_comm_all_gather(r->c, r->g, in, all, HERE)));
  for (int k = 0; k < r->size; k++)
    is_of(r, (char *)lt_data(all) + (size_t)(k * n) * lt_item_size(in), dtype, k, 0, n, seed);
  all = made(r, dtype, n * r->size, 0);
  CHECK(r,
        finish_work(r, lt_comm_gather(r->c, r->g, in, r->rank == root ? all : NULL, root, HERE)));
  for (int k = 0; k < r->size && r->rank == root; k++)
    is_of(r, (char *)lt_data(all) + (size_t)(k * n) * lt_item_size(in), dtype, k, 0, n, seed);
  all = made(r, dtype, n * r->size, seed);
  CHECK(r, finish_work(r, lt_comm_scatter(r->c, r->g, all, t, root, HERE)));
  is_of(r, lt_data(t), dtype, root, r->rank * n, n, seed);
  if (r->size == 1) return;
  /* Around the ring: the odd ones listen first. */
  int next = (r->rank + 1) % r->size, last = (r->rank + r->size - 1) % r->size;
  lt_work *w = lt_comm_send(r->c, r->g, in, next, HERE);
  CHECK(r, finish_work(r, lt_comm_recv(r->c, r->g, t, last, HERE)));
  CHECK(r, finish_work(r, w));
  is_of(r, lt_data(t), dtype, last, 0, n, seed);
}

static void moves(rank *r) {
  const int64_t *sizes = r->all->ud;
  uint64_t seed = 1;
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    for (int s = 0; sizes[s] >= 0 && r->all->wrong[0] == 0; s++) {
      lt_frame frame = lt_frame_open(r->c);
      moves_n(r, (lt_dtype)d, sizes[s], seed++);
      lt_frame_close(r->c, frame, 0, NULL);
    }
}

static void everything_arrives(void **state) {
  (void)state;
  const int64_t sizes[] = {0, 1, 7, 5000, -1}, few[] = {0, 1, 77, -1}, large[] = {100003, -1};
  for (int n = 1; n <= 5; n++) {
    if (n == 4 && !has_all_orders()) continue;
    run_ranks_with(n, 0, moves, sizes, 1);
    run_ranks_with(n, 24, moves, few, 1);
    if (n == 3 || (n < 3 && has_all_orders())) run_ranks_with(n, 0, moves, large, 1);
  }
  run_ranks_with(9, 0, moves, few, 1);
}

static void gathers_unequal(rank *r) {
  for (int round = 0; round < 12; round++) {
    lt_frame frame = lt_frame_open(r->c);
    int64_t rows[MOST_RANKS], all = 0;
    bool large = round == 2 || (round % 3 == 2 && has_all_orders());
    for (int k = 0; k < r->size; k++) {
      rows[k] = (k * 5 + round * 3) % 7 * (large ? 4000 : round % 3 == 2 ? 40 : 1);
      if (round == 11) rows[k] = 0;
      all += rows[k];
    }
    lt_tensor *in = made(r, LT_F64, rows[r->rank] * 6, 3);
    in = shaped(r, in, 3, (int64_t[]){rows[r->rank], 2, 3});
    lt_work *w = lt_comm_all_gather_cat(r->c, r->g, in, HERE);
    if (!CHECK(r, w != NULL && lt_work_wait(r->c, w))) return;
    lt_tensor *out = lt_work_result(w);
    CHECK(r, out->ndim == 3 && out->size[0] == all && out->size[1] == 2 && out->size[2] == 3);
    double *at = lt_data(out);
    for (int k = 0; k < r->size; at += rows[k] * 6, k++) is_of(r, at, LT_F64, k, 0, rows[k] * 6, 3);
    lt_work_release(r->c, w);
    lt_frame_close(r->c, frame, 0, NULL);
  }
}

static void unequal_rows_are_joined(void **state) {
  (void)state;
  for (int n = 1; n <= 5; n++)
    if (n != 4 || has_all_orders()) run_ranks(n, gathers_unequal);
  run_ranks(9, gathers_unequal);
  run_ranks_with(3, 16, gathers_unequal, NULL, 1);
}

/* Sizes differ without {cat = true}: an error on all, and the group continues. */
static void gathers_wrongly(rank *r) {
  int64_t n = r->rank == 1 ? 10 : 8;
  lt_tensor *in = made(r, LT_F32, n, 1);
  lt_tensor *out = made(r, LT_F32, n * r->size, 1);
  CHECK(r, !finish_work(r, lt_comm_all_gather(r->c, r->g, in, out, HERE)));
  lt_failure f;
  if (!CHECK(r, lt_take_failure(r->c, &f))) return;
  const char *wanted = "all_gather: first sizes differ between ranks: 8, 10, 8 "
                       "(concatenate them with {cat = true})";
  if (strcmp(f.text, wanted) != 0) wrong(r, "rank %d: %.400s", r->rank, f.text);
  CHECK(r, f.code == LT_ESHAPE && !lt_heartbeat_is_over(r->heartbeat));
  CHECK(r, finish_work(r, lt_comm_barrier(r->c, r->g, HERE)));
}

static void unequal_rows_without_cat_are_reported(void **state) {
  (void)state;
  run_ranks(3, gathers_wrongly);
}

static void scalars(rank *r) {
  lt_tensor *t = rank_tensor(r, LT_I32, 0, NULL),
            *out = rank_tensor(r, LT_I32, 1, (int64_t[]){r->size});
  *(int32_t *)lt_data(t) = 1 << r->rank;
  CHECK(r, finish_work(r, lt_comm_all_gather(r->c, r->g, t, out, HERE)));
  for (int k = 0; k < r->size; k++) CHECK(r, ((int32_t *)lt_data(out))[k] == 1 << k);
  uint64_t version = t->storage->version;
  CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE)));
  CHECK(r, *(int32_t *)lt_data(t) == (1 << r->size) - 1);
  CHECK(r, t->storage->version > version); /* autograd and caches see the write */
}

static void scalars_have_no_dims(void **state) {
  (void)state;
  for (int n = 1; n <= 5; n++) run_ranks(n, scalars);
}

/* Bytes: rank k has text_n(k, ..) bytes of its own letter. */
static int64_t text_n(int number, int round) {
  return (number * 31 + round * 17) % 5 * (round + 1);
}

static bool is_text(rank *r, const lt_work *w, int slot, int number, int64_t wanted) {
  int64_t n;
  const char *text = lt_work_bytes(w, slot, &n);
  if (!CHECK(r, n == wanted)) return false;
  for (int64_t i = 0; i < n; i++)
    if (!CHECK(r, text[i] == (char)('a' + number))) return false;
  return true;
}

static void is_message(rank *r, const lt_work *w, int number, int64_t wanted) {
  int64_t n;
  const char *text = lt_work_text(w, &n);
  CHECK(r, n == wanted);
  for (int64_t i = 0; i < n; i++) CHECK(r, text[i] == (char)('a' + number));
}

static void sends_bytes(rank *r) {
  char mine[4000], parts_room[MOST_RANKS][4000];
  memset(mine, 'a' + r->rank, sizeof mine);
  for (int round = 0; round < 200 && r->all->wrong[0] == 0; round += 1 + round / 4) {
    int root = round % r->size;
    int64_t n = text_n(r->rank, round), sizes[MOST_RANKS];
    const void *parts[MOST_RANKS];
    for (int k = 0; k < r->size; k++) {
      memset(parts_room[k], 'a' + k, sizeof parts_room[k]);
      parts[k] = parts_room[k], sizes[k] = text_n(k, round);
    }
    lt_work *w = lt_comm_bytes(r->c, r->g, LT_COMM_ALL_GATHER, -1, mine, n, NULL, NULL, HERE);
    if (CHECK(r, w && lt_work_wait(r->c, w)))
      for (int k = 0; k < r->size; k++) is_text(r, w, k, k, text_n(k, round));
    lt_work_release(r->c, w);
    w = lt_comm_bytes(r->c, r->g, LT_COMM_BROADCAST, root, mine, n, NULL, NULL, HERE);
    if (CHECK(r, w && lt_work_wait(r->c, w))) is_text(r, w, 0, root, text_n(root, round));
    lt_work_release(r->c, w);
    w = lt_comm_bytes(r->c, r->g, LT_COMM_GATHER, root, mine, n, NULL, NULL, HERE);
    if (CHECK(r, w && lt_work_wait(r->c, w)) && r->rank == root)
      for (int k = 0; k < r->size; k++) is_text(r, w, k, k, text_n(k, round));
    lt_work_release(r->c, w);
    w = lt_comm_bytes(r->c, r->g, LT_COMM_SCATTER, root, NULL, 0, parts, sizes, HERE);
    if (CHECK(r, w && lt_work_wait(r->c, w))) is_text(r, w, 0, r->rank, text_n(r->rank, round));
    lt_work_release(r->c, w);
    if (r->size == 1) continue;
    if (r->rank == root) {
      int to = (root + 1) % r->size;
      finish_work(r, lt_comm_send_message(r->c, r->g, to, mine, n, NULL, 0, HERE));
    } else if (r->rank == (root + 1) % r->size) {
      w = lt_comm_recv_message(r->c, r->g, root, LT_CPU_DEVICE, NULL, HERE);
      if (CHECK(r, w && lt_work_wait(r->c, w))) is_message(r, w, root, text_n(root, round));
      lt_work_release(r->c, w);
    }
  }
}

static void bytes_find_their_size(void **state) {
  (void)state;
  for (int n = 1; n <= 5; n++) run_ranks(n, sends_bytes);
  run_ranks_with(3, 8, sends_bytes, NULL, 1);
}

/* Many works at once, in two groups and between pairs; each rank waits in an order of its own. */
enum { FLIGHT = 12 };

/* The k-th of them: all_reduce, broadcast in a half, a message to the neighbour, one from it. */
static lt_work *fly(rank *r, lt_group *half, lt_tensor *t, int k) {
  int peer = r->rank ^ 1;
  if (k % 4 == 0) return lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE);
  if (k % 4 == 1) return lt_comm_broadcast(r->c, half, t, 0, HERE);
  if (peer >= r->size) return NULL;
  if (k % 4 == 2) return lt_comm_send(r->c, r->g, t, peer, HERE);
  return lt_comm_recv(r->c, r->g, t, peer, HERE);
}

static void has_landed(rank *r, lt_tensor *t, int k, uint64_t seed) {
  int peer = r->rank ^ 1;
  if (k % 4 == 0)
    is_sum(r, lt_data(t), LT_F32, LT_COMM_SUM, 0, t->numel, seed);
  else if (k % 4 == 1)
    is_of(r, lt_data(t), LT_F32, r->rank % 2, 0, t->numel, seed);
  else
    is_of(r, lt_data(t), LT_F32, k % 4 == 2 ? r->rank : peer, 0, t->numel, seed);
}

static void flies(rank *r) {
  lt_group *half = lt_group_split(r->c, r->g, r->rank % 2, r->rank);
  if (!CHECK(r, half != NULL)) return;
  int rounds = has_all_orders() ? 20 : 8;
  for (int round = 0; round < rounds && r->all->wrong[0] == 0; round++) {
    lt_frame frame = lt_frame_open(r->c);
    lt_work *w[FLIGHT];
    lt_tensor *t[FLIGHT];
    int order[FLIGHT];
    for (int k = 0; k < FLIGHT; k++) {
      uint64_t seed = (uint64_t)(round * FLIGHT + k / 4 * 4); /* a message and its answer alike */
      order[k] = k;
      t[k] = made(r, LT_F32, 1 + (round * 977 + k / 4 * 131) % 30000, seed);
      w[k] = fly(r, half, t[k], k);
    }
    for (int left = FLIGHT; left > 0; left--) {
      int at = (int)(rank_random(r) % (uint64_t)left), k = order[at];
      uint64_t seed = (uint64_t)(round * FLIGHT + k / 4 * 4);
      order[at] = order[left - 1];
      if (w[k] == NULL) continue; /* the last of an odd number has no neighbour */
      if (k % 3 == 0) lt_work_test(r->c, w[k]);
      CHECK(r, finish_work(r, w[k]));
      has_landed(r, t[k], k, seed);
    }
    lt_frame_close(r->c, frame, 0, NULL);
  }
  lt_group_release(r->c, half);
}

static void works_are_waited_for_in_any_order(void **state) {
  (void)state;
  for (int n = 1; n <= 5; n++) run_ranks_with(n, 0, flies, NULL, (uint64_t)n);
  run_ranks_with(10, 0, flies, NULL, 10);
}

/* A work that is not waited for still continues while others are waited for. */
static void forgets(rank *r) {
  lt_tensor *t = made(r, LT_F32, 100, 1);
  lt_work_release(r->c, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE));
  CHECK(r, finish_work(r, lt_comm_barrier(r->c, r->g, HERE)));
  is_sum(r, lt_data(t), LT_F32, LT_COMM_SUM, 0, 100, 1);
  lt_work_release(r->c, lt_comm_barrier(r->c, r->g, HERE)); /* may be open at the close */
}

static void released_works_go_on(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n++) run_ranks(n, forgets);
}

/* Splits by colors that look random, in reverse order of rank, again and again: far more groups
   than there are seats. */
static void splits(rank *r) {
  for (int round = 0; round < 150 && r->all->wrong[0] == 0; round++) {
    int colors[MOST_RANKS] = {0}, n = 0, place = 0, sum = 0;
    for (int k = 0; k < r->size; k++) colors[k] = (k * 7 + round * round) % 4 - 1;
    int color = colors[r->rank];
    for (int k = 0; k < r->size; k++)
      if (colors[k] == color) n++, sum += k, place += k > r->rank;
    lt_group *g = lt_group_split(r->c, r->g, color, -r->rank);
    if (!CHECK(r, (g != NULL) == (color >= 0))) return;
    if (g == NULL) continue;
    CHECK(r, lt_group_size(g) == n && lt_group_rank(g) == place);
    CHECK(r, lt_group_world_rank(g, place) == r->rank);
    lt_tensor *t = rank_tensor(r, LT_I64, 0, NULL);
    *(int64_t *)lt_data(t) = r->rank;
    CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, g, t, t, LT_COMM_SUM, HERE)));
    CHECK(r, *(int64_t *)lt_data(t) == sum);
    lt_group *inner = lt_group_split(r->c, g, lt_group_rank(g) % 2, 0);
    if (CHECK(r, inner != NULL)) {
      CHECK(r, lt_group_size(inner) == (n + 1 - lt_group_rank(g) % 2) / 2);
      CHECK(r, finish_work(r, lt_comm_barrier(r->c, inner, HERE)));
    }
    if (round % 2) rank_delay(r, 300);
    lt_group_release(r->c, g);
    lt_group_release(r->c, inner);
  }
}

static void groups_come_and_go(void **state) {
  (void)state;
  for (int n = 1; n <= 5; n++) run_ranks_with(n, 0, splits, NULL, (uint64_t)n);
  run_ranks_with(36, 0, splits, NULL, 36); /* groups of 9 */
}

static void splits_too_much(rank *r) {
  enum { SEATS = 64 };
  lt_group *g[SEATS];
  for (int k = 0; k < SEATS - 1; k++)
    if (!CHECK(r, (g[k] = lt_group_split(r->c, r->g, 0, 0)) != NULL)) return;
  CHECK(r, lt_group_split(r->c, r->g, 0, 0) == NULL);
  lt_failure f;
  CHECK(r, lt_take_failure(r->c, &f) &&
               strcmp(f.text, "split: rank 0 cannot join another group: it is in 64 (release "
                              "some)") == 0);
  for (int k = 0; k < SEATS - 1; k++) lt_group_release(r->c, g[k]);
  CHECK(r, finish_work(r, lt_comm_barrier(r->c, r->g, HERE)));
  lt_group *again = lt_group_split(r->c, r->g, 0, 0);
  CHECK(r, again != NULL);
  lt_group_release(r->c, again);
}

static void too_many_groups_are_reported(void **state) {
  (void)state;
  run_ranks(2, splits_too_much);
}

/* What a watchdog sees: waits are reported, and over. */
static void reports_waits(rank *r) {
  lt_mark before = {.kind = LT_MARK_RUNNING, .line = 77};
  lt_heartbeat_set_activity(r->heartbeat, &before);
  if (r->rank == 0) {
    lt_heartbeat *other = r->all->heartbeat[1];
    while (atomic_load(&other->waiting_since_ns) == 0) sched_yield();
    lt_mark m = lt_heartbeat_activity(other);
    CHECK(r, m.kind == LT_MARK_CALL && m.op == LT_COMM_ALL_REDUCE && m.seq == 1);
    usleep(2000);
  }
  lt_tensor *t = made(r, LT_F32, 100, 1);
  CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE)));
  CHECK(r, atomic_load(&r->heartbeat->waiting_since_ns) == 0 &&
               lt_heartbeat_activity(r->heartbeat).line == 77);
  CHECK(r, atomic_load(&r->heartbeat->progress) > 0);
  CHECK(r, atomic_load(&r->heartbeat->ring_count) == 1 && r->heartbeat->ring[0].bytes == 400);
  const lt_ring_entry *e = &r->heartbeat->ring[0];
  CHECK(r, e->issued_ns > 0 && e->arrived_ns >= e->issued_ns && e->done_ns >= e->arrived_ns);
  if (r->rank == 1) CHECK(r, atomic_load(&r->heartbeat->waited_ns) > 1500000);
}

static void heartbeats_tell_of_waits(void **state) {
  (void)state;
  run_ranks(2, reports_waits);
}

int main(void) {
  unsetenv("OMP_WAIT_POLICY"); /* two ranks spin, as they do by default */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions_are_the_tree_of_ranks),
      cmocka_unit_test(large_tensors_go_in_pieces),
      cmocka_unit_test(everything_arrives),
      cmocka_unit_test(unequal_rows_are_joined),
      cmocka_unit_test(unequal_rows_without_cat_are_reported),
      cmocka_unit_test(scalars_have_no_dims),
      cmocka_unit_test(bytes_find_their_size),
      cmocka_unit_test(works_are_waited_for_in_any_order),
      cmocka_unit_test(released_works_go_on),
      cmocka_unit_test(groups_come_and_go),
      cmocka_unit_test(too_many_groups_are_reported),
      cmocka_unit_test(heartbeats_tell_of_waits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
