/* lua/bind/ops/in_place.c: methods that write into a tensor and are not rows: fill_, zero_, copy_,
   uniform_, normal_. */
#include <string.h>

#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/public_functions.h"
#include "bind/core/raise.h"
#include "bind/core/values.h"
#include "bind/ops/arguments.h"
#include "ops/inplace.h"

static int fill(lua_State *L, const char *who, bool zero) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, who);
  lt_reading r;
  lt_reading_init(&r, LT_OP_fill);
  r.who = who;
  if (zero) {
    ((lt_args_fill *)r.args)->value = lt_scalar_int(0);
    lt_mark_present(&r, "value");
  }
  lt_read_arguments(L, b, &r, 2);
  lt_frame frame = lt_begin(L, b, 0);
  lt_apply(b->c, LT_OP_fill, 1, &(lt_tensor *){x}, r.args, 1, &x);
  lt_end_call(L, b, frame);
  lua_settop(L, 1);
  return 1;
}

static int fill_(lua_State *L) { return fill(L, "fill_", false); }
static int zero_(lua_State *L) { return fill(L, "zero_", true); }

static int copy_(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, "copy_"), *from = lt_check_tensor(L, b, 2, "copy_");
  lt_frame frame = lt_begin(L, b, 0);
  lt_copy_into(b->c, x, from);
  lt_end_call(L, b, frame);
  lua_settop(L, 1);
  return 1;
}

/* Random numbers. */

static double number_at(lua_State *L, lt_bind *b, int index, double usual, const char *who,
                        const char *name) {
  if (lua_isnoneornil(L, index)) return usual;
  if (lua_type(L, index) != LUA_TNUMBER)
    lt_raise(L, b, LT_EARG, "%s: argument '%s' must be a number, got %s", who, name,
             lt_shown(L, index));
  return lua_tonumber(L, index);
}

/* *y = op(*y, number), in place if `in_place`. */
static bool by_number(lt_ctx *c, lt_op op, lt_tensor **y, double number, bool in_place) {
  lt_tensor *out = in_place ? *y : NULL;
  bool ok = lt_apply(c, op, 1, y, &(lt_args_binary){.b = lt_scalar_of(number)}, 1, &out);
  *y = out;
  return ok;
}

/* x = draw * scale + shift without other memory: in place, unless x has a history, for which a copy
   is made that then goes into x through the tape. The draw is the same in both cases, since it
   depends on the position and not on where it is written. */
static bool draw_into(lt_ctx *c, lt_tensor *x, lt_op op, double scale, double shift) {
  if (!lt_check_writable(c, x, 0, NULL)) return false;
  bool in_place = !c->modes.grad || !lt_requires_grad(x);
  lt_args_random args = {.dtype = (lt_dtype)x->dtype, .device = x->storage->device};
  args.size.n = x->ndim;
  memcpy(args.size.size, x->size, sizeof args.size.size);
  lt_tensor *y = in_place ? x : NULL;
  return lt_apply(c, op, 0, NULL, &args, 1, &y) && by_number(c, LT_OP_mul, &y, scale, in_place) &&
         by_number(c, LT_OP_add, &y, shift, in_place) && (in_place || lt_copy_into(c, x, y));
}

static int fill_random(lua_State *L, const char *who, lt_op op, const char *first,
                       const char *second) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_check_tensor(L, b, 1, who);
  double low = number_at(L, b, 2, 0, who, first), high = number_at(L, b, 3, 1, who, second);
  if (!lt_dtype_is_float((lt_dtype)x->dtype))
    lt_raise(L, b, LT_EDTYPE,
             "%s: only floating-point tensors can be filled with random numbers, this is %s", who,
             lt_dtype_name((lt_dtype)x->dtype));
  lt_frame frame = lt_begin(L, b, 0);
  b->c->op = who;
  draw_into(b->c, x, op, op == LT_OP_rand ? high - low : high, low);
  b->c->op = NULL;
  lt_end_call(L, b, frame);
  lua_settop(L, 1);
  return 1;
}

/* x:uniform_([from = 0, to = 1]), x:normal_([mean = 0, std = 1]) */
static int uniform_(lua_State *L) { return fill_random(L, "uniform_", LT_OP_rand, "from", "to"); }
static int normal_(lua_State *L) { return fill_random(L, "normal_", LT_OP_randn, "mean", "std"); }

void lt_bind_in_place(lua_State *L, lt_bind *b) {
  static const lt_formed methods[] = {{{"fill_", fill_, -1}, "x value"},
                                      {{"zero_", zero_, -1}, "x"},
                                      {{"copy_", copy_, 2}, "x src"},
                                      {{"uniform_", uniform_, 3}, "x | from to"},
                                      {{"normal_", normal_, 3}, "x | mean std"},
                                      {{NULL, NULL, 0}, NULL}};
  lua_pushvalue(L, 2);
  lt_add_formed(L, b, methods);
  lua_pop(L, 1);
}
