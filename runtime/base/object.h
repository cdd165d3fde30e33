/* runtime/base/object.h: reference counts of objects that belong to one context (tensors, nodes).

   Dropping is iterative: a drop that releases others only queues them, so that a chain of a
   million nodes needs no stack. */
#ifndef LT_BASE_OBJECT_H
#define LT_BASE_OBJECT_H

#include "ltrain/tensor.h"

typedef struct lt_object lt_object;
struct lt_object {
  int64_t refs;
  void (*drop)(lt_ctx *, lt_object *); /* frees the object; runs once, at zero references */
  lt_object *next_dying;
};

static inline void *lt_retain(void *object) {
  if (object != NULL) ((lt_object *)object)->refs++;
  return object;
}

/* Give one reference back; NULL is allowed. Works while the ctx holds a failure. */
void lt_release(lt_ctx *c, void *object);

#endif
