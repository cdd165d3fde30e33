/* lua/bind/dist/overlap.c: buckets of gradients that are reduced over the ranks while backward
   still runs.

   A bucket is issued when the gradients of all its parameters are complete
   (autograd/gradient_buckets.h), and at the latest by finish(); buckets go in their order, so that
   all ranks issue the same ones, whatever each of them has computed. */
#include "autograd/backward.h"
#include "autograd/gradient_buckets.h"
#include "bind/core/call.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/dist/dist.h"

#define OVERLAP_NAME "ltrain.Overlap"

typedef struct bucket {
  lt_group_ref ref; /* while its reduction is under way */
  int first, n; /* of the parameters */
} bucket;

typedef struct overlap {
  lt_gradient_buckets *ready; /* which retains the parameters */
  lt_group_ref group; /* whose ranks have gradients to add; none: those of the world */
  int n, n_buckets;
  int issued;       /* buckets of this step */
  double weight;    /* of this rank */
  lt_place place;   /* for reports */
  lt_tensor **leaf; /* [n] in the order of buckets */
  lt_tensor **listed; /* [n] in that of the list which the buckets were made of */
  lt_tensor **part; /* [n] memory for issue() */
  bucket *bucket;   /* [n_buckets] */
  bool *filled;     /* [n] there was no gradient: zeros travel */
} overlap;

/* Sum bucket k over the ranks, divided by the weights of all. Runs inside backward, hence without
   recording and autocast. A parameter without a gradient takes part with zeros (filled): the size
   of a bucket must be the same on all ranks. The first bucket brings the weights of all ranks,
   which the others reuse, so that only one message carries them. */
static bool issue(lt_ctx *c, void *ud, int k) {
  overlap *o = ud;
  bucket *b = &o->bucket[k];
  lt_group *g = o->group.group != NULL ? o->group.group : lt_dist_group(c);
  lt_modes modes = c->modes;
  c->modes.collective = true;
  c->modes.grad = c->modes.autocast = false;
  lt_frame frame = lt_frame_open(c);
  for (int i = 0; i < b->n; i++) {
    o->part[i] = o->leaf[b->first + i];
    o->filled[b->first + i] = o->part[i]->grad == NULL;
  }
  lt_work *first = k > 0 ? o->bucket[0].ref.work : NULL, *w = NULL;
  if (g != NULL && lt_take_gradients(c, b->n, o->part))
    w = lt_comm_mean_parts(c, g, b->n, o->part, o->weight, first, lt_origin_of(&o->place));
  if (w != NULL) {
    lt_group_ref_set(c, &b->ref, g);
    b->ref.work = w;
    o->issued = k + 1;
  }
  lt_frame_close(c, frame, 0, NULL);
  c->modes = modes;
  return w != NULL;
}

static overlap *check(lua_State *L, lt_bind *b) {
  overlap *o = luaL_checkudata(L, 1, OVERLAP_NAME);
  if (o->ready == NULL) lt_raise(L, b, LT_EINTERNAL, "internal: overlap: it has been freed");
  return o;
}

/* One userdata for everything: there is a single owner, Lua, and nothing is left to free when a
   later step of the construction raises. */
static overlap *push_overlap(lua_State *L, int n, int n_buckets) {
  size_t pointers = (size_t)n * sizeof(lt_tensor *);
  size_t buckets = (size_t)n_buckets * sizeof(bucket);
  overlap *o = lua_newuserdatauv(L, sizeof *o + 3 * pointers + buckets + (size_t)n, 0);
  *o = (overlap){.n = n, .n_buckets = n_buckets};
  o->leaf = (lt_tensor **)(o + 1);
  o->listed = o->leaf + n;
  o->part = o->listed + n;
  o->bucket = (bucket *)(o->part + n);
  o->filled = (bool *)(o->bucket + n_buckets);
  for (int k = 0; k < n_buckets; k++) o->bucket[k] = (bucket){.n = 0};
  for (int k = 0; k < n; k++) o->filled[k] = false;
  return o;
}

