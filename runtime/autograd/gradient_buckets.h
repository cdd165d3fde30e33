/* runtime/autograd/gradient_buckets.h: buckets of leaves, as in PyTorch's DDP: a callback for each
   bucket when all its gradients are complete in a backward. */
#ifndef LT_AUTOGRAD_GRADIENT_BUCKETS_H
#define LT_AUTOGRAD_GRADIENT_BUCKETS_H

#include "tensor/tensor.h"

typedef struct lt_gradient_buckets lt_gradient_buckets;

/* Over n leaves, each listed once; `group` of each counts from 0 without gaps, in ascending order.
   fn(c, ud, k) is called within a backward for group 0, then 1, and so on, each when it and all
   before it are complete: leaves that this backward does not reach count as complete. False with a
   failure ends the backward. The leaves are retained. NULL with a failure. */
lt_gradient_buckets *lt_gradient_buckets_new(lt_ctx *c, int n, lt_tensor *const *leaf,
                                             const int *group,
                                             bool (*fn)(lt_ctx *c, void *ud, int group), void *ud);

/* Watch the next backward; no longer. Hooks of the script that were registered before run first. */
void lt_gradient_buckets_arm(lt_ctx *c, lt_gradient_buckets *r);
void lt_gradient_buckets_disarm(lt_ctx *c, lt_gradient_buckets *r);

/* The numbers of the leaves that the last backward reached, in the order in which their gradients
   were complete. */
int lt_gradient_buckets_order(const lt_gradient_buckets *r, const int **leaf);

void lt_gradient_buckets_free(lt_ctx *c, lt_gradient_buckets *r);

#endif
