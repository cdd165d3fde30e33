/* lua/bind/autograd/custom.c: tape nodes made by scripts: lt.Function's custom backward, and
   checkpointed segments that are recomputed.

   A node holds what it saves as all nodes do, by memory and version; its function is in the
   registry as that of a hook is (node_refs.h). Neither holds a tensor that holds the node. */
#include <stdio.h>

#include "autograd/needed_nodes.h"
#include "bind/autograd/node_refs.h"
#include "bind/core/call.h"
#include "bind/core/garbage_collection.h"
#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "ops/recompute.h"

/* The tensors of the list at `index`, in memory of Lua's that is pushed. Userdata, so that the
   array is freed whatever raises meanwhile. */
static lt_tensor **push_list(lua_State *L, const lt_bind *b, int index, int *count) {
  luaL_checktype(L, index, LUA_TTABLE);
  *count = (int)lua_rawlen(L, index);
  lt_tensor **list = lua_newuserdatauv(L, (size_t)(*count + 1) * sizeof *list, 0);
  for (int k = 0; k < *count; k++) {
    lt_raw_geti(L, index, k + 1);
    list[k] = lt_to_tensor(L, b, -1);
    if (list[k] == NULL) luaL_error(L, "a list of tensors is needed");
    lua_pop(L, 1);
  }
  return list;
}

/* A new userdata and not the unique one: values of the tape are seen by this one call, and need no
   identity. */
static void push_new(lua_State *L, lt_bind *b, lt_tensor *t) {
  lt_boxed *box = lt_push_empty(L, b);
  box->t = lt_retain(t);
}

/* Nodes of scripts. */

typedef struct function_node {
  char name[48];
  lt_script_hook *callback; /* fn(saved, gradients) -> list of gradients */
} function_node;

/* One call of it; `call` at index 1 of the stack under lt_callback. */
typedef struct function_call {
  const function_node *f;
  lt_tensor *const *grad_out;
  lt_tensor **grad_in;
} function_call;

/* (call) -> nothing; fills call->grad_in. Outputs without a gradient are passed as zeros, as
   PyTorch does (materialize_grads): a backward that is written as a formula needs no case for
   nil. */
static int call_function(lua_State *L) {
  const function_call *call = lua_touserdata(L, 1);
  lt_bind *b = call->f->callback->b;
  lt_ctx *c = b->c;
  lt_node *n = (lt_node *)call->f->callback->node;
  lt_node_ref_push(L, call->f->callback);
  lua_createtable(L, n->n_saved, 0);
  for (int k = 0; k < n->n_saved; k++) {
    lt_tensor *t = lt_saved_at(c, n, k);
    if (t == NULL) lt_raise_failure(L, b);
    push_new(L, b, t);
    lua_rawseti(L, -2, k + 1);
  }
  lua_createtable(L, n->n_out, 0);
  for (int k = 0; k < n->n_out; k++) {
    const lt_meta *m = &n->out[k];
    lt_tensor *g = call->grad_out[k];
    if (g == NULL) g = lt_full(c, m->shape, lt_scalar_of(0), m->dtype, n->device);
    if (g == NULL) lt_raise_failure(L, b);
    push_new(L, b, g);
    lua_rawseti(L, -2, k + 1);
  }
  lua_call(L, 2, 1);
  for (int k = 0; k < n->n_in; k++) {
    lt_raw_geti(L, -1, k + 1);
    lt_tensor *g = lt_to_tensor(L, b, -1);
    if (g != NULL) lt_frame_add(c, lt_retain(g));
    call->grad_in[k] = g;
    lua_pop(L, 1);
  }
  return 0;
}

/* Called by the walk, in C: errors of the script are caught by lt_callback and become a failure of
   the context, since a longjmp through the walk would leave its lists as they are. */
static bool run_function(lt_ctx *c, void *ud, lt_tensor *const *grad_out, lt_tensor **grad_in) {
  const function_node *f = ud;
  lua_State *L = f->callback->b->L;
  if (lua_checkstack(L, 20) == 0) return lt_fail(c, LT_EMEMORY, "backward: Lua's stack is full");
  if (f->callback->node->used)
    return lt_fail(c, LT_EVERSION, "backward of %s: it was freed by an earlier backward; pass "
                   "{retain_graph = true} to that one", f->name);
  function_call call = {.f = f, .grad_out = grad_out, .grad_in = grad_in};
  lua_pushcfunction(L, call_function);
  lua_pushlightuserdata(L, &call);
  return lt_callback(f->callback->b, f->name, 1, 0) && lt_ok(c);
}

