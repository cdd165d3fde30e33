/* runtime/xla/hlo.c: the operations of StableHLO as text; shapes of results are computed here. */
#include "xla/hlo.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xla/plugin.h"

int lt_hlo_stored(int type) {
  if (type != LT_F64 && type != LT_HLO_C128) return type;
  if (lt_xla_has_f64()) return type;
  return type == LT_F64 ? LT_F32 : LT_HLO_C64;
}

static const char *type_name(int type) {
  static const char *const names[] = {
      [LT_F32] = "f32", [LT_F64] = "f64",  [LT_F16] = "f16",       [LT_BF16] = "bf16",
      [LT_I64] = "i64", [LT_I32] = "i32",  [LT_U8] = "ui8",        [LT_BOOL] = "i1",
      [LT_I16] = "i16", [LT_U16] = "ui16", [LT_I8] = "i8",         [LT_HLO_U32] = "ui32",
      [LT_HLO_U64] = "ui64", [LT_HLO_C64] = "complex<f32>", [LT_HLO_C128] = "complex<f64>"};
  return names[lt_hlo_stored(type)];
}

size_t lt_hlo_bytes(int type) {
  static const unsigned char sizes[] = {
#define LT_DTYPE(id, category, memory, ...) [LT_##id] = sizeof(memory),
#include "tensor/dtype.def"
      [LT_HLO_U32] = 4, [LT_HLO_U64] = 8};
  return sizes[type];
}

bool lt_hlo_is_float(int type) {
  return type == LT_F32 || type == LT_F64 || type == LT_F16 || type == LT_BF16;
}

static void append(lt_hlo_text *h, const char *text, size_t n) {
  if (h->failed || h->discard) return;
  if (h->size + n + 1 > h->capacity) {
    size_t capacity = 2 * h->capacity + n + 4096;
    char *more = realloc(h->text, capacity);
    if (more == NULL) {
      h->failed = true;
      return;
    }
    h->text = more, h->capacity = capacity;
  }
  memcpy(h->text + h->size, text, n);
  h->size += n;
  h->text[h->size] = 0;
}

static void append_text(lt_hlo_text *h, const char *text) { append(h, text, strlen(text)); }

