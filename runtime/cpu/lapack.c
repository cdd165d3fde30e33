/* runtime/cpu/lapack.c: finds LAPACKE (lapack.h). */
#include "cpu/lapack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static lt_lapack table;
static bool found;

static bool find(void *library) {
  static const struct {
    size_t at;
    const char *name[2];
  } rows[] = {
      {offsetof(lt_lapack, gesv), {"LAPACKE_sgesv", "LAPACKE_dgesv"}},
      {offsetof(lt_lapack, getrf), {"LAPACKE_sgetrf", "LAPACKE_dgetrf"}},
      {offsetof(lt_lapack, potrf), {"LAPACKE_spotrf", "LAPACKE_dpotrf"}},
      {offsetof(lt_lapack, geqrf), {"LAPACKE_sgeqrf", "LAPACKE_dgeqrf"}},
      {offsetof(lt_lapack, orgqr), {"LAPACKE_sorgqr", "LAPACKE_dorgqr"}},
      {offsetof(lt_lapack, syevd), {"LAPACKE_ssyevd", "LAPACKE_dsyevd"}},
      {offsetof(lt_lapack, gesdd), {"LAPACKE_sgesdd", "LAPACKE_dgesdd"}},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    for (size_t wide = 0; wide < 2; wide++) {
      void *f = dlsym(library, rows[k].name[wide]);
      if (f == NULL) return false;
      memcpy((char *)&table + rows[k].at + wide * sizeof f, &f, sizeof f);
    }
  return true;
}

/* OpenBLAS has these functions within itself. What NaN gives is each function's affair. */
static void open_once(void) {
  static const char *const names[] = {"liblapacke.so.3", "liblapacke.so", "libopenblas.so.0"};
  for (size_t k = 0; k < sizeof names / sizeof *names && !found; k++) {
    void *library = dlopen(names[k], RTLD_NOW | RTLD_LOCAL);
    found = library != NULL && find(library);
    void *check = found ? dlsym(library, "LAPACKE_set_nancheck") : NULL;
    void (*set)(int);
    memcpy(&set, &check, sizeof set);
    if (check != NULL) set(0);
  }
}

const lt_lapack *lt_lapack_open(lt_ctx *c) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_once);
  if (!found)
    lt_fail(c, LT_EDEVICE, "%s: needs LAPACKE: apt install liblapacke",
            c->op != NULL ? c->op : "linalg");
  return found ? &table : NULL;
}
