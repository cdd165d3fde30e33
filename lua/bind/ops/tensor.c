/* lua/bind/ops/tensor.c: tensors as userdata: life, properties, metamethods that are not ops.

   One userdata stands for one tensor only where identity matters (parameters, leaves, gradients:
   lt_make_unique); results of operations get a new one each, which is cheaper than a table of all
   tensors. */
#include "bind/ops/tensor.h"

#include <string.h>

#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/ops/index.h"
#include "device/graph.h"

/* The hooks of the userdata at 1 go to the one at 2. */
static void move_hooks(lua_State *L, const lt_bind *b) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->hooks_ref);
  lua_pushvalue(L, 1);
  if (lt_raw_get(L, 3) != LUA_TTABLE) return;
  lua_pushvalue(L, 2);
  if (lt_raw_get(L, 3) != LUA_TTABLE) {
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 4);
    lt_raw_set(L, 3);
    return;
  }
  for (lua_pushnil(L); lt_raw_next(L, 4) != 0;) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lt_raw_set(L, 5);
  }
}

/* Whether another userdata stands for the tensor, which then has the hooks. */
static bool has_other(lua_State *L, lt_bind *b, const lt_tensor *t) {
  lua_settop(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->unique_ref);
  lt_raw_getp(L, 2, t);
  lua_remove(L, 2);
  bool other = !lua_rawequal(L, 1, 2) && lt_to_tensor(L, b, 2) == t;
  if (other) move_hooks(L, b);
  lua_settop(L, 1);
  return other;
}

/* A hooked leaf that the tape still needs stays: its hooks live with its userdata. Of two, such as
   the result that became the leaf and the one that a trace got, one stays: they would keep each
   other for ever. At the end of a state nothing is finalised again. */
static bool must_stay(lua_State *L, lt_bind *b, const lt_tensor *t) {
  if (t->hooks == NULL || t->object.refs < 2 || b->closing || has_other(L, b, t)) return false;
  lua_getmetatable(L, 1);
  lua_setmetatable(L, 1); /* to be finalised again */
  lt_make_unique(L, b, 1);
  return true;
}

/* Not lt_enter: finalizers run at any allocation, in the middle of other calls, whose errors and
   lines must not change. */
static int tensor_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_boxed *box = lt_to_box(L, b, 1);
  if (box == NULL || box->t == NULL || b->c == NULL || must_stay(L, b, box->t)) return 0;
  lt_tensor *t = box->t;
  box->t = NULL;
  lt_release(b->c, t);
  return 0;
}

/* The end of a `local x <close>`: the memory goes back at once. */
static int tensor_close(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_boxed *box = lt_to_box(L, b, 1);
  if (box == NULL || box->t == NULL || b->c == NULL) return 0;
  lt_tensor *t = box->t;
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->unique_ref);
  lua_pushnil(L);
  lua_rawsetp(L, -2, t);
  box->t = NULL;
  lt_release(b->c, t);
  return 0;
}

/* Identity, as with tables: Lua makes any result a boolean, so elementwise == cannot exist here.
   `ltrain check` finds scripts that expect it. */
static int tensor_eq(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  const lt_tensor *t = lt_to_tensor(L, b, 1);
  lua_pushboolean(L, t != NULL && t == lt_to_tensor(L, b, 2));
  return 1;
}

static int tensor_len(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_tensor *t = lt_check_tensor(L, b, 1, "#");
  if (t->ndim == 0) lt_raise(L, b, LT_ESHAPE, "#: a tensor of shape [] has no length");
  lua_pushinteger(L, t->size[0]);
  return 1;
}

/* The operators below exist to fail: without them Lua would say "attempt to compare two userdata
   values", with no hint what to write. */
static int tensor_concat(lua_State *L) {
  lt_raise(L, lt_enter(L), LT_EARG,
           "..: a tensor is not a string: write tostring(x), or lt.cat({a, b}, dim) to concatenate "
           "tensors");
}

static int tensor_lt(lua_State *L) {
  lt_raise(L, lt_enter(L), LT_EARG,
           "<: Lua converts the result to one boolean: write a:lt(b) (or a:gt(b)) to compare "
           "elements");
}

static int tensor_le(lua_State *L) {
  lt_raise(L, lt_enter(L), LT_EARG,
           "<=: Lua converts the result to one boolean: write a:le(b) (or a:ge(b)) to compare "
           "elements");
}

static int tensor_pairs(lua_State *L) {
  lt_raise(L, lt_enter(L), LT_EARG, "pairs: a tensor is not a table: write x:rows() to walk dim 1");
}

