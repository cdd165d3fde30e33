/* spec/c/comm_conformance.c: whether a backend of collectives does what ltrain/comm.h says.

     comm_conformance NAME [PATH [RANK SIZE OPTIONS]]

   One process a rank, all started at once: by the backend's own launcher (`mpirun -n 3
   comm_conformance mpi`), or each with its place for a backend that needs it. PATH is that of its
   shared object, "-" for one that ltrain finds by its name. A link between devices (which takes its
   place from that) uses device RANK of those that are there; OPTIONS is a folder through which rank
   0 hands out its id, or the address at which ranks meet. Every rank prints what failed and exits with 1, or says nothing. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm_conformance.h"
#include "device/plugin.h"
#include "registry.h"

enum { LIMIT_S = 100 };

const lt_comm_host *host;
const lt_comm_ops *ops;
lt_comm_link *all;
int rank, size;
static int failures;

void fault(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "rank %d of %d: ", rank, size);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  failures++;
}

void give_up(const char *what, const char *text) {
  fault("%s: %s", what, text);
  fflush(NULL);
  _exit(1);
}

static lt_progress compared(lt_comm_link *l, lt_comm_compare *c) {
  lt_progress at;
  while ((at = ops->compare(l, c)) == LT_PENDING) nap();
  if (at == LT_BROKEN) give_up("compare", c->text);
  if (c->state != NULL) fault("compare left its state behind");
  return at;
}

static void compared_pair(lt_comm_link *l, int peer, lt_comm_compare *c, lt_progress wanted) {
  lt_progress at;
  while ((at = ops->compare_pair(l, peer, c)) == LT_PENDING) nap();
  if (at == LT_BROKEN) give_up("compare_pair", c->text);
  if (at != wanted) fault("compare_pair with %d: %d, not %d", peer, at, wanted);
}

/* ---- comparing ---- */

static lt_mark mark_of(int r, uint64_t hash, lt_comm_op op) {
  lt_mark k = {.hash = hash, .kind = LT_MARK_CALL, .op = (uint8_t)op, .line = 100 + r, .root = -1};
  snprintf(k.file, sizeof k.file, "rank%d.lua", r);
  return k;
}

static void check_marks(const lt_mark *marks, int odd, uint64_t hash) {
  for (int r = 0; r < size; r++) {
    lt_mark wanted = mark_of(r, hash + (uint64_t)(r == odd), LT_COMM_ALL_REDUCE);
    if (memcmp(&marks[r], &wanted, sizeof wanted) != 0) fault("compare: wrong mark of rank %d", r);
  }
}

static void test_compare(void) {
  lt_mark *marks = calloc((size_t)size, sizeof *marks);
  int64_t *extents = calloc((size_t)size, sizeof *extents);
  /* Hashes that differ in the highest or the lowest bit, and the extremes. */
  static const uint64_t hashes[] = {1, 0, UINT64_MAX - 1, (uint64_t)1 << 63, 0x123456789abcdef0u};
  for (size_t h = 0; h < sizeof hashes / sizeof hashes[0]; h++) {
    lt_mark mine = mark_of(rank, hashes[h], LT_COMM_ALL_REDUCE);
    lt_comm_compare equal = {.mark = &mine, .marks = marks};
    if (compared(all, &equal) != LT_DONE) fault("compare: equal hashes differ");
    lt_comm_compare sizes = {
        .mark = &mine, .extent = 7 * rank - 3, .extents = extents, .marks = marks};
    if (compared(all, &sizes) != LT_DONE) fault("compare with extents: equal hashes differ");
    for (int r = 0; r < size; r++)
      if (extents[r] != 7 * r - 3) fault("compare: wrong extent of rank %d", r);
    for (int odd = 0; odd < size && size > 1; odd++) {
      mine = mark_of(rank, hashes[h] + (uint64_t)(rank == odd), LT_COMM_ALL_REDUCE);
      memset(marks, 0, (size_t)size * sizeof *marks);
      /* Ranks that disagree may disagree on what else travels, too. */
      bool has = (rank == odd) == (h % 2 == 0);
      lt_comm_compare unequal = {.mark = &mine,
                                 .marks = marks,
                                 .extents = rank == odd ? extents : NULL,
                                 .data = has ? hashes : NULL,
                                 .bytes = (int64_t)(rank % 2 == 0 ? sizeof hashes : 3)};
      if (compared(all, &unequal) != LT_DIFFERENT) fault("compare: rank %d not noticed", odd);
      check_marks(marks, odd, hashes[h]);
    }
  }
  free(marks);
  free(extents);
}

/* compare returns while another rank has not come yet, and messages get through meanwhile: rank 1
   joins only after a message that rank 0 sends while its own compare is pending. */