static void drop_function(lt_ctx *c, void *ud) {
  function_node *f = ud;
  if (f->callback != NULL) lt_node_ref_drop(c, f->callback);
  lt_free(c, f, sizeof *f);
}

/* Outputs first: a result that is an input too has the history of the result afterwards. */
static int slot_of(const lt_tensor *t, int n_in, lt_tensor *const *in, int n_out,
                   lt_tensor *const *out) {
  for (int k = 0; k < n_out; k++)
    if (out[k] == t) return LT_SLOT_OUT + k;
  for (int k = 0; k < n_in; k++)
    if (in[k] == t) return k;
  return LT_SLOT_ASIDE;
}

/* Other names of the results, which carry the history: a result may be an input. */
static bool name_anew(lt_ctx *c, int n, lt_tensor *const *from, lt_tensor **to) {
  for (int k = 0; k < n; k++) {
    const lt_tensor *t = from[k];
    to[k] = lt_tensor_make(c, t->storage, (lt_dtype)t->dtype, t->ndim, t->size, t->stride,
                           t->offset);
    if (to[k] == NULL) return false;
  }
  return true;
}

/* The node that they were made of; NULL: none of them has a gradient. */
static lt_node *node_of(int n, lt_tensor *const *made) {
  for (int k = 0; k < n; k++)
    if (made[k]->node != NULL) return (lt_node *)made[k]->node;
  return NULL;
}

/* runtime.record_function(name, inputs, outputs, saved, fn) -> outputs...: as made of the inputs,
   with fn(saved, gradients) as derivative; a saved tensor that is neither has no history */
static int record_function(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_ctx *c = b->c;
  const char *name = luaL_checkstring(L, 1);
  int n_in, n_out, n_saved;
  lt_node_refs_sweep(L, b);
  luaL_checktype(L, 5, LUA_TFUNCTION);
  lua_settop(L, 5);
  lt_tensor **in = push_list(L, b, 2, &n_in), **out = push_list(L, b, 3, &n_out);
  lt_tensor **saved = push_list(L, b, 4, &n_saved);
  luaL_argcheck(L, n_out > 0, 3, "no outputs");
  lt_tensor **made = lua_newuserdatauv(L, (size_t)(n_out + 1) * sizeof *made, 0);
  int *slot = lua_newuserdatauv(L, (size_t)(n_saved + 1) * sizeof *slot, 0);
  for (int k = 0; k < n_saved; k++) slot[k] = slot_of(saved[k], n_in, in, n_out, out);
  function_node *f = lt_alloc(c, sizeof *f);
  lt_frame frame = lt_begin(L, b, n_out);
  if (f != NULL) {
    snprintf(f->name, sizeof f->name, "%s", name);
    const lt_custom custom = {.name = f->name, .fn = run_function, .drop = drop_function, .ud = f};
    bool ok = name_anew(c, n_out, out, made);
    if (!ok) lt_free(c, f, sizeof *f);
    if (ok && lt_record_custom(c, n_in, in, n_out, made, custom)) {
      lt_node *n = node_of(n_out, made);
      if (n != NULL) f->callback = lt_node_ref_new(L, b, n, 5);
      if (n != NULL) lt_save_custom(c, n, n_saved, saved, slot);
    }
  }
  return lt_end(L, b, frame, n_out, made);
}

/* Parts that are computed again. */

typedef struct again {
  lt_script_hook *callback; /* fn(list of what it is given) */
  lt_script_random random;
} again;

typedef struct again_call {
  lt_recompute *r;
  const again *a;
} again_call;

static int call_again(lua_State *L) {
  const again_call *call = lua_touserdata(L, 1);
  lt_bind *b = call->a->callback->b;
  lt_node_ref_push(L, call->a->callback);
  lua_createtable(L, call->r->n_inputs, 0);
  for (int k = 0; k < call->r->n_inputs; k++) {
    lt_tensor *t = lt_recompute_input_tensor(b->c, call->r, k);
    if (t == NULL) lt_raise_failure(L, b);
    push_new(L, b, t);
    lua_rawseti(L, -2, k + 1);
  }
  lua_call(L, 1, 0);
  return 0;
}

/* A replay ends early, by a failure that is its own, once all that was missing has been computed
   (early stop, as in PyTorch): that failure is taken back. Random numbers are those of the first
   run. */
