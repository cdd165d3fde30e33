/* runtime/cpu/extremum_type.h: where the largest or smallest element of a line is, in one compute
   type; included by extremum.c with T and NAME(f) defined. No guard. */

/* Position of the first best of n values, at least one; NaN is better than any number. */
static int64_t NAME(best_of)(const T *v, int64_t n, bool least) {
  int64_t best = 0;
  if (least) {
    for (int64_t i = 1; i < n; i++)
      if ((v[i] < v[best]) | ((v[i] != v[i]) & (v[best] == v[best]))) best = i;
  } else {
    for (int64_t i = 1; i < n; i++)
      if ((v[i] > v[best]) | ((v[i] != v[i]) & (v[best] == v[best]))) best = i;
  }
  return best;
}

/* The same for a line that does not fit into a tile. */
static int64_t NAME(best_of_line)(const job *j, int64_t start, T *value) {
  T room[LT_TILE + 1];
  int64_t best = -1;
  for (int64_t at = 0; at < j->length; at += LT_TILE) {
    int64_t n = j->length - at < LT_TILE ? j->length - at : LT_TILE;
    const T *v = LT_CPU(NAME(lt_load))(&j->x, 0, start + at, n, room);
    int64_t k = NAME(best_of)(v, n, j->least);
    const T pair[2] = {best < 0 ? v[k] : *value, v[k]};
    if (best >= 0 && NAME(best_of)(pair, 2, j->least) == 0) continue;
    best = at + k;
    *value = v[k];
  }
  return best;
}

static void NAME(chunk)(const job *j, int64_t from, int64_t to) {
  T room[LT_TILE], value[LT_TILE];
  int64_t index[LT_TILE], group = j->length <= LT_TILE ? LT_TILE / j->length : 1;
  for (int64_t o = from; o < to; o += group) {
    int64_t n = to - o < group ? to - o : group;
    if (j->length > LT_TILE) {
      index[0] = NAME(best_of_line)(j, o * j->length, &value[0]);
    } else {
      const T *v = LT_CPU(NAME(lt_load))(&j->x, 0, o * j->length, n * j->length, room);
      for (int64_t k = 0; k < n; k++) {
        index[k] = NAME(best_of)(v + k * j->length, j->length, j->least);
        value[k] = v[k * j->length + index[k]];
      }
    }
    if (j->with_value) LT_CPU(NAME(lt_put))(&j->value, 0, o, n, value);
    if (j->with_index) LT_CPU(lt_put_i64)(&j->index, 0, o, n, index);
  }
}

#undef T
#undef NAME
