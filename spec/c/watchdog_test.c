/* spec/c/watchdog_test.c: watchdogs, the hub and the clocks, with ranks that are threads of this
   process: for the thread sanitizer, and for links that are cut. */
#include "launch_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

#include "one_sum.h"

enum { MOST = 4 };

/* ---- ranks as threads ---- */

typedef struct rank {
  lt_ctx *c;
  lt_world *w;
  pthread_t thread;
  void (*run)(struct rank *r);
  int number, size;
} rank;

static struct {
  rank ranks[MOST];
  int n;
  void *segment;
  size_t segment_bytes;
  const lt_comm_ops *ops; /* NULL: of shm */
} world;

static lt_world *make_world(rank *r, double timeout, const char *files) {
  lt_launch_options o = {.ranks = r->size, .timeout = timeout, .what = "fit", .folder = files};
  r->c->policy.write_files = files != NULL;
  lt_world *w = lt_world_new(r->c, &o);
  assert_non_null(w);
  assert_true(lt_world_size(r->c, w, r->number, r->size));
  assert_true(lt_world_map(r->c, w, 1, 0));
  assert_true(lt_world_wake(r->c, w) && lt_world_open(r->c, w));
  return w;
}

static void make_group(rank *r) {
  char text[LT_COMM_TEXT];
  lt_comm_place place = {.rank = r->number,
                         .size = r->size,
                         .memory = world.segment,
                         .memory_bytes = world.segment_bytes};
  const lt_comm_ops *ops = world.ops != NULL ? world.ops : lt_shm_ops();
  lt_comm_link *link = ops->open(lt_comm_host_here(), &place, text, sizeof text);
  assert_non_null(link);
  r->w->group = lt_group_new(r->c, ops, link, r->w->pulse, true);
}

static void *run_rank(void *ud) {
  rank *r = ud;
  r->run(r);
  return NULL;
}

static void open_world(int n, double timeout, const char *files) {
  world.n = n;
  world.segment_bytes = lt_shm_bytes(n);
  world.segment = aligned_alloc(4096, (world.segment_bytes + 4095) / 4096 * 4096);
  lt_shm_init(world.segment, world.segment_bytes, n);
  for (int k = 0; k < n; k++) {
    rank *r = &world.ranks[k];
    *r = (rank){.c = fresh(), .number = k, .size = n};
    r->w = make_world(r, timeout, files);
    make_group(r);
  }
}

static void connect_pairs(void) {
  for (int k = 1; k < world.n; k++) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
                     0);
    lt_channel_open(&world.ranks[0].w->peers[k].link, ends[0], false);
    lt_channel_open(&world.ranks[k].w->peers[0].link, ends[1], false);
  }
}

static void watch_all(void) {
  for (int k = 0; k < world.n; k++)
    assert_true(lt_watchdog_start(world.ranks[k].c, world.ranks[k].w));
}

static void run_all(void (*run)(rank *r)) {
  for (int k = 0; k < world.n; k++) {
    world.ranks[k].run = run;
    assert_int_equal(pthread_create(&world.ranks[k].thread, NULL, run_rank, &world.ranks[k]), 0);
  }
  for (int k = 0; k < world.n; k++) pthread_join(world.ranks[k].thread, NULL);
}

/* Ranks of a host: all run `run` to its end, with their watchdogs. */
static void play(int n, double timeout, const char *files, void (*run)(rank *r)) {
  open_world(n, timeout, files);
  connect_pairs();
  watch_all();
  run_all(run);
}

static void close_world(void) {
  for (int k = 0; k < world.n; k++) lt_watchdog_stop(world.ranks[k].w);
  for (int k = 0; k < world.n; k++) {
    rank *r = &world.ranks[k];
    lt_group_close(r->c, r->w->group);
    lt_group_release(r->c, r->w->group);
    lt_world_free(r->c, r->w);
    lt_ctx_release(r->c);
  }
  free(world.segment);
}

static void wait_verdict(rank *r) {
  for (int k = 0; k < 6000 && !lt_pulse_over(r->w->pulse); k++) pause_ms(10);
}

