/* runtime/comm/mpi/error.c: MPI's error codes as texts. */
#include <stdio.h>

#include "comm/mpi/link.h"

bool lt_mpi_ok(int status, const char *call, char *text) {
  if (status == MPI_SUCCESS) return true;
  char why[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  MPI_Error_string(status, why, &n);
  snprintf(text, LT_COMM_TEXT, "%.48s: %.200s", call, why);
  return false;
}
