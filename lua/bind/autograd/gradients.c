/* lua/bind/autograd/gradients.c: lt.grad: gradients of outputs with respect to given inputs.

   Tables of outputs and inputs may be nested in no way but flat, with any keys; results come back
   under the keys of xs. Tables are read twice in the order of lua_next, which is the same while
   nothing is assigned to new keys. */
#include <string.h>

#include "bind/autograd/node_refs.h"
#include "bind/autograd/paused_backward.h"
#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/values.h"

/* Where the arguments stand. */
enum { OF = 1, BY, SEEDS, RETAIN_GRAPH, CREATE_GRAPH, ONLY_INPUTS, ALLOW_UNUSED };

typedef struct reading {
  lt_backward_options options;
  bool allow_unused;
} reading;

/* lua_next, but for the field `names` that lists of net:parameters() have. */
static bool next(lua_State *L, int table) {
  while (lt_raw_next(L, table) != 0) {
    bool named = lua_type(L, -2) == LUA_TSTRING && strcmp(lua_tostring(L, -2), "names") == 0;
    if (!named || !lua_istable(L, -1)) return true;
    lua_pop(L, 1);
  }
  return false;
}

/* How many tensors `index` is or lists. */
static int count(lua_State *L, const lt_bind *b, int index) {
  int n = 0;
  if (lt_to_tensor(L, b, index) != NULL) return 1;
  if (!lua_istable(L, index)) return 0;
  for (lua_pushnil(L); next(L, index); lua_pop(L, 1)) n++;
  return n;
}

/* "xs", "xs[2]" or "xs.weight": the value whose key is on top of the stack. */
static const char *push_name(lua_State *L, const char *what, int key) {
  if (key == 0) return lua_pushstring(L, what);
  if (lua_type(L, key) == LUA_TSTRING)
    return lua_pushfstring(L, "%s.%s", what, lua_tostring(L, key));
  if (lua_isinteger(L, key)) return lua_pushfstring(L, "%s[%I]", what, lua_tointeger(L, key));
  return lua_pushfstring(L, "%s[%s]", what, luaL_typename(L, key));
}

static lt_tensor *tensor_at(lua_State *L, lt_bind *b, const char *what, int value, int key) {
  lt_tensor *t = lt_to_tensor(L, b, value);
  if (t == NULL) {
    const char *name = push_name(L, what, key);
    lt_raise(L, b, LT_EARG, "grad: %s must be a tensor, got %s", name, lt_shown(L, value));
  }
  return t;
}

/* A tensor, or those of a table in the order of next, in memory of Lua's that is pushed. */
static lt_tensor **push_tensors(lua_State *L, lt_bind *b, const char *what, int index, int n) {
  lt_tensor **list = lua_newuserdatauv(L, (size_t)(n > 0 ? n : 1) * sizeof *list, 0);
  if (!lua_istable(L, index)) {
    list[0] = tensor_at(L, b, what, index, 0);
    return list;
  }
  int k = 0;
  for (lua_pushnil(L); next(L, index); lua_pop(L, 1))
    list[k++] = tensor_at(L, b, what, lua_gettop(L), lua_gettop(L) - 1);
  return list;
}

/* Before the walk, which may be long, and by name: "xs.weight" says more than a position. */
static void check_inputs(lua_State *L, lt_bind *b, lt_tensor *const *x) {
  int k = 0;
  if (!lua_istable(L, BY) && !lt_requires_grad(x[0]))
    lt_raise(L, b, LT_EARG, "grad: xs does not require grad");
  if (!lua_istable(L, BY)) return;
  for (lua_pushnil(L); next(L, BY); lua_pop(L, 1))
    if (!lt_requires_grad(x[k++]))
      lt_raise(L, b, LT_EARG, "grad: %s does not require grad",
               push_name(L, "xs", lua_gettop(L) - 1));
}

static void read_flag(lua_State *L, lt_bind *b, int index, const char *name, bool *to) {
  if (lua_isnil(L, index)) return;
  if (!lua_isboolean(L, index))
    lt_raise(L, b, LT_EARG, "grad: %s must be true or false, got %s", name, lt_shown(L, index));
  *to = lua_toboolean(L, index);
}

static reading read_options(lua_State *L, lt_bind *b) {
  reading r = {0};
  bool only_inputs = true;
  read_flag(L, b, RETAIN_GRAPH, "retain_graph", &r.options.retain_graph);
  read_flag(L, b, CREATE_GRAPH, "create_graph", &r.options.create_graph);
  read_flag(L, b, ONLY_INPUTS, "only_inputs", &only_inputs);
  read_flag(L, b, ALLOW_UNUSED, "allow_unused", &r.allow_unused);
  if (!only_inputs)
    lt_raise(L, b, LT_EARG, "grad: only_inputs = false: y:backward() adds to the grad of all");
  return r;
}

