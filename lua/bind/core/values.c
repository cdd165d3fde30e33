/* lua/bind/core/values.c: single values from the Lua stack: numbers, dims, positions, names. */
#include "bind/core/values.h"

#include <stdio.h>
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/current_line.h"
#include "bind/core/raise.h"
#include "bind/core/tensor.h"

enum { LONGEST = 60, CUT = 57 };

/* Push a text in quotes, without the rest of a long one, control characters as Lua writes them. */
static const char *push_quoted(lua_State *L, const char *text, size_t size) {
  luaL_Buffer all;
  luaL_buffinit(L, &all);
  luaL_addchar(&all, '\'');
  size_t shown = size <= LONGEST ? size : CUT;
  for (size_t k = 0; k < shown; k++) {
    char code[8];
    unsigned char byte = (unsigned char)text[k];
    if (byte >= 32 && byte != 127) {
      luaL_addchar(&all, text[k]);
    } else {
      snprintf(code, sizeof code, "\\%d", byte);
      luaL_addstring(&all, code);
    }
  }
  luaL_addstring(&all, shown < size ? "...'" : "'");
  luaL_pushresult(&all);
  return lua_tostring(L, -1);
}

const char *lt_shown(lua_State *L, int index) {
  size_t size = 0;
  switch (lua_type(L, index)) {
  case LUA_TUSERDATA: return "a tensor";
  case LUA_TSTRING: {
    const char *text = lua_tolstring(L, index, &size);
    luaL_checkstack(L, 8, "ltrain");
    return push_quoted(L, text, size);
  }
  case LUA_TNUMBER:
  case LUA_TBOOLEAN: luaL_checkstack(L, 2, "ltrain"); return luaL_tolstring(L, index, NULL);
  case LUA_TNONE: return "nothing";
  default: return luaL_typename(L, index);
  }
}

bool lt_check_flag(lua_State *L, lt_bind *b, int index, const char *who, const char *name) {
  if (!lua_isboolean(L, index))
    lt_raise(L, b, LT_EARG, "%s: argument '%s' must be true or false, got %s", who, name,
             lt_shown(L, index));
  return lua_toboolean(L, index);
}

/* Lua counts from 1, the runtime from 0; negative positions count from the end in both. 0 is
   nothing at all, and refused: it would be the last in C and the first in Python. */
bool lt_from_zero(int64_t position, int64_t *out) {
  *out = position > 0 ? position - 1 : position;
  return position != 0;
}

lt_scalar lt_to_scalar(lua_State *L, int index) {
  switch (lua_type(L, index)) {
  case LUA_TNUMBER:
    return lua_isinteger(L, index) ? lt_scalar_int(lua_tointeger(L, index))
                                   : lt_scalar_of(lua_tonumber(L, index));
  case LUA_TBOOLEAN: {
    lt_scalar s = lt_scalar_int(lua_toboolean(L, index));
    s.kind = LT_SCALAR_BOOL;
    return s;
  }
  default:
    return LT_NONE_SCALAR;
  }
}

/* Not luaL_checkinteger, which takes the text "3" and words its message with a position in place of
   a name. A float that is a whole number (2.0) is an integer, as everywhere in Lua. */
int64_t lt_check_int(lua_State *L, lt_bind *b, int index, const char *who, const char *name) {
  int is_int = 0;
  int64_t value = lua_type(L, index) == LUA_TNUMBER ? lua_tointegerx(L, index, &is_int) : 0;
  if (is_int) return value;
  if (lua_type(L, index) == LUA_TNUMBER)
    lt_raise(L, b, LT_EARG, "%s: argument '%s' must be an integer, got %g", who, name,
             lua_tonumber(L, index));
  lt_raise(L, b, LT_EARG, "%s: argument '%s' must be an integer, got %s", who, name,
           lt_shown(L, index));
}

int64_t lt_check_dim(lua_State *L, lt_bind *b, int index, const char *who, const char *name) {
  int64_t dim = 0;
  if (!lt_from_zero(lt_check_int(L, b, index, who, name), &dim))
    lt_raise(L, b, LT_EARG, "%s: argument '%s': dims start at 1, got 0", who, name);
  return dim;
}

int64_t lt_check_pos(lua_State *L, lt_bind *b, int index, const char *who, const char *name) {
  int64_t at = 0;
  if (!lt_from_zero(lt_check_int(L, b, index, who, name), &at))
    lt_raise(L, b, LT_EARG, "%s: argument '%s': positions start at 1, got 0", who, name);
  return at;
}

