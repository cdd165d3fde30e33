/* spec/c/comm_conformance.c: whether a backend of collectives does what ltrain/comm.h says.

     comm_conformance NAME [PATH [RANK SIZE OPTIONS]]

   One process a rank, all started at once: by the backend's own launcher (`mpirun -n 3
   comm_conformance mpi`), or each with its place for a backend that must be told it. PATH is that
   of its shared object, "-" for one that ltrain finds by its name. A link between devices (which
   takes its place as told) uses device RANK of those that are there; OPTIONS is a folder through
   which rank 0 hands out its id. Every rank prints what failed and exits with 1, or says nothing. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/comm.h"
#include "device/plugin.h"
#include "ops/math/half.h"
#include "device_moves.h"
#include "registry.h"

enum { LIMIT_S = 100, GIB = 1 << 30 };

static const lt_comm_host *host;
static const lt_comm_ops *ops;
static lt_comm_link *all; /* of all ranks */
static int rank, size;
static int failures;
static device_moves devices; /* of a link between them */

__attribute__((format(printf, 1, 2))) static void fault(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "rank %d of %d: ", rank, size);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  failures++;
}

/* A backend that broke or waits for ever cannot be tested further; `alarm` ends the latter. */
static void give_up(const char *what, const char *text) {
  fault("%s: %s", what, text);
  fflush(NULL);
  _exit(1);
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL); }

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

static void moved(lt_comm_link *l, lt_comm_move *m) {
  lt_progress at;
  if (ops->device != NULL)
    at = move_there(&devices, l, m);
  else
    while ((at = ops->move(l, m)) == LT_PENDING) nap();
  if (at != LT_DONE) give_up(lt_comm_op_name(m->op), m->text);
  if (m->state != NULL) fault("%s left its state behind", lt_comm_op_name(m->op));
}

/* ---- numbers ---- */

static void set(void *p, lt_dtype d, int64_t i, double v) {
  switch (d) {
    case LT_F32: ((float *)p)[i] = (float)v; break;
    case LT_F64: ((double *)p)[i] = v; break;
    case LT_F16: ((uint16_t *)p)[i] = lt_f32_to_f16((float)v); break;
    case LT_BF16: ((uint16_t *)p)[i] = lt_f32_to_bf16((float)v); break;
    case LT_I64: ((int64_t *)p)[i] = (int64_t)v; break;
    case LT_I32: ((int32_t *)p)[i] = (int32_t)v; break;
    case LT_U8: ((uint8_t *)p)[i] = (uint8_t)v; break;
    case LT_I16: ((int16_t *)p)[i] = (int16_t)v; break;
    case LT_U16: ((uint16_t *)p)[i] = (uint16_t)v; break;
    case LT_BOOL: ((uint8_t *)p)[i] = v > 1.5; break;
    case LT_DTYPE_COUNT:
    case LT_DTYPE_NONE: break;
  }
}

/* Element i of rank r: 1 or 2, so that every order adds and multiplies to the same; or, `rough`,
   numbers whose sum depends on the order. */
static double value(int r, int64_t i, bool rough) {
  uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u + (uint64_t)(r + 1) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 29) * 0x94d049bb133111ebu;
  x ^= x >> 32;
  if (!rough) return 1 + (double)(x & 1);
  double sign = x & 1 ? 1 : -1;
  return sign * (double)(1 + (x >> 8 & 0xfff)) / (double)(1 + (x >> 20 & 0x3ff));
}

static char *filled(lt_dtype d, int r, int64_t n, bool rough) {
  char *p = malloc((size_t)n * host->item_size(d) + 1);
  for (int64_t i = 0; i < n; i++) set(p, d, i, value(r, i, rough));
  return p;
}

static char *room(lt_dtype d, int64_t n) {
  size_t bytes = (size_t)n * host->item_size(d) + 1;
  return memset(malloc(bytes), 0x5a, bytes);
}