/* The gradient of each root, in the order of `roots`: by the same keys. */
static lt_tensor **push_seeds(lua_State *L, lt_bind *b, int from, int n) {
  lt_tensor **list = lua_newuserdatauv(L, (size_t)(n > 0 ? n : 1) * sizeof *list, 0);
  memset(list, 0, (size_t)n * sizeof *list);
  if (from == 0) return list;
  if (!lua_istable(L, OF)) {
    list[0] = tensor_at(L, b, "grad_outputs", from, 0);
    return list;
  }
  if (!lua_istable(L, from))
    lt_raise(L, b, LT_EARG, "grad: grad_outputs must be a table as y is, got %s",
             lt_shown(L, from));
  int k = 0;
  for (lua_pushnil(L); next(L, OF); lua_pop(L, 1), k++) {
    lua_pushvalue(L, -2);
    if (lua_gettable(L, from) != LUA_TNIL)
      list[k] = tensor_at(L, b, "grad_outputs", lua_gettop(L), lua_gettop(L) - 2);
    lua_pop(L, 1);
  }
  return list;
}

/* The last n values as a table with the keys of the one at BY, or the only one as it is. */
static int shaped(lua_State *L, int n) {
  if (!lua_istable(L, BY)) return 1;
  int first = lua_gettop(L) - n + 1;
  lua_newtable(L);
  int table = lua_gettop(L);
  for (lua_pushnil(L); next(L, BY); lua_pop(L, 1)) {
    lua_pushvalue(L, -2);
    lua_pushvalue(L, first++);
    lt_raw_set(L, table);
  }
  return 1;
}

/* What a call that may pause has on its stack; then its values, then its walk. */
typedef struct call {
  bool allow_unused;
  int n_of, n_by;
  lt_tensor **of, **by, **seed, **out;
} call;

/* The walk has ended, or `ok` is false. Unused inputs are an error by default, as in PyTorch: they
   usually come from a detach() or a typing error in the model. */
static int results(lua_State *L, lt_bind *b, lt_frame frame, const call *g, bool ok) {
  lt_node_refs_sweep(L, b);
  for (int k = 0; k < g->n_by && ok && !g->allow_unused; k++)
    if (g->out[k] == NULL)
      ok = lt_fail(b->c, LT_EARG,
                   "grad: y does not depend on xs, tensor %d of shape %s; pass {allow_unused = "
                   "true} to get nil for it", k + 1, LT_TENSOR_STR(g->by[k]));
  return shaped(L, lt_end(L, b, frame, g->n_by, g->out));
}

/* `context`: where the walk is on the stack, above the call. */
static int continue_grad(lua_State *L, int unused, lua_KContext context) {
  (void)unused;
  lt_bind *b = lt_enter(L);
  lt_walking *w = lua_touserdata(L, (int)context);
  const call *g = lua_touserdata(L, (int)context - 1);
  if (!lt_walk_or_pause(L, w)) return lua_yieldk(L, 0, context, continue_grad);
  lt_frame frame = lt_begin(L, b, g->n_by);
  lt_end_walking(w);
  return results(L, b, frame, g, lt_ok(b->c));
}

/* lt.grad(y, xs [, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused]): gradients
   of y, one tensor or a table of them, by the tensors of xs, in the shape of xs. What outlives a
   pause is in userdata on the stack of this call, whose C frame is gone when it resumes. */
static int grad(lua_State *L) {
  lt_bind *b = lt_enter(L);
  call g;
  lua_settop(L, ALLOW_UNUSED);
  g.n_of = count(L, b, OF), g.n_by = count(L, b, BY);
  if (g.n_of == 0) lt_raise(L, b, LT_EARG, "grad: y must be a tensor or a table of them");
  if (g.n_by == 0) lt_raise(L, b, LT_EARG, "grad: xs must be a tensor or a table of them");
  reading r = read_options(L, b);
  g.allow_unused = r.allow_unused;
  g.of = push_tensors(L, b, "y", OF, g.n_of), g.by = push_tensors(L, b, "xs", BY, g.n_by);
  g.seed = push_seeds(L, b, lua_isnil(L, SEEDS) ? 0 : SEEDS, g.n_of);
  check_inputs(L, b, g.by);
  g.out = lua_newuserdatauv(L, (size_t)g.n_by * sizeof *g.out, 0);
  int out = lua_gettop(L);
  call *boxed = lua_newuserdatauv(L, sizeof *boxed, 0);
  *boxed = g;
  lt_walking *w = lt_push_walking(L, b, out);
  if (w != NULL) {
    lt_frame frame = lt_begin(L, b, 0);
    w->walk = lt_walk_grad(b->c, g.n_of, g.of, g.seed, g.n_by, g.by, &r.options, g.out);
    lt_frame_close(b->c, frame, 0, NULL);
    return continue_grad(L, 0, lua_gettop(L));
  }
  lt_frame frame = lt_begin(L, b, g.n_by);
  bool ok = lt_grad(b->c, g.n_of, g.of, g.seed, g.n_by, g.by, &r.options, g.out);
  return results(L, b, frame, &g, ok);
}

void lt_bind_gradients(lua_State *L, lt_bind *b) {
  /* Names in parentheses are of no call: xs may be a table of names. */
  static const lt_formed functions[] = {
      {{"grad", grad, ALLOW_UNUSED},
       "(y) (xs) | grad_outputs retain_graph create_graph only_inputs allow_unused"},
      {{NULL, NULL, 0}, NULL}};
  lua_pushvalue(L, 1);
  lt_add_formed(L, b, functions);
  lua_pop(L, 1);
}
