/* runtime/comm/mpi/link.h: what the files of the MPI backend share.

   This folder is a shared object of its own (ltrain_mpi.so). It includes nothing of ltrain but
   the headers ltrain/..., links nothing of it, and calls MPI from the rank's main thread alone. */
#ifndef LT_COMM_MPI_LINK_H
#define LT_COMM_MPI_LINK_H

#include <mpi.h>

#include "ltrain/backend.h"

struct lt_comm_link {
  const lt_comm_host *host;
  MPI_Comm data;  /* moves */
  MPI_Comm marks; /* compares: apart, so that data of ranks that disagree never meets */
  int rank, size;
  int local_rank, local_size;
  bool world; /* of all ranks: its end is MPI's end */
};

/* True for MPI_SUCCESS; else `text` (of LT_COMM_TEXT bytes) says which call failed and how. */
bool lt_mpi_ok(int status, const char *call, char *text);

lt_progress lt_mpi_compare(lt_comm_link *link, lt_comm_compare *round);
lt_progress lt_mpi_compare_pair(lt_comm_link *link, int peer, lt_comm_compare *round);

/* Requests that are under way, with the text for when one fails. */
typedef struct lt_mpi_requests {
  MPI_Request *list;
  int n;
} lt_mpi_requests;
/* LT_DONE when all are complete: the list is empty again. */
lt_progress lt_mpi_test(lt_mpi_requests *requests, char *text);

lt_progress lt_mpi_move(lt_comm_link *link, lt_comm_move *m);

#endif
