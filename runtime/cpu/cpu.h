/* runtime/cpu/cpu.h: the cpu as a device. */
#ifndef LT_CPU_CPU_H
#define LT_CPU_CPU_H

#include "ltrain/backend.h"

/* The table of the best level that this machine runs, or of the level named in the environment
   variable LTRAIN_CPU_LEVEL (v2, v3, v4) if it runs that. */
const lt_device_ops *lt_cpu_device(void);

/* Name of the chosen level, e.g. "v3". */
const char *lt_cpu_level(void);

#endif
