/* lua/bind/dist/calls.c: asynchronous collectives as Lua objects: created by c.dist.collective and
   c.dist.values, waited for by c.dist.wait. */
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/garbage_collection.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/dist/dist.h"
#include "bind/dist/values.h"
#include "bind/io/json.h"
#include "ops/inplace.h"
#include "ops/node.h"

#define WORK_NAME "ltrain.Work"

/* The userdata; its user value is the argument where that is the result too. */
typedef struct work {
  lt_collective k;
  bool values; /* Lua values travel, not one tensor */
  bool mine;   /* the result is the user value */
  bool waited;
} work;

typedef struct named_op {
  const char *name;
  lt_comm_op op;
  bool in_place;
} named_op;

static const named_op calls[] = {{"all_reduce", LT_COMM_ALL_REDUCE, false},
                                 {"all_reduce_", LT_COMM_ALL_REDUCE, true},
                                 {"broadcast", LT_COMM_BROADCAST, false},
                                 {"all_gather", LT_COMM_ALL_GATHER, false},
                                 {"reduce_scatter", LT_COMM_REDUCE_SCATTER, false},
                                 {"all_to_all", LT_COMM_ALL_TO_ALL, false},
                                 {"reduce", LT_COMM_REDUCE, false},
                                 {"gather", LT_COMM_GATHER, false},
                                 {"scatter", LT_COMM_SCATTER, false},
                                 {"send", LT_COMM_SEND, false},
                                 {"recv", LT_COMM_RECV, false},
                                 {"barrier", LT_COMM_BARRIER, false}};

static const named_op *check_call(lua_State *L, lt_bind *b, int index) {
  const char *name = luaL_checkstring(L, index);
  for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
    if (strcmp(calls[k].name, name) == 0) return &calls[k];
  lt_raise(L, b, LT_EINTERNAL, "internal: dist: no collective '%s'", name);
}

static lt_comm_reduce reduce_of(lua_State *L, int index) {
  static const char *const names[] = {"sum", "mean", "min", "max", "prod", NULL};
  if (lua_isnoneornil(L, index)) return LT_COMM_NO_REDUCE;
  return (lt_comm_reduce)luaL_checkoption(L, index, NULL, names);
}

static work *push_work(lua_State *L, lt_bind *b, const named_op *call) {
  work *w = lua_newuserdatauv(L, sizeof *w, 1);
  *w = (work){.k = {.who = call->name, .op = call->op, .in_place = call->in_place, .root = -1}};
  luaL_setmetatable(L, WORK_NAME);
  w->k.place = lt_place_here(L, b);
  return w;
}

/* In the user value, so that the garbage collector sees the reference: one in the registry would
   keep a work alive whose handle was dropped. */
static void keep_argument(lua_State *L, work *w, int index) {
  w->mine = true;
  lua_pushvalue(L, index);
  lua_setiuservalue(L, -2, 1);
}

