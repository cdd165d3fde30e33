/* spec/c/shm_failure_test.c: ranks that disagree get the table, all of them and at once; outcomes
   and cancelling end every wait, whatever it waits for. */
#include "comm_test.h"

static const lt_origin at_line_31 = {.file = "model.lua", .line = 31, .hook = "validation_step"};
static lt_origin line(int number) { return (lt_origin){.file = "model.lua", .line = number}; }

static lt_tensor *zeros(rank *r, lt_dtype dtype, int64_t n) {
  lt_tensor *t = rank_tensor(r, dtype, 1, &n);
  memset(lt_data(t), 0, (size_t)n * lt_item_size(t));
  return t;
}

/* Wait for it, and it must fail with this text; so must everything after. */
static void must_fail(rank *r, lt_work *w, const char *wanted) {
  lt_failure f = {0};
  CHECK(r, !finish_work(r, w));
  if (!CHECK(r, lt_take_failure(r->c, &f))) return;
  if (f.code != LT_ERANKS || strcmp(f.text, wanted) != 0)
    wrong(r, "rank %d: %d: %.400s", r->rank, f.code, f.text);
  CHECK(r, lt_heartbeat_is_over(r->heartbeat) && strcmp(r->heartbeat->outcome.text, wanted) == 0);
  for (int k = 0; k < 3; k++) {
    CHECK(r, lt_comm_barrier(r->c, r->g, HERE) == NULL);
    if (!CHECK(r, lt_take_failure(r->c, &f) && strcmp(f.text, wanted) == 0)) return;
  }
  CHECK(r, lt_group_split(r->c, r->g, 0, 0) == NULL);
  CHECK(r, lt_take_failure(r->c, &f) && strcmp(f.text, wanted) == 0);
}

/* One way to disagree: what each rank issues, and the message that all get. */
typedef struct quarrel {
  lt_work *(*issue)(rank *r);
  const char *wanted;
} quarrel;

static lt_work *reduce_at(rank *r, lt_dtype dtype, int64_t n, lt_comm_reduce reduce, int number) {
  lt_tensor *t = zeros(r, dtype, n);
  return lt_comm_all_reduce(r->c, r->g, t, t, reduce, line(number));
}

static lt_work *sizes_differ(rank *r) {
  return reduce_at(r, LT_F32, r->rank == 1 ? 16 : 8, LT_COMM_SUM, 10 + r->rank);
}
static lt_work *ops_differ(rank *r) {
  if (r->rank != 1) return reduce_at(r, LT_F32, 8, LT_COMM_SUM, 10);
  return lt_comm_broadcast(r->c, r->g, zeros(r, LT_F32, 8), 0, line(20));
}
static lt_work *dtypes_differ(rank *r) {
  return reduce_at(r, r->rank == 0 ? LT_F32 : LT_F64, 8, LT_COMM_SUM, 10);
}
static lt_work *reductions_differ(rank *r) {
  return reduce_at(r, LT_F32, 8, r->rank == 2 ? LT_COMM_MAX : LT_COMM_MEAN, 10);
}
static lt_work *roots_differ(rank *r) {
  return lt_comm_broadcast(r->c, r->g, zeros(r, LT_I64, 3), r->rank == 1 ? 1 : 0, line(7));
}
static lt_work *cat_differs(rank *r) {
  if (r->rank == 0) return lt_comm_all_gather_cat(r->c, r->g, zeros(r, LT_F32, 8), line(1));
  return lt_comm_all_gather(r->c, r->g, zeros(r, LT_F32, 8), zeros(r, LT_F32, 24), line(2));
}
static lt_work *trailing_dims_differ(rank *r) {
  lt_tensor *t = rank_tensor(r, LT_F32, 2, (int64_t[]){4, 8 + r->rank / 2});
  return lt_comm_all_gather_cat(r->c, r->g, t, at_line_31);
}
static lt_work *values_differ(rank *r) {
  if (r->rank > 0) return reduce_at(r, LT_F32, 8, LT_COMM_SUM, 10);
  return lt_comm_bytes(r->c, r->g, LT_COMM_ALL_GATHER, -1, "x", 1, NULL, NULL, line(5));
}
static lt_work *one_skips(rank *r) {
  lt_tensor *t = zeros(r, LT_F32, 2);
  bool over = lt_heartbeat_is_over(r->heartbeat);
  if (r->rank != 2 && !over) /* the others' next ones follow without waiting */
    lt_work_release(r->c, lt_comm_broadcast(r->c, r->g, t, 0, line(3)));
  return lt_ok(r->c) ? reduce_at(r, LT_F32, 8, LT_COMM_SUM, 4) : NULL;
}

