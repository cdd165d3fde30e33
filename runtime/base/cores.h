/* runtime/base/cores.h: how many cores this process may use. */
#ifndef LT_BASE_CORES_H
#define LT_BASE_CORES_H

#include <stdbool.h>

/* Cores that this process may use, 1 at least: for how many threads it is to have. */
int lt_core_count(void);

/* Cores that it may run on, whatever share of them it gets. */
int lt_cpu_count(void);

/* Whole cores that the quotas of this process's control groups allow, 1 at least; INT_MAX: no
   limit. */
int lt_quota_cores(void);

/* The same for a file as /proc/self/cgroup and a folder as /sys/fs/cgroup. */
int lt_quota_of(const char *groups, const char *mount);

#endif
