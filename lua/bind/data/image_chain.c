/* lua/bind/data/image_chain.c: chains of transforms of images (`c.runtime.image`). */
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/data/image.h"
#include "device/device.h"

#define CHAIN_NAME "ltrain.TransformChain"

lt_chain *lt_check_chain(lua_State *L, int index) {
  lt_chain *chain = *(lt_chain **)luaL_checkudata(L, index, CHAIN_NAME);
  luaL_argcheck(L, chain != NULL, index, "a chain that was freed");
  return chain;
}

static int chain_gc(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  lt_chain **box = luaL_checkudata(L, 1, CHAIN_NAME);
  if (b->c != NULL) lt_release(b->c, *box);
  *box = NULL;
  return 0;
}

/* How many steps the list at `index` has, with those within them. The tables may have metamethods
   or be changed by them, so that the second walk has an end to stop at (read_steps); 100 levels
   bound the C stack against a table that contains itself. */
static int count_steps(lua_State *L, int index, int depth) {
  luaL_checkstack(L, 8, "too many transforms in one another");
  luaL_argcheck(L, depth < 100, 1, "too many transforms in one another");
  int n = 0;
  lua_Integer length = lt_length(L, index);
  for (lua_Integer k = 1; k <= length; k++) {
    lua_geti(L, index, k);
    luaL_checktype(L, -1, LUA_TTABLE);
    n++;
    if (lua_getfield(L, -1, "steps") == LUA_TTABLE) n += count_steps(L, lua_gettop(L), depth + 1);
    lua_pop(L, 2);
  }
  return n;
}

/* A step {name, values..., fill =} on top, into *t. */
static void read_step(lua_State *L, lt_step *t) {
  lua_geti(L, -1, 1);
  t->kind = lt_step_named(luaL_checkstring(L, -1));
  luaL_argcheck(L, t->kind != LT_STEP_COUNT, 1, lua_tostring(L, -1));
  lua_pop(L, 1);
  for (int k = 0; k < LT_STEP_VALUES; k++) {
    lua_geti(L, -1, k + 2);
    t->v[k] = lua_isboolean(L, -1) ? lua_toboolean(L, -1) : lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  bool filled = lua_getfield(L, -1, "fill") == LUA_TTABLE;
  for (int k = 0; k < LT_CHANNELS_MAX && filled; k++) {
    lua_geti(L, -1, k + 1);
    t->fill[k] = (float)lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* The steps of the list at `index` from `t` on, no further than `end`; returns the place behind
   them. */
static lt_step *read_steps(lua_State *L, int index, lt_step *t, const lt_step *end) {
  lua_Integer length = lt_length(L, index);
  luaL_checkstack(L, 8, "too many transforms in one another");
  for (lua_Integer k = 1; k <= length; k++) {
    lua_geti(L, index, k);
    luaL_argcheck(L, t < end && lua_istable(L, -1), 1, "a list that changes");
    lt_step *own = t++;
    read_step(L, own);
    if (lua_getfield(L, -1, "steps") == LUA_TTABLE) t = read_steps(L, lua_gettop(L), t, end);
    own->span = (int)(t - own) - 1;
    lua_pop(L, 2);
  }
  return t;
}

/* image.chain({{name, values..., fill = {...}, steps = {...}}, ...}) -> chain */
static int chain(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  int n = count_steps(L, 1, 0);
  if (n > LT_CHAIN_MAX)
    lt_raise(L, b, LT_EARG, "transforms: at most %d steps, got %d", LT_CHAIN_MAX, n);
  lt_chain **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, CHAIN_NAME);
  *box = lt_chain_new(b->c, n);
  if (*box == NULL) lt_raise_failure(L, b);
  read_steps(L, 1, (*box)->step, (*box)->step + n);
  return 1;
}

/* A view of a tensor [C, H, W] at `index`. */
static lt_picture view_of(lua_State *L, lt_bind *b, int index) {
  lt_tensor *t = lt_check_tensor(L, b, index, "transforms");
  luaL_argcheck(L, t->ndim == 3 && t->size[1] <= LT_SIDE_MAX && t->size[2] <= LT_SIDE_MAX, index,
                "not an image");
  lt_picture view;
  if (!lt_picture_of(b->c, "transforms", t, &view)) lt_raise_failure(L, b);
  return view;
}

/* A copy: transforms move boxes in place, and the caller's tensor must stay as it is. */
static float *copy_boxes(lua_State *L, lt_bind *b, int index, int64_t *n) {
  lt_tensor *t = lt_check_tensor(L, b, index, "transforms");
  luaL_argcheck(L, t->ndim == 2 && t->size[1] == 4 && t->contiguous && t->dtype == LT_F32, index,
                "not boxes");
  if (!lt_check_data(b->c, "transforms", t)) lt_raise_failure(L, b);
  size_t bytes = (size_t)t->numel * sizeof(float);
  float *boxes = bytes > 0 ? lt_alloc(b->c, bytes) : NULL;
  if (boxes != NULL) {
    memcpy(boxes, lt_data(t), bytes);
    *n = t->size[0];
  }
  return boxes;
}

static lt_tensor *boxes_tensor(lt_ctx *c, const lt_sample *s) {
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, LT_F32, 2, (int64_t[]){s->n_boxes, 4});
  if (t != NULL && s->n_boxes > 0)
    memcpy(lt_data(t), s->boxes, (size_t)s->n_boxes * 4 * sizeof(float));
  return t;
}

/* image.apply(chain, image, mask or nil, boxes or nil) -> the same, changed; what was nil is left
   out. One draw of the script's random numbers gives a key, from
   which the chain draws all that it needs: how many numbers a transform takes does not shift later
   draws. */
static int apply(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_chain *steps = lt_check_chain(L, 1);
  lua_settop(L, 4);
  lt_note_line(b);
  lt_sample s = {.image = view_of(L, b, 2)};
  bool masked = !lua_isnil(L, 3), boxed = !lua_isnil(L, 4);
  luaL_argcheck(L, s.image.channels >= 1 && s.image.channels <= LT_CHANNELS_MAX, 2, "channels");
  if (masked) s.mask = view_of(L, b, 3);
  if (boxed) s.boxes = copy_boxes(L, b, 4, &s.n_boxes);
  lt_frame frame = lt_begin(L, b, 1 + masked + boxed);
  lt_tensor *out[3] = {NULL};
  int n = 0;
  if (lt_ok(b->c) && lt_chain_run(b->c, steps, &s, lt_rng_draw(&b->c->rng))) {
    out[n++] = lt_picture_tensor(b->c, &s.image);
    if (masked) out[n++] = lt_picture_tensor(b->c, &s.mask);
    if (boxed) out[n++] = boxes_tensor(b->c, &s);
  }
  lt_sample_free(b->c, &s);
  return lt_end(L, b, frame, 1 + masked + boxed, out);
}

void lt_bind_image_chain(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", chain_gc}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"chain", chain}, {"apply", apply}, {NULL, NULL}};
  lt_new_type(L, b, CHAIN_NAME, meta, NULL);
  lt_add_functions(L, b, functions);
}
