/* runtime/comm/fingerprint.h: the description of a collective (its mark), and the hash over what
   ranks must agree on. */
#ifndef LT_COMM_FINGERPRINT_H
#define LT_COMM_FINGERPRINT_H

#include "comm/comm.h"

/* What a rank is about to do. */
typedef struct lt_plan {
  lt_comm_op op;
  lt_comm_reduce reduce; /* LT_COMM_NO_REDUCE */
  lt_mark_form form;
  lt_dtype dtype; /* LT_DTYPE_NONE for Lua values and barriers */
  lt_shape shape; /* what is shown, and compared by the op's rule */
  int root;       /* rank of the group, -1: none */
  int root_world; /* the same as a rank of the world */
  uint32_t group;
  uint64_t seq;
  uint64_t from, to; /* world ranks of send and recv */
  uint64_t of;       /* of a gradient: the number of the message that it is of; 0: none */
  bool by_device;    /* moved by a device's link */
} lt_plan;

lt_mark lt_mark_of(const lt_plan *plan, lt_origin at);

#endif
