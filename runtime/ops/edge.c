/* runtime/ops/edge.c: the tape's edge to a tensor: the node that made it, or a leaf, for its
   gradient to go to. */
#include "ops/node.h"

lt_edge lt_edge_to(const lt_tensor *t) {
  lt_edge e = {.dtype = (lt_dtype)t->dtype, .shape = lt_tensor_shape(t),
               .device = t->storage->device};
  if (t->node != NULL) {
    e.target = lt_retain(t->node);
    e.output = t->output;
  } else if ((t->flags & LT_REQUIRES_GRAD) != 0) {
    e.target = lt_retain((void *)t);
    e.leaf = true;
  }
  return e;
}