/* {rows, from, most}: of all_to_all, of parts that are not equal. */
static void take_rows(lua_State *L, lt_bind *b, lt_collective *k, int index, int n) {
  if (lua_isnil(L, index)) return;
  if (!lt_collective_rows(b->c, k, n)) lt_raise_failure(L, b);
  for (int part = 0; part < 2; part++) {
    lt_raw_geti(L, index, part + 1);
    for (int r = 0; r < n; r++) {
      lt_raw_geti(L, -1, r + 1);
      (part == 0 ? k->rows : k->from)[r] = luaL_checkinteger(L, -1);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  lt_raw_geti(L, index, 3);
  k->most = luaL_checkinteger(L, -1);
  lua_pop(L, 1);
}

/* dist.collective(group, name, x, op, root, cat, sync_grads, out, rows) -> work, and the name of
   x's device if its memory goes through the host's for the first time Memory is collected before
   the issue, never after: between issue and wait a full collection would delay the ranks that wait
   for this one. */
static int collective(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 9);
  const named_op *call = check_call(L, b, 2);
  lt_group *g = lt_check_group(L, b, 1, call->name);
  lt_tensor *x = lt_check_tensor(L, b, 3, call->name);
  lt_comm_reduce reduce = reduce_of(L, 4);
  int root = (int)luaL_optinteger(L, 5, -1);
  lt_collect_if_due(L, b);
  work *w = push_work(L, b, call);
  w->k.reduce = reduce;
  w->k.root = root;
  w->k.cat = lua_toboolean(L, 6);
  w->k.x = x;
  take_rows(L, b, &w->k, 9, lt_group_size(g));
  w->k.record = lua_toboolean(L, 7) && lt_recording(b->c, 1, &x);
  int into = call->in_place ? 3 : lua_isnil(L, 8) ? 0 : 8;
  if (into != 0) w->k.into = lt_check_tensor(L, b, into, call->name);
  if (into != 0) keep_argument(L, w, into);
  lt_frame frame = lt_begin(L, b, 0);
  lt_collective_issue(b->c, &w->k, g);
  lt_end_call(L, b, frame);
  return 1 + lt_dist_push_staged(L, b, lt_work_is_staged(w->k.ref.work), x->storage->device);
}

/* Values. */

/* Parts for scatter: the list at `index`, one value a rank, in `text`, and where each begins. */
static void write_parts(lua_State *L, lt_bind *b, const work *w, int index, int n, lt_json *text,
                        int64_t *bytes) {
  for (int r = 0; r < n; r++) {
    size_t before = text->size;
    char name[32];
    snprintf(name, sizeof name, "list[%d]", r + 1);
    if (w->k.record) lt_json_char(text, LT_WANTS_GRAD);
    lt_raw_geti(L, index, r + 1);
    lt_value_write(L, b, lua_gettop(L), text, "scatter", name);
    lua_pop(L, 1);
    bytes[r] = (int64_t)(text->size - before);
  }
}

/* One buffer for all parts, and pointers into it once it has stopped growing. */
static lt_work *scatter(lua_State *L, lt_bind *b, lt_group *g, const work *w, int list) {
  int n = lt_group_size(g);
  lt_json *text = lt_push_text(L, b);
  int64_t *bytes = lua_newuserdatauv(L, (size_t)n * sizeof *bytes, 0);
  const void **parts = lua_newuserdatauv(L, (size_t)n * sizeof *parts, 0);
  write_parts(L, b, w, list, n, text, bytes);
  const char *at = text->data;
  for (int r = 0; r < n; at += bytes[r++]) parts[r] = at;
  lt_work *made = lt_comm_bytes(b->c, g, LT_COMM_SCATTER, w->k.root, NULL, 0, parts, bytes,
                                lt_origin_of(&w->k.place));
  lt_json_free(text);
  lua_pop(L, 3);
  return made;
}

static lt_work *give(lua_State *L, lt_bind *b, lt_group *g, const work *w, int value) {
  lt_json *text = lt_push_text(L, b);
  lt_value_write(L, b, value, text, w->k.who, "value");
  lt_work *made = lt_comm_bytes(b->c, g, w->k.op, w->k.root, text->data, (int64_t)text->size, NULL,
                                NULL, lt_origin_of(&w->k.place));
  lt_json_free(text);
  lua_pop(L, 1);
  return made;
}

/* What was sent requires grad: the node of the send is made at its issue, not at the wait (grad.c),
   and the zero that it makes is the result. */
static void record_send(lua_State *L, lt_bind *b, work *w, lt_tensor *x) {
  lt_frame frame = lt_begin(L, b, 1);
  w->k.x = x;
  lt_tensor *zero = lt_collective_record_zero(b->c, &w->k);
  w->k.x = NULL;
  lt_end(L, b, frame, 1, &zero);
  lua_setiuservalue(L, -2, 1);
  w->mine = true;
}

/* dist.values(group, name, value, root, x) -> work: a value of Lua; scatter takes a list of them,
   recv the tensor that waits for the message, or in place of x the device of what comes. Which
   ranks pass a value, and which get one, differs by collective; all of them take part. The root of
   a broadcast gets its own value back and not a copy, as in PyTorch. `x`: of send and scatter, the
   tensor that is sent, or has the parts, where its gradient is to come back. */
static int values(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 5);
  const named_op *call = check_call(L, b, 2);
  lt_group *g = lt_check_group(L, b, 1, call->name);
  int root = (int)luaL_optinteger(L, 4, -1);
  lt_tensor *x = lt_to_tensor(L, b, 5);
  lt_device on = lua_isnil(L, 5) || x != NULL ? LT_CPU_DEVICE : lt_check_device(L, b, 5, "recv");
  work *w = push_work(L, b, call);
  w->values = true;
  w->k.root = root;
  w->k.record = x != NULL && lt_recording(b->c, 1, &x);
  bool is_root = lt_group_rank(g) == root;
  lt_comm_op op = call->op;
  bool gives = op == LT_COMM_GATHER || op == LT_COMM_ALL_GATHER || op == LT_COMM_ALL_REDUCE ||
               (op == LT_COMM_BROADCAST && is_root);
  if (op == LT_COMM_RECV || (op == LT_COMM_BROADCAST && is_root)) keep_argument(L, w, 3);
  w->mine = op == LT_COMM_BROADCAST && is_root;
  lt_work *made;
  if (op == LT_COMM_SCATTER && is_root)
    made = scatter(L, b, g, w, 3);
  else if (op == LT_COMM_SEND)
    made = lt_message_send(L, b, g, root, 3, w->k.record, &w->k.place);
  else if (op == LT_COMM_RECV)
    made = lt_message_recv(L, b, g, root, 3, on, &w->k.place);
  else if (gives)
    made = give(L, b, g, w, 3);
  else
    made = lt_comm_bytes(b->c, g, op, root, NULL, 0, NULL, NULL, lt_origin_of(&w->k.place));
  if (made == NULL) lt_raise_failure(L, b);
  lt_group_ref_set(b->c, &w->k.ref, g);
  w->k.ref.work = made;
  if (w->k.record && op == LT_COMM_SEND) record_send(L, b, w, x);
  if (w->k.record && op == LT_COMM_SCATTER) w->k.x = lt_retain(x);
  return 1;
}

