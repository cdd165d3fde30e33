/* runtime/launch/worker_slot.h: shared memory that grows, mapped by a parent and its workers. */
#ifndef LT_LAUNCH_WORKER_SLOT_H
#define LT_LAUNCH_WORKER_SLOT_H

#include "tensor/tensor.h"

typedef struct lt_worker_slot lt_worker_slot;

/* Without memory at first; to be made before the fork. NULL with a failure. */
lt_worker_slot *lt_worker_slot_new(lt_ctx *c);

/* Memory for at least `bytes`; what was there is lost when it has to grow. NULL with a failure.
   No tensor may lie in it. */
char *lt_worker_slot_reserve(lt_ctx *c, lt_worker_slot *s, size_t bytes);

/* The memory that the other side has written `bytes` of. NULL with a failure. */
char *lt_worker_slot_map(lt_ctx *c, lt_worker_slot *s, size_t bytes);

/* Whether a tensor is in it. */
bool lt_worker_slot_is_used(const lt_worker_slot *s);

/* A row-major tensor in it; the open frame's. */
lt_tensor *lt_worker_slot_tensor(lt_ctx *c, lt_worker_slot *s, int64_t offset, lt_dtype dtype,
                                 int ndim, const int64_t *size);

/* Nobody else writes it any more. Its tensors stay, and are this process's own: children that are
   forked from now on have copies of them. Freed with the last of them. */
void lt_worker_slot_release(lt_ctx *c, lt_worker_slot *s);

#endif
