/* runtime/comm/mpi/link.h: what the files of the MPI backend share.

   This folder and comm/p2p are a shared object of their own (ltrain_mpi.so). It includes nothing of
   ltrain but the headers ltrain/... and its own, links nothing of it, and calls MPI from the rank's
   main thread alone. */
#ifndef LT_COMM_MPI_LINK_H
#define LT_COMM_MPI_LINK_H

#include <mpi.h>

#include "comm/p2p/p2p.h"

struct lt_comm_link {
  lt_p2p p2p;
  MPI_Comm comm;
  int local_rank, local_size;
  int most_local; /* ranks of one host at most */
  bool world; /* of all ranks: its end is MPI's end */
};

/* True for MPI_SUCCESS; else `text` (of LT_COMM_TEXT bytes) says which call failed and how. */
bool lt_mpi_ok(int status, const char *call, char *text);

/* requests.c */
extern const lt_p2p_ops lt_mpi_messages;

/* native_collectives.c: MPI's own collectives. */
bool lt_mpi_prefers(const lt_p2p *l, const lt_comm_move *m, size_t item);
/* Starts one; the request is in *request. */
bool lt_mpi_whole(lt_p2p *l, lt_comm_move *m, size_t item, int64_t at, int64_t n,
                  MPI_Request *request);

#endif
