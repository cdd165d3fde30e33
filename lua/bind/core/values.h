/* lua/bind/core/values.h: single values from the Lua stack, raising when they are of the wrong
   kind.

   `who` and `name` are for messages: "sum: argument 'dims' must be an integer, got string".
   Scripts count dims and positions from 1, negative ones from the end; C counts them from 0. */
#ifndef LT_BIND_CORE_VALUES_H
#define LT_BIND_CORE_VALUES_H

#include "bind/core/nearest_word.h"
#include "bind/core/state.h"

/* THE conversion of a dim or position: 1, 2, ... to 0, 1, ...; negative ones stay; false for 0. */
bool lt_from_zero(int64_t position, int64_t *out);

/* The value at `index` as messages show it: "a tensor", "'text'", "3", "table". It may push a
   text, which is good as long as that stays on the stack. */
const char *lt_shown(lua_State *L, int index);

/* Push a text without what a terminal would act on; `keep`: an lt_printable_keep. */
void lt_push_printable(lua_State *L, const char *text, size_t n, int keep);
int lt_printable(lua_State *L);

/* The tensor at `index`; raises "who: argument n must be a tensor, got string". */
lt_tensor *lt_check_tensor(lua_State *L, lt_bind *b, int index, const char *who);

/* true or false. */
bool lt_check_flag(lua_State *L, lt_bind *b, int index, const char *who, const char *name);

/* Kind LT_NO_SCALAR when it is neither a number nor a boolean. */
lt_scalar lt_to_scalar(lua_State *L, int index);

int64_t lt_check_int(lua_State *L, lt_bind *b, int index, const char *who, const char *name);

/* A number, a boolean, or a tensor of one element. */
lt_scalar lt_check_scalar(lua_State *L, lt_bind *b, int index, const char *who, const char *name);

/* As C counts, but not checked against a shape. */
int64_t lt_check_dim(lua_State *L, lt_bind *b, int index, const char *who, const char *name);
int64_t lt_check_pos(lua_State *L, lt_bind *b, int index, const char *who, const char *name);

/* A dim of `t`, as 0..ndim-1. */
int lt_check_dim_of(lua_State *L, lt_bind *b, int index, const lt_tensor *t, const char *who,
                    const char *name);

/* A position in a dim of n elements of `x`, as 0..n-1. */
int64_t lt_check_position(lua_State *L, lt_bind *b, int index, int64_t n, const char *who,
                          const lt_tensor *x);

/* As passed: from..to by step, both ends included. As checked: n elements from `from` by step. */
typedef struct lt_range {
  int64_t from, to, step, n;
} lt_range;

/* A range in a dim of n elements of `x`: no clipping; {3, 2} is empty. */
lt_range lt_check_range(lua_State *L, lt_bind *b, lt_range r, int64_t n, const char *who,
                        const lt_tensor *x);

/* Names. */
lt_dtype lt_check_dtype(lua_State *L, lt_bind *b, int index, const char *who);
void lt_consider_dtypes(lt_nearest *n, const char *unknown);
const char *lt_push_dtype_names(lua_State *L); /* pushes and gives "f32 f64 ..." */
lt_device lt_check_device(lua_State *L, lt_bind *b, int index, const char *who);
int64_t lt_check_choice(lua_State *L, lt_bind *b, int index, const char *who, const lt_arg *a);

/* A number or a table of them. */
lt_sizes lt_check_sizes(lua_State *L, lt_bind *b, int index, const char *who, const char *name);
lt_dims lt_check_dims(lua_State *L, lt_bind *b, int index, const char *who, const char *name);
lt_pair lt_check_pair(lua_State *L, lt_bind *b, int index, const char *who, const char *name);
lt_sizes lt_check_each(lua_State *L, lt_bind *b, int index, const char *who, const lt_arg *a);

#endif
