/* lua/bind/ops/print.c: tostring of a tensor, in PyTorch's form (torch/_tensor_str.py): 4 decimals,
   one width for all elements, scientific when magnitudes differ by 1000, 80 columns, dims of more
   than 6 elements cut to their ends when there are over 1000 elements. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "bind/core/call.h"
#include "bind/core/openers.h"
#include "bind/core/tensor.h"
#include "bind/core/types.h"
#include "bind/ops/convert.h"
#include "ops/node.h"

/* torch.set_printoptions' defaults (edgeitems, threshold, linewidth), and the width of "tensor(".
   NUMBER has space for the longest "%.0f." of a double, 309 digits. */
enum { EDGE = 3, THRESHOLD = 1000, LINE_WIDTH = 80, INDENT = 7, NUMBER = 400 };

typedef struct printer {
  luaL_Buffer *out;
  const void *data;
  lt_dtype as;
  lt_shape shape;        /* of data: after cutting */
  bool cut[LT_MAX_DIMS]; /* this dim stands for a longer one: "..." in its middle */
  bool integral, scientific;
  int width;
  int64_t next; /* element to print */
} printer;

static int format_float(const printer *p, double v, char *text) {
  if (isnan(v)) return snprintf(text, NUMBER, "nan");
  if (isinf(v)) return snprintf(text, NUMBER, v > 0 ? "inf" : "-inf");
  if (p->scientific) return lt_format(text, NUMBER, "%.4e", v);
  return lt_format(text, NUMBER, p->integral ? "%.0f." : "%.4f", v);
}

static int format_element(const printer *p, int64_t k, char *text) {
  if (p->as == LT_F64) return format_float(p, ((const double *)p->data)[k], text);
  if (p->as == LT_I64)
    return snprintf(text, NUMBER, "%lld", (long long)((const int64_t *)p->data)[k]);
  return snprintf(text, NUMBER, ((const uint8_t *)p->data)[k] != 0 ? "True" : "False");
}

/* Choose the form and the width that fit all elements. The thresholds are PyTorch's: scientific if
   the largest finite magnitude is over 1000 times the smallest, or over 1e8, or the smallest is
   below 1e-4. Infinities, NaN and zeros have no say. */
static void measure(printer *p) {
  int64_t n = lt_shape_numel(p->shape);
  char text[NUMBER];
  double low = INFINITY, high = 0;
  const double *v = p->data;
  p->integral = true;
  for (int64_t k = 0; k < n && p->as == LT_F64; k++) {
    double a = fabs(v[k]);
    if (!isfinite(a) || a == 0) continue;
    low = a < low ? a : low;
    high = a > high ? a : high;
    if (v[k] != ceil(v[k])) p->integral = false;
  }
  p->scientific = high > 0 && (high / low > 1000 || high > 1e8 || low < 1e-4);
  p->width = 1;
  for (int64_t k = 0; k < n; k++) {
    if (p->as == LT_F64 && (!isfinite(v[k]) || v[k] == 0)) continue;
    int length = format_element(p, k, text);
    if (length > p->width) p->width = length;
  }
}

static void add_spaces(luaL_Buffer *out, int n) {
  while (n-- > 0) luaL_addchar(out, ' ');
}

static void add_element(printer *p) {
  char text[NUMBER];
  int length = format_element(p, p->next++, text);
  add_spaces(p->out, p->width - length);
  luaL_addlstring(p->out, text, (size_t)length);
}

/* How many elements of `items` stand in a line: as in PyTorch, but for the brackets at the end of
   the last one, which PyTorch has beyond the line's width. */
static int elements_per_line(const printer *p, int indent, int64_t items) {
  int per_line = (LINE_WIDTH - indent) / (p->width + 2);
  for (; per_line > 1; per_line--) {
    int64_t rest = items % per_line, last = rest == 0 ? per_line : rest;
    if (items == 0 || indent - 1 + last * (p->width + 2) + p->shape.ndim + 1 <= LINE_WIDTH) break;
  }
  return per_line > 1 ? per_line : 1;
}

static void add_vector(printer *p, int indent, int dim) {
  int64_t n = p->shape.size[dim], items = n + p->cut[dim];
  int per_line = elements_per_line(p, indent, items);
  luaL_addchar(p->out, '[');
  for (int64_t k = 0; k < items; k++) {
    if (k > 0 && k % per_line == 0) {
      luaL_addstring(p->out, ",\n");
      add_spaces(p->out, indent + 1);
    } else if (k > 0) {
      luaL_addstring(p->out, ", ");
    }
    if (p->cut[dim] && k == EDGE)
      luaL_addstring(p->out, " ...");
    else
      add_element(p);
  }
  luaL_addchar(p->out, ']');
}

/* PyTorch's layout: a dim's parts are separated by as many line breaks as dims lie below it. */
static void add_dims(printer *p, int indent, int dim) {
  if (dim == p->shape.ndim) {
    add_element(p);
    return;
  }
  if (dim == p->shape.ndim - 1) {
    add_vector(p, indent, dim);
    return;
  }
  int64_t items = p->shape.size[dim] + p->cut[dim];
  luaL_addchar(p->out, '[');
  for (int64_t k = 0; k < items; k++) {
    if (k > 0) {
      luaL_addchar(p->out, ',');
      for (int line = dim; line < p->shape.ndim - 1; line++) luaL_addchar(p->out, '\n');
      add_spaces(p->out, indent + 1);
    }
    if (p->cut[dim] && k == EDGE)
      luaL_addstring(p->out, "...");
    else
      add_dims(p, indent + 1, dim + 1);
  }
  luaL_addchar(p->out, ']');
}

