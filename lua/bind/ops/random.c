/* lua/bind/ops/random.c: lt.seed, the position of random numbers, and math.random of owned states.

   Draws have no state but the seed and a position: stream, batch, ordinal. math.random of an owned
   state is keyed by seed and batch too, so that a resumed run draws what it would have drawn.

   Philox4x32-10 (Salmon, Moraes, Dror, Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011):
   a keyed function of a counter. A draw therefore needs no state to save, and threads, devices and
   ranks get the same numbers for the same position whatever order they run in. */
#include "bind/ops/random.h"

#include <sys/random.h>
#include <time.h>

#include "bind/core/garbage_collection.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/state.h"
#include "bind/core/types.h"
#include "bind/core/values.h"

/* 53 bits of the kernel's generator, so that the seed survives a trip through a double: JSON, a
   config file, another tool. The clock is for kernels that have no getrandom. */
static uint64_t fresh_seed(void) {
  uint64_t seed;
  if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = (uint64_t)time(NULL);
  return seed >> 11; /* exact as a double as well */
}

/* lt.seed([n]) -> n: the seed of all random numbers that follow; without n a fresh one */
static int seed(lua_State *L) {
  lt_bind *b = lt_enter(L);
  uint64_t n;
  b->seed_unreported = lua_isnoneornil(L, 1);
  if (b->seed_unreported) {
    n = fresh_seed();
  } else {
    int is_int = 0;
    lua_Integer seed = lua_type(L, 1) == LUA_TNUMBER ? lua_tointegerx(L, 1, &is_int) : 0;
    if (!is_int) lt_raise(L, b, LT_EARG, "seed: must be an integer, got %s", lt_shown(L, 1));
    if (seed < 0) lt_raise(L, b, LT_EARG, "seed: must be at least 0, got %lld", (long long)seed);
    n = (uint64_t)seed;
  }
  b->c->rng.seed = n;
  b->c->rng.batch = b->c->rng.ordinal = 0;
  b->outside = (lt_rng){0};
  b->random = (lt_script_random){0};
  lua_pushinteger(L, (lua_Integer)n);
  return 1;
}

static bool has_field(lua_State *L, const char *name, lua_Integer *value) {
  bool found = lua_getfield(L, 1, name) != LUA_TNIL;
  if (found) *value = luaL_checkinteger(L, -1);
  lua_pop(L, 1);
  return found;
}

/* runtime.rng_set{seed =, stream =, batch =, ordinal =}: what is absent stays; a new batch begins
   at ordinal 0; going back to stream 0 takes up where the numbers outside of loops were left */
/* Streams keep loops apart: what a validation loop draws does not shift the numbers of training.
   The position outside of loops is set aside while one runs, since it goes on afterwards. */
static int rng_set(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_rng *rng = &b->c->rng;
  lua_Integer value;
  luaL_checktype(L, 1, LUA_TTABLE);
  if (has_field(L, "seed", &value)) rng->seed = (uint64_t)value;
  if (has_field(L, "stream", &value) && (uint16_t)value != rng->stream) {
    if (rng->stream == LT_RNG_OUTSIDE) b->outside = *rng;
    rng->stream = (uint16_t)value;
    rng->batch = value == LT_RNG_OUTSIDE ? b->outside.batch : 0;
    rng->ordinal = value == LT_RNG_OUTSIDE ? b->outside.ordinal : 0;
  }
  if (has_field(L, "batch", &value)) {
    rng->batch = (uint32_t)value;
    rng->ordinal = 0;
  }
  if (has_field(L, "ordinal", &value)) rng->ordinal = (uint32_t)value;
  return 0;
}

static void set_integer(lua_State *L, const char *name, uint64_t value) {
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, name);
}

/* runtime.rng_get([into]) -> {seed, stream, batch, ordinal}, in that table if there is one */
static int rng_get(lua_State *L) {
  const lt_rng *rng = &lt_enter(L)->c->rng;
  lua_settop(L, 1);
  if (!lua_istable(L, 1)) lua_createtable(L, 0, 4);
  set_integer(L, "seed", rng->seed);
  set_integer(L, "stream", rng->stream);
  set_integer(L, "batch", rng->batch);
  set_integer(L, "ordinal", rng->ordinal);
  return 1;
}

