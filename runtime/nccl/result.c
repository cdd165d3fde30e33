/* runtime/nccl/result.c: NCCL's error codes as texts, and asynchronous errors of its
   communicators. */
#include <stdio.h>

#include "nccl/link.h"

lt_nccl_functions lt_nccl;

/* "ncclAllReduce: remote process exited or there was a network error (...)". ncclGetLastError has
   the detail (an address, a file of CUDA) that the error string lacks; the widths of both keep the
   whole within LT_COMM_TEXT. */
static void say(const lt_comm_link *l, ncclResult_t r, const char *call, char *text) {
  const char *last = l != NULL && l->comm != NULL ? lt_nccl.ncclGetLastError(l->comm) : NULL;
  bool more = last != NULL && last[0] != '\0';
  snprintf(text, LT_COMM_TEXT, "%s: %.90s%s%.120s%s", call, lt_nccl.ncclGetErrorString(r),
           more ? " (" : "", more ? last : "", more ? ")" : "");
}

bool lt_nccl_ok(const lt_comm_link *l, ncclResult_t r, const char *call, char *text) {
  if (r == ncclSuccess || r == ncclInProgress) return true;
  say(l, r, call, text);
  return false;
}

lt_progress lt_nccl_progress(const lt_comm_link *l, char *text) {
  ncclResult_t now = ncclSuccess;
  ncclResult_t asked = lt_nccl.ncclCommGetAsyncError(l->comm, &now);
  if (!lt_nccl_ok(l, asked, "ncclCommGetAsyncError", text)) return LT_BROKEN;
  if (!lt_nccl_ok(l, now, "NCCL", text)) return LT_BROKEN;
  return now == ncclInProgress ? LT_PENDING : LT_DONE;
}
