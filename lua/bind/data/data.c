/* lua/bind/data/data.c: batches gathered ahead, keyed samples, drawn digits for the library's own
   Lua (`c.runtime.data`). Positions of samples count from 1 here, as ds:get(i) does. */
#include "bind/data/data.h"


#include "bind/core/call.h"
#include "bind/core/garbage_collection.h"
#include "bind/core/openers.h"
#include "bind/core/option_fields.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/data/workers.h"
#include "data/digits.h"

#define FEED_NAME "ltrain.Feed"
#define SCOPE_NAME "ltrain.SampleScope"

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

/* By `<close>` at the end of the loop, also when it breaks: threads end then, and not at some later
   collection. */
static int feed_close(lua_State *L) {
  feed_end(lua_touserdata(L, lua_upvalueindex(1)), luaL_checkudata(L, 1, FEED_NAME));
  return 0;
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

/* scope:enter(seed, epoch, position) -> scope, to be closed. The generator is set to (seed, epoch,
   position) for one sample: what its transforms draw is the same in each process and with any
   number of workers, and after a resume. */
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

/* data.digits(n, seed, test) -> images u8 [n, 1, 28, 28], labels i64 [n]. The synthetic data set of
   examples and specs: it needs no download. */
static int digits(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int64_t n = lt_check_samples(L, b, 1, "digits");
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
  static const luaL_Reg feed_meta[] = {
      {"__close", feed_close}, {"__gc", feed_close}, {NULL, NULL}};
  static const luaL_Reg feed_methods[] = {
      {"next", feed_next}, {"position", feed_position}, {NULL, NULL}};
  static const luaL_Reg scope_meta[] = {{"__close", scope_close}, {NULL, NULL}};
  static const luaL_Reg scope_methods[] = {{"enter", scope_enter}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"order", lt_data_order},
                                       {"order_of", lt_data_order_of},
                                       {"feed", new_feed},
                                       {"span", lt_data_span},
                                       {"batch_count", lt_data_batch_count},
                                       {"batch_skip", lt_data_batch_skip},
                                       {"sample_scope", sample_scope},
                                       {"digits", digits},
                                       {NULL, NULL}};
  lt_bind_orders(L, b);
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