int lt_check_dim_of(lua_State *L, lt_bind *b, int index, const lt_tensor *t, const char *who,
                    const char *name) {
  int dim = 0;
  const char *op = b->c->op;
  int64_t user_dim = lt_check_dim(L, b, index, who, name);
  b->c->op = who;
  bool ok = lt_shape_dim(b->c, lt_tensor_shape(t), user_dim, &dim);
  b->c->op = op;
  if (!ok) lt_raise_failure(L, b);
  return dim;
}

lt_device lt_check_device(lua_State *L, lt_bind *b, int index, const char *who) {
  lt_device d = LT_NO_DEVICE;
  char numbered[32];
  const char *name = numbered;
  if (lua_isinteger(L, index))
    snprintf(numbered, sizeof numbered, "cuda:%lld", (long long)lua_tointeger(L, index));
  else if (lua_type(L, index) == LUA_TSTRING)
    name = lua_tostring(L, index);
  else
    lt_raise(L, b, LT_EARG,
             "%s: argument 'device' must be a name such as \"cpu\", or the number of a GPU, got %s",
             who, lt_shown(L, index));
  if (!lt_device_parse(b->c, name, &d)) lt_raise_failure(L, b);
  return d;
}

static void too_many_dims(lua_State *L, lt_bind *b, const char *who, const char *name) {
  lt_raise(L, b, LT_EARG, "%s: argument '%s': at most %d dims", who, name, LT_MAX_DIMS);
}

/* With `gaps` false in a list is LT_NO_DIM. */
static lt_sizes check_list(lua_State *L, lt_bind *b, int index, const char *who, const char *name,
                           bool gaps) {
  lt_sizes s = {0};
  if (!lua_istable(L, index)) {
    s.n = 1;
    s.size[0] = lt_check_int(L, b, index, who, name);
    return s;
  }
  lua_Integer n = lt_length(L, index);
  if (n > LT_MAX_DIMS) too_many_dims(L, b, who, name);
  for (s.n = 0; s.n < n; s.n++) {
    lua_geti(L, index, s.n + 1);
    bool gap = gaps && lua_isboolean(L, -1) && !lua_toboolean(L, -1);
    s.size[s.n] = gap ? LT_NO_DIM : lt_check_int(L, b, -1, who, name);
    lua_pop(L, 1);
  }
  return s;
}

lt_sizes lt_check_sizes(lua_State *L, lt_bind *b, int index, const char *who, const char *name) {
  return check_list(L, b, index, who, name, false);
}

lt_dims lt_check_dims(lua_State *L, lt_bind *b, int index, const char *who, const char *name) {
  lt_sizes s = lt_check_sizes(L, b, index, who, name);
  lt_dims d = {.n = s.n};
  for (int k = 0; k < s.n; k++)
    if (!lt_from_zero(s.size[k], &d.dim[k]))
      lt_raise(L, b, LT_EARG, "%s: argument '%s': dims start at 1, got 0", who, name);
  return d;
}

lt_pair lt_check_pair(lua_State *L, lt_bind *b, int index, const char *who, const char *name) {
  lt_sizes s = lt_check_sizes(L, b, index, who, name);
  if (s.n == 1) return LT_PAIR_OF(s.size[0]);
  if (s.n != 2)
    lt_raise(L, b, LT_EARG, "%s: argument '%s' must be a number or {height, width}", who, name);
  return (lt_pair){s.size[0], s.size[1]};
}

/* Sizes of a result may be false: those of x (adaptive pooling). */
lt_sizes lt_check_each(lua_State *L, lt_bind *b, int index, const char *who, const lt_arg *a) {
  if (a->type != LT_ARG_PADDING || lua_type(L, index) != LUA_TSTRING)
    return check_list(L, b, index, who, a->name, strcmp(a->name, "output_size") == 0);
  static const lt_arg words = {.name = "padding", .choices = "valid|same"};
  bool same = lt_check_choice(L, b, index, who, &words) == 1;
  return same ? (lt_sizes){.n = LT_SAME} : LT_ALL_OF(0);
}

/* A tensor of one element counts as its number: the value is read, for which a device is waited
   for. */
