/* runtime/tensor/dtype.c: properties of dtypes, from the rows of dtype.def, and type promotion. */
#include "tensor/dtype.h"

#include <string.h>

#define LT_DTYPE(id, category_, memory, own, half, name_, torch_name_, method_, idx_)             \
  [LT_##id] = {.size = sizeof(memory),                                                            \
               .category = LT_##category_,                                                        \
               .is_signed = (memory)-1 < (memory)1,                                               \
               .name = name_,                                                                     \
               .torch_name = torch_name_,                                                         \
               .method = method_,                                                                 \
               .safetensors = #id,                                                                \
               .idx = idx_},
static const lt_dtype_info table[LT_DTYPE_COUNT] = {
#include "tensor/dtype.def"
};

/* A dtype without a row does not compile. */
#define LT_DTYPE(id, ...) +1
_Static_assert(LT_DTYPE_COUNT ==
#include "tensor/dtype.def"
               , "each of the enum has a row");

const lt_dtype_info *lt_dtype_row(lt_dtype d) { return &table[d]; }
size_t lt_dtype_size(lt_dtype d) { return table[d].size; }
const char *lt_dtype_name(lt_dtype d) { return d < 0 ? "none" : table[d].name; }
const char *lt_dtype_torch_name(lt_dtype d) { return table[d].torch_name; }
bool lt_dtype_is_float(lt_dtype d) { return table[d].category == LT_FLOATING; }
bool lt_dtype_is_int(lt_dtype d) { return table[d].category == LT_INTEGER; }

lt_dtype lt_dtype_from_name(const char *name) {
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    if (strcmp(name, table[d].name) == 0 || strcmp(name, table[d].torch_name) == 0 ||
        strcmp(name, table[d].method) == 0)
      return (lt_dtype)d;
  return LT_DTYPE_NONE;
}

/* Whether the integers of `a` hold every value of those of `b`. */
static bool holds(lt_dtype a, lt_dtype b) {
  if (table[a].is_signed == table[b].is_signed) return table[a].size >= table[b].size;
  return table[a].is_signed && table[a].size > table[b].size;
}

/* The smallest common type is searched in the rows, so that a new dtype needs no table of pairs. */
static lt_dtype promote_ints(lt_dtype a, lt_dtype b) {
  lt_dtype least = LT_I64;
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    if (table[d].category == LT_INTEGER && holds((lt_dtype)d, a) && holds((lt_dtype)d, b) &&
        table[d].size < table[least].size)
      least = (lt_dtype)d;
  return least;
}

/* Category first: i64 with f16 is f16, since the value of an integer operand seldom needs the range
   of a wider float, and models in f16 should stay so. */
lt_dtype lt_dtype_promote(lt_dtype a, lt_dtype b) {
  if (a == b) return a;
  if (table[a].category != table[b].category)
    return table[a].category > table[b].category ? a : b;
  if (table[a].category == LT_INTEGER) return promote_ints(a, b);
  if (table[a].size == table[b].size) return LT_F32; /* f16 with bf16 */
  return table[a].size > table[b].size ? a : b;
}