/* runtime.rng_state() -> a table of integers for checkpoints: the seed, the position of draws
   outside of loops, and that of math.random. Positions inside loops are the loops' own. */
/* Integers only: they survive JSON and Lua's tables exactly. */
static int rng_state(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_rng *rng = b->c->rng.stream == LT_RNG_OUTSIDE ? &b->c->rng : &b->outside;
  lua_createtable(L, 0, 6);
  set_integer(L, "seed", b->c->rng.seed);
  set_integer(L, "batch", rng->batch);
  set_integer(L, "ordinal", rng->ordinal);
  if (b->random.reseeded) set_integer(L, "script_seed", b->random.seed);
  set_integer(L, "script_position", b->random.position);
  set_integer(L, "script_drawn", b->random.drawn);
  return 1;
}

/* runtime.rng_restore(state) */
static int rng_restore(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_rng *rng = b->c->rng.stream == LT_RNG_OUTSIDE ? &b->c->rng : &b->outside;
  lua_Integer value = 0;
  luaL_checktype(L, 1, LUA_TTABLE);
  if (has_field(L, "seed", &value)) b->c->rng.seed = (uint64_t)value;
  if (has_field(L, "batch", &value)) rng->batch = (uint32_t)value;
  if (has_field(L, "ordinal", &value)) rng->ordinal = (uint32_t)value;
  b->seed_unreported = false;
  b->random.reseeded = has_field(L, "script_seed", &value);
  if (b->random.reseeded) b->random.seed = (uint64_t)value;
  if (has_field(L, "script_position", &value)) b->random.position = (uint64_t)value;
  if (has_field(L, "script_drawn", &value)) b->random.drawn = (uint64_t)value;
  return 0;
}

/* runtime.drawn_seed([seed]) -> seed: once for each seed that was not set by the script; else nil.
   With an argument that is the one drawn: ranks of all rounds of a launch have the same. */
static int drawn_seed(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (!lua_isnoneornil(L, 1)) {
    b->c->rng.seed = (uint64_t)luaL_checkinteger(L, 1);
    b->seed_unreported = true;
    return 0;
  }
  if (b->seed_unreported)
    lua_pushinteger(L, (lua_Integer)b->c->rng.seed);
  else
    lua_pushnil(L);
  b->seed_unreported = false;
  return 1;
}

/* runtime.batch_done(): optimizer:step of a loop that the script wrote itself. Within our loops,
   which key the draws of their batches, it does nothing. */
static int batch_done(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (b->c->rng.stream != LT_RNG_OUTSIDE) return 0;
  b->c->rng.batch++;
  b->c->rng.ordinal = 0;
  lt_collect_boundary(L, b);
  return 0;
}

/* Exchange: calling it again puts back what was. */
static void swap_script(lt_bind *b, lt_saved_draws *d) {
  lt_script_random before = b->random;
  b->random.position = d->script.position; /* a seed that a script sets has its effect on both */
  b->random.drawn = d->script.drawn;
  d->script = before;
}

/* Between two steps of a call that a host steps (host/step.c), within a loop of a Trainer: what the
   host draws then comes from the numbers outside of loops, so that stepping gives the training that
   an unstepped call gives. */
void lt_bind_leave_draws(lt_bind *b, lt_saved_draws *d) {
  lt_rng *rng = &b->c->rng;
  d->saved = rng->stream != LT_RNG_OUTSIDE;
  if (!d->saved) return;
  d->rng = *rng;
  *rng = (lt_rng){.seed = rng->seed, .stream = LT_RNG_OUTSIDE, .batch = b->outside.batch,
                  .ordinal = b->outside.ordinal};
  swap_script(b, d);
}

void lt_bind_return_draws(lt_bind *b, lt_saved_draws *d) {
  if (!d->saved) return;
  uint64_t seed = b->c->rng.seed;
  b->outside = b->c->rng;
  b->c->rng = d->rng;
  b->c->rng.seed = seed;
  swap_script(b, d);
  d->saved = false;
}

/* math.random. The draws of a batch are the words of one key that tensors never get. */

