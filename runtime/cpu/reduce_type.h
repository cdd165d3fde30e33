/* runtime/cpu/reduce_type.h: reductions in one compute type; included by reduce.c with T (the
   type), WIDE (of what is carried from tile to tile: double or int64_t), NAME(f), LOWEST, HIGHEST,
   ADD and MULTIPLY defined. No guard.

   The rounding error of a sum of n terms grows with the longest chain of additions. Here 64 chains
   share the elements of a tile in the compute type, and tiles are joined in double or int64_t,
   where plain summation in f32 would have one chain of n (N. Higham, Accuracy and Stability of
   Numerical Algorithms, 2nd edition, 2002, chapter 4). The order is a function of the shape alone:
   results do not depend on the threads. */

/* |, not ||: without a branch, so that it becomes a vector instruction. */
#define MAX(a, b) ((((b) > (a)) | ((b) != (b))) ? (b) : (a)) /* NaN wins and stays */
#define MIN(a, b) ((((b) < (a)) | ((b) != (b))) ? (b) : (a))

/* A row of n values to one; rows of a tile elementwise, AT_ONCE of them in registers (in the order
   of one after the other); two carried values. LANES independent chains hide the latency of an
   addition, which the compiler may not reorder itself; they are joined pairwise, in an order that
   the width of the processor's vectors does not change. */
