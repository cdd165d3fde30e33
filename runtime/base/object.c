/* runtime/base/object.c: destruction of reference-counted objects without recursion.

   A chain of a million operations is a list of a million nodes: freeing it by recursion would
   need a stack as deep. The dying wait in a list, and whoever began empties it. */
#include "base/object.h"

#include "base/ctx.h"

void lt_release(lt_ctx *c, void *object) {
  lt_object *o = object;
  if (o == NULL || --o->refs > 0) return;
  o->next_dying = c->dying;
  c->dying = o;
  if (c->draining) return;
  c->draining = true;
  while ((o = c->dying) != NULL) {
    c->dying = o->next_dying;
    o->drop(c, o);
  }
  c->draining = false;
}
