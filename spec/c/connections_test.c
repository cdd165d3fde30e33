/* spec/c/connections_test.c: TCP between the watchdogs of joined ranks: links that are cut,
   callers that do not know the token.
   tags: waits */
#include "watchdog_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

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
  char said[1 << 12]; /* what the first caller said first */
  size_t n_said;
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
  if (from == wire.pairs[0][0] && wire.n_said + (size_t)n <= sizeof wire.said) {
    memcpy(wire.said + wire.n_said, bytes, (size_t)n);
    wire.n_said += (size_t)n;
  }
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

/* What rank 0 says on standard error. */
static int stderr_fd;
static unsigned char job_token[LT_TOKEN_BYTES];

/* All ranks but 0 dial through the wire; they take `token` for the job's, NULL: they know it. */
static int connect_all(const char *token) {
  lt_endpoint endpoint;
  int ends[2];
  assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  stderr_fd = ends[0];
  for (int k = 0; k < world.n; k++) {
    rank *r = &world.ranks[k];
    r->w->watchdog.connections = lt_connections_new(r->c);
    assert_non_null(r->w->watchdog.connections);
    atomic_store(&r->w->mail.deadline_ns, lt_now_ns() + 20ll * LT_SECOND);
  }
  world.ranks[0].w->err_fd = ends[1];
  world.ranks[0].w->owns_process = true;
  lt_address_find(endpoint.addresses, true, NULL);
  assert_true(
      lt_connections_listen(world.ranks[0].c, world.ranks[0].w->watchdog.connections, &endpoint));
  struct sockaddr_in first;
  memcpy(&first, endpoint.addresses[0].address, sizeof first);
  assert_int_equal(ntohl(first.sin_addr.s_addr), INADDR_LOOPBACK);
  int port = ntohs(first.sin_port);
  open_wire(port);
  first.sin_port = htons((uint16_t)wire.port);
  memcpy(endpoint.addresses[0].address, &first, sizeof first);
  memcpy(job_token, endpoint.token, sizeof job_token);
  if (token != NULL) memcpy(endpoint.token, token, sizeof endpoint.token);
  for (int k = 1; k < world.n; k++)
    lt_connections_connect(world.ranks[k].w->watchdog.connections, &endpoint);
  watch_all();
  for (int k = 0; k < world.n && token == NULL; k++) {
    assert_true(lt_mailbox_wait(&world.ranks[k].w->mail, LT_NOTICE_READY, 10ll * LT_SECOND, NULL));
    atomic_store(&world.ranks[k].w->mail.deadline_ns, 0);
  }
  return port;
}

/* How often rank 0 has reported a refused connection. */
static int refusals(void) {
  char text[4096];
  ssize_t n = read(stderr_fd, text, sizeof text - 1);
  text[n > 0 ? n : 0] = 0;
  int times = 0;
  for (const char *at = text; (at = strstr(at, "its token is not that of this job")); at++)
    times++;
  return times;
}

static void end_connections(void) {
  world.ranks[0].w->owns_process = false;
  close_world(); /* with the other end */
  close(stderr_fd);
  close_wire();
}

static void send_to(int fd, const lt_message *m) {
  assert_int_equal(send(fd, m, m->bytes, MSG_NOSIGNAL), m->bytes);
}

/* What rank 0 answers: false when it hangs up. */
static bool answers(int fd, lt_message *m) {
  struct timeval limit = {.tv_sec = 10};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  errno = 0; /* the end of the stream leaves it as it is */
  if (recv(fd, m, offsetof(lt_message, text), MSG_WAITALL) <= 0) {
    assert_int_not_equal(errno, EAGAIN);
    return false;
  }
  size_t n = m->bytes - offsetof(lt_message, text);
  return recv(fd, m->text, n, MSG_WAITALL) == (ssize_t)n;
}

static const unsigned char wrong[LT_TOKEN_BYTES] = {1, 2};

/* A caller who says that it is rank 1, and does not know the token. */
static void call_falsely(int port) {
  lt_handshake h = {.rank = 1, .worker = {7}};
  static lt_message m;
  int fd = dial_port(port);
  lt_handshake_write(&m, LT_MESSAGE_HELLO, &h, NULL);
  send_to(fd, &m);
  assert_true(answers(fd, &m));
  assert_false(
      lt_handshake_read(&m, LT_MESSAGE_CHALLENGE, &h, wrong)); /* it learns rank 0's challenge */
  lt_handshake_write(&m, LT_MESSAGE_PROOF, &h, wrong);
  send_to(fd, &m);
  assert_false(answers(fd, &m));
  close(fd);
}

static void a_short_cut_does_not_matter(void **state) {
  (void)state;
  open_world(3, 7, NULL);
  connect_all(NULL);
  atomic_store(&wire.cut, true);
  pause_ms(4500); /* they dial again after 3 s, in vain */
  atomic_store(&wire.cut, false);
  pause_ms(3500); /* a wrong version is lost by now */
  for (int k = 0; k < 3; k++) assert_null(lt_world_outcome(world.ranks[k].w));
  run_all(collect_and_fail); /* and reports get through */
  assert_string_equal(common_outcome()->text, "rank 1: boom");
  end_connections();
}

