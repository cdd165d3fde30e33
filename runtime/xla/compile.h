/* runtime/xla/compile.h: executables of programs. */
#ifndef LT_XLA_COMPILE_H
#define LT_XLA_COMPILE_H

#include "xla/graph.h"
#include "xla/report.h"

/* The executable of a graph's program: that of an earlier run where the cache has it, else
   compiled; `about` gets how long it took. NULL: a failure in the ctx. */
pjrt_loaded *lt_xla_executable(lt_ctx *c, const lt_graph *g, const char *text, size_t size,
                               lt_program_record *about);

/* What executables are made for, of the options of today (identity.c). */
const char *lt_xla_identity(size_t *size);

#endif
