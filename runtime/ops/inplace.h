/* runtime/ops/inplace.h: rules of views, versions and in-place writes; what lt_apply runs. */
#ifndef LT_OPS_INPLACE_H
#define LT_OPS_INPLACE_H

#include "ops/op.h"

/* A view with history whose storage was written since is stale: fails in grad mode. */
bool lt_check_view(lt_ctx *c, const lt_tensor *t);

/* Whether `t` may be written in place by an op with these inputs; fails with the reason. */
bool lt_check_writable(lt_ctx *c, const lt_tensor *t, int n_in, lt_tensor *const *in);

/* Whether a MUTATES kind writes input k (ops/infer_update.c). */
bool lt_kind_writes(lt_kind kind, int k, int n_in, const void *args);

/* Run a kernel: no checks, no record. */
bool lt_run(lt_ctx *c, lt_op op, int n_in, lt_tensor *const *in, const void *args, size_t args_size,
            int n_out, lt_tensor *const *out);

/* `x` in the autocast dtype; leaves that require grad are cast once per version. */
lt_tensor *lt_autocast_to(lt_ctx *c, lt_tensor *x, lt_dtype dtype);

#endif
