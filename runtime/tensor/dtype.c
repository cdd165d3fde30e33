/* runtime/tensor/dtype.c: one table of element types. */
#include "tensor/dtype.h"

#include <string.h>

enum category { BOOLEAN, INTEGER, FLOATING };

static const struct {
  uint8_t size;
  uint8_t category;
  const char *name, *torch_name, *alias;
} table[LT_DTYPE_COUNT] = {
    [LT_F32] = {4, FLOATING, "f32", "float32", "float"},
    [LT_F64] = {8, FLOATING, "f64", "float64", "double"},
    [LT_F16] = {2, FLOATING, "f16", "float16", "half"},
    [LT_BF16] = {2, FLOATING, "bf16", "bfloat16", "bfloat16"},
    [LT_I64] = {8, INTEGER, "i64", "int64", "long"},
    [LT_I32] = {4, INTEGER, "i32", "int32", "int"},
    [LT_U8] = {1, INTEGER, "u8", "uint8", "byte"},
    [LT_BOOL] = {1, BOOLEAN, "bool", "bool", "bool"},
};

size_t lt_dtype_size(lt_dtype d) { return table[d].size; }
const char *lt_dtype_name(lt_dtype d) { return d < 0 ? "none" : table[d].name; }
const char *lt_dtype_torch_name(lt_dtype d) { return table[d].torch_name; }
bool lt_dtype_is_float(lt_dtype d) { return table[d].category == FLOATING; }
bool lt_dtype_is_int(lt_dtype d) { return table[d].category == INTEGER; }

lt_dtype lt_dtype_from_name(const char *name) {
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    if (strcmp(name, table[d].name) == 0 || strcmp(name, table[d].torch_name) == 0 ||
        strcmp(name, table[d].alias) == 0)
      return (lt_dtype)d;
  return LT_DTYPE_NONE;
}

lt_dtype lt_dtype_promote(lt_dtype a, lt_dtype b) {
  if (a == b) return a;
  if (table[a].category != table[b].category)
    return table[a].category > table[b].category ? a : b;
  if (table[a].category == FLOATING) {
    if (table[a].size == table[b].size) return LT_F32; /* f16 with bf16 */
    return table[a].size > table[b].size ? a : b;
  }
  return table[a].size > table[b].size ? a : b; /* u8 < i32 < i64 */
}
