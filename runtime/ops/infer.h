/* runtime/ops/infer.h: the shape and dtype rule of each kind, one function a kind. */
#ifndef LT_OPS_INFER_H
#define LT_OPS_INFER_H

#include "ops/op.h"

#define LT_KIND(name, ...) bool lt_infer_##name(lt_ctx *c, lt_infer *i);
#include "ops/kinds.def"

#endif
