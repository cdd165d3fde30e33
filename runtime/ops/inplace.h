/* runtime/ops/inplace.h: rules of views, versions and in-place writes; what lt_apply runs. */
#ifndef LT_OPS_INPLACE_H
#define LT_OPS_INPLACE_H

#include "ops/op.h"

/* A view whose storage was written since is stale: in grad mode it takes its history from its base
   again, or fails. */
bool lt_check_view(lt_ctx *c, lt_tensor *t);

/* Whether `t` may be written in place by an op with these inputs; fails with the reason. */
bool lt_check_writable(lt_ctx *c, const lt_tensor *t, int n_in, lt_tensor *const *in);

/* Views and their bases (ops/rebase.c). A view of x made now has this base, NULL: none. */
lt_tensor *lt_base_of_view(const lt_ctx *c, lt_tensor *x);
/* Give a view the history of its base as it is now; false (no failure) where that is not exact. */
bool lt_view_renew(lt_ctx *c, lt_tensor *t);
/* Whether an in-place write into `t` by an op with these inputs has to enter its base's history,
   and can; lt_view_write then writes `value` there, cast to the view's dtype. */
bool lt_writes_base(const lt_ctx *c, const lt_tensor *t, int n_in, lt_tensor *const *in);
bool lt_view_write(lt_ctx *c, lt_tensor *t, lt_tensor *value);

/* Whether a MUTATES kind writes input k (ops/infer_update.c). */
bool lt_kind_writes(lt_kind kind, int k, int n_in, const void *args);
/* The same of a call, of any kind. */
bool lt_call_writes(const lt_call *call, int k);

/* Run a kernel, or issue it on its device (ops/run.c): no checks, no record. */
bool lt_run(lt_ctx *c, lt_op op, int n_in, lt_tensor *const *in, const void *args, size_t args_size,
            int n_out, lt_tensor *const *out);

/* `x` in the autocast dtype; leaves that require grad are cast once per version. */
lt_tensor *lt_autocast_to(lt_ctx *c, lt_tensor *x, lt_dtype dtype);
/* Release all such casts, which keep their leaves alive; and those of the leaves in a storage. */
void lt_autocast_forget(lt_ctx *c);
void lt_autocast_forget_of(lt_ctx *c, const lt_storage *s);

#endif
