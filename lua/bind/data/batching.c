/* lua/bind/data/batching.c: batches of an order of samples: options, columns, spans. */
#include "bind/core/call.h"
#include "bind/core/option_fields.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/data/data.h"

/* Every number that a script could set is checked here, since the C side computes positions from
   them without further tests. */
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
  lua_Integer n = lt_length(L, index);
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

/* Three outcomes for a loop: tensors; false, when this rank has no sample of a step that other
   ranks have one of (it must still take part in their collectives); nothing at the end. */
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

/* data.span(n, position, batching) -> total, first, count, ranks: the step that begins at a
   position (a count of samples): all of it, this rank's part, whose first entry counts from 1, and
   how many ranks have a part */
int lt_data_span(lua_State *L) {
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
int lt_data_batch_count(lua_State *L) {
  int64_t n = luaL_checkinteger(L, 1), position = luaL_checkinteger(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  lt_batching batching = lt_read_batching(L, 3, n, position);
  lua_pushinteger(L, lt_batch_count(&batching, n, position));
  return 1;
}

/* data.batch_skip(n, position, steps, batching) -> the position that many steps further on */
int lt_data_batch_skip(lua_State *L) {
  int64_t n = luaL_checkinteger(L, 1), position = luaL_checkinteger(L, 2);
  int64_t steps = luaL_checkinteger(L, 3);
  luaL_checktype(L, 4, LUA_TTABLE);
  lt_batching batching = lt_read_batching(L, 4, n, position);
  luaL_argcheck(L, steps >= 0, 3, "negative");
  lua_pushinteger(L, lt_batch_skip(&batching, n, position, steps));
  return 1;
}
