/* runtime/base/cores.h: how many cores this process may use, and which. */
#ifndef LT_BASE_CORES_H
#define LT_BASE_CORES_H

#include <stdbool.h>
#include <stddef.h>

/* Cores that this process may use, 1 at least: for how many threads it is to have. */
int lt_core_count(void);

/* Cores that it may run on, whatever share of them it gets. */
int lt_cpu_count(void);

/* Whole cores that the quotas of this process's control groups allow, 1 at least; INT_MAX: no
   limit. */
int lt_quota_cores(void);

/* The same for a file as /proc/self/cgroup and a folder as /sys/fs/cgroup. */
int lt_quota_of(const char *groups, const char *mount);

/* Whether OMP_WAIT_POLICY=passive asks that what waits leaves its core at once. */
bool lt_waits_passively(void);

/* The cores that this process may run on, as the kernel writes lists: "0-3,8". False: it does not
   fit. */
bool lt_cores_list(char *text, size_t size);

/* Has all threads of the process, and those to come, run on the cores of a list. False: it may run
   on none of them, or it is not a list; then nothing changes. */
bool lt_cores_set(const char *list);

/* The same for those of the list that it runs on now. */
bool lt_cores_keep(const char *list);

#endif