static void a_long_cut_ends_both_sides(void **state) {
  (void)state;
  open_world(2, 3, NULL);
  connect_all(NULL);
  atomic_store(&wire.cut, true);
  run_all(wait_outcome);
  for (int k = 0; k < 2; k++) {
    const lt_outcome *v = lt_world_outcome(world.ranks[k].w);
    assert_non_null(v);
    assert_int_equal(v->class, LT_LOST);
    assert_int_equal(v->rank, 1 - k);
  }
  end_connections();
}

/* What is said while the link is down is said again on the next one. */
static void a_rank_leaves_during_a_cut(void **state) {
  (void)state;
  open_world(2, 20, NULL);
  connect_all(NULL);
  atomic_store(&wire.cut, true);
  pause_ms(20);
  rank *r = &world.ranks[1];
  r->run = leave_unevenly;
  lt_mark m = lt_world_mark(LT_MARK_LEFT, "fit", "model.lua", 40);
  r->w->mail.left = (lt_message){.kind = LT_MESSAGE_LEFT, .rank = 1, .state.mark = m};
  lt_message_size(&r->w->mail.left, 0);
  lt_mailbox_request(&r->w->mail, LT_REQUEST_LEFT);
  pause_ms(1000);
  atomic_store(&wire.cut, false);
  world.ranks[0].w->mail.left = r->w->mail.left;
  lt_mailbox_request(&world.ranks[0].w->mail, LT_REQUEST_LEFT);
  assert_true(lt_mailbox_wait(&r->w->mail, LT_NOTICE_ALL_LEFT, 30ll * LT_SECOND, NULL));
  end_connections();
}

/* A rank that decides alone while the link is down lets rank 0 know on the next one. */
static void an_outcome_of_a_cut_rank_is_sent_again(void **state) {
  (void)state;
  open_world(2, 20, NULL);
  lt_world *w = world.ranks[1].w;
  pid_t launcher = fork();
  if (launcher == 0) {
    pause();
    _exit(0);
  }
  w->launcher = launcher;
  w->watchdog.launcher_fd = lt_process_open(launcher);
  connect_all(NULL);
  atomic_store(&wire.cut, true);
  pause_ms(20);
  kill(launcher, SIGKILL);
  waitpid(launcher, NULL, 0);
  wait_outcome(&world.ranks[1]);
  assert_null(lt_world_outcome(world.ranks[0].w));
  atomic_store(&wire.cut, false);
  wait_outcome(&world.ranks[0]);
  assert_non_null(strstr(common_outcome()->text, "rank 1: its launcher has exited"));
  end_connections();
}

/* A connection that a rank has given up may arrive after the one that it is on, with all that was
   sent on it: rank 0 takes it, and is called again. */
static void a_late_older_call_does_not_matter(void **state) {
  (void)state;
  open_world(2, 20, NULL);
  int late = dial_port(connect_all(NULL));
  static lt_message m;
  lt_handshake h = {.rank = 1, .worker = {7}};
  lt_handshake_write(&m, LT_MESSAGE_HELLO, &h, NULL);
  send_to(late, &m);
  assert_true(answers(late, &m));
  assert_true(lt_handshake_read(&m, LT_MESSAGE_CHALLENGE, &h, job_token));
  lt_handshake_write(&m, LT_MESSAGE_PROOF, &h, job_token);
  send_to(late, &m);
  close(late);
  pause_ms(1500); /* rank 1 has noticed by now */
  for (int k = 0; k < 2; k++) assert_null(lt_world_outcome(world.ranks[k].w));
  run_all(raise_in_order);
  assert_non_null(strstr(common_outcome()->text, ": boom "));
  end_connections();
}

