/* lua/bind/ops/parameter_marks.c: marks tensors as parameters or buffers, and reads their identity,
   version and last write. */
#include <string.h>

#include "base/script_lines.h"
#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/core/values.h"
#include "bind/ops/tensor.h"
#include "ops/node.h"

static int is_tensor(lua_State *L) {
  lua_pushboolean(L, lt_to_tensor(L, lt_enter(L), 1) != NULL);
  return 1;
}

static int mark(lua_State *L, const char *who, uint8_t flag) {
  lt_bind *b = lt_enter(L);
  lt_tensor *t = lt_check_tensor(L, b, 1, who);
  lua_settop(L, 1);
  if (t->node != NULL) {
    lt_frame frame = lt_begin(L, b, 1);
    t = lt_detach(b->c, t);
    lt_end(L, b, frame, 1, &t);
  }
  t->flags |= flag;
  lt_make_unique(L, b, -1);
  return 1;
}

/* lt.parameter(data [, requires_grad = true]) -> data, marked; a tensor with history is detached */
static int parameter(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *t = lt_check_tensor(L, b, 1, "parameter");
  bool on = lua_isnoneornil(L, 2) || lt_check_flag(L, b, 2, "parameter", "requires_grad");
  if (on && !lt_dtype_is_float((lt_dtype)t->dtype))
    lt_raise(L, b, LT_EDTYPE,
             "parameter: only floating tensors have gradients, this is %s: write x:float(), or "
             "{requires_grad = false}",
             lt_dtype_name((lt_dtype)t->dtype));
  mark(L, "parameter", LT_PARAMETER);
  t = lt_to_tensor(L, b, -1);
  t->storage->line = lt_script_line(L, b, 1);
  b->parameters_made++;
  lt_set_requires_grad(L, b, t, on);
  return 1;
}

/* runtime.copied_parameter(x) -> x, marked as a parameter that keeps its history: the copy of one
   on another device, whose gradient flows back to the original */
static int copied_parameter(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_check_tensor(L, b, 1, "copied_parameter")->flags |= LT_PARAMETER;
  lua_settop(L, 1);
  lt_make_unique(L, b, 1);
  return 1;
}

/* runtime.buffer(x) -> x, marked as a Module's buffer */
static int buffer(lua_State *L) { return mark(L, "buffer", LT_BUFFER); }

static int has_flag(lua_State *L, uint8_t flag) {
  const lt_tensor *t = lt_to_tensor(L, lt_enter(L), 1);
  lua_pushboolean(L, t != NULL && (t->flags & flag) != 0);
  return 1;
}

static int is_parameter(lua_State *L) { return has_flag(L, LT_PARAMETER); }
static int is_buffer(lua_State *L) { return has_flag(L, LT_BUFFER); }

/* runtime.is_walked(x) -> whether a backward has freed what the operation that made x saved */
static int is_walked(lua_State *L) {
  const lt_tensor *t = lt_to_tensor(L, lt_enter(L), 1);
  const lt_node *n = t != NULL ? (const lt_node *)t->node : NULL;
  lua_pushboolean(L, n != NULL && n->used);
  return 1;
}

/* runtime.identity(x) -> numbers that are equal for two tensors of the same memory: storage, offset
 */
static int identity(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const lt_tensor *t = lt_check_tensor(L, b, 1, "identity");
  lua_pushinteger(L, (lua_Integer)t->storage->id);
  lua_pushinteger(L, t->offset);
  return 2;
}

/* runtime.version(x) -> how often its memory was written in place */
static int version(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_pushinteger(L, (lua_Integer)lt_check_tensor(L, b, 1, "version")->storage->version);
  return 1;
}

/* runtime.watch(list): from now on note who writes into these tensors, updates apart */
static int watch(lua_State *L) {
  lt_bind *b = lt_enter(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  for (lua_Integer i = 1; i <= n; i++) {
    lt_raw_geti(L, 1, i);
    lt_storage *s = lt_check_tensor(L, b, -1, "watch")->storage;
    s->watched = true;
    s->written_externally = false;
    lua_pop(L, 1);
  }
  return 0;
}

/* runtime.external_writes() -> how many such writes there were, into any tensor that is watched */
static int external_writes(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)lt_enter(L)->c->external_writes);
  return 1;
}

/* runtime.take_external_write(x) -> who first wrote into it since the last call, as "mul at
   model.lua:14"; nil
   when nobody did */
static int take_external_write(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_storage *s = lt_check_tensor(L, b, 1, "take_external_write")->storage;
  if (!s->written_externally) return 0;
  s->written_externally = false;
  char line[128];
  if (s->external_writer == NULL)
    lua_pushliteral(L, "the host program"); /* through a pointer */
  else
    lua_pushfstring(L, "%s at %s", s->external_writer,
                    lt_line_text(b->c, s->external_line, line, sizeof line));
  return 1;
}

/* runtime.parameters_made() -> how often lt.parameter was called */
static int parameters_made(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)lt_enter(L)->parameters_made);
  return 1;
}

/* runtime.parameter_line(x) -> "model.lua:14", where lt.parameter made it one */
static int parameter_line(lua_State *L) {
  lt_bind *b = lt_enter(L);
  char line[128];
  uint32_t id = lt_check_tensor(L, b, 1, "parameter_line")->storage->line;
  lua_pushstring(L, lt_line_text(b->c, id, line, sizeof line));
  return 1;
}

void lt_bind_marks(lua_State *L, lt_bind *b) {
  static const lt_formed functions[] = {{{"is_tensor", is_tensor, 1}, "obj"},
                                        {{"parameter", parameter, 2}, "data | requires_grad"},
                                        {{"is_parameter", is_parameter, 1}, "obj"},
                                        {{"is_buffer", is_buffer, 1}, "obj"},
                                        {{NULL, NULL, 0}, NULL}};
  static const luaL_Reg runtime[] = {{"buffer", buffer},
                                     {"copied_parameter", copied_parameter},
                                     {"identity", identity},
                                     {"is_walked", is_walked},
                                     {"version", version},
                                     {"watch", watch},
                                     {"external_writes", external_writes},
                                     {"take_external_write", take_external_write},
                                     {"parameters_made", parameters_made},
                                     {"parameter_line", parameter_line},
                                     {NULL, NULL}};
  lua_pushvalue(L, 1);
  lt_add_formed(L, b, functions);
  lua_getfield(L, -1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 2);
}
