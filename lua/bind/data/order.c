/* lua/bind/data/order.c: orders of samples (`ltrain.Order`). Positions count from 1 here.

   An order is immutable after it was made, and reference counted: feeds on other threads read it
   without a lock. 8 bytes a sample, none for a sequential one. */
#include "bind/core/garbage_collection.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/data/data.h"

#define ORDER_NAME "ltrain.Order"

/* Pushes the place of an order of `n` entries. Lua's collector sees none of them: they count as
   results do. */
static lt_order **push_order(lua_State *L, lt_bind *b, int64_t n) {
  lt_collect_if_due(L, b);
  if (n > 0 && n <= LT_SAMPLES_MAX) b->collect.fresh += n * (int64_t)sizeof(int64_t);
  lt_order **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, ORDER_NAME);
  return box;
}

lt_order *lt_check_order(lua_State *L, int index) {
  lt_order *o = *(lt_order **)luaL_checkudata(L, index, ORDER_NAME);
  luaL_argcheck(L, o != NULL, index, "this order was released");
  return o;
}

static int order_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_order **box = luaL_checkudata(L, 1, ORDER_NAME);
  if (b->c != NULL) lt_release(b->c, *box);
  *box = NULL;
  return 0;
}

int64_t lt_check_samples(lua_State *L, lt_bind *b, int index, const char *who) {
  int64_t n = lt_check_int(L, b, index, who, "n");
  if (n < 0)
    lt_raise(L, b, LT_EARG, "%s: argument 'n' must not be negative, got %lld", who, (long long)n);
  return n;
}

/* data.order(n [, seed, epoch]) -> order: without a seed 1, 2, ..., n */
int lt_data_order(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int64_t n = lt_check_samples(L, b, 1, "order");
  bool shuffled = !lua_isnoneornil(L, 2);
  uint64_t seed = (uint64_t)luaL_optinteger(L, 2, 0);
  lua_Integer epoch = luaL_optinteger(L, 3, 0);
  lt_order **box = push_order(L, b, shuffled ? n : 0);
  *box =
      shuffled ? lt_order_shuffled(b->c, n, seed, (uint32_t)epoch) : lt_order_sequential(b->c, n);
  if (*box == NULL) lt_raise_failure(L, b);
  return 1;
}

/* data.order_of({positions}, n, who) -> order: positions in 1..n, as a user gives them. Positions
   are checked once here: gathering indexes memory with them unchecked. */
int lt_data_order_of(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  int64_t n = lt_check_samples(L, b, 2, "order_of");
  const char *who = luaL_optstring(L, 3, "sampler");
  lua_Integer length = lt_length(L, 1);
  lt_order **box = push_order(L, b, length);
  *box = lt_order_empty(b->c, length);
  if (*box == NULL) lt_raise_failure(L, b);
  for (lua_Integer i = 0; i < length; i++) {
    lua_geti(L, 1, i + 1);
    int is_int;
    lua_Integer at = lua_tointegerx(L, -1, &is_int);
    if (!is_int || at < 1 || at > n)
      lt_raise(L, b, LT_EVALUE, "%s: entry %lld must be a position in 1..%lld, got %s", who,
               (long long)i + 1, (long long)n, luaL_tolstring(L, -1, NULL));
    (*box)->index[i] = at - 1;
    lua_pop(L, 1);
  }
  return 1;
}

/* order:at(k) -> position of the sample that comes k-th, k from 1 */
static int order_at(lua_State *L) {
  const lt_order *o = lt_check_order(L, 1);
  lua_Integer k = luaL_checkinteger(L, 2);
  luaL_argcheck(L, k >= 1 && k <= o->n, 2, "out of range");
  lua_pushinteger(L, lt_order_at(o, k - 1) + 1);
  return 1;
}

static int order_len(lua_State *L) {
  lua_pushinteger(L, lt_check_order(L, 1)->n);
  return 1;
}

/* order:hash(most) -> a number of its length and first `most` entries */
static int order_hash(lua_State *L) {
  const lt_order *o = lt_check_order(L, 1);
  lua_pushinteger(L, (lua_Integer)lt_order_hash(o, luaL_checkinteger(L, 2)));
  return 1;
}

/* order:part(first, n) -> order of entries first..first+n-1, first from 1 */
static int order_part(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_order *o = lt_check_order(L, 1);
  lua_Integer first = luaL_checkinteger(L, 2), n = luaL_checkinteger(L, 3);
  luaL_argcheck(L, first >= 1 && n >= 0 && first - 1 <= o->n - n, 2, "out of range");
  lt_order **box = push_order(L, b, n);
  *box = lt_order_empty(b->c, n);
  if (*box == NULL) lt_raise_failure(L, b);
  for (lua_Integer i = 0; i < n; i++) (*box)->index[i] = lt_order_at(o, first - 1 + i);
  return 1;
}

/* order:through(map) -> order whose k-th entry is map's at order's k-th: a subset's samples as
   those of the whole. Composition of maps: (order o map)(k) = map(order(k)). A subset of a subset
   is one lookup, not a chain of them. */
static int order_through(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_order *o = lt_check_order(L, 1), *map = lt_check_order(L, 2);
  lt_order **box = push_order(L, b, o->n);
  *box = lt_order_empty(b->c, o->n);
  if (*box == NULL) lt_raise_failure(L, b);
  for (int64_t i = 0; i < o->n; i++) {
    int64_t at = lt_order_at(o, i);
    if (at < 0 || at >= map->n)
      lt_raise(L, b, LT_EVALUE, "sampler: position %lld of a data set of %lld", (long long)at + 1,
               (long long)map->n);
    (*box)->index[i] = lt_order_at(map, at);
  }
  return 1;
}

void lt_bind_orders(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__len", order_len}, {"__gc", order_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"at", order_at},
                                           {"part", order_part},
                                           {"through", order_through},
                                           {"hash", order_hash},
                                           {NULL, NULL}};
  lt_new_type(L, b, ORDER_NAME, meta, methods);
}
