/* lua/bind/data/workers.c: workers of a DataLoader for the library's own Lua
   (`c.runtime.data.workers`).

   What goes to a worker is a list of integers; what comes back is any value that ranks could hand
   each other (dist/values.h), whose tensors are written into shared memory and stay there.

   Tensors of a batch are written once, by the worker, and read in place: a pipe would copy them
   twice, and Lua values in between would box each number. The rest of a value (tables, strings,
   numbers) is a text before them in the same slot.

   Workers are forked, and so have the dataset, its open files and the script's functions without
   pickling anything (PyTorch's workers on Linux do the same). */
#include "bind/data/workers.h"

#include <string.h>

#include "bind/core/call.h"
#include "bind/core/garbage_collection.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/dist/values.h"
#include "bind/io/json.h"
#include "device/device.h"
#include "launch/worker_pool.h"

#define POOL_NAME "ltrain.Workers"

typedef struct box {
  lt_worker_pool *pool; /* NULL: closed */
} box;

static lt_worker_pool *check_pool(lua_State *L) {
  box *x = luaL_checkudata(L, 1, POOL_NAME);
  luaL_argcheck(L, x->pool != NULL, 1, "these workers have ended");
  return x->pool;
}

/* Also the end of the userdata. */
static int pool_close(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  box *x = luaL_checkudata(L, 1, POOL_NAME);
  lt_worker_pool *p = x->pool;
  x->pool = NULL;
  if (b->c != NULL && (p == NULL || lt_worker_id(p) < 0)) lt_worker_pool_close(b->c, p);
  return 0;
}

/* pool:is_open() -> whether this process may use it: not one that was forked from its owner */
static int pool_is_open(lua_State *L) {
  const box *x = luaL_checkudata(L, 1, POOL_NAME);
  lua_pushboolean(L, x->pool != NULL && lt_worker_pool_is_own(x->pool));
  return 1;
}

/* The list of integers at `index`, in memory of Lua's that it pushes. */
static int64_t *read_integers(lua_State *L, int index, size_t *n) {
  luaL_checktype(L, index, LUA_TTABLE);
  *n = lua_rawlen(L, index);
  int64_t *list = lua_newuserdatauv(L, *n * sizeof *list + 1, 0);
  for (size_t k = 0; k < *n; k++) {
    lt_raw_geti(L, index, (lua_Integer)k + 1);
    list[k] = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return list;
}

/* pool:order(worker, integers) -> whether a slot was free for it */
static int pool_order(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_worker_pool *p = check_pool(L);
  lua_Integer worker = luaL_checkinteger(L, 2);
  size_t n;
  const int64_t *list = read_integers(L, 3, &n);
  lua_pushboolean(L, lt_worker_order(b->c, p, (int)worker, list, n * sizeof *list));
  if (!lt_ok(b->c)) lt_raise_failure(L, b);
  return 1;
}

/* Of an answer. */
typedef struct arrived {
  lt_worker_pool *pool;
  lt_worker_answer answer;
  size_t front; /* of tensors */
  bool copies;  /* tensors are copied: there is no other slot for the next order */
} arrived;

/* Tensors begin at a multiple of the alignment that kernels rely on; the text has any length. */
static size_t front_of(size_t text) {
  return (text + LT_VALUE_ALIGN - 1) / LT_VALUE_ALIGN * LT_VALUE_ALIGN;
}

/* A slot stays taken for as long as a tensor in it lives. If the worker has no other slot, waiting
   for it would be a deadlock (the script may hold the last batch while it asks for the next), so
   that the tensors are copied and the slot is free again. */
static lt_tensor *place(void *ud, lt_ctx *c, int64_t offset, lt_dtype dtype, int ndim,
                        const int64_t *size) {
  const arrived *a = ud;
  int64_t at = (int64_t)a->front + offset;
  if (!a->copies) return lt_worker_tensor(c, a->pool, &a->answer, at, dtype, ndim, size);
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, ndim, size);
  if (t != NULL && t->numel > 0)
    memcpy(lt_data(t), a->answer.data + at, (size_t)t->numel * lt_item_size(t));
  return t;
}

/* pool:take(worker, seconds) -> "batch" and a value, "failed" and one that says how, "ended" and
   which worker was, nothing when there is no answer yet */
static int pool_take(lua_State *L) {
  lt_bind *b = lt_enter(L);
  arrived a = {.pool = check_pool(L)};
  int worker = (int)luaL_checkinteger(L, 2);
  int ms = (int)(1e3 * luaL_checknumber(L, 3));
  lt_collect_if_due(L, b);
  lt_worker_event event = lt_worker_wait(b->c, a.pool, worker, ms, &a.answer);
  if (!lt_ok(b->c)) lt_raise_failure(L, b);
  if (event == LT_WORKER_NOTHING) return 0;
  if (event == LT_WORKER_ENDED) {
    char text[LT_WORKER_TEXT];
    lt_worker_end_text(a.pool, text, sizeof text);
    lua_pushliteral(L, "ended");
    lua_pushstring(L, text);
    return 2;
  }
  a.front = front_of(a.answer.text);
  a.copies = !lt_worker_has_spare(a.pool, &a.answer);
  const lt_value_memory memory = {.bytes = a.answer.bytes - a.front, .tensor = place, .ud = &a};
  lua_pushstring(L, a.answer.failed ? "failed" : "batch");
  lt_value_read_apart(L, b, a.answer.data, a.answer.text, &memory, "DataLoader");
  return 2;
}

/* pool:continue(worker): one that somebody has stopped */
static int pool_continue(lua_State *L) {
  const lt_worker_pool *p = check_pool(L);
  lt_worker_continue(p, (int)luaL_checkinteger(L, 2));
  return 0;
}

