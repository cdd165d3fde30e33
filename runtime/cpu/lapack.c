/* runtime/cpu/lapack.c: LAPACKE (lapack.h).

   Opened at the first use, not linked: a program that does no linear algebra needs no LAPACK. The
   interface is LAPACKE's, with row-major matrices. */
#include "cpu/lapack.h"

#include <dlfcn.h>
#include <string.h>

#include "base/library.h"

static lt_lapack table;

#define ROW(name)                                      \
  {offsetof(lt_lapack, name[0]), "LAPACKE_s" #name}, { \
    offsetof(lt_lapack, name[1]), "LAPACKE_d" #name    \
  }
static const lt_function functions[] = {ROW(gesv),  ROW(getrf), ROW(potrf), ROW(geqrf),
                                        ROW(orgqr), ROW(syevd), ROW(gesdd)};
#undef ROW

/* What NaN gives is each function's affair. */
static void allow_nan(void *handle) {
  void *check = dlsym(handle, "LAPACKE_set_nancheck");
  void (*set)(int);
  memcpy(&set, &check, sizeof set);
  if (check != NULL) set(0);
}

/* OpenBLAS has these functions within itself. */
static lt_library library = {.names = {"liblapacke.so.3", "liblapacke.so", "libopenblas.so.0"},
                             .table = &table,
                             .functions = functions,
                             .n = sizeof functions / sizeof *functions,
                             .missing = "needs LAPACKE: apt install liblapacke",
                             .prepare = allow_nan};

const lt_lapack *lt_lapack_open(lt_ctx *c) {
  return lt_library_open(c, &library, c->op != NULL ? c->op : "linalg") ? &table : NULL;
}
