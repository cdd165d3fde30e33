/* runtime/nccl/link.h: what the files of the NCCL backend share.

   This folder is a shared object of its own (ltrain_nccl.so): a link between devices of the kind
   `cuda`. It links nothing of ltrain, CUDA or NCCL; libnccl is opened when ltrain opens this. */
#ifndef LT_NCCL_LINK_H
#define LT_NCCL_LINK_H

#include <nccl.h>

#include "ltrain/backend.h"

/* One member a row of functions.def. */
typedef struct lt_nccl_functions {
#define LT_NCCL(name) __typeof__(name) *name;
#include "nccl/functions.def"
} lt_nccl_functions;
extern lt_nccl_functions lt_nccl;

struct lt_comm_link {
  const lt_comm_host *host;
  ncclComm_t comm;
  int rank, size;
  bool is_ready; /* all ranks have joined */
};

/* LT_DONE where NCCL has done what it was last asked for, LT_BROKEN with words in `text` (of
   LT_COMM_TEXT bytes). Communicators do not block: most answers are first ncclInProgress. */
lt_progress lt_nccl_progress(const lt_comm_link *l, char *text);
/* What a call returned: true where it is under way or done. */
bool lt_nccl_ok(const lt_comm_link *l, ncclResult_t r, const char *call, char *text);

lt_progress lt_nccl_move(lt_comm_link *l, lt_comm_move *m);
bool lt_nccl_reduces(lt_dtype dtype, lt_comm_reduce reduce);

#endif