static const quarrel quarrels[] = {
    {sizes_differ,
     "ranks disagree at collective 1: rank 0: all_reduce sum [8] f32 at model.lua:10; "
     "rank 1: all_reduce sum [16] f32 at model.lua:11; rank 2: all_reduce sum [8] f32 "
     "at model.lua:12"},
    {ops_differ, "ranks disagree at collective 1: ranks 0, 2: all_reduce sum [8] f32 at "
                 "model.lua:10; rank 1: broadcast [8] f32 from 0 at model.lua:20"},
    {dtypes_differ,
     "ranks disagree at collective 1: rank 0: all_reduce sum [8] f32 at model.lua:10;"
     " ranks 1, 2: all_reduce sum [8] f64 at model.lua:10"},
    {reductions_differ, "ranks disagree at collective 1: ranks 0, 1: all_reduce mean [8] f32 at "
                        "model.lua:10; rank 2: all_reduce max [8] f32 at model.lua:10"},
    {roots_differ,
     "ranks disagree at collective 1: ranks 0, 2: broadcast [3] i64 from 0 at model.lua:7;"
     " rank 1: broadcast [3] i64 from 1 at model.lua:7"},
    {cat_differs, "ranks disagree at collective 1: rank 0: all_gather {cat = true} [8] f32 at "
                  "model.lua:1; ranks 1, 2: all_gather [8] f32 at model.lua:2"},
    {trailing_dims_differ,
     "ranks disagree at collective 1: ranks 0, 1: all_gather {cat = true} [4, 8] f32 at "
     "model.lua:31 (validation_step); rank 2: all_gather {cat = true} [4, 9] f32 at model.lua:31 "
     "(validation_step)"},
    {values_differ, "ranks disagree at collective 1: rank 0: all_gather of a value at model.lua:5; "
                    "ranks 1, 2: all_reduce sum [8] f32 at model.lua:10"},
    {one_skips, "ranks disagree at collective 1: ranks 0, 1: broadcast [2] f32 from 0 at "
                "model.lua:3; rank 2: all_reduce sum [8] f32 at "
                "model.lua:4"},
};

static void quarrels_once(rank *r) {
  const quarrel *q = r->all->ud;
  rank_delay(r, 500);
  must_fail(r, q->issue(r), q->wanted);
}

static void all_get_the_table(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof quarrels / sizeof *quarrels; k++)
    for (uint64_t seed = 0; seed < 5; seed++)
      run_ranks_with(3, 0, quarrels_once, &quarrels[k], seed);
}

static void agrees_from_two_lines(rank *r) {
  lt_tensor *t = zeros(r, LT_F32, 8);
  lt_origin at = r->rank == 0 ? line(10) : at_line_31;
  CHECK(r, finish_work(r, lt_comm_broadcast(r->c, r->g, t, 0, at)));
  CHECK(r, finish_work(r, lt_comm_broadcast(r->c, r->g, t, 0, line(20 + r->rank))));
}

static void lines_may_differ(void **state) {
  (void)state;
  for (int n = 2; n <= 4; n++) run_ranks(n, agrees_from_two_lines);
}

/* Messages: what two ranks say to each other, reported to both. The others wait in a barrier, and
   get it too. */
