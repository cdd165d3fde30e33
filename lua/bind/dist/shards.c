/* lua/bind/dist/shards.c: parameters cut into a slice a rank, packed in rows: one row a rank.

   A row holds a rank's slices of all parameters of a list, one after the other; rows are equally
   long, the end of a shorter one is not checked. So one all_gather of a row each gives all ranks
   the whole parameters. */
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/dist/dist.h"
#include "device/device.h"

/* What a call works on. `cuts` has ranks + 1 numbers a parameter: rank r has the elements cuts[r]
   .. cuts[r + 1] - 1 of it. */
typedef struct shards {
  lt_tensor **list;
  lua_Integer n;
  const int64_t *cuts;
  int64_t ranks, width; /* elements of a row */
} shards;

static int64_t first_of(const shards *s, lua_Integer k, int64_t rank) {
  return s->cuts[k * (s->ranks + 1) + rank];
}

static int64_t length_of(const shards *s, lua_Integer k, int64_t rank) {
  return first_of(s, k, rank + 1) - first_of(s, k, rank);
}

/* Whether its cuts go from its first element to its last, in order. */
static bool is_cut(const shards *s, lua_Integer k) {
  bool ok = first_of(s, k, 0) == 0 && first_of(s, k, s->ranks) == s->list[k]->numel;
  for (int64_t r = 0; r < s->ranks && ok; r++) ok = length_of(s, k, r) >= 0;
  return ok;
}

/* n elements of `t` from number `at` on, as a row that shares its memory. */
static lt_tensor *span(lt_ctx *c, lt_tensor *t, int64_t at, int64_t n) {
  lt_tensor *row = lt_reshape(c, t, lt_shape_of(1, &t->numel));
  return row != NULL ? lt_slice(c, row, 0, at, n, 1) : NULL;
}

/* to[at .. at + n - 1] = from[from_at .. ]. Both are contiguous. */
static bool copy(lt_ctx *c, lt_tensor *to, int64_t at, lt_tensor *from, int64_t from_at,
                 int64_t n) {
  size_t item = lt_item_size(to);
  if (n == 0) return true;
  if (lt_is_plain(c, to) && lt_is_plain(c, from) && from->dtype == to->dtype) {
    memcpy((char *)lt_data(to) + (size_t)at * item, (char *)lt_data(from) + (size_t)from_at * item,
           (size_t)n * item);
    return true;
  }
  lt_frame frame = lt_frame_open(c);
  lt_tensor *part = span(c, to, at, n), *source = span(c, from, from_at, n);
  bool ok = part != NULL && source != NULL && lt_copy_into(c, part, source);
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

/* The list at 1, the cuts at 2 (i64 [parameters, ranks + 1]) and the rows at 3. */
static shards check(lua_State *L, lt_bind *b, const char *who, lt_tensor **rows) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 4);
  shards s = {.n = (lua_Integer)lua_rawlen(L, 1)};
  const lt_tensor *cuts = lt_check_tensor(L, b, 2, who);
  *rows = lt_check_tensor(L, b, 3, who);
  if (cuts->dtype != LT_I64 || cuts->ndim != 2 || !lt_is_plain(b->c, cuts) ||
      cuts->size[0] != s.n || cuts->size[1] < 2)
    lt_raise(L, b, LT_EARG, "%s: needs cuts of %lld parameters: got %s", who, (long long)s.n,
             LT_TENSOR_STR(cuts));
  s.cuts = lt_data(cuts);
  s.ranks = cuts->size[1] - 1;
  s.list = lua_newuserdatauv(L, (size_t)(s.n + 1) * sizeof *s.list, 0);
  for (lua_Integer k = 0; k < s.n; k++) {
    lt_raw_geti(L, 1, k + 1);
    s.list[k] = lt_check_tensor(L, b, lua_gettop(L), who);
    if (!s.list[k]->contiguous || !is_cut(&s, k))
      lt_raise(L, b, LT_EARG, "%s: parameter %lld is not contiguous, or has other cuts: %s", who,
               (long long)k + 1, LT_TENSOR_STR(s.list[k]));
    lua_pop(L, 1);
  }
  return s;
}

/* Raises unless `rows` are `n` rows that all slices fit into. */
static void check_room(lua_State *L, lt_bind *b, shards *s, const lt_tensor *rows, int64_t n) {
  s->width = rows->numel / n;
  for (int64_t r = 0; r < s->ranks; r++) {
    int64_t used = 0;
    for (lua_Integer k = 0; k < s->n; k++) used += length_of(s, k, r);
    if (used > s->width || !rows->contiguous)
      lt_raise(L, b, LT_ESHAPE, "shards: rank %lld has %lld elements, which do not fit into %s",
               (long long)r, (long long)used, LT_TENSOR_STR(rows));
  }
}

static int64_t check_rank(lua_State *L, lt_bind *b, const shards *s, lua_Integer none) {
  lua_Integer rank = luaL_optinteger(L, 4, none);
  if (rank < none || rank >= s->ranks)
    lt_raise(L, b, LT_EARG, "shards: there is no rank %lld among %lld", (long long)rank,
             (long long)s->ranks);
  return rank;
}

/* dist.pack_shard(list, cuts, row, rank): the slices of rank `rank`. */
static int pack_shard(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *row;
  shards s = check(L, b, "pack_shard", &row);
  check_room(L, b, &s, row, 1);
  int64_t rank = check_rank(L, b, &s, 0);
  lt_modes modes = b->c->modes;
  b->c->modes.collective = true;
  lt_frame frame = lt_begin(L, b, 0);
  b->c->modes.grad = b->c->modes.autocast = false;
  int64_t at = 0;
  for (lua_Integer k = 0; k < s.n && lt_ok(b->c); at += length_of(&s, k++, rank))
    copy(b->c, row, at, s.list[k], first_of(&s, k, rank), length_of(&s, k, rank));
  lt_storage_bump(b->c, row->storage);
  b->c->modes = modes;
  lt_end_call(L, b, frame);
  return 0;
}

/* dist.unpack_shards(list, cuts, rows [, rank]): the slices of all ranks but `rank`, which has its
   own, into the tensors of the list. */
static int unpack_shards(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *rows;
  shards s = check(L, b, "unpack_shards", &rows);
  check_room(L, b, &s, rows, s.ranks);
  int64_t rank = check_rank(L, b, &s, -1);
  lt_modes modes = b->c->modes;
  b->c->modes.collective = true;
  lt_frame frame = lt_begin(L, b, 0);
  b->c->modes.grad = b->c->modes.autocast = false;
  for (int64_t r = 0; r < s.ranks; r++) {
    int64_t at = r * s.width;
    for (lua_Integer k = 0; k < s.n && r != rank && lt_ok(b->c); at += length_of(&s, k++, r))
      copy(b->c, s.list[k], first_of(&s, k, r), rows, at, length_of(&s, k, r));
  }
  for (lua_Integer k = 0; k < s.n; k++) lt_storage_bump(b->c, s.list[k]->storage);
  b->c->modes = modes;
  lt_end_call(L, b, frame);
  return 0;
}

void lt_bind_dist_shards(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"pack_shard", pack_shard}, {"unpack_shards", unpack_shards}, {NULL, NULL}};
  lt_add_functions(L, b, functions);
}
