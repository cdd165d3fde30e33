/* lua/bind/dist/shards.c: parameters cut into a slice a rank: gathered, and their gradients reduced
   to the slices, a list of tensors in one movement.

   Each tensor, as a row of elements, is cut into as many slices as there are ranks. A rank's slices
   lie where they are in the tensors, or in tensors of their own (shards), which outlive the memory
   of the whole ones. */
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/dist/dist.h"
#include "device/device.h"
#include "ops/inplace.h"
#include "ops/op.h"

/* What a call works on. `cuts` has ranks + 1 numbers a tensor: rank r has the elements cuts[r] ..
   cuts[r + 1] - 1 of it. */
typedef struct shards {
  const char *who;
  lt_tensor **list, **own; /* own: NULL, or this rank's slices by themselves */
  lua_Integer n;
  const int64_t *cuts;
  int64_t ranks;
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

/* The tensors of the list at `index` as an array, which is pushed. */
static lt_tensor **push_list(lua_State *L, lt_bind *b, const shards *s, int index) {
  if (lua_isnil(L, index)) {
    lua_pushnil(L);
    return NULL;
  }
  luaL_checktype(L, index, LUA_TTABLE);
  if ((lua_Integer)lua_rawlen(L, index) != s->n)
    lt_raise(L, b, LT_EARG, "%s: needs %lld tensors: got %lld", s->who, (long long)s->n,
             (long long)lua_rawlen(L, index));
  lt_tensor **list = lua_newuserdatauv(L, (size_t)(s->n + 1) * sizeof *list, 0);
  for (lua_Integer k = 0; k < s->n; k++) {
    lt_raw_geti(L, index, k + 1);
    list[k] = lt_check_tensor(L, b, lua_gettop(L), s->who);
    lua_pop(L, 1);
  }
  return list;
}

/* The list at 2, the cuts at 3 (i64 [tensors, ranks + 1]) and the shards at 4. */
static shards check(lua_State *L, lt_bind *b, const char *who, const lt_group *g) {
  lua_settop(L, 6);
  luaL_checktype(L, 2, LUA_TTABLE);
  shards s = {.who = who, .n = (lua_Integer)lua_rawlen(L, 2), .ranks = lt_group_size(g)};
  const lt_tensor *cuts = lt_check_tensor(L, b, 3, who);
  if (cuts->dtype != LT_I64 || cuts->ndim != 2 || !lt_is_plain(b->c, cuts) ||
      cuts->size[0] != s.n || cuts->size[1] != s.ranks + 1)
    lt_raise(L, b, LT_EARG, "%s: needs cuts of %lld tensors for %lld ranks: got %s", who,
             (long long)s.n, (long long)s.ranks, LT_TENSOR_STR(cuts));
  s.cuts = lt_data(cuts);
  s.list = push_list(L, b, &s, 2);
  s.own = push_list(L, b, &s, 4);
  for (lua_Integer k = 0; k < s.n; k++) {
    if (!s.list[k]->contiguous || !is_cut(&s, k))
      lt_raise(L, b, LT_EARG, "%s: tensor %lld is not contiguous, or has other cuts: %s", who,
               (long long)k + 1, LT_TENSOR_STR(s.list[k]));
    if (s.own != NULL && s.own[k]->numel != length_of(&s, k, lt_group_rank(g)))
      lt_raise(L, b, LT_EARG, "%s: shard %lld has other cuts: %s", who, (long long)k + 1,
               LT_TENSOR_STR(s.own[k]));
  }
  return s;
}

/* Slices of all tensors for rank 0, then those for rank 1, ..., as rows that share their memory.
   Views, not copies: the transport reads and writes the slices where they are (comm/coalesced.c),
   and the order by ranks is what a gather in parts asks for. */
static bool slice(lt_ctx *c, const shards *s, lt_tensor **slices) {
  for (lua_Integer k = 0; k < s->n; k++) {
    lt_tensor *row = lt_reshape(c, s->list[k], lt_shape_of(1, &s->list[k]->numel));
    for (int64_t r = 0; r < s->ranks && row != NULL; r++)
      slices[r * s->n + k] = lt_slice(c, row, 0, first_of(s, k, r), length_of(s, k, r), 1);
  }
  return lt_ok(c);
}

/* The gradients of the parameters, which have none afterwards, in place of these, as the shards'
   dtype, in which they travel; zeros where there is none, for other ranks may have some. Taken from
   the parameter at once, so that the memory of the whole gradient is free when the reduction is
   done, and the next backward does not add to what is in transit. */
static bool take_gradients(lt_ctx *c, const shards *s) {
  for (lua_Integer k = 0; k < s->n; k++) {
    lt_tensor *p = s->list[k], *grad = p->grad;
    lt_dtype dtype = (lt_dtype)(s->own != NULL ? s->own[k] : p)->dtype;
    if (grad != NULL) {
      if (!lt_frame_add(c, grad)) return false;
      p->grad = NULL;
      lt_tensor_note_grad(c, p);
      s->list[k] = lt_contiguous(c, lt_cast(c, grad, dtype));
    } else {
      s->list[k] = lt_full(c, lt_tensor_shape(p), (lt_scalar){0}, dtype, p->storage->device);
    }
    if (s->list[k] == NULL) return false;
  }
  return true;
}

/* This rank's slices where the tensors are, in their dtype: shards may be on the host, or wider. */
static bool bring_own(lt_ctx *c, const shards *s) {
  for (lua_Integer k = 0; k < s->n && s->own != NULL && lt_ok(c); k++) {
    const lt_tensor *like = s->list[k];
    s->own[k] = lt_to_device(c, s->own[k], like->storage->device);
    if (s->own[k] != NULL) s->own[k] = lt_cast(c, s->own[k], (lt_dtype)like->dtype);
  }
  return lt_ok(c);
}

/* Begins the movement of the checked arguments; its work is pushed. `scale`: of a reduction. One
   collective for the whole list: latency is paid once, and all ranks agree on one fingerprint. */
static int move(lua_State *L, lt_bind *b, lt_group *g, const shards *s, lt_comm_op op,
                double scale) {
  lt_ctx *c = b->c;
  lt_parts p = {.n = (int)(s->n * s->ranks), .own = s->own};
  if (s->own != NULL) p.n_own = (int)s->n;
  lt_tensor **slices = lua_newuserdatauv(L, (size_t)(p.n + 1) * sizeof *slices, 0);
  p.parts = slices;
  lt_place place = lt_place_of_loop(L, b);
  if (lua_isstring(L, 5)) strncpy(place.hook, lua_tostring(L, 5), sizeof place.hook - 1);
  lt_modes modes = c->modes;
  c->modes.collective = true;
  lt_frame frame = lt_begin(L, b, 0);
  c->modes.grad = c->modes.autocast = false;
  lt_work *w = NULL;
  if (op == LT_COMM_ALL_GATHER && slice(c, s, slices) && bring_own(c, s))
    w = lt_comm_all_gather_parts(c, g, &p, lt_origin_of(&place));
  else if (op == LT_COMM_REDUCE_SCATTER && take_gradients(c, s) && slice(c, s, slices))
    w = lt_comm_reduce_scatter_parts(c, g, &p, scale, lt_origin_of(&place));
  c->modes = modes;
  lt_end_call(L, b, frame);
  lt_dist_push_work(L, b, s->who, g, w);
  return 1;
}

/* dist.gather_shards(group, list, cuts, shards, name) -> work: this rank's slices to all ranks.
   With `shards` they come from there, of whatever device and dtype, and the versions of the tensors
   do not change: their memory comes again. `name` is what reports call it. */
static int gather_shards(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_group *g = lt_check_group(L, b, 1, "gather_shards");
  shards s = check(L, b, "gather_shards", g);
  return move(L, b, g, &s, LT_COMM_ALL_GATHER, 1);
}

/* dist.reduce_shards(group, parameters, cuts, shards, name, scale) -> work: the sums of this rank's
   slices of the parameters' gradients over all ranks, times `scale`, into the shards, and in their
   dtype. The parameters have no gradients afterwards. */
static int reduce_shards(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_group *g = lt_check_group(L, b, 1, "reduce_shards");
  shards s = check(L, b, "reduce_shards", g);
  luaL_checktype(L, 4, LUA_TTABLE);
  return move(L, b, g, &s, LT_COMM_REDUCE_SCATTER, luaL_optnumber(L, 6, 1));
}

/* dist.with_gradients(parameters) -> a list of 1 for each that has a gradient, and 0; without a
   handle of the gradient, which would keep it. */
static int with_gradients(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  lua_createtable(L, (int)n, 0);
  for (lua_Integer k = 1; k <= n; k++) {
    lt_raw_geti(L, 1, k);
    lua_pushinteger(L, lt_check_tensor(L, b, -1, "with_gradients")->grad != NULL);
    lt_raw_seti(L, 2, k);
    lua_pop(L, 1);
  }
  return 1;
}

/* dist.empty(tensor, why): gives its memory back; what reads it then says why. The tensor must be
   all of its storage. */
static int empty(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_tensor *t = lt_check_tensor(L, b, 1, "empty");
  lt_autocast_forget_of(b->c, t->storage);
  if (!lt_storage_empty(b->c, t->storage, luaL_checkstring(L, 2))) lt_raise_failure(L, b);
  return 0;
}

/* dist.fill(tensor): memory for one that has none, with any bytes. */
static int fill(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (!lt_storage_fill(b->c, lt_check_tensor(L, b, 1, "fill")->storage)) lt_raise_failure(L, b);
  return 0;
}

/* dist.is_alone(tensor): whether it is all of its storage, which can be emptied. A view would lose
   its memory together with the tensor, without a word. */
static int is_alone(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_tensor *t = lt_check_tensor(L, b, 1, "is_alone");
  lua_pushboolean(L, t->contiguous && t->offset == 0 &&
                         t->storage->bytes == (size_t)t->numel * lt_item_size(t));
  return 1;
}

/* dist.changed(tensor): other values come with its memory: what was saved of it for backward is
   refused. */
static int changed(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_storage_bump(b->c, lt_check_tensor(L, b, 1, "changed")->storage);
  return 0;
}

void lt_bind_dist_shards(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"gather_shards", gather_shards}, {"reduce_shards", reduce_shards},
      {"with_gradients", with_gradients}, {"empty", empty}, {"fill", fill},
      {"is_alone", is_alone}, {"changed", changed}, {NULL, NULL}};
  lt_add_functions(L, b, functions);
}