static void messages_differ(rank *r) {
  rank_delay(r, 500);
  lt_work *w = r->rank == 1   ? lt_comm_barrier(r->c, r->g, line(50))
               : r->rank == 0 ? lt_comm_send(r->c, r->g, zeros(r, LT_F32, 8), 2, line(1))
                              : lt_comm_recv(r->c, r->g, zeros(r, LT_F32, 16), 0, line(2));
  must_fail(r, w,
            "ranks disagree at message 1 between ranks 0 and 2: rank 0: send [8] f32 to 2 at "
            "model.lua:1; rank 2: recv [16] f32 from 0 at model.lua:2");
}

static void both_ends_of_a_message_are_reported(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 8; seed++) run_ranks_with(3, 0, messages_differ, NULL, seed);
}

/* Both send first, but one of them without waiting: that is right, however long it takes. */
static void exchanges(rank *r) {
  lt_tensor *mine = zeros(r, LT_F32, 50000), *theirs = zeros(r, LT_F32, 50000);
  for (int k = 0; k < 20; k++) {
    lt_work *w = lt_comm_send(r->c, r->g, mine, 1 - r->rank, HERE);
    rank_delay(r, 2000);
    CHECK(r, finish_work(r, lt_comm_recv(r->c, r->g, theirs, 1 - r->rank, HERE)));
    CHECK(r, finish_work(r, w));
    if (r->rank == 0) { /* and one way after the other, in order of ranks */
      CHECK(r, finish_work(r, lt_comm_send(r->c, r->g, mine, 1, HERE)));
      CHECK(r, finish_work(r, lt_comm_recv(r->c, r->g, theirs, 1, HERE)));
    } else {
      CHECK(r, finish_work(r, lt_comm_recv(r->c, r->g, theirs, 0, HERE)));
      CHECK(r, finish_work(r, lt_comm_send(r->c, r->g, mine, 0, HERE)));
    }
  }
}

static void an_exchange_is_no_disagreement(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) run_ranks_with(2, 0, exchanges, NULL, seed);
}

/* Two of three work in a group, fast; the third does other things and waits for all. A disagreement
   of the group must not name the third, and before it there is none. */
static void groups_disagree(rank *r) {
  int color = r->rank == 1 ? -1 : 0;
  lt_group *g = lt_group_split(r->c, r->g, color, 0);
  for (int64_t k = 0; k < 50 && g != NULL; k++) {
    lt_tensor *t = zeros(r, LT_F32, 1 + k * 7);
    if (k % 16 == 0) rank_delay(r, 200);
    if (!CHECK(r, finish_work(r, lt_comm_all_reduce(r->c, g, t, t, LT_COMM_SUM, line(5))))) return;
  }
  if (r->rank == 1) rank_delay(r, 2000);
  lt_tensor *t = zeros(r, LT_F32, 4);
  if (!finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, line(6)))) {
    /* The others may be through with it, and quarrel, before this rank has looked again. */
    CHECK(r, r->rank == 1 && lt_heartbeat_is_over(r->heartbeat));
    lt_take_failure(r->c, &(lt_failure){0});
  }
  lt_work *w;
  if (g == NULL)
    w = lt_comm_barrier(r->c, r->g, line(9));
  else if (r->rank == 0)
    w = lt_comm_all_reduce(r->c, g, t, t, LT_COMM_SUM, line(7));
  else
    w = lt_comm_broadcast(r->c, g, t, 1, line(8));
  must_fail(r, w,
            "ranks disagree at collective 51 of the group of ranks 0, 2: rank 0: all_reduce "
            "sum [4] f32 at model.lua:7; rank 2: broadcast [4] f32 from 2 at model.lua:8");
  lt_group_release(r->c, g);
}

static void groups_quarrel_by_their_own_names(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++)
    run_ranks_with(3, 0, groups_disagree, NULL, seed);
}

