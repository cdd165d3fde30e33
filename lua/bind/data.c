/* lua/bind/data.c: orders, batches gathered ahead, keyed samples, drawn digits for the library's
   own Lua (`c.runtime.data`). Positions of samples count from 1 here, as ds:get(i) does. */
#include "bind/data.h"

#include <string.h>

#include "bind/fields.h"
#include "bind/tensor.h"
#include "bind/values.h"
#include "bind/workers.h"
#include "data/digits.h"

#define ORDER_NAME "ltrain.Order"
#define FEED_NAME "ltrain.Feed"
#define SCOPE_NAME "ltrain.SampleScope"

/* Orders. */

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

static int64_t check_count(lua_State *L, lt_bind *b, int index, const char *who) {
  int64_t n = lt_check_int(L, b, index, who, "n");
  if (n < 0)
    lt_raise(L, b, LT_EARG, "%s: argument 'n' must not be negative, got %lld", who, (long long)n);
  return n;
}

/* data.order(n [, seed, epoch]) -> order: without a seed 1, 2, ..., n */
static int order(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int64_t n = check_count(L, b, 1, "order");
  bool shuffled = !lua_isnoneornil(L, 2);
  uint64_t seed = (uint64_t)luaL_optinteger(L, 2, 0);
  lua_Integer epoch = luaL_optinteger(L, 3, 0);
  lt_order **box = push_order(L, b, shuffled ? n : 0);
  *box =
      shuffled ? lt_order_shuffled(b->c, n, seed, (uint32_t)epoch) : lt_order_sequential(b->c, n);
  if (*box == NULL) lt_raise_failure(L, b);
  return 1;
}

/* data.order_of({positions}, n, who) -> order: positions in 1..n, as a user gives them */
static int order_of(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  int64_t n = check_count(L, b, 2, "order_of");
  const char *who = luaL_optstring(L, 3, "sampler");
  lua_Integer length = luaL_len(L, 1);
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
   those of the whole */
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

/* Feeds: batches gathered ahead. */

typedef struct feed {
  lt_prefetch *prefetch;
  int n_columns;
  int64_t position; /* samples taken so far */
} feed;

static void feed_end(lt_bind *b, feed *f) {
  if (b->c != NULL) lt_prefetch_release(b->c, f->prefetch);
  f->prefetch = NULL;
}

static int feed_close(lua_State *L) {
  feed_end(lua_touserdata(L, lua_upvalueindex(1)), luaL_checkudata(L, 1, FEED_NAME));
  return 0;
}

lt_batching lt_read_batching(lua_State *L, int index, int64_t n, int64_t position) {
  lua_getfield(L, index, "lasts");
  lt_order *lasts = lua_isnil(L, -1) ? NULL : lt_check_order(L, -1);
  lua_pop(L, 1);
  lt_batching batching = {.batch = lt_field_int(L, index, "batch_size", 1),
                          .drop_last = lt_field_flag(L, index, "drop_last"),
                          .evaluation = lt_field_flag(L, index, "evaluation"),
                          .wrap = lt_field_flag(L, index, "wrap"),
                          .dealt = lt_field_flag(L, index, "dealt"),
                          .lasts = lasts};
  int64_t rank = lt_field_int(L, index, "rank", 0), world = lt_field_int(L, index, "world", 1);
  luaL_argcheck(L, world >= 1 && world <= LT_SAMPLE_RANKS_MAX && rank >= 0 && rank < world, index,
                "impossible ranks");
  batching.rank = (int)rank;
  batching.world = (int)world;
  luaL_argcheck(L, lt_batching_fits(&batching, n, position), index, "impossible batches");
  return batching;
}

int lt_read_columns(lua_State *L, lt_bind *b, int index, int divisors, lt_column *columns) {
  luaL_checktype(L, index, LUA_TTABLE);
  lua_Integer n = luaL_len(L, index);
  if (n > LT_COLUMNS_MAX)
    lt_raise(L, b, LT_EARG, "data: at most %d tensors make a data set, got %lld", LT_COLUMNS_MAX,
             (long long)n);
  for (lua_Integer i = 0; i < n; i++) {
    lua_geti(L, index, i + 1);
    columns[i] = (lt_column){.source = lt_to_tensor(L, b, -1)};
    if (columns[i].source == NULL)
      lt_raise(L, b, LT_EARG, "data: entry %lld is not a tensor", (long long)i + 1);
    lua_pop(L, 1);
    if (lua_istable(L, divisors) && lua_geti(L, divisors, i + 1) == LUA_TNUMBER)
      columns[i].divisor = (float)lua_tonumber(L, -1);
    lua_settop(L, lua_istable(L, divisors) ? lua_gettop(L) - 1 : lua_gettop(L));
  }
  return (int)n;
}

/* data.feed(order, tensors, divisors, {batch_size, drop_last, position, prefetch, pin, ...}) ->
   feed; pin: into pinned memory of the device that is in use, if one is */
static int new_feed(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 4);
  lt_order *o = lt_check_order(L, 1);
  luaL_checktype(L, 4, LUA_TTABLE);
  lt_column columns[LT_COLUMNS_MAX];
  int n = lt_read_columns(L, b, 2, 3, columns);
  int64_t position = lt_field_int(L, 4, "position", 0), depth = lt_field_int(L, 4, "prefetch", 2);
  lt_batching batching = lt_read_batching(L, 4, o->n, position);
  lt_device pin = lt_field_flag(L, 4, "pin") ? lt_pinned_device(b->c) : LT_CPU_DEVICE;
  for (int k = 0; k < n; k++) columns[k].pin = pin;
  luaL_argcheck(L, depth >= 0 && depth <= LT_PREFETCH_MAX, 4, "impossible prefetch");
  feed *f = lua_newuserdatauv(L, sizeof *f, 0);
  *f = (feed){.n_columns = n, .position = position};
  luaL_setmetatable(L, FEED_NAME);
  if (lt_columns_check(b->c, "data", n, columns))
    f->prefetch = lt_prefetch_new(b->c, o, &batching, position, n, columns, (int)depth);
  if (!lt_ok(b->c)) lt_raise_failure(L, b);
  return 1;
}

