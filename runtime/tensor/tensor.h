/* runtime/tensor/tensor.h: a tensor is a strided view (shape, strides, offset, dtype) of a storage.

   Sizes, strides and offsets count elements; dims and positions count from 0 in C. The struct is
   open to the runtime (every kernel reads it) and opaque to hosts. */
#ifndef LT_TENSOR_TENSOR_H
#define LT_TENSOR_TENSOR_H

#include <string.h>

#include "base/ctx.h"
#include "tensor/dtype.h"
#include "tensor/storage.h"

/* A shape without storage: what shape rules compute with. */
typedef struct lt_shape {
  int ndim;
  int64_t size[LT_MAX_DIMS];
} lt_shape;

/* A function on the gradient of a tensor. Returns false on failure; *replacement (may stay NULL)
   is a new gradient, owned by the frame. */
typedef struct lt_hook lt_hook;
struct lt_hook {
  bool (*fn)(lt_ctx *c, void *ud, lt_tensor *grad, lt_tensor **replacement);
  void (*drop)(lt_ctx *c, void *ud);
  void *ud;
  int output; /* of a node; 0 for leaves */
  bool after; /* of a leaf: fn gets the leaf, once in each backward, when its grad is complete */
  bool reached;   /* in the walk `walk`: some edge brought a gradient, */
  int64_t due;    /* so many edges have not been visited (autograd/post_accumulate.c) */
  uint64_t walk;
  lt_hook *next;
};

enum {
  LT_REQUIRES_GRAD = 1,  /* a leaf that collects a gradient */
  LT_PARAMETER = 2,      /* marked by lt.parameter; not carried by ops */
  LT_BUFFER = 4,         /* marked by register_buffer */
  LT_IS_VIEW = 8,        /* made by a view op: shares its storage on purpose */
  LT_VIEW_COPIED = 16,   /* a `view` that strides forced to copy */
  LT_VIEW_UNSEEN = 32,   /* a view without history, made under no_grad of something with one */
};

struct lt_tensor {
  lt_object object;
  lt_storage *storage;
  int64_t size[LT_MAX_DIMS], stride[LT_MAX_DIMS];
  int64_t offset;
  int64_t numel;
  int8_t ndim;
  int8_t dtype;            /* lt_dtype */
  uint8_t flags;
  bool contiguous;         /* row-major without holes: kept right by the two makers below */
  int32_t output;          /* which output of `node` */
  lt_object *node;         /* the lt_node that made it, NULL for leaves */
  uint64_t view_version;   /* of the storage when a view was made; UINT64_MAX: never stale */
  lt_tensor *base;         /* of a view made in grad mode: whose memory it shows (ops/rebase.c) */
  lt_tensor *grad;         /* of a leaf; who sets it calls lt_tensor_note_grad */
  lt_tensor *next_graded, **graded_link; /* in the ctx's list, from when it first had one */
  lt_hook *hooks;          /* of a leaf */
};

/* Make a tensor over `storage` (takes a new reference to it). The result belongs to the open
   frame. stride NULL: row-major. */
lt_tensor *lt_tensor_make(lt_ctx *c, lt_storage *storage, lt_dtype dtype, int ndim,
                          const int64_t *size, const int64_t *stride, int64_t offset);

/* Change size and strides of a tensor that was just made. */
void lt_tensor_set_shape(lt_tensor *t, int ndim, const int64_t *size, const int64_t *stride);

/* Copies the whole array: reading it back as vectors must not wait for narrow stores. */
static inline lt_shape lt_tensor_shape(const lt_tensor *t) {
  lt_shape s;
  s.ndim = t->ndim;
  memcpy(s.size, t->size, sizeof s.size);
  return s;
}
static inline int64_t lt_numel(const lt_tensor *t) { return t->numel; }
static inline size_t lt_item_size(const lt_tensor *t) { return lt_dtype_size((lt_dtype)t->dtype); }
static inline bool lt_requires_grad(const lt_tensor *t) {
  return (t->flags & LT_REQUIRES_GRAD) != 0 || t->node != NULL;
}
/* Address of the first element; only kernels and lt_tensor_ptr use it. */
static inline void *lt_data(const lt_tensor *t) {
  return (char *)t->storage->data + (size_t)t->offset * lt_item_size(t);
}

/* Note that the tensor has a gradient. One with a history may lead back to the tensor: the two then
   keep each other alive, until lt_drop_grads, where the ctx ends. */
void lt_tensor_note_grad(lt_ctx *c, lt_tensor *t);
void lt_drop_grads(lt_ctx *c);

void lt_tensor_add_hook(lt_tensor *t, lt_hook *hook);
void lt_hooks_drop(lt_ctx *c, lt_hook *hooks);

/* Shapes. */
int64_t lt_shape_numel(lt_shape s); /* INT64_MAX when there are too many to count */
/* Whether a tensor can have these sizes: none negative, bytes that can be counted. */
bool lt_shape_check(lt_ctx *c, int ndim, const int64_t *size);
/* Fails: "who: impossible shape [-1]", and why. */
bool lt_shape_refuse(lt_ctx *c, const char *who, int ndim, const int64_t *size);
bool lt_shape_equal(lt_shape a, lt_shape b);
lt_shape lt_shape_of(int ndim, const int64_t *size);
/* Row-major strides of a shape. */
void lt_shape_strides(lt_shape s, int64_t *stride);
/* Strides of [N, C, ..] with C innermost. */
void lt_shape_channels_last(lt_shape s, int64_t *stride);
/* Broadcast `b` into *a; false when they do not fit (no failure recorded). */
bool lt_shape_broadcast(lt_shape *a, lt_shape b);
/* Resolve a dim in -ndim..ndim-1 (ndim 0 counts as 1); fails with "op: ..." text showing the shape.
 */
bool lt_shape_dim(lt_ctx *c, lt_shape s, int64_t dim, int *out);
/* Strides for reading `t` as if it had shape `s` (0 for broadcast dims). Shapes must fit. */
void lt_broadcast_strides(const lt_tensor *t, lt_shape s, int64_t *stride);
/* Try to view `t` with `size` without a copy: strides into *stride, false when impossible. */
bool lt_view_strides(const lt_tensor *t, int ndim, const int64_t *size, int64_t *stride);

/* "[2, 3]" into a buffer; a compound literal makes one per call site: LT_SHAPE(t). */
enum { LT_SHAPE_TEXT = 120 };
const char *lt_shape_text(lt_shape s, char *buffer);
#define LT_SHAPE_STR(s) lt_shape_text((s), (char[LT_SHAPE_TEXT]){0})
#define LT_TENSOR_STR(t) lt_shape_text(lt_tensor_shape(t), (char[LT_SHAPE_TEXT]){0})

#endif