/* Every rank has the same verdict. */
static const lt_verdict *common_verdict(void) {
  const lt_verdict *first = lt_world_verdict(world.ranks[0].w);
  assert_non_null(first);
  for (int k = 1; k < world.n; k++) {
    const lt_verdict *v = lt_world_verdict(world.ranks[k].w);
    assert_non_null(v);
    assert_string_equal(v->text, first->text);
    assert_int_equal(v->class, first->class);
    assert_int_equal(v->rank, first->rank);
  }
  return first;
}

/* ---- the hub ---- */

static void report_by_rank(rank *r) {
  static const lt_verdict_class class[MOST] = {LT_LATE, LT_LOST, LT_RAISED, LT_EXITED};
  char text[64];
  snprintf(text, sizeof text, "rank %d fails", r->number);
  lt_world_report(r->w, class[r->number], r -> number, 10 + r -> number, text);
}

static void the_gravest_of_several_is_told(void **state) {
  (void)state;
  play(4, 20, NULL, report_by_rank);
  const lt_verdict *v = common_verdict();
  assert_int_equal(v->class, LT_RAISED);
  assert_int_equal(v->rank, 2);
  assert_int_equal(v->status, 12);
  assert_string_equal(v->text, "rank 2 fails");
  close_world();
}

static void raise_in_order(rank *r) {
  char text[64];
  pause_ms(100 * (3 - r->number)); /* 3, 2, 1, 0 */
  snprintf(text, sizeof text, "boom %d", r->number);
  lt_world_raise(r->w, text, "model.lua", 12);
}

static void the_first_of_a_class_is_told(void **state) {
  (void)state;
  play(4, 20, NULL, raise_in_order);
  assert_string_equal(common_verdict()->text, "rank 3: boom 3");
  close_world();
}

/* Rank 0 saves for longer than reports are collected; the signal came to rank 1, and rank 2 makes
   an error of it. */
static void end_together(rank *r) {
  static atomic_bool saves;
  if (r->number == 0) {
    lt_world_span(r->w, true, true);
    atomic_store(&saves, true);
    pause_ms(400);
    if (lt_pulse_over(r->w->pulse)) abort();
    lt_world_span(r->w, false, true);
    lt_world_stop(r->w, "interrupted: saved a.ckpt", 1);
    return;
  }
  while (!atomic_load(&saves)) pause_ms(1);
  if (r->number == 1) lt_world_stop(r->w, "interrupted", 143);
  pause_ms(100);
  if (r->number == 2) lt_world_raise(r->w, "cancelled", "model.lua", 12);
}

static void an_interrupted_run_is_told_by_rank_0_when_it_is_saved(void **state) {
  (void)state;
  play(3, 20, NULL, end_together);
  const lt_verdict *v = common_verdict();
  assert_int_equal(v->class, LT_INTERRUPTED);
  assert_int_equal(v->status, 143);
  assert_string_equal(v->text, "interrupted: saved a.ckpt");
  close_world();
}

/* Nobody asks the main threads: they wait for ever. */
static void wait_interrupted(rank *r) {
  if (r->number == 1) lt_world_interrupt(r->w, SIGTERM);
  wait_verdict(r);
}

static void a_signal_ends_all_wherever_they_are(void **state) {
  (void)state;
  play(3, 20, NULL, wait_interrupted);
  const lt_verdict *v = common_verdict();
  assert_int_equal(v->class, LT_INTERRUPTED);
  assert_int_equal(v->rank, 1);
  assert_int_equal(v->status, 128 + SIGTERM);
  close_world();
}

static void collect_and_fail(rank *r) {
  int before = r->number == 1 ? 50 : 1000000; /* then rank 1 raises */
  for (int k = 0; k < before; k++) {
    if (sum(r->c, r->w, 1) < 0) return;
    if (k % 10 == 0) lt_world_doing(r->w, "training_step", "model.lua", k);
  }
  lt_world_raise(r->w, "boom", "model.lua", 12);
}

static void waits_end_with_the_verdict(void **state) {
  (void)state;
  play(3, 20, folder, collect_and_fail);
  assert_string_equal(common_verdict()->text, "rank 1: boom");
  for (int k = 0; k < 3; k += 2) {
    lt_failure f;
    assert_true(lt_take_failure(world.ranks[k].c, &f));
    assert_int_equal(f.code, LT_ERANKS);
    assert_string_equal(f.text, "rank 1: boom");
  }
  close_world();
  assert_true(has_file("failure.rank2.txt", "rank 1: boom"));
  assert_true(has_file("ring.rank0.jsonl", "\"op\":\"all_reduce\""));
}