/* pool:forget(): the answers to what has been ordered are not wanted any more */
static int pool_forget(lua_State *L) {
  lt_worker_pool_forget(check_pool(L));
  return 0;
}

/* In a worker. */

/* pool:receive() -> slot, integers; nothing when the parent has closed the pool */
static int pool_receive(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int slot;
  const void *order;
  size_t bytes;
  if (!lt_worker_listen(b->c, check_pool(L), &slot, &order, &bytes)) {
    if (!lt_ok(b->c)) lt_raise_failure(L, b);
    return 0;
  }
  size_t n = bytes / sizeof(int64_t);
  const int64_t *list = order;
  lua_pushinteger(L, slot);
  lua_createtable(L, (int)n, 0);
  for (size_t k = 0; k < n; k++) {
    lua_pushinteger(L, list[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  return 2;
}

/* pool:is_over() -> whether the parent has closed the pool */
static int pool_is_over(lua_State *L) {
  lua_pushboolean(L, lt_worker_is_over(check_pool(L)));
  return 1;
}

/* Copy the tensors of the list at `index` to where the text says that they are. */
static void write_tensors(lua_State *L, lt_bind *b, int index, char *to) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, index);
  lt_ctx *c = b->c;
  for (lua_Integer k = 1; k <= n; k++) {
    lt_raw_geti(L, index, k);
    lt_tensor *t = lt_to_tensor(L, b, -1);
    lt_modes modes = c->modes;
    c->modes.grad = false;
    lt_frame frame = lt_begin(L, b, 0);
    const lt_tensor *row = lt_contiguous(c, lt_to_device(c, t, LT_CPU_DEVICE));
    if (row != NULL) memcpy(to, lt_data(row), (size_t)t->numel * lt_item_size(t));
    c->modes = modes;
    lt_end_call(L, b, frame);
    to += lt_value_bytes(t);
    lua_pop(L, 1);
  }
}

/* pool:answer(slot, value, failed) */
static int pool_answer(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_worker_pool *p = check_pool(L);
  int slot = (int)luaL_checkinteger(L, 2);
  lua_settop(L, 4);
  lua_newtable(L);
  lt_json *text = lt_push_text(L, b);
  int64_t apart = lt_value_write_apart(L, b, 3, 5, text, "DataLoader", "batch");
  size_t front = front_of(text->size);
  char *slot_memory = lt_worker_pool_reserve(b->c, p, slot, front + (size_t)apart);
  if (slot_memory == NULL) lt_raise_failure(L, b);
  memcpy(slot_memory, text->data, text->size);
  write_tensors(L, b, 5, slot_memory + front);
  lt_worker_give(p, slot, text->size, front + (size_t)apart, lua_toboolean(L, 4));
  lt_json_free(text);
  lua_settop(L, 0);
  lt_collect_boundary(L, b);
  return 0;
}

/* The worker's whole life: serve(pool, id, problem), which raises nothing. Frames of the parent's
   script below are never returned to: a script that went on in the child would train twice.
   lt_worker_exit leaves without atexit handlers and finalizers, whose objects are the parent's
   (files, sockets, a device). */
static _Noreturn void live(lua_State *L, lt_bind *b, int serve, int id) {
  lt_failure problem;
  bool failed = lt_take_failure(b->c, &problem);
  atomic_store(&b->interrupts, 0);
  b->c->modes.collective = false;
  b->collect.depth = 0;
  if (b->owned) lua_gc(L, LUA_GCRESTART);
  lua_pushvalue(L, serve);
  lua_pushvalue(L, -2);
  lua_pushinteger(L, id);
  if (failed)
    lua_pushstring(L, problem.text);
  else
    lua_pushnil(L);
  lua_pcall(L, 3, 0, 0);
  lt_worker_exit();
}

/* data.workers(n, slots, serve) -> pool; in each worker it calls serve and does not return. Lua's
   collector runs before the fork: garbage is finalised here once, and less of the heap's pages is
   written, and so copied, in each child. */
static int new_pool(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int n = (int)luaL_checkinteger(L, 1), slots = (int)luaL_checkinteger(L, 2);
  luaL_checktype(L, 3, LUA_TFUNCTION);
  luaL_checkstack(L, 20, "workers");
  box *x = lua_newuserdatauv(L, sizeof *x, 0);
  x->pool = NULL;
  luaL_setmetatable(L, POOL_NAME);
  lua_gc(L, LUA_GCCOLLECT); /* garbage is finalised once, here, and not again in each worker */
  x->pool = lt_worker_pool_new(b->c, n, slots);
  if (x->pool != NULL && lt_worker_id(x->pool) >= 0) live(L, b, 3, lt_worker_id(x->pool));
  if (!lt_ok(b->c)) lt_raise_failure(L, b);
  return 1;
}

/* data.traceback(level) -> the frames of this thread, as text */
static int traceback(lua_State *L) {
  luaL_traceback(L, L, NULL, (int)luaL_checkinteger(L, 1));
  return 1;
}

void lt_bind_workers(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"traceback", traceback}, {"workers", new_pool}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__close", pool_close}, {"__gc", pool_close}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"answer", pool_answer},     {"close", pool_close},
                                     {"continue", pool_continue}, {"forget", pool_forget},
                                     {"is_open", pool_is_open},   {"is_over", pool_is_over},
                                     {"order", pool_order},       {"receive", pool_receive},
                                     {"take", pool_take},         {NULL, NULL}};
  lt_new_type(L, b, POOL_NAME, meta, methods);
  lt_add_functions(L, b, functions);
}