#define REDUCER(name, start, F)                                                        \
  static inline WIDE NAME(row_##name)(const T *v, int64_t n) {                         \
    WIDE a = start;                                                                    \
    int64_t i = 0;                                                                     \
    if (n >= 2 * LANES) {                                                              \
      T lane[LANES], more[LANES];                                                      \
      for (int l = 0; l < LANES; l++) lane[l] = v[l];                                  \
      for (int l = 0; l < LANES; l++) more[l] = v[LANES + l];                          \
      for (i = 2 * LANES; i + 2 * LANES <= n; i += 2 * LANES) {                        \
        for (int l = 0; l < LANES; l++) lane[l] = F(lane[l], v[i + l]);                \
        for (int l = 0; l < LANES; l++) more[l] = F(more[l], v[i + LANES + l]);        \
      }                                                                                \
      for (int l = 0; l < LANES; l++) lane[l] = F(lane[l], more[l]);                   \
      for (; i + LANES <= n; i += LANES)                                               \
        for (int l = 0; l < LANES; l++) lane[l] = F(lane[l], v[i + l]);                \
      for (int l = 0; l < 16; l++) lane[l] = F(lane[l], lane[l + 16]);                 \
      for (int l = 0; l < 8; l++) lane[l] = F(lane[l], lane[l + 8]);                   \
      for (int l = 0; l < 4; l++) lane[l] = F(lane[l], lane[l + 4]);                   \
      for (int l = 0; l < 4; l++) a = F(a, (WIDE)lane[l]);                             \
    } else if (n >= 8) {                                                               \
      T lane[8];                                                                       \
      for (int l = 0; l < 8; l++) lane[l] = v[l];                                      \
      for (i = 8; i + 8 <= n; i += 8)                                                  \
        for (int l = 0; l < 8; l++) lane[l] = F(lane[l], v[i + l]);                    \
      for (int l = 0; l < 4; l++) lane[l] = F(lane[l], lane[l + 4]);                   \
      for (int l = 0; l < 4; l++) a = F(a, (WIDE)lane[l]);                             \
    }                                                                                  \
    for (; i < n; i++) a = F(a, (WIDE)v[i]);                                           \
    return a;                                                                          \
  }                                                                                    \
  static void NAME(rows_##name)(const T *v, int64_t n, int64_t rows, WIDE *out) {      \
    for (int64_t r = 0; r < rows; r++) out[r] = NAME(row_##name)(v + r * n, n);        \
  }                                                                                    \
  static void NAME(columns_##name)(T *acc, const T *v, int64_t n) {                    \
    for (int64_t i = 0; i < n; i++) acc[i] = F(acc[i], v[i]);                          \
  }                                                                                    \
  static void NAME(several_##name)(T *acc, const T *const *v, int64_t n) {             \
    const T *a = v[0], *b = v[1], *d = v[2], *e = v[3];                                \
    for (int64_t i = 0; i < n; i++) {                                                  \
      T t = F(acc[i], a[i]);                                                           \
      t = F(t, b[i]);                                                                  \
      t = F(t, d[i]);                                                                  \
      acc[i] = F(t, e[i]);                                                             \
    }                                                                                  \
  }                                                                                    \
  static void NAME(carry_##name)(WIDE *wide, T *acc, int64_t n) {                      \
    for (int64_t i = 0; i < n; i++) wide[i] = F(wide[i], (WIDE)acc[i]), acc[i] = start; \
  }                                                                                    \
  static void NAME(join_##name)(WIDE *wide, const WIDE *from, int64_t n) {             \
    for (int64_t i = 0; i < n; i++) wide[i] = F(wide[i], from[i]);                     \
  }
REDUCER(sum, 0, ADD)
REDUCER(prod, 1, MULTIPLY)
REDUCER(max, LOWEST, MAX)
REDUCER(min, HIGHEST, MIN)
#undef REDUCER

typedef struct NAME(reducer) {
  T start;
  void (*rows)(const T *v, int64_t n, int64_t rows, WIDE *out);
  void (*columns)(T *acc, const T *v, int64_t n);
  void (*several)(T *acc, const T *const *v, int64_t n);
  void (*carry)(WIDE *wide, T *acc, int64_t n);
  void (*join)(WIDE *wide, const WIDE *from, int64_t n);
} NAME(reducer);

#define ENTRY(name, start)                                               \
  {start,              NAME(rows_##name),  NAME(columns_##name),         \
   NAME(several_##name), NAME(carry_##name), NAME(join_##name)}
static const NAME(reducer) NAME(reducers)[] = {[BY_SUM] = ENTRY(sum, 0),
                                               [BY_PROD] = ENTRY(prod, 1),
                                               [BY_MAX] = ENTRY(max, LOWEST),
                                               [BY_MIN] = ENTRY(min, HIGHEST)};
#undef ENTRY

/* For any and all the elements become 0 or 1 first: their max and min are the results. */
static const T *NAME(load)(const plan *p, int64_t at, int64_t n, T *scratch) {
  const T *v = LT_CPU(NAME(lt_load))(&p->x, 0, at, n, scratch);
  if (!p->truth) return v;
  for (int64_t i = 0; i < n; i++) scratch[i] = v[i] != 0;
  return scratch;
}

/* Outputs from..to-1, elements start..end-1 of each row. Short rows are loaded many at a time. */
static void NAME(rows)(const plan *p, int64_t from, int64_t to, int64_t start, int64_t end,
                       WIDE *out) {
  const NAME(reducer) *f = &NAME(reducers)[p->by];
  T scratch[TOGETHER];
  int64_t group = p->length <= TOGETHER ? TOGETHER / p->length : 1;
  for (int64_t o = from; o < to; o += group) {
    if (p->length <= TOGETHER) {
      int64_t n = to - o < group ? to - o : group;
      f->rows(NAME(load)(p, o * p->length, n * p->length, scratch), p->length, n, out + o);
      continue;
    }
    WIDE a = (WIDE)f->start;
    for (int64_t at = start; at < end && !lt_is_cancelled(p->c); at += TOGETHER) {
      int64_t n = end - at < TOGETHER ? end - at : TOGETHER;
      WIDE b;
      f->rows(NAME(load)(p, o * p->length + at, n, scratch), n, 1, &b);
      f->join(&a, &b, 1);
    }
    out[o] = a;
  }
}

/* Outputs from..to-1 (at most a tile of them), rows start..end-1. A tile holds several rows when
   they are short; their columns are joined at the end. Where the first row is in one piece, the
   others lie as far apart as their dim's stride says. */
static void NAME(columns)(const plan *p, int64_t from, int64_t to, int64_t start, int64_t end,
                          WIDE *out) {
  const NAME(reducer) *f = &NAME(reducers)[p->by];
  T scratch[AT_ONCE][LT_TILE], acc[LT_TILE];
  WIDE wide[LT_TILE];
  int64_t width = to - from, group = width == p->count ? LT_TILE / width : 1;
  const T *first = group == 1 && p->step != 0 ? NAME(load)(p, from, width, scratch[0]) : scratch[0];
  for (int64_t i = 0; i < group * width; i++) acc[i] = f->start, wide[i] = (WIDE)f->start;
  int carried = 0;
  for (int64_t r = start, rows; r < end; r += rows) {
    const T *v[AT_ONCE];
    if (end - r >= AT_ONCE * group) {
      rows = AT_ONCE * group;
      for (int k = 0; k < AT_ONCE; k++)
        v[k] = first != scratch[0]
                   ? first + (r + k) * p->step
                   : NAME(load)(p, (r + k * group) * p->count + from, group * width, scratch[k]);
      f->several(acc, v, group * width);
      carried += AT_ONCE;
    } else {
      rows = end - r < group ? end - r : group;
      f->columns(acc, NAME(load)(p, r * p->count + from, rows * width, scratch[0]), rows * width);
      carried++;
    }
    if (carried < CARRY) continue;
    f->carry(wide, acc, group * width);
    carried = 0;
    if (lt_is_cancelled(p->c)) return;
  }
  f->carry(wide, acc, group * width);
  for (int64_t k = 1; k < group; k++) f->join(wide, wide + k * width, width);
  for (int64_t i = 0; i < width; i++) out[from + i] = wide[i];
}

/* A task is a block of outputs by a segment of the reduced elements: a few long lines are divided
   as well as many short ones. Segments are joined in order by `finish`. */
static void NAME(chunk)(const plan *p, int64_t chunk) {
  int64_t block = chunk % p->n_blocks, segment = chunk / p->n_blocks;
  int64_t from = block * p->block, to = from + p->block < p->count ? from + p->block : p->count;
  int64_t start = segment * p->segment, end = start + p->segment;
  if (end > p->length) end = p->length;
  WIDE *out = (WIDE *)p->partial + segment * p->count;
  (p->columns ? NAME(columns) : NAME(rows))(p, from, to, start, end, out);
}

/* Join the segments, in order, and store. */
static void NAME(finish)(const plan *p, int64_t chunk) {
  const NAME(reducer) *f = &NAME(reducers)[p->by];
  int64_t from = chunk * LT_CHUNK, to = from + LT_CHUNK < p->count ? from + LT_CHUNK : p->count;
  WIDE *out = (WIDE *)p->partial;
  for (int64_t s = 1; s < p->n_segments; s++)
    f->join(out + from, out + s * p->count + from, to - from);
  for (int64_t at = from; at < to; at += LT_TILE) {
    int64_t n = to - at < LT_TILE ? to - at : LT_TILE;
    double values[LT_TILE];
    if (p->mean) {
      for (int64_t i = 0; i < n; i++) values[i] = (double)out[at + i] / (double)p->length;
      LT_CPU(lt_put_f64)(&p->y, 0, at, n, values);
    } else {
      NAME(put_wide)(&p->y, 0, at, n, out + at);
    }
  }
}

#undef MAX
#undef MIN
#undef T
#undef WIDE
#undef NAME
#undef LOWEST
#undef HIGHEST
#undef ADD
#undef MULTIPLY