static void test_pending(void) {
  if (size < 2) return;
  lt_mark marks[LT_COMM_MAX_RANKS], mine = mark_of(rank, 5, LT_COMM_BARRIER);
  lt_comm_compare everybody = {.mark = &mine, .marks = marks};
  int64_t n = 77;
  lt_mark say = mark_of(rank, 6, rank == 0 ? LT_COMM_SEND : LT_COMM_RECV);
  lt_comm_compare round = {.mark = &say, .marks = marks};
  lt_comm_move message = {.op = say.op,
                          .dtype = LT_I64,
                          .count = 1,
                          .root = 1 - rank,
                          .in = &n,
                          .out = &n,
                          .chunk_bytes = GIB};
  if (rank == 0 && ops->compare(all, &everybody) != LT_PENDING) fault("compare: not pending");
  if (rank < 2) {
    if (rank == 1) n = 0;
    compared_pair(all, 1 - rank, &round, LT_DONE);
    moved(all, &message);
    if (n != 77) fault("a message beside a compare: %lld", (long long)n);
  }
  if (compared(all, &everybody) != LT_DONE) fault("compare: differs after it was pending");
}

/* Ranks 0 and 1 send to each other at once: two sequences that know nothing of each other. */
static void test_pairs(void) {
  if (size < 2 || rank > 1) return;
  lt_mark marks[LT_COMM_MAX_RANKS];
  int peer = 1 - rank;
  for (uint64_t n = 1; n < 400; n *= 7) {
    uint64_t to = 1000 * (uint64_t)rank + n, from = 1000 * (uint64_t)peer + n;
    lt_mark out = mark_of(rank, to, LT_COMM_SEND), in = mark_of(rank, from, LT_COMM_RECV);
    int64_t extents[LT_COMM_MAX_RANKS] = {0};
    lt_comm_compare a = {.mark = &out, .marks = marks, .extents = extents, .extent = 11};
    lt_comm_compare b = {.mark = &in, .marks = marks, .extents = extents, .extent = 11};
    lt_progress at = LT_PENDING, bt = LT_PENDING;
    while (at == LT_PENDING || bt == LT_PENDING) {
      if (at == LT_PENDING) at = ops->compare_pair(all, peer, &a);
      if (bt == LT_PENDING) bt = ops->compare_pair(all, peer, &b);
    }
    if (at != LT_DONE || bt != LT_DONE) fault("compare_pair: %d, %d", at, bt);
    if (extents[0] != 11 || extents[1] != 11) fault("compare_pair: wrong extents");
    char *mine = filled(LT_F32, rank, (int64_t)n, true), *got = room(LT_F32, (int64_t)n);
    char *wanted = filled(LT_F32, peer, (int64_t)n, true);
    lt_comm_move s = {.op = LT_COMM_SEND,
                      .dtype = LT_F32,
                      .count = (int64_t)n,
                      .root = peer,
                      .in = mine,
                      .chunk_bytes = 100};
    lt_comm_move r = {.op = LT_COMM_RECV,
                      .dtype = LT_F32,
                      .count = (int64_t)n,
                      .root = peer,
                      .out = got,
                      .chunk_bytes = 100};
    at = bt = LT_PENDING;
    while (at == LT_PENDING || bt == LT_PENDING) {
      if (bt == LT_PENDING) bt = ops->move(all, &r);
      if (at == LT_PENDING) at = ops->move(all, &s);
    }
    if (at != LT_DONE || bt != LT_DONE) give_up("send, recv", at == LT_DONE ? r.text : s.text);
    same("recv", &r, got, wanted, (int64_t)n);
    free(mine);
    free(got);
    free(wanted);
  }
  lt_mark mine = mark_of(rank, 50 + (uint64_t)rank, rank == 0 ? LT_COMM_SEND : LT_COMM_RECV);
  lt_comm_compare c = {.mark = &mine, .marks = marks};
  compared_pair(all, peer, &c, LT_DIFFERENT);
  lt_mark theirs = mark_of(peer, 50 + (uint64_t)peer, rank == 0 ? LT_COMM_RECV : LT_COMM_SEND);
  if (memcmp(&marks[peer], &theirs, sizeof theirs) != 0) fault("compare_pair: wrong mark");
  if (memcmp(&marks[rank], &mine, sizeof mine) != 0) fault("compare_pair: wrong mark of its own");
}

static void barrier(void) {
  lt_comm_move m = {.op = LT_COMM_BARRIER, .dtype = LT_DTYPE_NONE, .chunk_bytes = GIB};
  moved(all, &m);
}

