/* lua/bind/ops/compare.c: x:equal(y): whether two tensors have the same shape and elements, as a
   boolean; synchronizes their device. */
#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/values.h"
#include "bind/ops/arguments.h"

/* Closes the call; the boolean is whether all elements of `y` are true. */
static int push_all(lua_State *L, lt_bind *b, lt_frame frame, lt_tensor *y) {
  lt_scalar all = {0};
  y = lt_unary(b->c, LT_OP_all, y);
  if (y != NULL) lt_item(b->c, y, &all);
  lt_end_call(L, b, frame);
  lua_pushboolean(L, all.i != 0);
  return 1;
}

/* x:allclose(y [, {rtol = 1e-5, atol = 1e-8, equal_nan = false}]) */
static int allclose(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_reading r;
  lt_reading_init(&r, LT_OP_isclose);
  r.who = "allclose";
  lt_read_call(L, b, &r, 1);
  lt_frame frame = lt_begin(L, b, 0);
  lt_make_numbers(b->c, &r);
  return push_all(L, b, frame, lt_apply1(b->c, LT_OP_isclose, r.n_in, r.in, r.args));
}

/* x:equal(y): the same shape and elements */
static int equal(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "equal"), *y = lt_check_tensor(L, b, 2, "equal");
  if (!lt_shape_equal(lt_tensor_shape(x), lt_tensor_shape(y))) {
    lua_pushboolean(L, false);
    return 1;
  }
  lt_frame frame = lt_begin(L, b, 0);
  return push_all(L, b, frame, lt_binary(b->c, LT_OP_eq, x, y));
}

void lt_bind_compare(lua_State *L, lt_bind *b) {
  static const lt_formed functions[] = {
      {{"allclose", allclose, -1}, "x other | rtol atol equal_nan"},
      {{"equal", equal, 2}, "x other"},
      {{NULL, NULL, 0}, NULL}};
  for (int table = 1; table <= 2; table++) {
    lua_pushvalue(L, table);
    lt_add_formed(L, b, functions);
    lua_pop(L, 1);
  }
}