static void leave_unevenly(rank *r) {
  for (int k = 0; k < 5; k++) assert_true(sum(r->c, r->w, 1) == 3);
  if (r->number == 2) pause_ms(300); /* comes late to a collective that the others left done */
  if (lt_world_leave(r->c, r->w, "model.lua", 40)) r->run = NULL;
}

static lt_progress never_move(lt_comm_link *link, lt_comm_move *m) {
  (void)link;
  (void)m;
  return LT_PENDING;
}

static void sum_in_vain(rank *r) {
  if (sum(r->c, r->w, 1) != -1) abort();
}

/* All have issued it, and agreed on it; the transport does nothing. */
static void who_is_there_in_vain_is_stalled(void **state) {
  (void)state;
  lt_comm_ops ops = *lt_shm_ops();
  ops.move = never_move;
  world.ops = &ops;
  int64_t start = lt_now_ns();
  play(3, 3, NULL, sum_in_vain);
  const lt_verdict *v = common_verdict();
  assert_int_equal(v->class, LT_STALLED);
  assert_int_equal(v->rank, -1);
  assert_non_null(strstr(v->text, "stalled: all ranks are there and nothing has moved for "));
  assert_non_null(strstr(v->text, " s: ranks 0-2: all_reduce sum [] f64 at model.lua:31"));
  assert_true(lt_now_ns() - start >= 6ll * LT_SECOND);
  close_world();
  world.ops = NULL;
}

static void all_leave_and_all_are_told(void **state) {
  (void)state;
  play(3, 20, NULL, leave_unevenly);
  for (int k = 0; k < 3; k++) assert_null(world.ranks[k].run);
  close_world();
}

/* Rank 0 leaves; 1 and 2 go on in a group of theirs, which is nobody else's business. */
static void split_and_leave(rank *r) {
  lt_group *g = lt_group_split(r->c, r->w->group, r->number > 0 ? 1 : -1, 0);
  assert_true(lt_ok(r->c));
  for (int k = 0; k < 20 && r->number > 0; k++) {
    lt_work *work = lt_comm_barrier(r->c, g, (lt_origin){.file = "model.lua", .line = 7});
    assert_non_null(work);
    if (r->number == 2) pause_ms(80);
    assert_true(lt_work_wait(r->c, work));
    lt_work_release(r->c, work);
  }
  assert_true(lt_world_leave(r->c, r->w, "model.lua", 40));
  if (g != NULL) lt_group_release(r->c, g);
}

static void who_left_is_not_missed_where_it_is_no_member(void **state) {
  (void)state;
  play(3, 20, NULL, split_and_leave);
  close_world();
}

/* Rank 1 waits for rank 2, which is late; rank 0 waits for rank 1. Rank 2 is named. */
static void wait_in_a_row(rank *r) {
  lt_group *g = lt_group_split(r->c, r->w->group, r->number > 0 ? 1 : -1, 0);
  if (r->number == 2)
    wait_verdict(r);
  else if (r->number == 1) {
    lt_work *work = lt_comm_barrier(r->c, g, (lt_origin){.file = "model.lua", .line = 7});
    lt_work_wait(r->c, work);
    lt_work_release(r->c, work);
  } else {
    sum(r->c, r->w, 1);
  }
  if (g != NULL) lt_group_release(r->c, g);
}

static void of_a_row_of_waits_the_last_is_to_blame(void **state) {
  (void)state;
  play(3, 3, NULL, wait_in_a_row);
  const lt_verdict *v = common_verdict();
  assert_int_equal(v->class, LT_LATE);
  assert_int_equal(v->rank, 2);
  assert_non_null(strstr(v->text, "rank 2 is late"));
  close_world();
}

/* ---- links that are cut ---- */

/* A way between ranks and rank 0's port that can be cut without a word: what was under way on it
   stays silent for ever, as TCP does for long after a cut. */
static struct {
  int listen_fd, port, to_port;
  int pairs[64][2];
  bool dead[64];
  int n;
  _Atomic bool cut, stop;
  pthread_t thread;
  uint64_t token[2]; /* that rank 0 wants to hear */
} wire;

static int dial_port(int port) {
  struct sockaddr_in to = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)port),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