lt_scalar lt_check_scalar(lua_State *L, lt_bind *b, int index, const char *who, const char *name) {
  lt_scalar s = lt_to_scalar(L, index);
  lt_tensor *t = lt_to_tensor(L, b, index);
  if (t != NULL) {
    lt_frame frame = lt_frame_open(b->c);
    lt_item(b->c, t, &s);
    lt_end_call(L, b, frame);
  }
  if (s.kind == LT_NO_SCALAR)
    lt_raise(L, b, LT_EARG, "%s: argument '%s' must be a number, got %s", who, name,
             lt_shown(L, index));
  return s;
}

/* The position of a name among a->choices ("none|mean|sum"). */
int64_t lt_check_choice(lua_State *L, lt_bind *b, int index, const char *who, const lt_arg *a) {
  const char *name = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : "";
  size_t length = strlen(name);
  int64_t k = 0;
  for (const char *s = a->choices; s != NULL; k++) {
    const char *end = strchr(s, '|');
    size_t n = end != NULL ? (size_t)(end - s) : strlen(s);
    if (n == length && memcmp(s, name, n) == 0) return k;
    s = end != NULL ? end + 1 : NULL;
  }
  lt_raise(L, b, LT_EARG, "%s: argument '%s' must be one of %s, got %s", who, a->name, a->choices,
           *name != 0 ? name : lt_shown(L, index));
}

int64_t lt_check_position(lua_State *L, lt_bind *b, int index, int64_t n, const char *who,
                          const lt_tensor *x) {
  int64_t position = lt_check_int(L, b, index, who, "index"), at = 0;
  if (!lt_from_zero(position, &at)) lt_raise(L, b, LT_EARG, "%s: positions start at 1, got 0", who);
  if (at < 0) at += n;
  if (at < 0 || at >= n)
    lt_raise(L, b, LT_ESHAPE, "%s: position %lld is out of range 1..%lld of shape %s", who,
             (long long)position, (long long)n, LT_TENSOR_STR(x));
  return at;
}

/* Both ends are inclusive, as in Lua; to < from is an empty range, which starts at 0 so that no
   offset points outside. */
lt_range lt_check_range(lua_State *L, lt_bind *b, lt_range r, int64_t n, const char *who,
                        const lt_tensor *x) {
  if (r.step <= 0)
    lt_raise(L, b, LT_EARG, "%s: a step must be at least 1, got %lld", who, (long long)r.step);
  if (r.from == 0) lt_raise(L, b, LT_EARG, "%s: positions start at 1, got 0", who);
  int64_t from = r.from > 0 ? r.from : r.from + n + 1, to = r.to >= 0 ? r.to : r.to + n + 1;
  if (from < 1 || from > n + 1 || to < 0 || to > n)
    lt_raise(L, b, LT_ESHAPE, "%s: range {%lld, %lld} is out of 1..%lld of shape %s", who,
             (long long)r.from, (long long)r.to, (long long)n, LT_TENSOR_STR(x));
  if (to < from) return (lt_range){.from = 0, .n = 0, .step = 1};
  int64_t count = (to - from) / r.step + 1;
  return (lt_range){.from = from - 1, .n = count, .step = count > 1 ? r.step : 1};
}

/* Whether the script's own code has called, not the library's. */
static bool is_of_script(lua_State *L) {
  lua_Debug ar;
  if (lua_getstack(L, 1, &ar) == 0) return false;
  lua_getinfo(L, "Sl", &ar);
  return ar.currentline > 0 && !lt_source_is_ours(ar.source);
}

lt_tensor *lt_check_tensor(lua_State *L, lt_bind *b, int index, const char *who) {
  lt_boxed *box = lt_to_box(L, b, index);
  if (box != NULL && box->t != NULL) return box->t;
  if (box != NULL)
    lt_raise(L, b, LT_EARG, "%s: argument %d is a tensor that was closed", who, index);
  bool dotted =
    index == 1 && (lua_isnone(L, 1) || lua_type(L, 1) == LUA_TNUMBER) && is_of_script(L);
  lt_raise(L, b, LT_EARG, "%s: argument %d must be a tensor, got %s%s%s%s", who, index,
           lua_type(L, index) == LUA_TNONE ? "nothing" : lt_shown(L, index),
           dotted ? "; a method is called with a colon: x:" : "", dotted ? who : "",
           dotted ? "(...)" : "");
}
