/* runtime/xla/report.h: what was compiled and run. */
#ifndef LT_XLA_REPORT_H
#define LT_XLA_REPORT_H

#include <stdint.h>

typedef struct lt_xla_counts_of {
  int64_t programs, runs, cuts;
  double compile_seconds;
} lt_xla_counts_of;

extern lt_xla_counts_of lt_xla_counts;

#endif