static bool forward(int from, int to) {
  char bytes[1 << 16];
  ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN;
  return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void *carry(void *unused) {
  (void)unused;
  while (!atomic_load(&wire.stop)) {
    bool cut = atomic_load(&wire.cut);
    struct pollfd polls[129] = {{.fd = cut ? -1 : wire.listen_fd, .events = POLLIN}};
    for (int k = 0; k < wire.n; k++) {
      wire.dead[k] = wire.dead[k] || cut;
      for (int e = 0; e < 2; e++) {
        polls[1 + 2 * k + e].fd = wire.dead[k] ? -1 : wire.pairs[k][e];
        polls[1 + 2 * k + e].events = POLLIN;
      }
    }
    poll(polls, (nfds_t)(1 + 2 * wire.n), 5);
    if (polls[0].revents != 0 && wire.n < 64) {
      wire.pairs[wire.n][0] = accept4(wire.listen_fd, NULL, NULL, SOCK_CLOEXEC);
      wire.pairs[wire.n][1] = dial_port(wire.to_port);
      wire.dead[wire.n++] = false;
      continue;
    }
    for (int k = 0; k < wire.n; k++)
      for (int e = 0; e < 2 && !wire.dead[k]; e++)
        if (polls[1 + 2 * k + e].revents != 0 && !forward(wire.pairs[k][e], wire.pairs[k][1 - e])) {
          close(wire.pairs[k][0]);
          close(wire.pairs[k][1]);
          wire.pairs[k][0] = wire.pairs[k][1] = -1;
          wire.dead[k] = true;
        }
  }
  return NULL;
}

static void open_wire(int to_port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof at;
  memset(&wire, 0, sizeof wire);
  wire.to_port = to_port;
  wire.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(wire.listen_fd, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(wire.listen_fd, 64), 0);
  getsockname(wire.listen_fd, (struct sockaddr *)&at, &n);
  wire.port = ntohs(at.sin_port);
  assert_int_equal(pthread_create(&wire.thread, NULL, carry, NULL), 0);
}

static void close_wire(void) {
  atomic_store(&wire.stop, true);
  pthread_join(wire.thread, NULL);
  close(wire.listen_fd);
  for (int k = 0; k < wire.n; k++)
    for (int e = 0; e < 2; e++)
      if (wire.pairs[k][e] >= 0) close(wire.pairs[k][e]);
}

/* All ranks but 0 dial through the wire. */
static int connect_star(void) {
  lt_address addresses[LT_ADDRESSES];
  uint64_t token[2];
  for (int k = 0; k < world.n; k++) {
    rank *r = &world.ranks[k];
    r->w->star = lt_star_new(r->c);
    assert_non_null(r->w->star);
    atomic_store(&r->w->launch_deadline_ns, lt_now_ns() + 20ll * LT_SECOND);
  }
  assert_true(lt_star_listen(world.ranks[0].c, world.ranks[0].w->star, addresses, token));
  struct sockaddr_in first;
  memcpy(&first, addresses[0].address, sizeof first);
  int port = ntohs(first.sin_port);
  open_wire(port);
  memcpy(wire.token, token, sizeof token);
  first.sin_port = htons((uint16_t)wire.port);
  memset(addresses, 0, sizeof addresses);
  addresses[0].bytes = sizeof first;
  memcpy(addresses[0].address, &first, sizeof first);
  for (int k = 1; k < world.n; k++) lt_star_dial(world.ranks[k].w->star, addresses, token);
  watch_all();
  for (int k = 0; k < world.n; k++) {
    assert_true(lt_news_wait(world.ranks[k].w, LT_NEWS_READY, 10ll * LT_SECOND, false));
    atomic_store(&world.ranks[k].w->launch_deadline_ns, 0);
  }
  return port;
}

static void a_short_cut_does_not_matter(void **state) {
  (void)state;
  open_world(3, 10, NULL);
  connect_star();
  atomic_store(&wire.cut, true);
  pause_ms(6000);
  atomic_store(&wire.cut, false);
  pause_ms(6000); /* a wrong version is lost by now */
  for (int k = 0; k < 3; k++) assert_null(lt_world_verdict(world.ranks[k].w));
  run_all(collect_and_fail); /* and reports get through */
  assert_string_equal(common_verdict()->text, "rank 1: boom");
  close_world();
  close_wire();
}

static void a_long_cut_ends_both_sides(void **state) {
  (void)state;
  open_world(2, 3, NULL);
  connect_star();
  atomic_store(&wire.cut, true);
  run_all(wait_verdict);
  for (int k = 0; k < 2; k++) {
    const lt_verdict *v = lt_world_verdict(world.ranks[k].w);
    assert_non_null(v);
    assert_int_equal(v->class, LT_LOST);
    assert_int_equal(v->rank, 1 - k);
  }
  close_world();
  close_wire();
}

/* What is said while the link is down is said again on the next one. */
static void a_rank_leaves_during_a_cut(void **state) {
  (void)state;
  open_world(2, 20, NULL);
  connect_star();
  atomic_store(&wire.cut, true);
  pause_ms(20);
  rank *r = &world.ranks[1];
  r->run = leave_unevenly;
  lt_mark m = lt_world_mark(LT_MARK_LEFT, "fit", "model.lua", 40);
  r->w->left = (lt_message){.kind = LT_SAY_LEFT, .rank = 1, .state.mark = m};
  lt_message_size(&r->w->left, 0);
  lt_ask_of(r->w, LT_ASK_LEFT);
  pause_ms(1000);
  atomic_store(&wire.cut, false);
  world.ranks[0].w->left = r->w->left;
  lt_ask_of(world.ranks[0].w, LT_ASK_LEFT);
  assert_true(lt_news_wait(r->w, LT_NEWS_ALL_LEFT, 30ll * LT_SECOND, false));
  close_world();
  close_wire();
}

/* Calls that a rank has given up may arrive after the one that it is on. */
static void an_older_call_is_refused(void **state) {
  (void)state;
  open_world(2, 20, NULL);
  int port = connect_star();
  lt_message m = {.kind = LT_SAY_HELLO, .rank = 1, .status = 1};
  memcpy(m.token, wire.token, sizeof m.token);
  lt_message_size(&m, 0);
  int late = dial_port(port);
  assert_int_equal(send(late, &m, m.bytes, 0), m.bytes);
  char answer[16];
  struct timeval limit = {.tv_sec = 10};
  setsockopt(late, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  assert_int_equal(recv(late, answer, sizeof answer, 0), 0); /* no welcome */
  close(late);
  run_all(raise_in_order);
  assert_non_null(strstr(common_verdict()->text, ": boom "));
  close_world();
  close_wire();
}

static void strangers_are_not_listened_to(void **state) {
  (void)state;
  open_world(2, 20, NULL);
  int port = connect_star();
  lt_message m = {.kind = LT_SAY_HELLO, .rank = 1, .token = {1, 2}};
  lt_message_size(&m, 0);
  int liar = dial_port(port), talker = dial_port(port);
  assert_int_equal(send(liar, &m, m.bytes, 0), m.bytes);
  assert_int_equal(send(talker, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  char answer[16];
  struct timeval limit = {.tv_sec = 10};
  setsockopt(liar, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(talker, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  int strangers[] = {liar, talker};
  for (int k = 0; k < 2; k++) {
    errno = 0; /* the end of the stream leaves it as it is */
    assert_true(recv(strangers[k], answer, sizeof answer, 0) <= 0 && errno != EAGAIN);
  }
  close(liar);
  close(talker);
  run_all(raise_in_order);
  assert_non_null(strstr(common_verdict()->text, ": boom "));
  close_world();
  close_wire();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_gravest_of_several_is_told),
      cmocka_unit_test(the_first_of_a_class_is_told),
      cmocka_unit_test(an_interrupted_run_is_told_by_rank_0_when_it_is_saved),
      cmocka_unit_test(a_signal_ends_all_wherever_they_are),
      cmocka_unit_test(waits_end_with_the_verdict),
      cmocka_unit_test(who_is_there_in_vain_is_stalled),
      cmocka_unit_test(all_leave_and_all_are_told),
      cmocka_unit_test(who_left_is_not_missed_where_it_is_no_member),
      cmocka_unit_test(of_a_row_of_waits_the_last_is_to_blame),
      cmocka_unit_test(a_short_cut_does_not_matter),
      cmocka_unit_test(a_long_cut_ends_both_sides),
      cmocka_unit_test(a_rank_leaves_during_a_cut),
      cmocka_unit_test(an_older_call_is_refused),
      cmocka_unit_test(strangers_are_not_listened_to),
  };
  alarm(240); /* nothing here may hang the suite */
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
