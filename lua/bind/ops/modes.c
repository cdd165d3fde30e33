/* lua/bind/ops/modes.c: lt.no_grad, enable_grad, allow_update, autocast, device, detect_anomaly:
   <close> scopes, and forms with a function; the precision of products of f32.

   A scope belongs to the Lua thread that opened it; functions called in one may yield.

   A scope saves all modes and restores them at its end, by Lua's `<close>`: also when an error
   passes through. Restoring in another order than opening would leave a mode of the inner scope;
   Lua's lexical `<close>` makes that impossible in one function. */
#include <string.h>

#include "base/script_lines.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "ops/anomaly.h"

#define SCOPE_NAME "ltrain.Scope"

typedef struct scope {
  lt_modes saved;
  bool open;
} scope;

static int scope_close(lua_State *L) {
  lt_bind *b = lt_enter(L);
  scope *s = luaL_checkudata(L, 1, SCOPE_NAME);
  if (s->open) lt_modes_restore(&b->c->modes, s->saved);
  s->open = false;
  return 0;
}

static int finish(lua_State *L, int status, lua_KContext base) {
  (void)status;
  return lua_gettop(L) - (int)base;
}

/* Open a scope with `modes` for lt.`name`; with a function at index `fn` call it inside and return
   its results, else return the scope. */
/* The form with a function may yield (lua_callk with a continuation): the Trainer steps through
   such calls. The scope is a to-be-closed variable of this C call. */
static int open_scope(lua_State *L, lt_bind *b, const char *name, lt_modes modes, int fn) {
  int top = lua_gettop(L);
  bool call = !lua_isnoneornil(L, fn);
  bool is_tensor = call && lt_to_tensor(L, b, fn) != NULL; /* whose __call indexes it */
  if (is_tensor || (call && luaL_getmetafield(L, fn, "__call") == LUA_TNIL &&
                    !lua_isfunction(L, fn)))
    lt_raise(L, b, LT_EARG, "%s: needs a function, got %s", name, lt_shown(L, fn));
  lua_settop(L, top);
  if (!call) lt_check_count(L, b, name, fn);
  scope *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (scope){.saved = b->c->modes, .open = true};
  luaL_setmetatable(L, SCOPE_NAME);
  if (!call) {
    b->c->modes = modes;
    return 1;
  }
  lua_insert(L, fn);
  lua_toclose(L, fn);
  b->c->modes = modes;
  lua_callk(L, top - fn, LUA_MULTRET, fn, finish);
  return finish(L, LUA_OK, fn);
}

static int no_grad(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.grad = false;
  return open_scope(L, b, "no_grad", modes, 1);
}

static int enable_grad(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.grad = true;
  return open_scope(L, b, "enable_grad", modes, 1);
}

/* As no_grad; and what is written into parameters of an optimizer is meant: it is not reported. */
static int allow_update(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.grad = false;
  modes.update = true;
  return open_scope(L, b, "allow_update", modes, 1);
}

/* lt.set_grad_enabled(on [, fn]) */
static int set_grad_enabled(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.grad = lt_check_flag(L, b, 1, "set_grad_enabled", "on");
  return open_scope(L, b, "set_grad_enabled", modes, 2);
}

/* lt.autocast("bf16" | "f16" | false [, fn]) */
static int autocast(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  if (lua_isboolean(L, 1)) {
    modes.autocast = lua_toboolean(L, 1);
  } else {
    if (lua_type(L, 1) == LUA_TSTRING && lt_device_named(b->c, lua_tostring(L, 1)))
      lt_raise(L, b, LT_EARG, "autocast: applies to every device: write lt.autocast(\"bf16\"): got "
               "'%s'", lua_tostring(L, 1));
    modes.autocast_dtype = lt_check_dtype(L, b, 1, "autocast");
    modes.autocast = true;
    if (modes.autocast_dtype != LT_BF16 && modes.autocast_dtype != LT_F16)
      lt_raise(L, b, LT_EDTYPE, "autocast: must be \"bf16\", \"f16\" or false, got %s",
               lt_dtype_name(modes.autocast_dtype));
  }
  return open_scope(L, b, "autocast", modes, 2);
}

/* lt.device(device [, fn]): where tensors are made that are not given a device */
static int device(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.device = lt_check_device(L, b, 1, "device");
  modes.on_device = true;
  return open_scope(L, b, "device", modes, 2);
}

/* Who makes values that are not finite: ops/anomaly.h. */

static int watch_anomalies(lua_State *L, const char *name, uint8_t how) {
  lt_bind *b = lt_enter(L);
  lt_modes modes = b->c->modes;
  modes.anomaly = how;
  memset(&b->c->anomalies, 0, sizeof b->c->anomalies);
  return open_scope(L, b, name, modes, 1);
}