static void strangers_are_refused_and_reported_once(void **state) {
  (void)state;
  open_world(2, 20, NULL);
  int port = connect_all(NULL), talker = dial_port(port);
  static lt_message m;
  assert_int_equal(send(talker, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  assert_false(answers(talker, &m));
  assert_int_equal(refusals(), 0); /* it spoke of something else */
  call_falsely(port);
  call_falsely(port);
  assert_int_equal(refusals(), 1);
  close(talker);
  run_all(raise_in_order);
  assert_non_null(strstr(common_outcome()->text, ": boom "));
  end_connections();
}

/* What a rank said, said again to a rank 0 that asks something else by now. */
static void a_recorded_handshake_is_refused(void **state) {
  (void)state;
  open_world(2, 20, NULL);
  int port = connect_all(NULL), fd = dial_port(port);
  static lt_message hello, proof, m;
  uint32_t n;
  memcpy(&n, wire.said, sizeof n);
  memcpy(&hello, wire.said, n);
  memcpy(&m, wire.said + n, sizeof m.bytes);
  memcpy(&proof, wire.said + n, m.bytes);
  assert_int_equal(hello.kind, LT_MESSAGE_HELLO);
  assert_int_equal(proof.kind, LT_MESSAGE_PROOF);
  send_to(fd, &hello);
  assert_true(answers(fd, &m));
  assert_int_equal(m.kind, LT_MESSAGE_CHALLENGE);
  send_to(fd, &proof);
  assert_false(answers(fd, &m));
  assert_int_equal(refusals(), 1);
  close(fd);
  run_all(raise_in_order);
  end_connections();
}

/* It is rank 0 that proves itself first. */
static void a_false_rank_0_is_refused(void **state) {
  (void)state;
  open_world(2, 20, NULL);
  connect_all((const char *)wrong);
  pause_ms(300);
  for (int k = 0; k < 2; k++)
    assert_false((atomic_load(&world.ranks[k].w->mail.notices) & LT_NOTICE_READY));
  assert_int_equal(refusals(), 0); /* nobody answered its challenge */
  end_connections();
}

/* An answer is for one caller, one side, one pair of challenges, one token. */
static void a_proof_is_for_one_use(void **state) {
  (void)state;
  const unsigned char token[LT_TOKEN_BYTES] = {3, 1, 4, 1, 5};
  lt_handshake worker = {.rank = 1, .worker = {8}}, coordinator = {0}, other;
  static lt_message m;
  lt_handshake_write(&m, LT_MESSAGE_HELLO, &worker, NULL);
  assert_true(lt_handshake_read(&m, LT_MESSAGE_HELLO, &coordinator, NULL));
  memcpy(coordinator.coordinator, "challenge of all", LT_CHALLENGE_BYTES);
  lt_handshake_write(&m, LT_MESSAGE_CHALLENGE, &coordinator, token);
  other = worker;
  assert_false(lt_handshake_read(&m, LT_MESSAGE_CHALLENGE, &other, wrong));
  assert_true(lt_handshake_read(&m, LT_MESSAGE_CHALLENGE, &worker, token));
  m.kind = LT_MESSAGE_PROOF; /* rank 0's own */
  assert_false(lt_handshake_read(&m, LT_MESSAGE_PROOF, &coordinator, token));
  lt_handshake_write(&m, LT_MESSAGE_PROOF, &worker, token);
  assert_true(lt_handshake_read(&m, LT_MESSAGE_PROOF, &coordinator, token));
  assert_false(lt_handshake_read(&m, LT_MESSAGE_PROOF, &coordinator, wrong));
  for (int k = 0; k < 3; k++) {
    other = coordinator;
    if (k == 0) other.rank++;
    if (k == 1) other.worker[15] ^= 1;
    if (k == 2) other.coordinator[15] ^= 1;
    assert_false(lt_handshake_read(&m, LT_MESSAGE_PROOF, &other, token));
  }
  m.text[LT_CHALLENGE_BYTES + LT_PROOF_BYTES - 1] ^= 1;
  assert_false(lt_handshake_read(&m, LT_MESSAGE_PROOF, &coordinator, token));
}

/* Alone on the loopback; else in the networks of the launcher, or in all. */
static void rank_0_listens_where_the_launcher_says(void **state) {
  (void)state;
  lt_address all[LT_ADDRESSES], some[LT_ADDRESSES];
  char text[512], first[512], alone[512];
  lt_address_find(all, true, "10.0.0.1");
  lt_address_text(all, alone, sizeof alone);
  assert_string_equal(alone, "127.0.0.1 port 0");
  lt_address_find(all, false, NULL);
  lt_address_text(all, text, sizeof text);
  lt_address_find(some, false, "203.0.113.77,not an address,,::ffff:1.2.3.4");
  lt_address_text(some, first, sizeof first);
  assert_string_equal(first, text); /* in none of our networks: all of them */
  if (all[2].bytes == 0) return;    /* one interface, or none */
  for (int i = 1; i < LT_ADDRESSES && all[i].bytes > 0; i++) {
    lt_address one[LT_ADDRESSES] = {all[i]};
    char network[520];
    lt_address_text(one, first, sizeof first);
    snprintf(network, sizeof network, "%.*s,203.0.113.77", (int)strcspn(first, " "), first);
    lt_address_find(some, false, network);
    assert_true(some[1].bytes > 0);
    assert_memory_equal(&some[1], &all[i], sizeof *all);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_short_cut_does_not_matter),
      cmocka_unit_test(a_long_cut_ends_both_sides),
      cmocka_unit_test(a_rank_leaves_during_a_cut),
      cmocka_unit_test(an_outcome_of_a_cut_rank_is_sent_again),
      cmocka_unit_test(a_late_older_call_does_not_matter),
      cmocka_unit_test(strangers_are_refused_and_reported_once),
      cmocka_unit_test(a_recorded_handshake_is_refused),
      cmocka_unit_test(a_false_rank_0_is_refused),
      cmocka_unit_test(a_proof_is_for_one_use),
      cmocka_unit_test(rank_0_listens_where_the_launcher_says),
  };
  alarm(120); /* nothing here may hang the suite */
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