/* What n elements of ranks lo..hi-1 of `members` give, in the tree's order. */
static char *tree(lt_dtype d, lt_comm_reduce how, const int *members, int lo, int hi, int64_t n,
                  bool rough) {
  if (hi - lo == 1) return filled(d, members == NULL ? lo : members[lo], n, rough);
  int half = 1;
  while (half * 2 < hi - lo) half *= 2;
  char *a = tree(d, how, members, lo, lo + half, n, rough);
  char *b = tree(d, how, members, lo + half, hi, n, rough);
  host->combine(a, a, b, n, d, how);
  free(b);
  return a;
}

static bool same(const char *what, const lt_comm_move *m, const char *got, const char *wanted,
                 int64_t n) {
  size_t item = host->item_size((lt_dtype)m->dtype);
  for (int64_t i = 0; i < n; i++) {
    if (memcmp(got + (size_t)i * item, wanted + (size_t)i * item, item) == 0) continue;
    fault("%s: dtype %d, reduce %d, %lld elements, chunks of %lld bytes%s: element %lld differs",
          what, m->dtype, m->reduce, (long long)n, (long long)m->chunk_bytes,
          m->fixed_order ? ", fixed order" : "", (long long)i);
    return false;
  }
  return true;
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
      /* Ranks that disagree may disagree on whether extents travel, too. */
      lt_comm_compare unequal = {
          .mark = &mine, .marks = marks, .extents = rank == odd ? extents : NULL};
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

/* ---- moving ---- */

static void reduce_once(lt_dtype d, lt_comm_reduce how, int64_t n, int64_t chunk, bool fixed,
                        bool in_place) {
  bool rough = fixed && (d == LT_F32 || d == LT_F64 || d == LT_F16 || d == LT_BF16);
  char *in = filled(d, rank, n, rough), *out = in_place ? in : room(d, n);
  char *wanted = tree(d, how, NULL, 0, size, n, rough);
  lt_comm_move m = {.op = LT_COMM_ALL_REDUCE,
                    .reduce = (uint8_t)how,
                    .dtype = (int8_t)d,
                    .fixed_order = fixed,
                    .count = n,
                    .in = in,
                    .out = out,
                    .chunk_bytes = chunk};
  moved(all, &m);
  same("all_reduce", &m, out, wanted, n);
  if (!in_place) free(out);
  free(in);
  free(wanted);
}

/* Links of devices may leave the tree's order to ltrain. */
static int orders(void) { return ops->device == NULL || ops->fixed_order ? 2 : 1; }

static void test_all_reduce(void) {
  static const lt_comm_reduce hows[] = {LT_COMM_SUM, LT_COMM_MIN, LT_COMM_MAX, LT_COMM_PROD};
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    for (size_t h = 0; h < 4; h++)
      for (int fixed = 0; fixed < orders(); fixed++) {
        reduce_once((lt_dtype)d, hows[h], 0, GIB, fixed, false);
        reduce_once((lt_dtype)d, hows[h], 1, GIB, fixed, true);
        reduce_once((lt_dtype)d, hows[h], 1003, GIB, fixed, false);
        reduce_once((lt_dtype)d, hows[h], 101, 64, fixed, true);
        reduce_once((lt_dtype)d, hows[h], 5, 1, fixed, false); /* less than an element */
      }
  for (int fixed = 0; fixed < orders(); fixed++) {
    reduce_once(LT_F32, LT_COMM_SUM, 2500001, GIB, fixed, true);
    reduce_once(LT_F32, LT_COMM_SUM, 2500001, GIB, fixed, false);
    reduce_once(LT_BF16, LT_COMM_SUM, 500001, 65536, fixed, true);
    reduce_once(LT_BOOL, LT_COMM_MIN, 100003, GIB, fixed, false);
  }
}

/* What min and max make of NaN is the host's, not the transport's. */
static void test_nan(void) {
  for (int how = LT_COMM_MIN; how <= LT_COMM_MAX; how++)
    for (int odd = 0; odd < size; odd++) {
      float mine = rank == odd ? lt_from_bits_f32(0x7fc00000u) : (float)rank, got = 0;
      float wanted = odd == 0 ? lt_from_bits_f32(0x7fc00000u) : 0;
      for (int r = 1; r < size; r++) {
        float other = r == odd ? lt_from_bits_f32(0x7fc00000u) : (float)r;
        host->combine(&wanted, &wanted, &other, 1, LT_F32, (lt_comm_reduce)how);
      }
      lt_comm_move m = {.op = LT_COMM_ALL_REDUCE,
                        .reduce = (uint8_t)how,
                        .dtype = LT_F32,
                        .count = 1,
                        .in = &mine,
                        .out = &got,
                        .chunk_bytes = GIB};
      moved(all, &m);
      same("NaN", &m, (char *)&got, (char *)&wanted, 1);
    }
}

static void test_broadcast(void) {
  for (int root = 0; root < size; root++)
    for (int64_t chunk = 16; chunk <= GIB; chunk *= GIB / 16) {
      char *wanted = filled(LT_F64, root, 333, true);
      char *mine = rank == root ? filled(LT_F64, root, 333, true) : room(LT_F64, 333);
      lt_comm_move m = {.op = LT_COMM_BROADCAST,
                        .dtype = LT_F64,
                        .count = 333,
                        .root = root,
                        .in = rank == root ? mine : NULL,
                        .out = mine,
                        .chunk_bytes = chunk};
      moved(all, &m);
      same("broadcast", &m, mine, wanted, 333);
      free(mine);
      free(wanted);
    }
}

/* Parts of all ranks, rank r's of counts[r] elements, one after the other. */
static char *parts(lt_dtype d, const int64_t *counts, bool rough, int64_t *total) {
  int64_t n = 0, at = 0;
  for (int r = 0; r < size; r++) n += counts[r];
  char *whole = room(d, n);
  for (int r = 0; r < size; at += counts[r++])
    for (int64_t i = 0; i < counts[r]; i++) set(whole, d, at + i, value(r, i, rough));
  *total = n;
  return whole;
}

static void gather_once(lt_comm_op op, lt_dtype d, const int64_t *counts, int root, int64_t chunk) {
  int64_t total;
  char *whole = parts(d, counts, true, &total), *mine = filled(d, rank, counts[rank], true);
  bool wants = op == LT_COMM_ALL_GATHER || rank == root;
  char *out = wants ? room(d, total) : NULL;
  lt_comm_move m = {.op = (uint8_t)op,
                    .dtype = (int8_t)d,
                    .counts = counts,
                    .in = mine,
                    .out = out,
                    .root = root,
                    .chunk_bytes = chunk,
                    .count = counts[rank]};
  moved(all, &m);
  if (wants) same(lt_comm_op_name(op), &m, out, whole, total);
  if (op == LT_COMM_GATHER) { /* and back */
    char *part = room(d, counts[rank]);
    m = (lt_comm_move){.op = LT_COMM_SCATTER,
                       .dtype = (int8_t)d,
                       .counts = counts,
                       .in = rank == root ? whole : NULL,
                       .out = part,
                       .root = root,
                       .chunk_bytes = chunk,
                       .count = counts[rank]};
    moved(all, &m);
    same("scatter", &m, part, mine, counts[rank]);
    free(part);
  }
  free(whole);
  free(mine);
  free(out);
}

static void reduce_scatter_once(lt_dtype d, lt_comm_reduce how, const int64_t *counts, bool fixed,
                                int64_t chunk) {
  int64_t total = 0, before = 0;
  for (int r = 0; r < size; r++) total += counts[r];
  for (int r = 0; r < rank; r++) before += counts[r];
  char *in = filled(d, rank, total, fixed), *out = room(d, counts[rank]);
  char *wanted = tree(d, how, NULL, 0, size, total, fixed);
  lt_comm_move m = {.op = LT_COMM_REDUCE_SCATTER,
                    .reduce = (uint8_t)how,
                    .dtype = (int8_t)d,
                    .fixed_order = fixed,
                    .counts = counts,
                    .count = counts[rank],
                    .in = in,
                    .out = out,
                    .chunk_bytes = chunk};
  moved(all, &m);
  same("reduce_scatter", &m, out, wanted + (size_t)before * host->item_size(d), counts[rank]);
  free(in);
  free(out);
  free(wanted);
}

static void test_parts(void) {
  int64_t equal[LT_COMM_MAX_RANKS], odd[LT_COMM_MAX_RANKS], none[LT_COMM_MAX_RANKS] = {0};
  for (int r = 0; r < size; r++) {
    equal[r] = 129;
    odd[r] = r % 2 == 0 ? 0 : 50 + 13 * r;
  }
  const int64_t *sets[] = {equal, odd, none};
  for (size_t k = 0; k < 3; k++)
    for (int64_t chunk = 48; chunk <= GIB; chunk *= GIB / 48) {
      for (int root = 0; root < size && ops->device == NULL; root++)
        gather_once(LT_COMM_GATHER, LT_I32, sets[k], root, chunk);
      gather_once(LT_COMM_ALL_GATHER, LT_F16, sets[k], -1, chunk);
      gather_once(LT_COMM_ALL_GATHER, LT_F64, sets[k], -1, chunk);
      reduce_scatter_once(LT_F32, LT_COMM_SUM, sets[k], orders() == 2, chunk);
      reduce_scatter_once(LT_F16, LT_COMM_MAX, sets[k], false, chunk);
    }
}

/* counts[r] elements to rank r, of a part that says from whom it is. */
static void test_all_to_all(void) {
  int64_t counts[LT_COMM_MAX_RANKS] = {0}, total = 0, at = 0;
  for (int r = 0; r < size; r++) total += counts[r] = 7 * r + (r != 1);
  int64_t mine = counts[rank];
  int32_t *in = malloc((size_t)total * sizeof *in + 1);
  int32_t *out = malloc((size_t)(size * mine) * sizeof *out + 1);
  int32_t *wanted = malloc((size_t)(size * mine) * sizeof *wanted + 1);
  for (int r = 0; r < size; at += counts[r++])
    for (int64_t i = 0; i < counts[r]; i++) in[at + i] = 10000 * rank + 100 * r + (int32_t)i;
  for (int r = 0; r < size; r++)
    for (int64_t i = 0; i < mine; i++)
      wanted[r * mine + i] = 10000 * r + 100 * rank + (int32_t)i;
  lt_comm_move m = {.op = LT_COMM_ALL_TO_ALL,
                    .dtype = LT_I32,
                    .counts = counts,
                    .in = in,
                    .out = out,
                    .chunk_bytes = GIB};
  moved(all, &m);
  same("all_to_all", &m, (char *)out, (char *)wanted, size * mine);
  free(in);
  free(out);
  free(wanted);
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
  test_all_reduce();
  test_nan();
  test_broadcast();
  test_parts();
  test_all_to_all();
}

static void test_host(void) {
  test_compare();
  test_pending();
  barrier();
  test_all_reduce();
  test_nan();
  test_broadcast();
  test_parts();
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
    place = (lt_comm_place){.rank = atoi(argv[3]), .size = atoi(argv[4]), .options = argv[5]};
  char text[LT_COMM_TEXT] = "", id[LT_COMM_ID] = "";
  if (ops->device != NULL) {
    if (argc < 6) give_up("usage", "a link between devices is told its place");
    devices = (device_moves){.c = c, .ops = ops, .size = place.size, .rank = place.rank};
    if (!device_moves_join(&devices, &place, id, text)) give_up("open", text);
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