/* Properties. */

static void push_shape(lua_State *L, lt_bind *b, lt_tensor *t) {
  (void)b;
  lua_createtable(L, t->ndim, 0);
  for (int k = 0; k < t->ndim; k++) {
    lua_pushinteger(L, t->size[k]);
    lua_rawseti(L, -2, k + 1);
  }
}

static void push_dtype(lua_State *L, lt_bind *b, lt_tensor *t) {
  (void)b;
  lua_pushstring(L, lt_dtype_name((lt_dtype)t->dtype));
}

static void push_device(lua_State *L, lt_bind *b, lt_tensor *t) {
  char text[32];
  lua_pushstring(L, lt_device_text(b->c, t->storage->device, text, sizeof text));
}

static void push_is_cuda(lua_State *L, lt_bind *b, lt_tensor *t) {
  (void)b;
  lua_pushboolean(L, strcmp(lt_device_kinds[t->storage->device.kind]->name, "cuda") == 0);
}

static void push_is_meta(lua_State *L, lt_bind *b, lt_tensor *t) {
  lua_pushboolean(L, lt_device_table(b->c, t->storage->device)->no_data);
}

static void push_grad(lua_State *L, lt_bind *b, lt_tensor *t) {
  if (t->grad != NULL)
    lt_push_unique(L, b, t->grad);
  else
    lua_pushnil(L);
}

static void push_requires_grad(lua_State *L, lt_bind *b, lt_tensor *t) {
  (void)b;
  lua_pushboolean(L, lt_requires_grad(t));
}

static void push_is_leaf(lua_State *L, lt_bind *b, lt_tensor *t) {
  (void)b;
  lua_pushboolean(L, t->node == NULL);
}

static void push_ndim(lua_State *L, lt_bind *b, lt_tensor *t) {
  (void)b;
  lua_pushinteger(L, t->ndim);
}

static const struct property {
  const char *name;
  void (*push)(lua_State *L, lt_bind *b, lt_tensor *t);
} properties[] = {{"shape", push_shape},
                  {"dtype", push_dtype},
                  {"device", push_device},
                  {"is_cuda", push_is_cuda},
                  {"is_meta", push_is_meta},
                  {"grad", push_grad},
                  {"requires_grad", push_requires_grad},
                  {"is_leaf", push_is_leaf},
                  {"ndim", push_ndim}};
enum { PROPERTIES = sizeof properties / sizeof *properties };

/* Whether the script's function that asks has this tensor (index 1) as its `self`. */
static bool stands_for_self(lua_State *L) {
  lua_Debug ar;
  if (lua_getstack(L, 1, &ar) == 0) return false;
  const char *name = lua_getlocal(L, &ar, 1);
  if (name == NULL) return false;
  bool found = strcmp(name, "self") == 0 && lua_rawequal(L, -1, 1);
  lua_pop(L, 1);
  return found;
}

/* Push the list of what a tensor has: methods (upvalue 2) and fields. */
static void push_members(lua_State *L) {
  lua_Integer n = 0;
  lua_newtable(L);
  for (lua_pushnil(L); lt_raw_next(L, lua_upvalueindex(2)) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING) continue;
    lua_pushvalue(L, -2);
    lua_rawseti(L, -4, ++n);
  }
  for (int k = 0; k < PROPERTIES; k++) {
    lua_pushstring(L, properties[k].name);
    lua_rawseti(L, -2, ++n);
  }
}

_Noreturn static void unknown_field(lua_State *L, lt_bind *b, const char *name) {
  if (stands_for_self(L))
    lt_raise(L, b, LT_EARG,
             "tensor: no field or method '%s': self is a tensor here: was the method called with "
             "'.' for ':'?",
             name);
  if (strpbrk(name, ":, ") != NULL)
    lt_raise(L, b, LT_EARG,
             "tensor: no field or method '%s'; write x[{lt.all, 2}], x[{{1, 3}}] for slices", name);
  push_members(L);
  lt_raise(L, b, LT_EARG, "tensor: no field or method '%s'%s", name,
           lt_push_hint(L, "in_place_of", name, "tensor"));
}

/* Upvalues: binding, methods. Methods first, since calls of methods are by far the most; properties
   are compared one by one, which for nine names is as fast as a hash. */
static int tensor_index(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return lt_index_read(L);
  lua_pushvalue(L, 2);
  if (lt_raw_get(L, lua_upvalueindex(2)) != LUA_TNIL) return 1;
  lt_bind *b = lt_enter(L);
  const char *name = lua_tostring(L, 2);
  for (int k = 0; k < PROPERTIES; k++) {
    if (strcmp(properties[k].name, name) != 0) continue;
    properties[k].push(L, b, lt_check_tensor(L, b, 1, name));
    return 1;
  }
  unknown_field(L, b, name);
}