/* The tensors of the list on top of the stack. */
static int read_list(lua_State *L, lt_bind *b, lt_tensor **to) {
  int n = (int)lua_rawlen(L, -1);
  for (int k = 0; k < n; k++) {
    lt_raw_geti(L, -1, k + 1);
    to[k] = lt_check_tensor(L, b, lua_gettop(L), "overlap");
    lua_pop(L, 1);
  }
  return n;
}

/* dist.overlap(buckets, parameters, group) -> overlap: lists of parameters that require grad, of
   one dtype and device each, and the same parameters in one list. */
static int new_overlap(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TTABLE);
  lt_group *g = lua_isnoneornil(L, 3) ? NULL : lt_check_group(L, b, 3, "overlap");
  lua_settop(L, 2);
  int n = (int)lua_rawlen(L, 2), n_buckets = (int)lua_rawlen(L, 1), at = 0;
  if (n == 0) lt_raise(L, b, LT_EINTERNAL, "internal: overlap: no parameters");
  int *group = lua_newuserdatauv(L, (size_t)n * sizeof *group, 0);
  overlap *o = push_overlap(L, n, n_buckets);
  for (int k = 0; k < n_buckets; k++) {
    lt_raw_geti(L, 1, k + 1);
    if (at + (int)lua_rawlen(L, -1) > n) break;
    o->bucket[k] = (bucket){.first = at, .n = read_list(L, b, o->leaf + at)};
    for (int i = 0; i < o->bucket[k].n; i++) group[at++] = k;
    lua_pop(L, 1);
  }
  if (at != n) lt_raise(L, b, LT_EINTERNAL, "internal: overlap: %d of %d parameters", at, n);
  lua_pushvalue(L, 2);
  read_list(L, b, o->listed);
  lua_pop(L, 1);
  o->ready = lt_gradient_buckets_new(b->c, n, o->leaf, group, issue, o);
  if (o->ready == NULL) lt_raise_failure(L, b);
  luaL_setmetatable(L, OVERLAP_NAME);
  if (g != NULL) lt_group_ref_set(b->c, &o->group, g);
  return 1;
}

/* overlap:fits(parameters): whether those of a list that require grad are the same, in order. */
static int fits(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const overlap *o = check(L, b);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  int n = (int)lua_rawlen(L, 2), found = 0;
  bool same = true;
  for (int k = 0; k < n && same; k++) {
    lt_raw_geti(L, 2, k + 1);
    const lt_tensor *t = lt_check_tensor(L, b, 3, "overlap");
    lua_pop(L, 1);
    if ((t->flags & LT_REQUIRES_GRAD) == 0) continue;
    same = found < o->n && o->listed[found] == t;
    found++;
  }
  lua_pushboolean(L, same && found == o->n);
  return 1;
}

/* overlap:expect(weight) -> itself: a backward comes whose gradients, with those that are there,
   are of `weight`. What is issued in it names the place of this call. */
static int expect(lua_State *L) {
  lt_bind *b = lt_enter(L);
  overlap *o = check(L, b);
  o->weight = luaL_checknumber(L, 2);
  o->place = lt_place_of_loop(L, b);
  lua_settop(L, 1);
  return 1;
}

/* overlap:begin() -> itself, to be closed after that backward. Where a collective of the step is in
   it too, the buckets wait for finish(): ranks may come to the two in another order. */
static int begin(lua_State *L) {
  lt_bind *b = lt_enter(L);
  overlap *o = check(L, b);
  if (o->issued == 0 && lt_required_nodes_count(b->c) == 0) lt_gradient_buckets_arm(b->c, o->ready);
  lua_settop(L, 1);
  return 1;
}

static int end(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const overlap *o = luaL_checkudata(L, 1, OVERLAP_NAME);
  if (b->c != NULL && o->ready != NULL) lt_gradient_buckets_disarm(b->c, o->ready);
  return 0;
}