int lt_give_batch(lua_State *L, lt_bind *b, lt_frame frame, bool ok, const lt_span *span,
                  int64_t *position, int n, lt_tensor *const *out) {
  bool more = ok && span->total > 0;
  if (more) *position = span->begin + span->total;
  if (more && span->n > 0) return lt_end(L, b, frame, n, out);
  lt_end_call(L, b, frame);
  if (!more) return 0;
  lua_pushboolean(L, false);
  return 1;
}

/* feed:next() -> tensors of the next batch; false when only other ranks have one; nothing at the
   end */
static int feed_next(lua_State *L) {
  lt_bind *b = lt_enter(L);
  feed *f = luaL_checkudata(L, 1, FEED_NAME);
  if (f->prefetch == NULL) return 0;
  lt_collect_if_due(L, b);

  lt_tensor *out[LT_COLUMNS_MAX];
  lt_span span = {0};
  lt_frame frame = lt_begin(L, b, f->n_columns);
  bool ok = lt_prefetch_next(b->c, f->prefetch, out, &span);
  int given = lt_give_batch(L, b, frame, ok, &span, &f->position, f->n_columns, out);
  if (given == 0) feed_end(b, f);
  return given;
}

/* feed:position() -> samples consumed, counting all ranks */
static int feed_position(lua_State *L) {
  lua_pushinteger(L, ((feed *)luaL_checkudata(L, 1, FEED_NAME))->position);
  return 1;
}

/* data.span(n, position, batching) -> total, first, count, ranks: the step that begins at a
   position (a count of samples): all of it, this rank's part, whose first entry counts from 1, and
   how many ranks have a part */