/* Random collectives, the same on all ranks, until somebody outside says that it is over. */
static lt_work *random_work(rank *r, lt_group *half, uint64_t k) {
  uint64_t x = k * 0x9e3779b97f4a7c15u >> 40;
  uint64_t most = r->all->chunk > 0 ? 2000 : 200000; /* up to 125 small pieces */
  int64_t n = (int64_t)(x % 7 == 0 ? x % most : x % 50);
  lt_tensor *t = zeros(r, LT_F32, n);
  switch (x % 6) {
    case 0: return lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, HERE);
    case 1: return lt_comm_broadcast(r->c, r->g, t, (int)(x % (uint64_t)r->size), HERE);
    case 2: return lt_comm_all_gather_cat(r->c, r->g, t, HERE);
    case 3: return lt_comm_all_reduce(r->c, half, t, t, LT_COMM_MAX, HERE);
    case 4: return lt_comm_bytes(r->c, r->g, LT_COMM_ALL_GATHER, -1, "hello", 5, NULL, NULL, HERE);
    default:
      return r->rank % 2 == 0 && r->rank + 1 < r->size
                 ? lt_comm_send(r->c, r->g, t, r->rank + 1, HERE)
             : r->rank % 2 == 1 ? lt_comm_recv(r->c, r->g, t, r->rank - 1, HERE)
                                : lt_comm_barrier(r->c, half, HERE);
  }
}

static void works_until_the_end(rank *r) {
  lt_failure f = {0};
  lt_group *half = NULL;
  int64_t late_ns = 0;
  lt_work *open = NULL;
  for (uint64_t k = 0; lt_ok(r->c); k++) {
    lt_frame frame = lt_frame_open(r->c);
    if (k % 100 == 0) {
      lt_group_release(r->c, half);
      half = lt_group_split(r->c, r->g, r->rank / 2, 0);
    }
    if (half == NULL) break;
    /* The rank that is to end it says so in the middle of anything, waiting or not. */
    if (r->rank == r->size - 1 && rank_random(r) % 200 == 0) report_to_all(r->all, LT_LATE, "over");
    if (rank_random(r) % 50 == 0) rank_delay(r, 100);
    lt_work *w = random_work(r, half, k);
    if (w != NULL && rank_random(r) % 3 == 0 && open == NULL) {
      open = w; /* waited for later, or never */
    } else {
      int64_t start = lt_now_ns();
      finish_work(r, w);
      late_ns = lt_now_ns() - start;
    }
    if (open != NULL && rank_random(r) % 3 == 0) finish_work(r, open), open = NULL;
    lt_frame_close(r->c, frame, 0, NULL);
  }
  lt_work_release(r->c, open);
  lt_group_release(r->c, half);
  CHECK(r, lt_take_failure(r->c, &f) && f.code == LT_ERANKS && strcmp(f.text, "over") == 0);
  CHECK(r, late_ns < (int64_t)20e9); /* it did not sit it out */
}

static void an_outcome_ends_every_wait(void **state) {
  (void)state;
  uint64_t few = has_all_orders() ? 30 : 12, many = has_all_orders() ? 4 : 1;
  for (uint64_t seed = 0; seed < few; seed++)
    run_ranks_with(2 + (int)(seed % 4), seed % 5 == 4 ? 64 : 0, works_until_the_end, NULL, seed);
  for (uint64_t seed = 0; seed < many; seed++) run_ranks_with(9, 0, works_until_the_end, NULL, seed);
}

/* One rank never comes. */
static void waits_for_nobody(rank *r) {
  const int *how = r->all->ud;
  if (r->rank == 0) {
    usleep(20000);
    if (*how == 0) {
      for (int k = 0; k < r->size; k++)
        if (k != 0) lt_outcome_set(&r->all->heartbeat[k]->outcome, LT_LOST, 0, 1, "rank 0 is lost");
    } else {
      atomic_store(r->all->cancel, true);
    }
    return;
  }
  if (*how == 1) r->c->cancel = r->all->cancel;
  lt_work *w = reduce_at(r, LT_F32, 10, LT_COMM_SUM, 1);
  CHECK(r, !finish_work(r, w));
  lt_failure f = {0};
  CHECK(r, lt_take_failure(r->c, &f));
  if (*how == 0) CHECK(r, f.code == LT_ERANKS && strcmp(f.text, "rank 0 is lost") == 0);
  if (*how == 1) CHECK(r, f.code == LT_ECANCEL && strcmp(f.text, "all_reduce: cancelled") == 0);
}