/* The works have been waited for, or their launch has ended. */
static void release_works(lt_ctx *c, overlap *o) {
  for (int k = 0; k < o->issued; k++) lt_group_ref_clear(c, &o->bucket[k].ref);
  o->issued = 0;
}

/* Zeros that nobody has added to: no rank had a loss. */
static void drop_filled(lt_ctx *c, const overlap *o) {
  for (int k = 0; k < o->n; k++) {
    if (!o->filled[k]) continue;
    lt_release(c, o->leaf[k]->grad);
    o->leaf[k]->grad = NULL;
  }
}

/* overlap:finish(weight) -> total, missing, and what dist.collective returns second: issues the
   buckets that are left, and waits for all. The gradients are the sums of all ranks', divided by
   `total`, the sum of their weights; `missing` of this rank were nil. All ranks call it. Waits in
   the order of issue, the only one in which works complete without another rank waiting for one
   behind. On failure the rest is not waited for: the ranks end. */
static int finish(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_ctx *c = b->c;
  overlap *o = check(L, b);
  lt_gradient_buckets_disarm(c, o->ready);
  if (o->issued == 0) {
    o->weight = luaL_checknumber(L, 2);
    o->place = lt_place_of_loop(L, b);
  }
  lt_device at = o->leaf[0]->storage->device;
  int missing = 0;
  bool staged = false;
  double total = 0;
  lt_frame frame = lt_begin(L, b, 0);
  while (o->issued < o->n_buckets && issue(c, o, o->issued)) continue;
  for (int k = 0; k < o->issued && lt_ok(c); k++) {
    lt_work *w = o->bucket[k].ref.work;
    if (w == NULL)
      lt_fail(c, LT_ERANKS, "gradients: the launch that they belong to has ended");
    else if (lt_work_wait(c, w))
      staged = staged || lt_work_is_staged(w);
  }
  if (lt_ok(c)) total = lt_work_total(o->bucket[0].ref.work);
  for (int k = 0; k < o->n; k++) missing += o->filled[k];
  if (lt_ok(c) && total == 0) drop_filled(c, o);
  release_works(c, o);
  lt_end_call(L, b, frame);
  lua_pushnumber(L, total);
  lua_pushinteger(L, missing);
  return 2 + lt_dist_push_staged(L, b, staged, at);
}

/* overlap:filled() -> a list of 0 and 1, in the order of buckets: which gradients were nil. */
static int filled(lua_State *L) {
  const overlap *o = check(L, lt_enter(L));
  lua_createtable(L, o->n, 0);
  for (int k = 0; k < o->n; k++) {
    lua_pushinteger(L, o->filled[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* overlap:order() -> numbers of parameters, in the order of buckets, as the last backward has
   completed them. */
static int order(lua_State *L) {
  const int *leaf;
  int n = lt_gradient_buckets_order(check(L, lt_enter(L))->ready, &leaf);
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    lua_pushinteger(L, leaf[k] + 1);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* The context may be gone already, as Lua closes userdata in any order at the end of a state. */
static int overlap_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  overlap *o = luaL_checkudata(L, 1, OVERLAP_NAME);
  if (b->c == NULL || o->ready == NULL) return 0;
  release_works(b->c, o);
  lt_group_ref_clear(b->c, &o->group);
  lt_gradient_buckets_free(b->c, o->ready);
  o->ready = NULL;
  return 0;
}

void lt_bind_dist_overlap(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", overlap_gc}, {"__close", end}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"fits", fits},     {"expect", expect}, {"begin", begin},
                                     {"finish", finish}, {"filled", filled}, {"order", order},
                                     {NULL, NULL}};
  static const luaL_Reg functions[] = {{"overlap", new_overlap}, {NULL, NULL}};
  lt_new_type(L, b, OVERLAP_NAME, meta, methods);
  lt_add_functions(L, b, functions);
}