void lt_dist_push_work(lua_State *L, lt_bind *b, const char *who, lt_group *g, lt_work *made) {
  const named_op call = {who, LT_COMM_BARRIER, false}; /* nothing is returned */
  if (made == NULL) lt_raise_failure(L, b);
  work *w = push_work(L, b, &call);
  w->values = true;
  lt_group_ref_set(b->c, &w->k.ref, g);
  w->k.ref.work = made;
}

/* dist.barrier(group) -> work */
static int barrier(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_group *g = lt_check_group(L, b, 1, "barrier");
  lt_place place = lt_place_here(L, b);
  lt_dist_push_work(L, b, "barrier", g, lt_comm_barrier(b->c, g, lt_origin_of(&place)));
  return 1;
}

/* Waiting. */

/* A second wait would return nothing, or the result of another step: an error is better than
   either. */
static work *check_work(lua_State *L, lt_bind *b) {
  work *w = luaL_checkudata(L, 1, WORK_NAME);
  if (w->waited) lt_raise(L, b, LT_EARG, "wait: already called on this collective");
  if (w->k.ref.work == NULL)
    lt_raise(L, b, LT_EARG, "%s: the launch that it belongs to has ended", w->k.who);
  return w;
}

static int push_tensor(lua_State *L, lt_bind *b, work *w) {
  lua_getiuservalue(L, 1, 1); /* on the stack: a result that is the argument gives that back */
  lt_frame frame = lt_begin(L, b, 1);
  lt_tensor *y = lt_collective_finish(b->c, &w->k);
  return lt_end(L, b, frame, 1, &y);
}

static void push_part(lua_State *L, lt_bind *b, const work *w, int r) {
  int64_t n = 0;
  const void *data = lt_work_bytes(w->k.ref.work, r, &n);
  lt_value_read(L, b, data, (size_t)n, w->k.who);
}

