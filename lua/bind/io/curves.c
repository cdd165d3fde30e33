/* lua/bind/io/curves.c: `c.io.curves()`: metrics of a run, read as they grow
   (io/metric_curves.h). */
#include "bind/core/types.h"
#include "io/metric_curves.h"

#include <math.h>

#include "bind/io/io.h"

#define CURVES_NAME "ltrain.Curves"

static lt_curves *check(lua_State *L) { return luaL_checkudata(L, 1, CURVES_NAME); }

static lt_curve *check_curve(lua_State *L, lt_curves *t) {
  lua_Integer k = luaL_checkinteger(L, 2);
  luaL_argcheck(L, k >= 1 && k <= t->n_curves, 2, "a number of a curve");
  return &t->curves[k - 1];
}

static int curves_gc(lua_State *L) {
  lt_curves_free(check(L));
  return 0;
}

/* io.curves() -> curves */
int lt_io_curves(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_curves *t = lua_newuserdatauv(L, sizeof *t, 0);
  *t = lt_curves_begin(b->c);
  luaL_setmetatable(L, CURVES_NAME);
  return 1;
}

/* curves:feed(text) -> how many bytes of it are whole lines; nil and a reason where it is not a
   metrics.csv */
static int feed(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t n;
  const char *text = luaL_checklstring(L, 2, &n);
  int64_t taken = lt_curves_feed(check(L), "metrics.csv", text, n);
  if (taken < 0) return lt_refused(L, b);
  lua_pushinteger(L, taken);
  return 1;
}

/* curves:names() -> list */
static int names(lua_State *L) {
  const lt_curves *t = check(L);
  lua_createtable(L, t->n_curves > 0 ? t->n_curves : 0, 0);
  for (int k = 0; k < t->n_curves; k++) {
    lua_pushlstring(L, t->curves[k].name, t->curves[k].name_size);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* curves:size() -> rows, bytes of memory */
static int size(lua_State *L) {
  const lt_curves *t = check(L);
  lua_pushinteger(L, t->n_rows);
  lua_pushinteger(L, (lua_Integer)lt_curves_bytes(t));
  return 2;
}

/* curves:extends(before) -> whether all that `before` has comes first in these */
static int extends(lua_State *L) {
  lua_pushboolean(L, lt_curves_extends(check(L), luaL_checkudata(L, 2, CURVES_NAME)));
  return 1;
}

/* Whole numbers are integers. */
static void push_number(lua_State *L, double x) {
  lua_Integer n;
  if (lua_numbertointeger(x, &n) && (double)n == x && fabs(x) < 0x1p53)
    lua_pushinteger(L, n);
  else
    lua_pushnumber(L, x);
}

/* curves:summary(k) -> count, last, lowest, its step, highest, its step; of finite ones, or nil */
static int summary(lua_State *L) {
  lt_curves *t = check(L);
  const lt_curve *one = check_curve(L, t);
  int64_t low = -1, high = -1;
  for (int64_t i = 0; i < one->count; i++) {
    double y = one->values[i];
    if (!isfinite(y)) continue;
    if (low < 0 || y < one->values[low]) low = i;
    if (high < 0 || y > one->values[high]) high = i;
  }
  lua_pushinteger(L, one->count);
  if (one->count == 0) return 1;
  push_number(L, one->values[one->count - 1]);
  if (low < 0) return 2;
  push_number(L, one->values[low]);
  push_number(L, t->steps[one->rows[low]]);
  push_number(L, one->values[high]);
  push_number(L, t->steps[one->rows[high]]);
  return 6;
}

/* curves:points(k, "step" | "epoch" | "row", from, to, most) -> steps, epochs, values, three lists,
   and how many there are in the range; a most of 0: all */
static int points(lua_State *L) {
  static const char *const axes[] = {"step", "epoch", "row", NULL};
  lt_curves *t = check(L);
  const lt_curve *one = check_curve(L, t);
  lt_curve_range range = {.axis = (lt_curve_axis)luaL_checkoption(L, 3, NULL, axes),
                          .from = luaL_optnumber(L, 4, -HUGE_VAL),
                          .to = luaL_optnumber(L, 5, HUGE_VAL)};
  lua_Integer most = luaL_checkinteger(L, 6);
  luaL_argcheck(L, most == 0 || (most >= 10 && most <= 1 << 20), 6, "10 or more points");
  if (most == 0 || most > one->count) most = one->count + 10;
  int64_t *kept = lua_newuserdatauv(L, (size_t)most * sizeof *kept, 0), count;
  int64_t n = lt_curves_pick(t, one, range, most, kept, &count);
  for (int list = 0; list < 3; list++) {
    lua_createtable(L, (int)n, 0);
    for (int64_t i = 0; i < n; i++) {
      uint32_t row = one->rows[kept[i]];
      push_number(L, list == 0 ? t->steps[row] : list == 1 ? t->epochs[row] : one->values[kept[i]]);
      lua_rawseti(L, -2, i + 1);
    }
  }
  lua_pushinteger(L, count);
  return 4;
}

void lt_bind_curves(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__gc", curves_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"feed", feed},       {"names", names},
                                     {"size", size},       {"extends", extends},
                                     {"summary", summary}, {"points", points},
                                     {NULL, NULL}};
  lt_new_type(L, b, CURVES_NAME, meta, methods);
}