/* lt.detect_anomaly([fn]): within it an operation, or a derivative, that makes a NaN is an error */
static int detect_anomaly(lua_State *L) {
  return watch_anomalies(L, "detect_anomaly", LT_ANOMALY_RAISE);
}

/* runtime.detect_infinities([fn]): the same, and an infinity that a derivative makes is one too */
static int detect_infinities(lua_State *L) {
  return watch_anomalies(L, "detect_infinities", LT_ANOMALY_STRICT);
}

/* runtime.note_anomalies([fn]): within it they are noted only */
static int note_anomalies(lua_State *L) {
  return watch_anomalies(L, "note_anomalies", LT_ANOMALY_NOTE);
}

/* Set field `name` of the table on top to {inf = "exp at model.lua:3", nan = ...}. */
static void set_made(lua_State *L, const lt_bind *b, const char *name, const lt_made *made) {
  static const char *const kinds[] = {"inf", "nan"};
  char line[128];
  lua_createtable(L, 0, 2);
  for (int k = 0; k < 2; k++) {
    if (made[k].op[0] == 0) continue;
    lua_pushfstring(L, "%s at %s", made[k].op,
                    lt_line_text(b->c, made[k].line, line, sizeof line));
    lua_setfield(L, -2, kinds[k]);
  }
  lua_setfield(L, -2, name);
}

/* runtime.anomalies() -> {forward =, backward =, aside =}: who made the first since the last of
   these scopes was opened; results of `aside` belong to no gradient */
static int anomalies(lua_State *L) {
  const lt_bind *b = lt_enter(L);
  lua_createtable(L, 0, 3);
  set_made(L, b, "forward", b->c->anomalies.forward);
  set_made(L, b, "backward", b->c->anomalies.backward);
  set_made(L, b, "aside", b->c->anomalies.aside);
  return 1;
}

static int is_grad_enabled(lua_State *L) {
  lua_pushboolean(L, lt_enter(L)->c->modes.grad);
  return 1;
}

/* lt.is_autocast_enabled() -> "bf16" or false */
static int is_autocast_enabled(lua_State *L) {
  const lt_modes *m = &lt_enter(L)->c->modes;
  if (m->autocast)
    lua_pushstring(L, lt_dtype_name(m->autocast_dtype));
  else
    lua_pushboolean(L, false);
  return 1;
}

static const char *const precisions[] = {[LT_MATMUL_HIGHEST] = "highest", [LT_MATMUL_HIGH] = "high",
                                         [LT_MATMUL_MEDIUM] = "medium"};

/* lt.set_float32_matmul_precision("highest" | "high" | "medium") */
static int set_matmul_precision(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_settop(L, 1);
  const char *s = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
  int k = LT_MATMUL_HIGHEST;
  while (k <= LT_MATMUL_MEDIUM && strcmp(s, precisions[k]) != 0) k++;
  if (k > LT_MATMUL_MEDIUM)
    lt_raise(L, b, LT_EARG, "set_float32_matmul_precision: must be \"highest\", \"high\" or "
             "\"medium\", got %s", luaL_tolstring(L, 1, NULL));
  b->c->root->matmul_precision = k;
  return 0;
}

static int get_matmul_precision(lua_State *L) {
  lua_pushstring(L, precisions[lt_enter(L)->c->root->matmul_precision]);
  return 1;
}

void lt_bind_modes(lua_State *L, lt_bind *b) {
  static const lt_formed functions[] = {
      {{"no_grad", no_grad, -1}, "fn"},
      {{"enable_grad", enable_grad, -1}, "fn"},
      {{"allow_update", allow_update, -1}, "fn"},
      {{"set_grad_enabled", set_grad_enabled, -1}, "mode fn"},
      {{"autocast", autocast, -1}, "dtype fn"},
      {{"device", device, -1}, "device fn"},
      {{"detect_anomaly", detect_anomaly, -1}, "fn"},
      {{"is_grad_enabled", is_grad_enabled, 0}, ""},
      {{"is_autocast_enabled", is_autocast_enabled, 0}, ""},
      {{"set_float32_matmul_precision", set_matmul_precision, 1}, "precision"},
      {{"get_float32_matmul_precision", get_matmul_precision, 0}, ""},
      {{NULL, NULL, 0}, NULL}};
  static const luaL_Reg runtime[] = {{"note_anomalies", note_anomalies},
                                     {"detect_infinities", detect_infinities},
                                     {"anomalies", anomalies},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__close", scope_close}, {NULL, NULL}};
  lt_new_type(L, b, SCOPE_NAME, meta, NULL);
  lua_pushvalue(L, 1);
  lt_add_formed(L, b, functions);
  lua_getfield(L, -1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 2);
}