/* The tensor on top of the stack came from one that requires grad: its gradient goes back there,
   and must, for that rank waits for it. */
static void record_received(lua_State *L, lt_bind *b, work *w) {
  lt_tensor *y = lt_check_tensor(L, b, lua_gettop(L), w->k.who);
  if (!b->c->modes.grad)
    lt_raise(L, b, LT_EARG,
             "%s: rank %d passed a tensor that requires grad, and here gradients are off: pass "
             "x:detach(), or call it there under no_grad too",
             w->k.who, w->k.root);
  lt_frame frame = lt_begin(L, b, 0);
  lt_collective_record(b->c, &w->k, y, 0);
  lt_end_call(L, b, frame);
}

/* This rank's part of a scatter. */
static void push_scattered(lua_State *L, lt_bind *b, work *w) {
  int64_t n = 0;
  const char *data = lt_work_bytes(w->k.ref.work, 0, &n);
  bool with_grad = n > 0 && data[0] == LT_WANTS_GRAD;
  if (with_grad) data++, n--;
  lt_value_read(L, b, data, (size_t)n, w->k.who);
  if (with_grad) record_received(L, b, w);
}

/* Push what came. */
static void push_values(lua_State *L, lt_bind *b, work *w) {
  const lt_group *g = w->k.ref.group;
  lt_comm_op op = w->k.op;
  if (w->mine) {
    lua_getiuservalue(L, 1, 1);
  } else if (op == LT_COMM_ALL_GATHER || op == LT_COMM_ALL_REDUCE ||
             (op == LT_COMM_GATHER && lt_group_rank(g) == w->k.root)) {
    lua_createtable(L, lt_group_size(g), 0);
    for (int r = 0; r < lt_group_size(g); r++) {
      push_part(L, b, w, r);
      lua_rawseti(L, -2, r + 1);
    }
  } else if (op == LT_COMM_RECV) {
    lua_getiuservalue(L, 1, 1);
    if (lt_message_push(L, b, w->k.ref.work, lua_gettop(L))) record_received(L, b, w);
  } else if (op == LT_COMM_SCATTER) {
    push_scattered(L, b, w);
  } else if (op == LT_COMM_BROADCAST) {
    push_part(L, b, w, 0);
  } else {
    lua_pushnil(L);
  }
}

/* dist.wait(work) -> what this rank gets: a tensor, a value, a list of values, or nil */
static int wait(lua_State *L) {
  lt_bind *b = lt_enter(L);
  work *w = check_work(L, b);
  lua_settop(L, 1);
  w->waited = true;
  if (!w->values) return push_tensor(L, b, w);
  lt_note_line(b);
  if (!lt_work_wait(b->c, w->k.ref.work)) {
    lt_collective_drop(b->c, &w->k);
    lt_raise_failure(L, b);
  }
  push_values(L, b, w);
  lt_collective_drop(b->c, &w->k);
  return 1;
}

/* dist.test(work) -> whether waiting for it would return at once; never blocks Also drives the
   queue: asynchronous collectives move on only while the main thread is in comm/. */
static int test(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const work *w = check_work(L, b);
  bool done = lt_work_test(b->c, w->k.ref.work);
  if (!lt_ok(b->c)) lt_raise_failure(L, b);
  lua_pushboolean(L, done);
  return 1;
}

/* A handle that nobody waited for: the work itself stays in its queue until it is complete, as the
   other ranks count on this one. */
static int work_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  work *w = luaL_checkudata(L, 1, WORK_NAME);
  if (b->c != NULL) lt_collective_drop(b->c, &w->k);
  return 0;
}

void lt_bind_dist_calls(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"collective", collective},
                                       {"values", values},
                                       {"barrier", barrier},
                                       {"wait", wait},
                                       {"test", test},
                                       {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", work_gc}, {NULL, NULL}};
  lt_new_type(L, b, WORK_NAME, meta, NULL);
  lt_add_functions(L, b, functions);
}