static bool run_again(lt_ctx *c, lt_recompute *r) {
  const again *a = r->ud;
  lt_bind *b = a->callback->b;
  lua_State *L = b->L;
  if (lua_checkstack(L, 20) == 0) return lt_fail(c, LT_EMEMORY, "checkpoint: Lua's stack is full");
  lt_script_random random = b->random;
  b->random = a->random;
  again_call call = {.r = r, .a = a};
  lua_pushcfunction(L, call_again);
  lua_pushlightuserdata(L, &call);
  bool ok = lt_callback(b, "checkpoint", 1, 0);
  lt_failure stop;
  if (!ok && r->stopped && lt_take_failure(c, &stop)) {
    lua_pushboolean(L, false);
    lua_rawseti(L, LUA_REGISTRYINDEX, b->error_ref);
    ok = true;
  }
  b->random = random;
  if (ok) lt_collect_inside(b->L, b);
  return ok && lt_ok(c);
}

static void drop_again(lt_ctx *c, void *ud) {
  again *a = ud;
  if (a->callback != NULL) lt_node_ref_drop(c, a->callback);
  lt_free(c, a, sizeof *a);
}

#define DROPPING_NAME "ltrain.Dropping"

typedef struct dropping {
  lt_recompute *r; /* NULL: closed */
  lt_recompute *outer;
} dropping;

static void release_recompute(lt_ctx *c, dropping *d) {
  lt_recompute *r = d->r;
  d->r = NULL;
  lt_release(c, r);
}

/* Another that was opened inside and left open points to it: then it stays. */
static int dropping_close(lua_State *L) {
  lt_bind *b = lt_enter(L);
  dropping *d = luaL_checkudata(L, 1, DROPPING_NAME);
  if (d->r == NULL || b->c->modes.dropping != d->r) return 0;
  b->c->modes.dropping = d->outer;
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, d);
  release_recompute(b->c, d);
  return 0;
}

/* One that was never closed goes with the state. */
static int dropping_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  dropping *d = luaL_checkudata(L, 1, DROPPING_NAME);
  if (d->r == NULL || b->c == NULL) return 0;
  if (b->c->modes.dropping == d->r) b->c->modes.dropping = NULL;
  release_recompute(b->c, d);
  return 0;
}

/* runtime.drop_saved(fn, inputs) -> a scope: what nodes save in it is dropped, and made once more
   by fn(inputs) when it is wanted; `inputs` have a history. The registry keeps the userdata while
   the context points to it: a script that drops the handle without closing it must not leave a
   dangling pointer. */
static int drop_saved(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_ctx *c = b->c;
  int n_in;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lt_node_refs_sweep(L, b);
  lua_settop(L, 2);
  lt_tensor **in = push_list(L, b, 2, &n_in);
  dropping *d = lua_newuserdatauv(L, sizeof *d, 0);
  *d = (dropping){.outer = c->modes.dropping};
  luaL_setmetatable(L, DROPPING_NAME);
  again *a = lt_alloc(c, sizeof *a);
  lt_frame frame = lt_begin(L, b, 0);
  if (a != NULL) {
    *a = (again){.callback = lt_node_ref_new(L, b, NULL, 1), .random = b->random};
    d->r = lt_retain(lt_recompute_new(c, n_in, in, run_again, drop_again, a));
  }
  lt_end_call(L, b, frame);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, d); /* it stays while the ctx points to what it owns */
  c->modes.dropping = d->r;
  return 1;
}

/* runtime.is_recomputing(): whether this was computed before, and is for a backward now */
static int is_recomputing(lua_State *L) {
  lua_pushboolean(L, lt_enter(L)->c->modes.filling != NULL);
  return 1;
}

/* runtime.collect_inside(): what a part made and dropped is freed now */
static int collect_inside(lua_State *L) {
  lt_collect_inside(L, lt_enter(L));
  return 0;
}

/* runtime.has_other_leaves(results, own): whether a leaf that wants a gradient, and is none of
   `own`, is in the history of a result */
static int has_other_leaves(lua_State *L) {
  lt_bind *b = lt_enter(L);
  int n_root, n_own;
  lua_settop(L, 2);
  lt_tensor **root = push_list(L, b, 1, &n_root), **own = push_list(L, b, 2, &n_own);
  lt_frame frame = lt_begin(L, b, 0);
  bool found = lt_needed_nodes_others(b->c, n_root, root, n_own, own);
  lt_end_call(L, b, frame);
  lua_pushboolean(L, found);
  return 1;
}

void lt_bind_custom(lua_State *L, lt_bind *b) {
  static const luaL_Reg runtime[] = {{"record_function", record_function},
                                     {"drop_saved", drop_saved},
                                     {"has_other_leaves", has_other_leaves},
                                     {"is_recomputing", is_recomputing},
                                     {"collect_inside", collect_inside},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__close", dropping_close}, {"__gc", dropping_gc},
                                  {NULL, NULL}};
  lt_new_type(L, b, DROPPING_NAME, meta, NULL);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
}