/* The dtype may differ: a gradient in f32 beside a parameter in bf16 is usual. A gradient that a
   script has set must stay the same userdata when it is read again. */
static void set_grad(lua_State *L, lt_bind *b, lt_tensor *t) {
  lt_tensor *grad = lua_isnil(L, 3) ? NULL : lt_to_tensor(L, b, 3);
  if (grad == NULL && !lua_isnil(L, 3))
    lt_raise(L, b, LT_EARG, "grad: must be a tensor or nil, got %s", lt_shown(L, 3));
  if (grad != NULL && !lt_shape_equal(lt_tensor_shape(grad), lt_tensor_shape(t)))
    lt_raise(L, b, LT_ESHAPE, "grad: must have the tensor's shape %s, got %s", LT_TENSOR_STR(t),
             LT_TENSOR_STR(grad));
  if (grad != NULL && !lt_device_equal(grad->storage->device, t->storage->device))
    lt_raise(L, b, LT_EDEVICE, "grad: must be on the tensor's device");
  if (grad != NULL) lt_make_unique(L, b, 3);
  lt_graph *captures = lt_graph_captures(b->c);
  if (captures != NULL && !lt_graph_note_leaf(b->c, captures, t, true)) lt_raise_failure(L, b);
  lt_release(b->c, t->grad);
  t->grad = lt_retain(grad);
  lt_tensor_note_grad(b->c, t);
}

/* A result keeps its history: switching it off would cut the tape behind the back of whoever made
   it. Switching it on again changes nothing. */
void lt_set_requires_grad(lua_State *L, lt_bind *b, lt_tensor *t, bool on) {
  if (t->node != NULL && !on)
    lt_raise(L, b, LT_EARG, "requires_grad: only leaves can be changed; write x:detach()");
  if (on && !lt_dtype_is_float((lt_dtype)t->dtype))
    lt_raise(L, b, LT_EDTYPE, "requires_grad: only floating tensors have gradients, this is %s",
             lt_dtype_name((lt_dtype)t->dtype));
  if (t->node != NULL) return;
  t->flags = (uint8_t)(on ? t->flags | LT_REQUIRES_GRAD : t->flags & ~LT_REQUIRES_GRAD);
}

static int tensor_newindex(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return lt_index_write(L);
  lt_bind *b = lt_enter(L);
  const char *name = lua_tostring(L, 2);
  lt_tensor *t = lt_check_tensor(L, b, 1, name);
  if (strcmp(name, "grad") == 0) {
    set_grad(L, b, t);
  } else if (strcmp(name, "requires_grad") == 0) {
    if (lua_type(L, 3) != LUA_TBOOLEAN)
      lt_raise(L, b, LT_EARG, "requires_grad: must be true or false, got %s", lt_shown(L, 3));
    lt_set_requires_grad(L, b, t, lua_toboolean(L, 3));
    if (lua_toboolean(L, 3)) lt_make_unique(L, b, 1);
  } else {
    for (int k = 0; k < PROPERTIES; k++)
      if (strcmp(properties[k].name, name) == 0)
        lt_raise(L, b, LT_EARG, "%s: this property of a tensor cannot be set", name);
    unknown_field(L, b, name);
  }
  return 0;
}

/* __metatable hides the metatable: a script that replaced __gc or __index could free memory
   twice. */
void lt_bind_tensor(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {
      {"__gc", tensor_gc},   {"__close", tensor_close},   {"__eq", tensor_eq},
      {"__len", tensor_len}, {"__concat", tensor_concat}, {"__lt", tensor_lt},
      {"__le", tensor_le},   {"__pairs", tensor_pairs},   {NULL, NULL}};
  static const luaL_Reg access[] = {
      {"__index", tensor_index}, {"__newindex", tensor_newindex}, {NULL, NULL}};
  lua_createtable(L, 0, 32);
  lua_pushliteral(L, LT_TENSOR_NAME);
  lua_setfield(L, -2, "__name");
  lua_pushliteral(L, LT_TENSOR_NAME);
  lua_setfield(L, -2, "__metatable");
  lt_add_functions(L, b, meta);
  lua_pushlightuserdata(L, b);
  lua_pushvalue(L, 2);
  luaL_setfuncs(L, access, 2);
  b->metatable = lua_topointer(L, -1);
  b->metatable_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}
