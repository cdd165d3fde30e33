/* lua/bind/ops/readback_flag.c: a boolean on an asynchronous device that the host reads later,
   without waiting.

   A flag that is set begins its way to the host at once; reading it waits for that alone, not for
   what was issued since. */
#include "bind/core/openers.h"
#include "bind/core/raise.h"
#include "bind/core/state.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "device/device.h"

#define FLAG_NAME "ltrain.Flag"

static lt_readback *check_flag(lua_State *L) { return luaL_checkudata(L, 1, FLAG_NAME); }

/* runtime.flag() -> a flag that is not set */
static int flag_new(lua_State *L) {
  lt_readback *r = lua_newuserdatauv(L, sizeof *r, 0);
  *r = (lt_readback){0};
  luaL_setmetatable(L, FLAG_NAME);
  return 1;
}

/* flag:set(x): to the element of a tensor of one bool */
static int flag_set(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_readback *r = check_flag(L);
  lt_tensor *t = lt_check_tensor(L, b, 2, "set");
  if (t->numel != 1 || t->dtype != LT_BOOL)
    lt_raise(L, b, LT_ESHAPE, "set: a flag is one bool: got %s%s",
             lt_dtype_name((lt_dtype)t->dtype), LT_TENSOR_STR(t));
  if (!lt_readback_begin(b->c, r, t)) lt_raise_failure(L, b);
  return 0;
}

static int push_flag(lua_State *L, lt_bind *b, lt_readback *r) {
  const unsigned char *bytes = lt_readback_wait(b->c, r);
  if (bytes == NULL) lt_raise_failure(L, b);
  lua_pushboolean(L, bytes[0]);
  return 1;
}

/* flag:read() -> the boolean that it was set to; nil when it was not */
static int flag_read(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_readback *r = check_flag(L);
  return r->memory != NULL ? push_flag(L, b, r) : 0;
}

/* flag:poll() -> the same, without waiting: nil also while it is on its way */
static int flag_poll(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_readback *r = check_flag(L);
  return r->memory != NULL && lt_readback_arrived(r) ? push_flag(L, b, r) : 0;
}

static int flag_gc(lua_State *L) {
  lt_readback *r = check_flag(L);
  lt_readback_end(r);
  return 0;
}

void lt_bind_flag(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {{"flag", flag_new}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", flag_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"set", flag_set}, {"read", flag_read}, {"poll", flag_poll}, {NULL, NULL}};
  lt_new_type(L, b, FLAG_NAME, meta, methods);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, functions);
  lua_pop(L, 1);
}
