/* lua/bind/core/garbage_collection.c: steps Lua's garbage collector by the bytes of tensors, of
   which Lua only sees a small userdata.

   Generational mode. In an owned state a loop stops the collector inside a batch (automatic young
   collections would age the step's tensors) and calls collect_boundary between batches: one young
   collection; a full one when the memory kept alive by Lua has doubled since the last full one.
   That is measured twice: bytes of tensors, with 256 MiB of slack, and Lua's own heap with the
   structs that belong to it (orders, loaders, nodes), with 4 MiB: what two batches keep grows old,
   however small it is, and no young collection frees it. Scripts without steps get a young
   collection after every 64 MiB of results, and the same full one. A part whose values backward
   computes again (custom.c) ends with a young collection, and the batch then with a full one. If
   Lua's own heap doubles within a batch, one young collection. A full one never runs in mid-step,
   except when a device is out of memory or Lua's own heap is at its host's cap. In a guest state
   only that last one ever runs by itself. */
#include "bind/core/garbage_collection.h"

#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/state.h"
#include "bind/core/types.h"
#include "device/wait.h"
#include "ops/inplace.h"

enum { TENSOR_SLACK = 256 << 20, HEAP_SLACK = 4 << 20, TIGHT = 64 << 10 };

static int64_t heap_bytes(lua_State *L) {
  return (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + lua_gc(L, LUA_GCCOUNTB);
}

/* Lua's own heap and the structs that hang on it. */
static int64_t used_bytes(lua_State *L, const lt_bind *b) {
  return heap_bytes(L) + b->c->memory.live_bytes;
}

static int nothing(lua_State *L) {
  (void)L;
  return 0;
}

/* Whether there is enough stack to call a finalizer, which a collection keeps: what Lua could not
   call for want of memory it never calls again, and what that owned would stay. */
static bool can_finalize(lua_State *L) {
  if (!lua_checkstack(L, 2 * LUA_MINSTACK)) return false;
  lua_pushcfunction(L, nothing);
  if (lua_pcall(L, 0, 0, 0) == LUA_OK) return true;
  lua_pop(L, 1);
  return false;
}

static void collect_fully(lua_State *L, lt_bind *b) {
  if (!can_finalize(L)) return;
  lua_gc(L, LUA_GCCOLLECT);
  b->collect.aged = false;
  b->collect.tensors = lt_device_live_bytes(b->c);
  b->collect.used = used_bytes(L, b);
}

/* Whether a host's cap is near, and more is used than after the last collection. */
static bool is_tight(lua_State *L, const lt_bind *b) {
  int64_t used = b->limits.memory > 0 ? used_bytes(L, b) : 0;
  return used + TIGHT > b->limits.memory && used > b->collect.used + TIGHT / 2;
}

/* Below an allocation nothing can be collected: the finalizers would be in the middle of a call. */
void lt_collect_soon(lt_bind *b) {
  b->collect.calls = b->collect.look;
  b->collect.used = 0;
}

static bool has_doubled(lua_State *L, const lt_bind *b) {
  return used_bytes(L, b) > 2 * b->collect.used + HEAP_SLACK ||
         lt_device_live_bytes(b->c) > 2 * b->collect.tensors + TENSOR_SLACK;
}

/* One young collection, then a full one if too much is still alive. */
static void collect(lua_State *L, lt_bind *b) {
  if (!can_finalize(L)) return;
  lua_gc(L, LUA_GCSTEP, 0);
  if (b->collect.aged || has_doubled(L, b)) collect_fully(L, b);
  b->collect.fresh = 0;
  b->collect.heap = heap_bytes(L);
}

void lt_collect_now(lua_State *L, lt_bind *b) {
  b->collect.calls = 0;
  if (is_tight(L, b)) {
    collect_fully(L, b);
  } else if (!b->owned) {
    b->collect.fresh = 0;
  } else if (b->collect.depth == 0) {
    if (b->collect.fresh > LT_COLLECT_AFTER || has_doubled(L, b)) collect(L, b);
  } else if (heap_bytes(L) > 2 * b->collect.heap + HEAP_SLACK &&
             can_finalize(L)) {
    lua_gc(L, LUA_GCSTEP, 0);
    b->collect.heap = heap_bytes(L);
  }
}

/* A loop needs young collections: in Lua's other mode each of its steps goes over a part of all
   that is alive. A script that has chosen that has it again when the run is over. */
static void be_generational(lua_State *L, lt_bind *b) {
  if (b->collect.depth > 0 && lua_gc(L, LUA_GCGEN, 0, 0) == LUA_GCINC)
    b->collect.incremental = true;
}

void lt_collect_boundary(lua_State *L, lt_bind *b) {
  if (b->owned) {
    be_generational(L, b);
    collect(L, b);
  }
  if (!lt_device_end_batch(b->c)) lt_raise_failure(L, b);
}

void lt_collect_inside(lua_State *L, lt_bind *b) {
  if (!b->owned || !can_finalize(L)) return;
  lua_gc(L, LUA_GCSTEP, 0);
  b->collect.aged = true;
}

/* The device is out of memory: everything that can go goes. */
static void on_exhausted(lt_ctx *c, void *ud) {
  lt_bind *b = ud;
  (void)c;
  if (!can_finalize(b->L)) return;
  lua_gc(b->L, LUA_GCCOLLECT);
  lua_gc(b->L, LUA_GCCOLLECT); /* what finalizers of the first round released */
  b->collect.tensors = b->collect.used = 0;
}

/* runtime.collect_begin(): a run begins, whose loop will run the collector; calls may nest */
static int collect_begin(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (b->owned) b->collect.depth++;
  return 0;
}

/* runtime.collect_by_batch(): the run is set up, its batches begin */
static int collect_by_batch(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (b->owned) be_generational(L, b);
  if (b->owned && b->collect.depth > 0) lua_gc(L, LUA_GCSTOP);
  b->collect.heap = heap_bytes(L);
  return 0;
}

/* runtime.collect_boundary(): between two batches, when the loop holds no tensor but its state */
static int collect_boundary(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_collect_boundary(L, b);
  return 0;
}

/* runtime.collect_end(): the run is over, also by an error */
static int collect_end(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (!b->owned || b->collect.depth == 0 || --b->collect.depth > 0) return 0;
  lua_gc(L, LUA_GCRESTART);
  if (b->collect.incremental) lua_gc(L, LUA_GCINC, 0, 0, 0);
  b->collect.incremental = false;
  return 0;
}

/* runtime.collect_fully(): everything, for a moment outside of steps */
static int collect_all(lua_State *L) {
  lt_bind *b = lt_enter(L);
  collect_fully(L, b);
  return 0;
}

/* runtime.memory([device]) -> {live_bytes, peak_bytes, cached_bytes, system_calls, struct_bytes,
   lua_bytes} */
static int memory(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device d = LT_CPU_DEVICE;
  if (!lua_isnoneornil(L, 1) && !lt_device_parse(b->c, luaL_checkstring(L, 1), &d))
    lt_raise_failure(L, b);
  lt_memory_stats s = lt_device_memory(b->c, d);
  const struct {
    const char *name;
    int64_t value;
  } rows[] = {{"live_bytes", s.live_bytes},
              {"peak_bytes", s.peak_bytes},
              {"cached_bytes", s.cached_bytes},
              {"system_calls", s.system_calls},
              {"struct_bytes", b->c->memory.live_bytes},
              {"lua_bytes", heap_bytes(L)}};
  lua_createtable(L, 0, 6);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    lua_pushinteger(L, rows[k].value);
    lua_setfield(L, -2, rows[k].name);
  }
  return 1;
}