/* Even and odd ranks apart, in reverse order; then all again. */
static void test_split(void) {
  int members[LT_COMM_MAX_RANKS], n = 0, mine = -1;
  for (int r = size - 1; r >= 0; r--) {
    if (r % 2 != rank % 2) continue;
    if (r == rank) mine = n;
    members[n++] = r;
  }
  char text[LT_COMM_TEXT] = "";
  uint32_t group = rank % 2 ? 0xfedcba98u : 0x12345678u;
  lt_comm_link *part = ops->split(all, group, n, members, text, sizeof text);
  if (part == NULL) give_up("split", text);
  if (ops->rank(part) != mine || ops->ranks(part) != n)
    fault("split: rank %d of %d, not %d of %d", ops->rank(part), ops->ranks(part), mine, n);
  lt_mark say = mark_of(rank, (uint64_t)(rank % 2), LT_COMM_ALL_REDUCE), marks[LT_COMM_MAX_RANKS];
  lt_comm_compare c = {.mark = &say, .marks = marks};
  if (compared(part, &c) != LT_DONE) fault("split: the other group's hash came in");
  char *in = filled(LT_F32, rank, 1001, true), *out = room(LT_F32, 1001);
  char *wanted = tree(LT_F32, LT_COMM_SUM, members, 0, n, 1001, true);
  lt_comm_move m = {.op = LT_COMM_ALL_REDUCE,
                    .reduce = LT_COMM_SUM,
                    .dtype = LT_F32,
                    .in = in,
                    .fixed_order = true,
                    .count = 1001,
                    .out = out,
                    .chunk_bytes = GIB};
  moved(part, &m);
  same("all_reduce of a part", &m, out, wanted, 1001);
  barrier();
  ops->close(part);
  free(in);
  free(out);
  free(wanted);
}

/* Groups that come and go, each rank at its own time: leaving waits for nobody. */
static void test_leave(void) {
  if (ops->leave == NULL) return;
  int members[LT_COMM_MAX_RANKS];
  for (int r = 0; r < size; r++) members[r] = r;
  for (int k = 0; k < 20; k++) {
    char text[LT_COMM_TEXT] = "";
    lt_comm_link *part = ops->split(all, 77, size, members, text, sizeof text);
    if (part == NULL) give_up("split", text);
    lt_mark say = mark_of(rank, (uint64_t)k, LT_COMM_ALL_REDUCE), marks[LT_COMM_MAX_RANKS];
    lt_comm_compare c = {.mark = &say, .marks = marks};
    if (compared(part, &c) != LT_DONE) fault("split: what an earlier group said came in");
    int64_t one = 1, sum = 0;
    lt_comm_move m = {.op = LT_COMM_ALL_REDUCE,
                      .dtype = LT_I64,
                      .count = 1,
                      .in = &one,
                      .out = &sum,
                      .chunk_bytes = GIB};
    moved(part, &m);
    if (sum != size) fault("all_reduce of a group that will be left: %lld", (long long)sum);
    if (rank == k % size) ops->leave(part); /* at once, before the others get on */
    barrier();
    if (rank != k % size) ops->leave(part);
  }
}

/* What a link between devices has to do. */
static void test_device(void) {
  test_movements();
  test_messages();
}

static void test_host(void) {
  test_compare();
  test_pending();
  barrier();
  test_movements();
  compares_first = true;
  test_movements();
  compares_first = false;
  test_pairs();
  test_split();
  test_leave();
  barrier();
}

static lt_ctx *open_link(int argc, char **argv) {
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_failure f;
  c->policy.dlopen = true;
  const char *path = argc > 2 && strcmp(argv[2], "-") != 0 ? argv[2] : NULL;
  ops = lt_backend_comm(c, argv[1], path);
  if (ops == NULL) {
    lt_take_failure(c, &f);
    give_up("load", f.text);
  }
  host = lt_comm_host_here();
  lt_comm_place place = {.rank = -1};
  if (argc > 5)
    place = (lt_comm_place){.rank = atoi(argv[3]),
                            .size = atoi(argv[4]),
                            .options = argv[5],
                            .main_address = argv[5]};
  char text[LT_COMM_TEXT] = "", id[LT_COMM_ID] = "";
  if (ops->device != NULL) {
    if (argc < 6) give_up("usage", "a link between devices needs its place");
    rank = place.rank;
    size = place.size;
    if (!join_devices(c, &place, id, text)) give_up("open", text);
  }
  all = ops->open(host, &place, text, sizeof text);
  if (all == NULL) give_up("open", text);
  rank = ops->rank(all);
  size = ops->ranks(all);
  if (argc > 5 && (rank != place.rank || size != place.size)) fault("open: not the place given");
  return c;
}

/* Libraries call this instead of libc's: MPI unloads its components, and then nobody could say any
   more whose a leak is. */
int dlclose(void *object);
__attribute__((visibility("default"))) int dlclose(void *object) {
  (void)object;
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: comm_conformance NAME [PATH [RANK SIZE OPTIONS]]\n", stderr);
    return 2;
  }
  alarm(LIMIT_S);
  lt_ctx *c = open_link(argc, argv);
  if (ops->device != NULL)
    test_device();
  else
    test_host();
  ops->close(all);
  lt_ctx_release(c);
  return failures == 0 ? 0 : 1;
}