/* A key has 2^63 as base, which no tensor's draw reaches, and ordinal 0xffff: both keep these words
   apart from those of tensors at the same position. One block of Philox gives four words, two
   draws. */
static uint64_t draw(lt_bind *b) {
  const lt_rng *rng = &b->c->rng;
  lt_script_random *s = &b->random;
  uint64_t position = ((uint64_t)rng->batch << 16 | 0xffff) << 16 | rng->stream;
  if (position != s->position) {
    s->position = position;
    s->drawn = 0;
  }
  const lt_rng_key t = {
      .seed = s->reseeded ? s->seed : rng->seed, .position = position, .base = (uint64_t)1 << 63};
  uint64_t n = s->drawn++;
  lt_random4 r = lt_philox(t, n / 2);
  return n % 2 == 0 ? (uint64_t)r.word[1] << 32 | r.word[0] : (uint64_t)r.word[3] << 32 | r.word[2];
}

/* An integer in 0..n, each as likely. Rejection below the next power of two, as Lua's own
   math.random does: no bias, and fewer than two tries on average, since more than half of the
   masked values are accepted. */
static uint64_t draw_up_to(lt_bind *b, uint64_t n) {
  uint64_t mask = n;
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  uint64_t r = draw(b) & mask;
  while (r > n) r = draw(b) & mask;
  return r;
}

/* The forms and results' ranges of Lua's manual, section 6.7; 53 bits of a float, as Lua's. */
static int math_random(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_Integer low = 1, high;
  switch (lua_gettop(L)) {
  case 0:
    lua_pushnumber(L, (double)(draw(b) >> 11) * 0x1p-53);
    return 1;
  case 1:
    high = luaL_checkinteger(L, 1);
    if (high != 0) break;
    lua_pushinteger(L, (lua_Integer)draw(b));
    return 1;
  case 2:
    low = luaL_checkinteger(L, 1);
    high = luaL_checkinteger(L, 2);
    break;
  default:
    return luaL_error(L, "wrong number of arguments");
  }
  luaL_argcheck(L, low <= high, lua_gettop(L), "interval is empty");
  uint64_t r = draw_up_to(b, (uint64_t)high - (uint64_t)low);
  lua_pushinteger(L, (lua_Integer)((uint64_t)low + r));
  return 1;
}

/* Two words are folded into one seed. The odd constant is 2^64 divided by the golden ratio (Knuth,
   The Art of Computer Programming, volume 3, section 6.4): multiplication by it spreads small
   numbers over all bits. */
static int math_randomseed(lua_State *L) {
  lt_bind *b = lt_enter(L);
  uint64_t x = fresh_seed(), y = 0;
  if (!lua_isnone(L, 1)) {
    lua_Integer n;
    int is_int = 0;
    n = lua_tointegerx(L, 1, &is_int);
    x = is_int ? (uint64_t)n : (uint64_t)(int64_t)luaL_checknumber(L, 1);
    y = (uint64_t)luaL_optinteger(L, 2, 0);
  }
  b->random = (lt_script_random){.reseeded = true, .seed = x ^ y * 0x9E3779B97F4A7C15u};
  lua_pushinteger(L, (lua_Integer)x);
  lua_pushinteger(L, (lua_Integer)y);
  return 2;
}

void lt_bind_random(lua_State *L, lt_bind *b) {
  static const lt_formed functions[] = {{{"seed", seed, 1}, "n"}, {{NULL, NULL, 0}, NULL}};
  static const luaL_Reg runtime[] = {{"rng_set", rng_set},
                                     {"rng_get", rng_get},
                                     {"rng_state", rng_state},
                                     {"rng_restore", rng_restore},
                                     {"batch_done", batch_done},
                                     {"drawn_seed", drawn_seed},
                                     {NULL, NULL}};
  static const luaL_Reg math[] = {
      {"random", math_random}, {"randomseed", math_randomseed}, {NULL, NULL}};
  b->c->rng.seed = fresh_seed();
  b->seed_unreported = true;
  lua_pushvalue(L, 1);
  lt_add_formed(L, b, functions);
  lua_getfield(L, -1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 2);
  if (!b->owned || lua_getglobal(L, "math") != LUA_TTABLE) return;
  lt_add_functions(L, b, math);
  lua_pop(L, 1);
}
