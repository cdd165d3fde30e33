/* spec/bench/comm_mpi.c: MPI_Allreduce of the sizes that comm.c measures. Built by comm.sh with
   mpicc, where there is one; knows nothing of ltrain. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int bytes, repeats;
  } sizes[] = {
      {"4 B", 4, 2000}, {"64 KB", 64 << 10, 2000}, {"1 MB", 1 << 20, 300}, {"64 MB", 64 << 20, 20}};
  static double us[2000];
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int s = 0; s < 4; s++) {
    float *data = malloc((size_t)sizes[s].bytes);
    memset(data, 0, (size_t)sizes[s].bytes);
    for (int k = -3; k < sizes[s].repeats; k++) {
      MPI_Barrier(MPI_COMM_WORLD);
      double start = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, data, sizes[s].bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (k >= 0) us[k] = (MPI_Wtime() - start) * 1e6;
    }
    qsort(us, (size_t)sizes[s].repeats, sizeof *us, by_value);
    if (rank == 0)
      printf("mpi %d ranks %6s  median %10.1f us  best %10.1f us\n", ranks, sizes[s].name,
             us[sizes[s].repeats / 2], us[0]);
    free(data);
  }
  MPI_Finalize();
  return 0;
}
