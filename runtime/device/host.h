/* runtime/device/host.h: the functions that ltrain offers to backends. */
#ifndef LT_DEVICE_HOST_H
#define LT_DEVICE_HOST_H

#include "ltrain/backend.h"

/* Of `op_hash`: that of the op rows of this ltrain. */
const lt_host *lt_host_here(uint64_t op_hash);

/* Has `fill` set those of its members that are about ops, whose code is above this folder. */
void lt_host_extend(void (*fill)(lt_host *host));

/* Local reductions, those of the cpu, and sizes. */
const lt_comm_host *lt_comm_host_here(void);

#endif
