/* lua/host/host_tensors.h: the tensors that a host program has: those it owns and must
   release, and those that it borrows, as arguments of a call. A pointer that is neither belongs to
   another state, or was released. */
#ifndef LT_HOST_HOST_TENSORS_H
#define LT_HOST_HOST_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ltrain/tensor.h>

typedef struct ltrain ltrain;

typedef struct lt_host_tensor {
  lt_tensor *t; /* NULL: a free slot */
  int64_t owned, borrowed;
} lt_host_tensor;

/* By address, with linear probing; never more than half full. */
typedef struct lt_host_tensor_table {
  lt_host_tensor *slots;
  size_t size, used;
} lt_host_tensor_table;

enum { LT_OWNED, LT_BORROWED };

/* Reserve memory for `n` tensors more; false when there is none. */
bool lt_host_tensors_reserve(ltrain *l, int n);

/* Add a tensor that the host has got; memory for it is reserved. */
void lt_host_tensors_add(ltrain *l, lt_tensor *t, int how);

/* Remove one that it gave back; false: it did not have it. */
bool lt_host_tensors_remove(ltrain *l, const lt_tensor *t, int how);

/* What is wrong with a tensor that the host passes ("NULL"), NULL if nothing is. */
const char *lt_host_tensors_fault(const ltrain *l, const lt_tensor *t);

/* Release what the host still owns. */
void lt_host_tensors_release(ltrain *l);

#endif
