/* runtime/ops/host.h: what ops/ offers devices out of tree, in their lt_host. */
#ifndef LT_OPS_HOST_H
#define LT_OPS_HOST_H

#include "ltrain/backend.h"

/* Fills in the members that are about ops. */
void lt_ops_offer(lt_host *host);

#endif