static int reset_peak_memory(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device_reset_peaks(b->c);
  return 0;
}

/* runtime.set_memory_limit(bytes): of tensors, in use and cached together; 0: none but a host's */
static int set_memory_limit(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_Integer bytes = luaL_checkinteger(L, 1), most = b->limits.memory;
  if (bytes < 0)
    lt_raise(L, b, LT_EARG, "set_memory_limit: must not be negative, got %lld", (long long)bytes);
  if (most > 0 && bytes > most)
    lt_raise(L, b, LT_EARG, "set_memory_limit: the host of this state allows %lld bytes, got %lld",
             (long long)most, (long long)bytes);
  lt_device_set_limit(b->c, bytes == 0 ? most : bytes);
  return 0;
}

static int empty_cache(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_device_empty_caches(b->c);
  lt_pinned_trim();
  return 0;
}

/* runtime.forget_casts(): the casts of autocast go, and with them leaves that nothing else has */
static int forget_casts(lua_State *L) {
  lt_autocast_forget(lt_enter(L)->c);
  return 0;
}

void lt_bind_collect(lua_State *L, lt_bind *b) {
  static const luaL_Reg runtime[] = {{"collect_begin", collect_begin},
                                     {"collect_by_batch", collect_by_batch},
                                     {"collect_boundary", collect_boundary},
                                     {"collect_end", collect_end},
                                     {"collect_fully", collect_all},
                                     {"memory", memory},
                                     {"reset_peak_memory", reset_peak_memory},
                                     {"set_memory_limit", set_memory_limit},
                                     {"empty_cache", empty_cache},
                                     {"forget_casts", forget_casts},
                                     {NULL, NULL}};
  b->collect.look = b->limits.memory > 0 ? LT_COLLECT_LOOK_CAPPED : LT_COLLECT_LOOK;
  if (b->owned) lua_gc(L, LUA_GCGEN, 0, 0);
  lt_device_on_exhausted(b->c, on_exhausted, b);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
}
