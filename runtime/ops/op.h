/* runtime/ops/op.h: what an operation is, and lt_apply, which dispatches all of them. */
#ifndef LT_OPS_OP_H
#define LT_OPS_OP_H

#include "device/device.h"
#include "ops/args.h"
#include "ops/ids.h"

/* dtype rules and autocast classes; the rows' comments say what they mean. */
typedef enum lt_dtype_rule {
  LT_DTYPE_float, LT_DTYPE_any, LT_DTYPE_promote, LT_DTYPE_first, LT_DTYPE_own,
  LT_DTYPE_int
} lt_dtype_rule;
typedef enum lt_cast_class { LT_CAST_keep, LT_CAST_lower, LT_CAST_f32 } lt_cast_class;

enum { LT_MAX_OUT = 4, LT_FINITE_IN = 9 };

/* A result before it exists. `strided`: stride holds wanted strides (dense, e.g. channels-last). */
typedef struct lt_meta {
  lt_shape shape;
  lt_dtype dtype;
  bool strided;
  int64_t stride[LT_MAX_DIMS];
} lt_meta;

typedef struct lt_op_info lt_op_info;

/* One call while it is dispatched. `args` is a private copy: infer functions normalise it
   (negative dims, defaults that depend on shapes, keys). */
typedef struct lt_infer {
  const lt_op_info *op;
  int n_in, n_out;
  lt_tensor *const *in;
  void *args;
  lt_device device;        /* of the result: the first input's unless changed */
  lt_meta out[LT_MAX_OUT];
  int64_t view_offset;     /* VIEW kinds: of the result in the input's storage; strides in out[0] */
  bool view_copy;          /* VIEW kinds: strides forbid a view, copy first */
} lt_infer;

enum {
  LT_KIND_VIEW = 1, LT_KIND_LIST = 2, LT_KIND_MUTATES = 4, LT_KIND_HIDDEN = 8, LT_KIND_FIRST = 16
};

typedef struct lt_kind_info {
  const char *name;
  const char *inputs; /* their names, with blanks between; of lists "list" */
  int min_in, max_in, n_out, flags;
  const lt_arg *(*args)(int *n); /* in the order of args.h */
  size_t args_size;
  void (*defaults)(void *args);
  bool (*infer)(lt_ctx *c, lt_infer *i); /* VIEW kinds also fill i->view */
} lt_kind_info;

/* How many results a script gets. */
static inline int lt_kind_shown(const lt_kind_info *kind) {
  return (kind->flags & LT_KIND_FIRST) != 0 ? 1 : kind->n_out;
}

enum { LT_SAVES_A = 1, LT_SAVES_B = 2, LT_SAVES_Y = 4 };

struct lt_op_info {
  const char *name;
  lt_kind kind;
  lt_dtype_rule dtype;
  lt_cast_class cast;
  uint32_t saves;          /* bit n: input n; bit 16 + n: output n */
  uint32_t saves_side[2];  /* binary rows: for the derivative by a and by b */
  bool pass_side[2];       /* binary rows: that derivative is 1 */
  const char *derivative[2]; /* rows: as they are written (binary: by a and by b) */
  bool differentiable;
  bool has_kernel;
  bool hidden;             /* not in the Lua face (backward ops) */
  lt_op backward;          /* rows: the op of their derivative (by a), else LT_OP_COUNT */
  double lo, hi;           /* rows: where finite differences hold */
  const char *doc;
  bool (*expand)(lt_ctx *c, const lt_call *call, lt_tensor **out);
};

extern const lt_op_info lt_ops[LT_OP_COUNT];
extern const lt_kind_info lt_kinds[LT_KIND_COUNT];
/* Names of inputs and arguments as scripts give them; NULL: inputs, then arguments. */
extern const char *const lt_kind_places[LT_KIND_COUNT];
uint64_t lt_op_hash(void); /* ops/abi_hash.c */
lt_op lt_op_by_name(const char *name); /* LT_OP_COUNT when unknown */
const lt_arg *lt_op_args(lt_op op, int *n); /* in the order of a call */
void lt_op_defaults(lt_op op, void *args);

/* Run an operation: looks the op up, checks shapes and dtypes, applies autocast, allocates, runs
   the kernel, records the node. Does nothing when the ctx holds a failure. A NULL input is an
   absent optional one. out[i] non-NULL on entry: written in place, its dtype is kept. Results
   belong to the open frame. `args` is the kind's struct, NULL for its defaults. */