/* Both ends of every long dim, as a tensor of its own. On the tensor's own device: at most 6
   elements a dim cross to the host, not the tensor. */
static lt_tensor *cut_ends(lt_ctx *c, lt_tensor *x, printer *p) {
  for (int k = 0; k < x->ndim && x != NULL; k++) {
    if (x->size[k] <= 2 * EDGE) continue;
    lt_shape shape = lt_tensor_shape(x);
    shape.size[k] = 2 * EDGE;
    lt_tensor *y =
        lt_tensor_empty(c, x->storage->device, (lt_dtype)x->dtype, shape.ndim, shape.size);
    if (y == NULL) return NULL;
    if (!lt_copy_into(c, lt_slice(c, y, k, 0, EDGE, 1), lt_slice(c, x, k, 0, EDGE, 1)) ||
        !lt_copy_into(c, lt_slice(c, y, k, EDGE, EDGE, 1),
                      lt_slice(c, x, k, x->size[k] - EDGE, EDGE, 1)))
      return NULL;
    p->cut[k] = true;
    x = y;
  }
  return x;
}

/* Elements to print, in memory of Lua's that is left on the stack. */
static void take_elements(lua_State *L, lt_bind *b, lt_tensor *x, printer *p) {
  if (x->numel > THRESHOLD) {
    lt_frame frame = lt_begin(L, b, 1);
    lt_tensor *y = cut_ends(b->c, lt_detach(b->c, x), p);
    lt_end(L, b, frame, 1, &y);
    x = lt_to_tensor(L, b, -1);
  }
  p->shape = lt_tensor_shape(x);
  p->data = lt_push_elements(L, b, x, &p->as);
}

/* Suffixes go on the last line while they fit. */
static void add_suffix(luaL_Buffer *out, int *column, const char *suffix) {
  int length = (int)strlen(suffix);
  if (*column + length + 2 > LINE_WIDTH) {
    luaL_addstring(out, ",\n");
    add_spaces(out, INDENT);
    *column = INDENT + length;
  } else {
    luaL_addstring(out, ", ");
    *column += length + 2;
  }
  luaL_addstring(out, suffix);
}

/* gelu_tanh -> GeluTanhBackward As PyTorch names nodes, so that what its documentation says of
   grad_fn is found here, too. */
static void name_node(const lt_tensor *x, char *text, size_t size) {
  const char *from = lt_node_name((const lt_node *)x->node);
  size_t at = (size_t)snprintf(text, size, "grad_fn=<");
  bool up = true;
  for (; *from != 0 && at + 12 < size; from++) {
    if (*from != '_') text[at++] = (char)(up ? toupper((unsigned char)*from) : *from);
    up = *from == '_';
  }
  snprintf(text + at, size - at, "Backward>");
}

/* PyTorch leaves out what is usual: the CPU, and the dtypes that a literal of Python would have.
   The size is shown where the elements do not show it. */
static void add_suffixes(luaL_Buffer *out, lt_ctx *c, const lt_tensor *x, int column) {
  char text[128];
  if (x->storage->device.kind != 0) {
    char device[32];
    lt_device_text(c, x->storage->device, device, sizeof device);
    snprintf(text, sizeof text, "device='%s'", device);
    add_suffix(out, &column, text);
  }
  if ((x->numel == 0 && x->ndim != 1) || lt_device_table(c, x->storage->device)->no_data) {
    size_t at = (size_t)snprintf(text, sizeof text, "size=(");
    for (int k = 0; k < x->ndim; k++)
      at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", k > 0 ? ", " : "",
                             (long long)x->size[k]);
    snprintf(text + at, sizeof text - at, ")");
    add_suffix(out, &column, text);
  }
  bool plain = x->dtype == LT_F32 || (x->numel > 0 && (x->dtype == LT_I64 || x->dtype == LT_BOOL));
  if (!plain) {
    snprintf(text, sizeof text, "dtype=%s", lt_dtype_torch_name((lt_dtype)x->dtype));
    add_suffix(out, &column, text);
  }
  if (x->node != NULL) {
    name_node(x, text, sizeof text);
    add_suffix(out, &column, text);
  } else if (lt_requires_grad(x)) {
    add_suffix(out, &column, "requires_grad=True");
  }
}

/* A tensor that was closed prints, and raises not: a debugger or a log shows what it can. Meta
   tensors print "..." for they have no elements. */
static int tensor_tostring(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_tensor *x = lt_to_tensor(L, b, 1);
  if (x == NULL) {
    lua_pushliteral(L, "tensor(closed)");
    return 1;
  }
  printer p = {0};
  bool is_meta = lt_device_table(b->c, x->storage->device)->no_data;
  if (x->numel > 0 && !is_meta) take_elements(L, b, x, &p);
  luaL_Buffer out;
  luaL_buffinit(L, &out);
  p.out = &out;
  luaL_addstring(&out, "tensor(");
  if (is_meta) {
    luaL_addstring(&out, "...");
  } else if (x->numel > 0) {
    measure(&p);
    add_dims(&p, INDENT, 0);
  } else {
    luaL_addstring(&out, "[]");
  }
  size_t length = luaL_bufflen(&out), at = length;
  const char *text = luaL_buffaddr(&out);
  while (at > 0 && text[at - 1] != '\n') at--;
  add_suffixes(&out, b->c, x, (int)(length - at) + 2);
  luaL_addchar(&out, ')');
  luaL_pushresult(&out);
  return 1;
}

void lt_bind_print(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__tostring", tensor_tostring}, {NULL, NULL}};
  lua_rawgeti(L, LUA_REGISTRYINDEX, b->metatable_ref);
  lt_add_functions(L, b, meta);
  lua_pop(L, 1);
}