static int span_at(lua_State *L) {
  int64_t n = luaL_checkinteger(L, 1), position = luaL_checkinteger(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  lt_batching batching = lt_read_batching(L, 3, n, position);
  lt_span s = lt_batch_at(&batching, n, position);
  lua_pushinteger(L, s.total);
  lua_pushinteger(L, s.first + 1);
  lua_pushinteger(L, s.n);
  lua_pushinteger(L, s.ranks);
  return 4;
}

/* data.batch_count(n, position, batching) -> steps from there on */
static int batch_count(lua_State *L) {
  int64_t n = luaL_checkinteger(L, 1), position = luaL_checkinteger(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  lt_batching batching = lt_read_batching(L, 3, n, position);
  lua_pushinteger(L, lt_batch_count(&batching, n, position));
  return 1;
}

/* data.batch_skip(n, position, steps, batching) -> the position that many steps further on */
static int batch_skip(lua_State *L) {
  int64_t n = luaL_checkinteger(L, 1), position = luaL_checkinteger(L, 2);
  int64_t steps = luaL_checkinteger(L, 3);
  luaL_checktype(L, 4, LUA_TTABLE);
  lt_batching batching = lt_read_batching(L, 4, n, position);
  luaL_argcheck(L, steps >= 0, 3, "negative");
  lua_pushinteger(L, lt_batch_skip(&batching, n, position, steps));
  return 1;
}

/* Around one sample, draws are a function of (seed, epoch, position): see lt_sample_rng. */

typedef struct scope {
  lt_rng rng;
  lt_script_random random;
  bool open;
} scope;

static int scope_close(lua_State *L) {
  lt_bind *b = lt_enter(L);
  scope *s = luaL_checkudata(L, 1, SCOPE_NAME);
  if (s->open) {
    b->c->rng = s->rng;
    b->random = s->random;
  }
  s->open = false;
  return 0;
}

/* scope:enter(seed, epoch, position) -> scope, to be closed */
static int scope_enter(lua_State *L) {
  lt_bind *b = lt_enter(L);
  scope *s = luaL_checkudata(L, 1, SCOPE_NAME);
  uint64_t seed = (uint64_t)luaL_checkinteger(L, 2);
  lua_Integer epoch = luaL_checkinteger(L, 3), position = luaL_checkinteger(L, 4);
  if (!s->open) *s = (scope){.rng = b->c->rng, .random = b->random, .open = true};
  b->c->rng = lt_sample_rng(seed, (uint32_t)epoch, position - 1);
  b->random = (lt_script_random){0};
  lua_settop(L, 1);
  return 1;
}

/* data.sample_scope() -> scope, good for any number of samples one after the other */
static int sample_scope(lua_State *L) {
  scope *s = lua_newuserdatauv(L, sizeof *s, 0);
  s->open = false;
  luaL_setmetatable(L, SCOPE_NAME);
  return 1;
}

/* data.digits(n, seed, test) -> images u8 [n, 1, 28, 28], labels i64 [n] */
static int digits(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int64_t n = check_count(L, b, 1, "digits");
  uint64_t seed = (uint64_t)lt_check_int(L, b, 2, "digits", "seed");
  int split = lua_toboolean(L, 3) ? LT_DIGITS_TEST : LT_DIGITS_TRAIN;
  lt_frame frame = lt_begin(L, b, 2);
  lt_tensor *out[2] = {lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_U8, 4,
                                       (int64_t[]){n, 1, LT_DIGITS_SIDE, LT_DIGITS_SIDE}),
                       lt_tensor_empty(b->c, LT_CPU_DEVICE, LT_I64, 1, &n)};
  if (lt_ok(b->c)) lt_digits_draw(b->c, seed, split, 0, n, lt_data(out[0]), lt_data(out[1]));
  return lt_end(L, b, frame, 2, out);
}

void lt_bind_data(lua_State *L, lt_bind *b) {
  static const luaL_Reg order_meta[] = {{"__len", order_len}, {"__gc", order_gc}, {NULL, NULL}};
  static const luaL_Reg order_methods[] = {{"at", order_at},
                                           {"part", order_part},
                                           {"through", order_through},
                                           {"hash", order_hash},
                                           {NULL, NULL}};
  static const luaL_Reg feed_meta[] = {
      {"__close", feed_close}, {"__gc", feed_close}, {NULL, NULL}};
  static const luaL_Reg feed_methods[] = {
      {"next", feed_next}, {"position", feed_position}, {NULL, NULL}};
  static const luaL_Reg scope_meta[] = {{"__close", scope_close}, {NULL, NULL}};
  static const luaL_Reg scope_methods[] = {{"enter", scope_enter}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"order", order},
                                       {"order_of", order_of},
                                       {"feed", new_feed},
                                       {"span", span_at},
                                       {"batch_count", batch_count},
                                       {"batch_skip", batch_skip},
                                       {"sample_scope", sample_scope},
                                       {"digits", digits},
                                       {NULL, NULL}};
  lt_new_type(L, b, ORDER_NAME, order_meta, order_methods);
  lt_new_type(L, b, FEED_NAME, feed_meta, feed_methods);
  lt_new_type(L, b, SCOPE_NAME, scope_meta, scope_methods);
  lua_getfield(L, 1, "runtime");
  lua_newtable(L);
  lt_add_functions(L, b, functions);
  lt_bind_images(L, b);
  lt_bind_workers(L, b);
  lua_setfield(L, -2, "data");
  lua_pop(L, 1);
}