bool lt_apply(lt_ctx *c, lt_op op, int n_in, lt_tensor *const *in, const void *args, int n_out,
              lt_tensor **out);

/* The same for ops with one result; NULL on failure. */
lt_tensor *lt_apply1(lt_ctx *c, lt_op op, int n_in, lt_tensor *const *in, const void *args);
/* Inputs written at the call: lt_apply1(c, LT_OP_softmax, LT_IN(x), &(lt_args_softmax){...}). */
#define LT_IN(...) \
  (int)(sizeof((lt_tensor *[]){__VA_ARGS__}) / sizeof(lt_tensor *)), (lt_tensor *[]){__VA_ARGS__}

/* Short forms for elementwise rows. */
lt_tensor *lt_unary(lt_ctx *c, lt_op op, lt_tensor *x);
lt_tensor *lt_binary(lt_ctx *c, lt_op op, lt_tensor *a, lt_tensor *b);
lt_tensor *lt_binary_scalar(lt_ctx *c, lt_op op, lt_tensor *a, lt_scalar b);

/* Short forms for making, moving and viewing (ops/calls.c). */
lt_sizes lt_sizes_of(lt_shape s);
lt_tensor *lt_full(lt_ctx *c, lt_shape shape, lt_scalar value, lt_dtype dtype, lt_device device);
lt_tensor *lt_cast(lt_ctx *c, lt_tensor *x, lt_dtype dtype);       /* x itself when it fits */
lt_tensor *lt_to_device(lt_ctx *c, lt_tensor *x, lt_device device); /* x itself when it fits */
lt_tensor *lt_contiguous(lt_ctx *c, lt_tensor *x);                  /* x itself when it fits */
lt_tensor *lt_detach(lt_ctx *c, lt_tensor *x);                      /* same storage, no history */
lt_tensor *lt_reshape(lt_ctx *c, lt_tensor *x, lt_shape shape);
lt_tensor *lt_expand_to(lt_ctx *c, lt_tensor *x, lt_shape shape);
lt_tensor *lt_sum_to(lt_ctx *c, lt_tensor *x, lt_shape shape);      /* x itself when it fits */
lt_tensor *lt_permute(lt_ctx *c, lt_tensor *x, const int *dims);
lt_tensor *lt_transpose(lt_ctx *c, lt_tensor *x, int dim_a, int dim_b);
/* Part start..start+(n-1)*step of a dim (0-based). */
lt_tensor *lt_slice(lt_ctx *c, lt_tensor *x, int dim, int64_t start, int64_t n, int64_t step);
lt_tensor *lt_select(lt_ctx *c, lt_tensor *x, int dim, int64_t index);
bool lt_copy_into(lt_ctx *c, lt_tensor *dst, lt_tensor *src); /* dst[...] = src, broadcasting */

/* A value that a kernel refuses: fails with the text, and notes for a device's error word what was
   refused (bits of a double for floats) and its limit. Always false. */
bool lt_fail_value(lt_ctx *c, int64_t value, int64_t limit, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Fails with the sentence of an error word, as the op and the line that issued it. Always false. */
bool lt_value_error(lt_ctx *c, const lt_device_error *e);

/* Value of a one-element tensor (waits for its device). */
bool lt_item(lt_ctx *c, lt_tensor *x, lt_scalar *out);

/* Shared pieces of infer functions. */
bool lt_infer_broadcast(lt_ctx *c, lt_infer *i); /* out[0].shape of all inputs */
lt_dtype lt_result_type(lt_tensor *const *in, int n_in, lt_scalar a, lt_scalar b);
/* What a row is computed in: the result's type; comparisons and tests in their inputs'. */
lt_dtype lt_row_dtype(const lt_call *call);
bool lt_infer_same(lt_ctx *c, lt_infer *i); /* out[0] = shape, strides and dtype of in[0] */
bool lt_infer_float(lt_ctx *c, lt_infer *i, int k); /* in[k] must be floating */
void lt_meta_of(lt_meta *m, const lt_tensor *t); /* shape, dense strides, dtype of t */
bool lt_is_dense(const lt_tensor *t); /* strides are a permutation of row-major */
bool lt_channels_last(const lt_tensor *t); /* [N, C, ...] lies densely as [N, ..., C] */

#endif
