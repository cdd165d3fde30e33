/* runtime/ops/node.h: the tape's records. ops/ makes them, autograd/ walks them.

   A node knows its op, its arguments, where each input came from, and the values that its vjp
   reads. Saved values are (storage, view, version), never tensors: there are no cycles. */
#ifndef LT_OPS_NODE_H
#define LT_OPS_NODE_H

#include "ops/op.h"

typedef struct lt_node lt_node;

/* Where an input came from. `target`: an lt_node, or a leaf lt_tensor; NULL: no gradient wanted. */
typedef struct lt_edge {
  lt_object *target;
  int32_t output;   /* which output of the node */
  bool leaf;
  lt_dtype dtype;   /* of the forward input: gradients are cast to it */
  lt_shape shape;
  lt_device device;
} lt_edge;

/* The slots of what is saved: input n, LT_SLOT_OUT + output n, or neither. */
enum { LT_SLOT_OUT = 1 << 16, LT_SLOT_ASIDE = -1 };

/* A value kept for backward, or to be computed again (`storage` NULL, `again` not). */
typedef struct lt_saved {
  int slot;
  lt_storage *storage;
  struct lt_recompute *again;
  int64_t place; /* among the values of `again` */
  uint64_t version;
  lt_dtype dtype;
  bool requires_grad;
  int8_t ndim;
  int64_t size[LT_MAX_DIMS], stride[LT_MAX_DIMS], offset;
} lt_saved;

/* A vjp that does not belong to an op: collectives, functions written by scripts. `fn` gets the
   gradients of the outputs (NULL: none) and fills those of the inputs. */
typedef struct lt_custom {
  const char *name;
  bool (*fn)(lt_ctx *c, void *ud, lt_tensor *const *grad_out, lt_tensor **grad_in);
  void (*drop)(lt_ctx *c, void *ud);
  void *ud;
} lt_custom;

struct lt_node {
  lt_object object;
  lt_op op;              /* LT_OP_COUNT: custom */
  uint32_t line;
  uint64_t seq;          /* grows with time: inputs are older than their users */
  int n_in, n_out, n_saved;
  int capacity;              /* of `saved` */
  lt_edge *edges;        /* n_in */
  lt_saved *saved;
  lt_meta *out;          /* n_out */
  void *args;
  bool used;             /* its saved values are gone */
  bool always;           /* visited even without a gradient (autograd/required_nodes.c) */
  lt_device device;
  lt_hook *hooks;
  lt_custom custom;
  lt_tensor **grads;     /* n_out, while a walk is on */
  uint64_t walk;         /* the walk that has seen it */
  uint64_t leads;        /* the walk in which it leads to an input (autograd/needed_nodes.h) */
};

static inline const char *lt_node_name(const lt_node *n) {
  return n->op == LT_OP_COUNT ? n->custom.name : lt_ops[n->op].name;
}

/* Whether recording is on and some input wants a gradient. */
bool lt_recording(const lt_ctx *c, int n_in, lt_tensor *const *in);

/* What the derivative of a call will read: bit n: input n, 16 + n: output n; of a binary row only
   what the sides that want a gradient need. */
uint32_t lt_saved_slots(const lt_op_info *op, lt_tensor *const *in, const void *args);

/* Record a call and hang its outputs on it. `values`: what is saved for its inputs, where the call
   has overwritten them, or they are casts of it (NULL: the inputs). */
bool lt_record(lt_ctx *c, const lt_call *call, const lt_op_info *op, lt_tensor *const *values);
bool lt_record_custom(lt_ctx *c, int n_in, lt_tensor *const *in, int n_out, lt_tensor *const *out,
                      lt_custom custom);

/* Node of an in-place result: like lt_record, with the edge of what is overwritten taken before. */
lt_edge lt_edge_to(const lt_tensor *t);

/* Save values for a custom node, each with its slot; at most once. lt_saved_at reads the k-th. */
bool lt_save_custom(lt_ctx *c, lt_node *n, int count, lt_tensor *const *value, const int *slot);
lt_tensor *lt_saved_at(lt_ctx *c, lt_node *n, int k);

/* The value saved for `slot`, as a tensor in the open frame; NULL when absent, or with LT_EVERSION
   when it was changed in place since, naming both ops and lines. */
lt_tensor *lt_saved_value(lt_ctx *c, lt_node *n, int slot);

/* Free what backward no longer needs; and what it may need again, but that can be computed. */
void lt_node_forget(lt_ctx *c, lt_node *n);
void lt_node_park(lt_ctx *c, lt_node *n);

/* Keep `t` in *s. lt_saved_load makes sure that a value is there, however it comes about. */
void lt_saved_keep(lt_saved *s, const lt_tensor *t);
bool lt_saved_load(lt_ctx *c, lt_saved *s);
void lt_saved_free(lt_ctx *c, lt_saved *s);

#endif
