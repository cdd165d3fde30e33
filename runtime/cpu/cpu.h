/* runtime/cpu/cpu.h: the cpu as a device. */
#ifndef LT_CPU_CPU_H
#define LT_CPU_CPU_H

#include "ltrain/backend.h"

/* The table of the best level that this machine runs, or of the level named in the environment
   variable LTRAIN_CPU_LEVEL (v2, v3, v4). The registry asks once. */
const lt_device_ops *lt_cpu_device(void);

/* Whether there is such a level; if not, `text` says what is wrong: a level that is not in this
   build, or that this machine does not run, or a machine that runs none. */
bool lt_cpu_usable(char *text, size_t size);

/* Name of the chosen level, e.g. "v3". */
const char *lt_cpu_level(void);

/* Whether this machine runs kernels of that level. */
bool lt_cpu_runs(const char *level);

/* One line on the level and on oneDNN. */
void lt_cpu_describe(char *text, size_t size);

/* Starts on a helper thread what the first large product of a process would wait for, 30 to 50 ms;
   a product that comes earlier waits for the rest of it. Results do not depend on it. For the start
   of a fit. */
void lt_cpu_warm_up(lt_ctx *c);

#endif