static void append_int(lt_hlo_text *h, int64_t value) {
  char text[24];
  append(h, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

static void append_name(lt_hlo_text *h, const lt_hlo *x) {
  if (x->id == 0) h->failed = true;
  append_text(h, "%");
  append_int(h, x->id);
  if (x->part < 0) return;
  append_text(h, "#");
  append_int(h, x->part);
}

static void append_type(lt_hlo_text *h, const lt_hlo *x) {
  append_text(h, "tensor<");
  for (int k = 0; k < x->ndim; k++) append_int(h, x->size[k]), append_text(h, "x");
  append_text(h, type_name(x->type));
  append_text(h, ">");
}

static void append_list(lt_hlo_text *h, const int64_t *list, int n) {
  for (int k = 0; k < n; k++) {
    if (k > 0) append_text(h, ", ");
    append_int(h, list[k]);
  }
}

static void append_values(lt_hlo_text *h, const lt_hlo *list, int n,
                          void (*one)(lt_hlo_text *, const lt_hlo *)) {
  for (int k = 0; k < n; k++) {
    if (k > 0) append_text(h, ", ");
    one(h, &list[k]);
  }
}

static void put(lt_hlo_text *h, const char *format, va_list arguments) {
  for (const char *at = format; *at != 0;) {
    size_t plain = strcspn(at, "$@%");
    append(h, at, plain);
    at += plain;
    if (*at == 0) return;
    if (*at == '$') append_name(h, va_arg(arguments, const lt_hlo *));
    if (*at == '@') append_type(h, va_arg(arguments, const lt_hlo *));
    if (*at++ != '%') continue;
    if (*at == 's') append_text(h, va_arg(arguments, const char *));
    if (*at == 'd') append_int(h, va_arg(arguments, int64_t));
    if (*at == '%') append_text(h, "%");
    if (*at == 'l') {
      const int64_t *list = va_arg(arguments, const int64_t *);
      append_list(h, list, va_arg(arguments, int));
    }
    if (*at == 'v' || *at == 't') {
      const lt_hlo *list = va_arg(arguments, const lt_hlo *);
      append_values(h, list, va_arg(arguments, int), *at == 'v' ? append_name : append_type);
    }
    at++;
  }
}

void lt_hlo_put(lt_hlo_text *h, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put(h, format, arguments);
  va_end(arguments);
}

lt_hlo lt_hlo_line(lt_hlo_text *h, lt_hlo out, const char *format, ...) {
  va_list arguments;
  out.id = ++h->values;
  out.part = -1;
  append_name(h, &out);
  append_text(h, " = ");
  va_start(arguments, format);
  put(h, format, arguments);
  va_end(arguments);
  append_text(h, "\n");
  return out;
}

void lt_hlo_lines(lt_hlo_text *h, int n, lt_hlo *out, const char *format, ...) {
  va_list arguments;
  int id = ++h->values;
  for (int k = 0; k < n; k++) out[k].id = id, out[k].part = n > 1 ? k : -1;
  append_text(h, "%");
  append_int(h, id);
  if (n > 1) append_text(h, ":"), append_int(h, n);
  append_text(h, " = ");
  va_start(arguments, format);
  put(h, format, arguments);
  va_end(arguments);
  append_text(h, "\n");
}

lt_hlo lt_hlo_of(int type, int ndim, const int64_t *size) {
  lt_hlo x = {.part = -1, .type = type, .ndim = ndim};
  if (ndim > 0) memcpy(x.size, size, (size_t)ndim * sizeof *size);
  return x;
}

lt_hlo lt_hlo_scalar(int type) { return lt_hlo_of(type, 0, NULL); }
lt_hlo lt_hlo_typed(lt_hlo like, int type) { return lt_hlo_of(type, like.ndim, like.size); }

int64_t lt_hlo_numel(lt_hlo x) {
  int64_t n = 1;
  for (int k = 0; k < x.ndim; k++) n *= x.size[k];
  return n;
}

static bool same_shape(const lt_hlo *a, const lt_hlo *b) {
  return a->ndim == b->ndim && (a->ndim == 0 || memcmp(a->size, b->size, (size_t)a->ndim *
                                                                             sizeof *a->size) == 0);
}

/* ---- elementwise ---- */

lt_hlo lt_hlo_one(lt_hlo_text *h, const char *op, lt_hlo x) {
  return lt_hlo_line(h, x, "stablehlo.%s $ : @", op, &x, &x);
}

lt_hlo lt_hlo_two(lt_hlo_text *h, const char *op, lt_hlo a, lt_hlo b) {
  return lt_hlo_line(h, a, "stablehlo.%s $, $ : @", op, &a, &b, &a);
}

lt_hlo lt_hlo_compare(lt_hlo_text *h, const char *direction, lt_hlo a, lt_hlo b) {
  lt_hlo y = lt_hlo_typed(a, LT_BOOL);
  return lt_hlo_line(h, y, "stablehlo.compare %s, $, $ : (@, @) -> @", direction, &a, &b, &a, &b,
                     &y);
}

lt_hlo lt_hlo_choose(lt_hlo_text *h, lt_hlo condition, lt_hlo yes, lt_hlo no) {
  return lt_hlo_line(h, yes, "stablehlo.select $, $, $ : @, @", &condition, &yes, &no, &condition,
                     &yes);
}

static lt_hlo convert(lt_hlo_text *h, lt_hlo x, int type) {
  lt_hlo y = lt_hlo_typed(x, type);
  return lt_hlo_line(h, y, "stablehlo.convert $ : (@) -> @", &x, &x, &y);
}

lt_hlo lt_hlo_convert(lt_hlo_text *h, lt_hlo x, int type) {
  if (x.type == type) return x;
  if (type == LT_BOOL) return lt_hlo_compare(h, "NE", x, lt_hlo_integer(h, 0, x));
  if (lt_hlo_is_float(x.type) && !lt_hlo_is_float(type) && type != LT_I64)
    x = convert(h, x, LT_I64);
  return convert(h, x, type);
}

lt_hlo lt_hlo_bits(lt_hlo_text *h, lt_hlo x, int type) {
  lt_hlo y = lt_hlo_typed(x, type);
  return lt_hlo_line(h, y, "stablehlo.bitcast_convert $ : (@) -> @", &x, &x, &y);
}

/* Floats by their bits: exact, also infinities and NaN, in any locale. */
static void float_text(double value, int type, char *text, size_t capacity) {
  float narrow = (float)value;
  uint64_t wide;
  uint32_t bits;
  memcpy(&wide, &value, sizeof wide);
  memcpy(&bits, &narrow, sizeof bits);
  if (type == LT_F64)
    snprintf(text, capacity, "0x%016llX", (unsigned long long)wide);
  else
    snprintf(text, capacity, "0x%08X", (unsigned)bits);
}

lt_hlo lt_hlo_number(lt_hlo_text *h, double value, lt_hlo like) {
  char text[24];
  if (!lt_hlo_is_float(like.type)) return lt_hlo_integer(h, (int64_t)value, like);
  int type = like.type == LT_F64 ? LT_F64 : LT_F32;
  lt_hlo y = lt_hlo_typed(like, type);
  float_text(value, lt_hlo_stored(type), text, sizeof text);
  return lt_hlo_convert(h, lt_hlo_line(h, y, "stablehlo.constant dense<%s> : @", text, &y),
                        like.type);
}

lt_hlo lt_hlo_integer(lt_hlo_text *h, int64_t value, lt_hlo like) {
  if (lt_hlo_is_float(like.type)) return lt_hlo_number(h, (double)value, like);
  if (like.type == LT_BOOL)
    return lt_hlo_line(h, like, "stablehlo.constant dense<%s> : @", value != 0 ? "true" : "false",
                       &like);
  char text[24];
  bool word = like.type == LT_HLO_U64;
  snprintf(text, sizeof text, word ? "%llu" : "%lld", (long long)value);
  return lt_hlo_line(h, like, "stablehlo.constant dense<%s> : @", text, &like);
}

lt_hlo lt_hlo_by(lt_hlo_text *h, const char *op, lt_hlo x, double value) {
  return lt_hlo_two(h, op, x, lt_hlo_number(h, value, x));
}

lt_hlo lt_hlo_iota(lt_hlo_text *h, int type, lt_hlo shape, int dim) {
  lt_hlo y = lt_hlo_typed(shape, type);
  return lt_hlo_line(h, y, "stablehlo.iota dim = %d : @", (int64_t)dim, &y);
}

/* ---- shapes ---- */

lt_hlo lt_hlo_reshape(lt_hlo_text *h, lt_hlo x, int ndim, const int64_t *size) {
  lt_hlo y = lt_hlo_of(x.type, ndim, size);
  if (same_shape(&x, &y)) return x;
  return lt_hlo_line(h, y, "stablehlo.reshape $ : (@) -> @", &x, &x, &y);
}

lt_hlo lt_hlo_flat(lt_hlo_text *h, lt_hlo x) {
  int64_t n = lt_hlo_numel(x);
  return lt_hlo_reshape(h, x, 1, &n);
}

lt_hlo lt_hlo_permute(lt_hlo_text *h, lt_hlo x, const int64_t *dims) {
  lt_hlo y = x;
  bool same = true;
  for (int k = 0; k < x.ndim; k++) y.size[k] = x.size[dims[k]], same = same && dims[k] == k;
  if (same) return x;
  return lt_hlo_line(h, y, "stablehlo.transpose $, dims = [%l] : (@) -> @", &x, dims, x.ndim, &x,
                     &y);
}

lt_hlo lt_hlo_swap(lt_hlo_text *h, lt_hlo x, int a, int b) {
  int64_t dims[LT_HLO_DIMS];
  for (int k = 0; k < x.ndim; k++) dims[k] = k == a ? b : k == b ? a : k;
  return lt_hlo_permute(h, x, dims);
}

lt_hlo lt_hlo_spread(lt_hlo_text *h, lt_hlo x, lt_hlo shape, const int64_t *dims) {
  lt_hlo y = lt_hlo_typed(shape, x.type);
  if (same_shape(&x, &y)) return x;
  return lt_hlo_line(h, y, "stablehlo.broadcast_in_dim $, dims = [%l] : (@) -> @", &x, dims,
                     x.ndim, &x, &y);
}

lt_hlo lt_hlo_expand(lt_hlo_text *h, lt_hlo x, lt_hlo shape) {
  int64_t dims[LT_HLO_DIMS];
  for (int k = 0; k < x.ndim; k++) dims[k] = k + shape.ndim - x.ndim;
  return lt_hlo_spread(h, x, shape, dims);
}

lt_hlo lt_hlo_along(lt_hlo_text *h, lt_hlo x, lt_hlo shape, int dim) {
  return lt_hlo_spread(h, x, shape, (int64_t[]){dim});
}

lt_hlo lt_hlo_slice(lt_hlo_text *h, lt_hlo x, int dim, int64_t from, int64_t to, int64_t step) {
  if (from == 0 && to == x.size[dim] && step == 1) return x;
  lt_hlo y = x;
  y.size[dim] = (to - from + step - 1) / step;
  y.id = ++h->values, y.part = -1;
  lt_hlo_put(h, "$ = stablehlo.slice $ [", &y, &x);
  for (int k = 0; k < x.ndim; k++)
    lt_hlo_put(h, "%s%d:%d:%d", k > 0 ? ", " : "", k == dim ? from : (int64_t)0,
               k == dim ? to : x.size[k], k == dim ? step : (int64_t)1);
  lt_hlo_put(h, "] : (@) -> @\n", &x, &y);
  return y;
}

lt_hlo lt_hlo_pad(lt_hlo_text *h, lt_hlo x, double value, const int64_t *low,
                  const int64_t *high) {
  static const int64_t none[LT_HLO_DIMS] = {0};
  lt_hlo y = x, fill = lt_hlo_number(h, value, lt_hlo_scalar(x.type));
  for (int k = 0; k < x.ndim; k++) y.size[k] += low[k] + high[k];
  if (same_shape(&x, &y)) return x;
  return lt_hlo_line(h, y, "stablehlo.pad $, $, low = [%l], high = [%l], interior = [%l] : (@, @) "
                     "-> @", &x, &fill, low, x.ndim, high, x.ndim, none, x.ndim, &x, &fill, &y);
}

lt_hlo lt_hlo_join(lt_hlo_text *h, int n, const lt_hlo *x, int dim) {
  if (n == 1) return x[0];
  lt_hlo y = x[0];
  for (int k = 1; k < n; k++) y.size[dim] += x[k].size[dim];
  return lt_hlo_line(h, y, "stablehlo.concatenate %v, dim = %d : (%t) -> @", x, n, (int64_t)dim, x,
                     n, &y);
}

/* ---- sums and products ---- */

static int dims_of(unsigned mask, int64_t *dims) {
  int n = 0;
  for (int k = 0; k < LT_HLO_DIMS; k++)
    if ((mask >> k & 1) != 0) dims[n++] = k;
  return n;
}

lt_hlo lt_hlo_reduce(lt_hlo_text *h, const char *op, double start, lt_hlo x, unsigned dims,
                     bool keep) {
  int64_t list[LT_HLO_DIMS];
  int n = dims_of(dims, list);
  lt_hlo y = {.type = x.type}, kept = x, from = lt_hlo_number(h, start, lt_hlo_scalar(x.type));
  if (n == 0) return x;
  for (int k = 0; k < x.ndim; k++) {
    if ((dims >> k & 1) == 0) y.size[y.ndim++] = x.size[k];
    else kept.size[k] = 1;
  }
  y = lt_hlo_line(h, y, "stablehlo.reduce($ init: $) applies stablehlo.%s across dimensions = [%l] "
                  ": (@, @) -> @", &x, &from, op, list, n, &x, &from, &y);
  return keep ? lt_hlo_reshape(h, y, kept.ndim, kept.size) : y;
}

lt_hlo lt_hlo_sum(lt_hlo_text *h, lt_hlo x, unsigned dims, bool keep) {
  return lt_hlo_reduce(h, "add", 0, x, dims, keep);
}

lt_hlo lt_hlo_dot(lt_hlo_text *h, lt_hlo a, lt_hlo b, unsigned batch_a, unsigned batch_b,
                  unsigned by_a, unsigned by_b) {
  int64_t la[LT_HLO_DIMS], lb[LT_HLO_DIMS], ca[LT_HLO_DIMS], cb[LT_HLO_DIMS];
  int n = dims_of(batch_a, la), m = dims_of(by_a, ca);
  dims_of(batch_b, lb), dims_of(by_b, cb);
  lt_hlo y = {.type = a.type};
  for (int k = 0; k < n; k++) y.size[y.ndim++] = a.size[la[k]];
  for (int k = 0; k < a.ndim; k++)
    if (((batch_a | by_a) >> k & 1) == 0) y.size[y.ndim++] = a.size[k];
  for (int k = 0; k < b.ndim; k++)
    if (((batch_b | by_b) >> k & 1) == 0) y.size[y.ndim++] = b.size[k];
  return lt_hlo_line(h, y, "stablehlo.dot_general $, $, batching_dims = [%l] x [%l], "
                     "contracting_dims = [%l] x [%l], precision = [HIGHEST, HIGHEST] : (@, @) -> @",
                     &a, &b, la, n, lb, n, ca, m,
                     cb, m, &a, &b, &y);
}
