/* lua/bind/ops/readback.c: the value of one element of an asynchronous device, which the host reads
   later, without waiting.

   A value that is set begins its way to the host at once; reading it waits for that alone, not for
   what was issued since. */
#include <string.h>

#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/state.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "device/device.h"

#define READBACK_NAME "ltrain.Readback"

typedef struct value {
  lt_readback at;
  lt_dtype dtype;
} value;

static value *check_value(lua_State *L) { return luaL_checkudata(L, 1, READBACK_NAME); }

/* runtime.readback() -> a value that is not set */
static int readback_new(lua_State *L) {
  value *v = lua_newuserdatauv(L, sizeof *v, 0);
  *v = (value){0};
  luaL_setmetatable(L, READBACK_NAME);
  return 1;
}

/* value:set(x): to the element of a tensor of f32, f64, i64 or bool */
static int readback_set(lua_State *L) {
  lt_bind *b = lt_enter(L);
  value *v = check_value(L);
  lt_tensor *t = lt_check_tensor(L, b, 2, "set");
  lt_dtype d = (lt_dtype)t->dtype;
  bool takes = d == LT_F32 || d == LT_F64 || d == LT_I64 || d == LT_BOOL;
  if (t->numel != 1 || !takes)
    lt_raise(L, b, LT_ESHAPE, "set: one element of f32, f64, i64 or bool is needed: got %s%s",
             lt_dtype_name(d), LT_TENSOR_STR(t));
  if (!lt_readback_begin(b->c, &v->at, t)) lt_raise_failure(L, b);
  v->dtype = d;
  return 0;
}

static int push_value(lua_State *L, lt_bind *b, value *v) {
  union { float f32; double f64; int64_t i64; bool flag; } x;
  const void *bytes = lt_readback_wait(b->c, &v->at);
  if (bytes == NULL) lt_raise_failure(L, b);
  memcpy(&x, bytes, lt_dtype_size(v->dtype));
  if (v->dtype == LT_F32) lua_pushnumber(L, (double)x.f32);
  else if (v->dtype == LT_F64) lua_pushnumber(L, x.f64);
  else if (v->dtype == LT_I64) lua_pushinteger(L, x.i64);
  else lua_pushboolean(L, x.flag);
  return 1;
}

/* value:read() -> what it was set to; nil when it was not */
static int readback_read(lua_State *L) {
  lt_bind *b = lt_enter(L);
  value *v = check_value(L);
  return v->at.memory != NULL ? push_value(L, b, v) : 0;
}

/* value:poll() -> the same, without waiting: nil also while it is on its way */
static int readback_poll(lua_State *L) {
  lt_bind *b = lt_enter(L);
  value *v = check_value(L);
  return v->at.memory != NULL && lt_readback_arrived(&v->at) ? push_value(L, b, v) : 0;
}

static int readback_gc(lua_State *L) {
  lt_readback_end(&check_value(L)->at);
  return 0;
}

void lt_bind_readback(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"readback", readback_new}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", readback_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"set", readback_set}, {"read", readback_read}, {"poll", readback_poll}, {NULL, NULL}};
  lt_new_type(L, b, READBACK_NAME, meta, methods);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, functions);
  lua_pop(L, 1);
}
