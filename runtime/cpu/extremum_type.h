/* runtime/cpu/extremum_type.h: where the largest or smallest element of a line is, in one compute
   type; included by extremum.c with T, IS_NAN, INDEX (an integer as wide as T), KEY (an integer
   that grows with a T, NaN above all) and NAME(f) defined. No guard.

   First the largest key alone, in LANES independent chains; then a search for where it stands
   first. Two simple loops that vectorise are faster than one that carries a value and its
   position. */

/* The smallest has the largest key when all bits are turned; NaN keeps the highest. */
static void NAME(keys)(const T *v, int64_t n, bool least, INDEX *key) {
  for (int64_t i = 0; i < n; i++) key[i] = KEY(v[i]);
  if (least)
    for (int64_t i = 0; i < n; i++) key[i] = IS_NAN(v[i]) ? key[i] : ~key[i];
}

/* Position of the first largest of n keys, at least one. */
static int64_t NAME(first_largest)(const INDEX *key, int64_t n) {
  INDEX best = key[0];
  int64_t at = 0;
  if (n <= LANES) { /* without a branch: which one is best cannot be foreseen */
    for (int64_t i = 1; i < n; i++) best = key[i] > best ? key[i] : best;
    for (int64_t i = n - 1; i >= 0; i--) at = key[i] == best ? i : at;
    return at;
  }
  INDEX lane[LANES];
  int64_t i = LANES;
  for (int l = 0; l < LANES; l++) lane[l] = key[l];
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++) lane[l] = key[i + l] > lane[l] ? key[i + l] : lane[l];
  for (int l = 0; l < LANES; l++) best = lane[l] > best ? lane[l] : best;
  for (; i < n; i++) best = key[i] > best ? key[i] : best;
  for (; at + LANES <= n; at += LANES) {
    INDEX found = 0;
    for (int l = 0; l < LANES; l++) found |= key[at + l] == best;
    if (found != 0) break;
  }
  while (key[at] != best) at++;
  return at;
}

/* The same for a line that does not fit into a tile. */
static int64_t NAME(best_of_line)(const job *j, int64_t start, T *value) {
  T scratch[LT_TILE];
  INDEX key[LT_TILE], best = 0;
  int64_t place = -1;
  for (int64_t at = 0; at < j->length && (at == 0 || !lt_is_cancelled(j->c)); at += LT_TILE) {
    int64_t n = j->length - at < LT_TILE ? j->length - at : LT_TILE;
    const T *v = LT_CPU(NAME(lt_load))(&j->x, 0, start + at, n, scratch);
    NAME(keys)(v, n, j->least, key);
    int64_t k = NAME(first_largest)(key, n);
    if (place >= 0 && key[k] <= best) continue;
    place = at + k;
    best = key[k];
    *value = v[k];
  }
  return place;
}

static void NAME(store)(const job *j, int64_t at, int64_t n, const T *value, const int64_t *index) {
  if (j->with_value) LT_CPU(NAME(lt_put))(&j->value, 0, at, n, value);
  if (j->with_index) LT_CPU(lt_put_i64)(&j->index, 0, at, n, index);
}

/* Lines from..to-1, short ones many at a time. */
static void NAME(rows)(const job *j, int64_t from, int64_t to) {
  T scratch[LT_TILE], value[LT_TILE];
  INDEX key[LT_TILE];
  int64_t index[LT_TILE], group = j->length <= LT_TILE ? LT_TILE / j->length : 1;
  for (int64_t o = from; o < to; o += group) {
    int64_t n = to - o < group ? to - o : group;
    if (j->length > LT_TILE) {
      index[0] = NAME(best_of_line)(j, o * j->length, &value[0]);
    } else {
      const T *v = LT_CPU(NAME(lt_load))(&j->x, 0, o * j->length, n * j->length, scratch);
      NAME(keys)(v, n * j->length, j->least, key);
      for (int64_t k = 0; k < n; k++) {
        index[k] = NAME(first_largest)(key + k * j->length, j->length);
        value[k] = v[k * j->length + index[k]];
      }
    }
    NAME(store)(j, o, n, value, index);
  }
}

/* NaN is better than any number; of equals the first is. */
#define BETTER(a, b) ((least ? (a) < (b) : (a) > (b)) | (((a) != (a)) & ((b) == (b))))

static inline void NAME(improve)(T *value, INDEX *place, const T *v, INDEX k, int64_t n,
                                 bool least) {
  for (int64_t i = 0; i < n; i++) {
    T x = v[i], b = value[i];
    int better = BETTER(x, b);
    value[i] = better ? x : b;
    place[i] = better ? k : place[i];
  }
}

/* A tile of lines side by side: position of element k of line o is k * count + o. */
static void NAME(columns)(const job *j, int64_t from, int64_t to) {
  T scratch[LT_TILE], value[LT_TILE];
  INDEX place[LT_TILE];
  int64_t index[LT_TILE], n = to - from;
  const T *v = LT_CPU(NAME(lt_load))(&j->x, 0, from, n, scratch);
  for (int64_t i = 0; i < n; i++) value[i] = v[i], place[i] = 0;
  for (int64_t k = 1; k < j->length; k++) {
    v = LT_CPU(NAME(lt_load))(&j->x, 0, k * j->count + from, n, scratch);
    if (j->least)
      NAME(improve)(value, place, v, (INDEX)k, n, true);
    else
      NAME(improve)(value, place, v, (INDEX)k, n, false);
  }
  for (int64_t i = 0; i < n; i++) index[i] = place[i];
  NAME(store)(j, from, n, value, index);
}

#undef BETTER
#undef T
#undef IS_NAN
#undef INDEX
#undef KEY
#undef NAME