static void a_rank_that_never_comes(void **state) {
  (void)state;
  for (int how = 0; how < 2; how++) {
    for (int n = 2; n <= 4; n++) run_ranks_with(n, 0, waits_for_nobody, &how, 1);
    run_ranks_with(12, 0, waits_for_nobody, &how, 1);
  }
}

/* Rank 0's wait for its message is cancelled; it continues and takes rank 1's first. */
static void gives_up_a_wait(rank *r) {
  lt_tensor *t = zeros(r, LT_F32, 10);
  int other = 1 - r->rank;
  if (r->rank == 0) {
    atomic_bool *own = r->c->cancel;
    r->c->cancel = r->all->cancel;
    lt_work *sent = lt_comm_send(r->c, r->g, t, other, HERE);
    CHECK(r, !lt_work_wait(r->c, sent));
    lt_failure f = {0};
    CHECK(r, lt_take_failure(r->c, &f) && f.code == LT_ECANCEL);
    r->c->cancel = own;
    atomic_store(r->all->cancel, false); /* rank 1 continues */
    usleep(200000);                      /* and sits in its wait */
    CHECK(r, finish_work(r, lt_comm_recv(r->c, r->g, zeros(r, LT_F32, 10), other, HERE)));
    CHECK(r, finish_work(r, sent));
    return;
  }
  while (atomic_load(&r->all->heartbeat[0]->waiting_since_ns) == 0) usleep(1000);
  atomic_store(r->all->cancel, true);
  while (atomic_load(r->all->cancel)) usleep(1000);
  CHECK(r, finish_work(r, lt_comm_send(r->c, r->g, t, other, HERE)));
  CHECK(r, finish_work(r, lt_comm_recv(r->c, r->g, t, other, HERE)));
}

static void a_wait_that_was_given_up_leaves_its_message(void **state) {
  (void)state;
  run_ranks(2, gives_up_a_wait);
}

/* Each of many ranks gets what every other one did. */
static void quarrels_among_many(rank *r) {
  const lt_origin at = {
      .file = "a/folder/of/lua/model.lua", .line = 31, .hook = "on_train_start"};
  lt_tensor *t = zeros(r, LT_F32, 100 + r->rank);
  CHECK(r, !finish_work(r, lt_comm_all_reduce(r->c, r->g, t, t, LT_COMM_SUM, at)));
  lt_failure f = {0};
  CHECK(r, lt_take_failure(r->c, &f) && f.code == LT_ERANKS);
  for (int k = 0; k < r->size; k++) {
    char part[128];
    snprintf(part, sizeof part, " rank %d: all_reduce sum [%d] f32 at %s:31 (on_train_start)", k,
             100 + k, at.file);
    if (strstr(f.text, part) == NULL) wrong(r, "rank %d has no line of rank %d", r->rank, k);
  }
}

static void a_table_names_all_of_many_ranks(void **state) {
  (void)state;
  run_ranks(40, quarrels_among_many);
}

/* Without a watchdog the disagreement itself is the outcome. */
static void quarrels_alone(rank *r) {
  r->heartbeat->report = NULL;
  must_fail(r, sizes_differ(r), quarrels[0].wanted);
}

static void heartbeats_without_a_reporter(void **state) {
  (void)state;
  run_ranks(3, quarrels_alone);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_get_the_table),
      cmocka_unit_test(a_table_names_all_of_many_ranks),
      cmocka_unit_test(lines_may_differ),
      cmocka_unit_test(both_ends_of_a_message_are_reported),
      cmocka_unit_test(an_exchange_is_no_disagreement),
      cmocka_unit_test(groups_quarrel_by_their_own_names),
      cmocka_unit_test(an_outcome_ends_every_wait),
      cmocka_unit_test(a_rank_that_never_comes),
      cmocka_unit_test(a_wait_that_was_given_up_leaves_its_message),
      cmocka_unit_test(heartbeats_without_a_reporter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
