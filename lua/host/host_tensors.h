/* lua/host/host_tensors.h: the tensors that a host program has: those it owns and must
   release, and those that a call lends it as arguments. A pointer that is neither belongs to
   another state, or was released. */
#ifndef LT_HOST_HOST_TENSORS_H
#define LT_HOST_HOST_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ltrain/tensor.h>

typedef struct ltrain ltrain;

typedef struct lt_lent_tensor {
  lt_tensor *t; /* NULL: a free slot */
  int64_t owned, borrowed;
} lt_lent_tensor;

/* By address, with linear probing; never more than half full. */
typedef struct lt_lent {
  lt_lent_tensor *slots;
  size_t size, used;
} lt_lent;

enum { LT_OWNED, LT_BORROWED };

/* Make room for `n` tensors more; without memory false. */
bool lt_lent_reserve(ltrain *l, int n);

/* The host has got the tensor, for which there is room. */
void lt_lend(ltrain *l, lt_tensor *t, int how);

/* It has given it back; false: it did not have it. */
bool lt_take_lent(ltrain *l, const lt_tensor *t, int how);

/* What is wrong with a tensor that the host passes ("NULL"), NULL if nothing is. */
const char *lt_lent_fault(const ltrain *l, const lt_tensor *t);

/* Release what the host still owns. */
void lt_lent_end(ltrain *l);

#endif
