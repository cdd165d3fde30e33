/* spec/c/comm_movements.c: reductions, broadcasts and parts, of links of the host and of devices. For
   comm_conformance. */
#include "comm_conformance.h"

#include "ops/math/half.h"

bool compares_first;

/* As ltrain does: the ranks agree on the movement, whose data may go along. */
static void compare(lt_comm_link *l, const lt_comm_move *m) {
  static uint64_t serial;
  bool gathers = m->op == LT_COMM_ALL_GATHER;
  lt_mark marks[LT_COMM_MAX_RANKS], mark = {.hash = ++serial, .kind = LT_MARK_CALL, .op = m->op};
  int64_t n = gathers ? m->counts[rank] : m->count;
  lt_comm_compare c = {.mark = &mark, .marks = marks};
  if (gathers || m->op == LT_COMM_ALL_REDUCE) {
    c.data = m->in;
    c.bytes = n * (int64_t)host->item_size((lt_dtype)m->dtype);
  }
  lt_progress at;
  while ((at = ops->compare(l, &c)) == LT_PENDING) nap();
  if (at != LT_DONE) give_up("compare", c.text);
}

void moved(lt_comm_link *l, lt_comm_move *m) {
  lt_progress at;
  if (compares_first && ops->device == NULL) compare(l, m);
  if (ops->device != NULL)
    at = move_there(l, m);
  else
    while ((at = ops->move(l, m)) == LT_PENDING) nap();
  if (at != LT_DONE) give_up(lt_comm_op_name(m->op), m->text);
  if (m->state != NULL) fault("%s left its state behind", lt_comm_op_name(m->op));
}

/* ---- numbers ---- */

static void set(void *p, lt_dtype d, int64_t i, double v) {
  size_t bytes = host->item_size(d);
  int64_t whole = (int64_t)v;
  switch ((int)d) {
    case LT_F32: ((float *)p)[i] = (float)v; break;
    case LT_F64: ((double *)p)[i] = v; break;
    case LT_F16: ((uint16_t *)p)[i] = lt_f32_to_f16((float)v); break;
    case LT_BF16: ((uint16_t *)p)[i] = lt_f32_to_bf16((float)v); break;
    case LT_BOOL: ((uint8_t *)p)[i] = v > 1.5; break;
    default: memcpy((char *)p + (size_t)i * bytes, &whole, bytes); break; /* integers */
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

char *filled(lt_dtype d, int r, int64_t n, bool rough) {
  char *p = malloc((size_t)n * host->item_size(d) + 1);
  for (int64_t i = 0; i < n; i++) set(p, d, i, value(r, i, rough));
  return p;
}

char *room(lt_dtype d, int64_t n) {
  size_t bytes = (size_t)n * host->item_size(d) + 1;
  return memset(malloc(bytes), 0x5a, bytes);
}

char *tree(lt_dtype d, lt_comm_reduce how, const int *members, int lo, int hi, int64_t n,
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

bool same(const char *what, const lt_comm_move *m, const char *got, const char *wanted, int64_t n) {
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

/* ---- moving ---- */

/* Links of devices may leave some reductions to ltrain. */
static bool reduces(lt_dtype d, lt_comm_reduce how) {
  return ops->reduces == NULL || ops->reduces(d, how);
}

static void reduce_once(lt_dtype d, lt_comm_reduce how, int64_t n, int64_t chunk, bool fixed,
                        bool in_place) {
  if (!reduces(d, how)) return;
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
    for (int odd = 0; odd < size && reduces(LT_F32, (lt_comm_reduce)how); odd++) {
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
  if (!reduces(d, how)) return;
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
    odd[r] = r % 3 == 1 ? 0 : 50 + 13 * r; /* of 3 ranks two have some */
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

/* Elements from one rank to another. */
typedef int64_t (*between)(int from, int to);
static int64_t equal(int from, int to) { return (void)from, (void)to, 13; }
static int64_t uneven(int from, int to) { return (from * 5 + to * 3) % 7 * 21; }
static int64_t to_last(int from, int to) { return (void)from, to == size - 1 ? 29 : 0; }

/* Each element says from whom it is, for whom, and which. */
static void exchange(between n, int64_t chunk) {
  int64_t in_counts[LT_COMM_MAX_RANKS], counts[LT_COMM_MAX_RANKS], most = 0, k = 0, j = 0;
  for (int from = 0; from < size; from++)
    for (int to = 0; to < size; to++) most = n(from, to) > most ? n(from, to) : most;
  int32_t *in = malloc((size_t)(size * most) * sizeof *in + 1);
  int32_t *out = malloc((size_t)(size * most) * sizeof *out + 1);
  int32_t *wanted = malloc((size_t)(size * most) * sizeof *wanted + 1);
  for (int r = 0; r < size; r++) {
    in_counts[r] = n(rank, r);
    counts[r] = n(r, rank);
    for (int32_t i = 0; i < in_counts[r]; i++) in[k++] = 100000 * rank + 1000 * r + i;
    for (int32_t i = 0; i < counts[r]; i++) wanted[j++] = 100000 * r + 1000 * rank + i;
  }
  lt_comm_move m = {.op = LT_COMM_ALL_TO_ALL,
                    .dtype = LT_I32,
                    .count = most,
                    .counts = counts,
                    .in_counts = in_counts,
                    .in = in,
                    .out = out,
                    .chunk_bytes = chunk};
  moved(all, &m);
  same("all_to_all", &m, (char *)out, (char *)wanted, j);
  free(in);
  free(out);
  free(wanted);
}

static void test_all_to_all(void) {
  for (int64_t chunk = 48; chunk <= GIB; chunk *= GIB / 48) {
    exchange(equal, chunk);
    exchange(uneven, chunk);
    exchange(to_last, chunk);
  }
}

void test_movements(void) {
  test_all_to_all();
  test_all_reduce();
  test_nan();
  test_broadcast();
  test_parts();
}
