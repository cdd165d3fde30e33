/* runtime/base/cores.c: how many cores this process may use: its affinity mask and the CPU quota of
   its control groups.

   A container with a quota sees all cores of its machine, but its threads stand still for the rest
   of each period once they have used it up: as many threads as cores would mostly wait. */
#include "base/cores.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

int lt_cpu_count(void) {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  if (n < 1) n = (int)sysconf(_SC_NPROCESSORS_ONLN); /* more cores than fit into the set */
  return n > 0 ? n : 1;
}

/* The numbers in a file of a folder, "max" and "-1" being 0; how many there were. */
static int read_numbers(const char *folder, const char *name, long long number[2]) {
  char path[PATH_MAX], text[64];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  bool read = fgets(text, sizeof text, file) != NULL;
  fclose(file);
  if (!read) return 0;
  if (strncmp(text, "max", 3) == 0) memcpy(text, "0  ", 3);
  int n = sscanf(text, "%lld %lld", &number[0], &number[1]);
  if (n > 0 && number[0] < 0) number[0] = 0;
  return n;
}

/* Whole cores of one group's quota, 1 at least; INT_MAX: none is set. A quota is processor time in
   each period, both in microseconds: 150000 of 100000 are one and a half cores. */
static int cores_of(const char *folder) {
  long long v[2] = {0, 0}, period[2] = {0, 0};
  if (read_numbers(folder, "cpu.max", v) < 2) { /* version 2: both in one file */
    if (read_numbers(folder, "cpu.cfs_quota_us", v) < 1) return INT_MAX;
    if (read_numbers(folder, "cpu.cfs_period_us", period) < 1) return INT_MAX;
    v[1] = period[0];
  }
  if (v[0] <= 0 || v[1] <= 0) return INT_MAX;
  long long cores = v[0] / v[1];
  return cores < 1 ? 1 : cores > INT_MAX ? INT_MAX : (int)cores;
}

/* The least of a group and those above it. Within a container the path may be one of the machine
   outside: then only the mount itself is there. */
static int least_of(const char *mount, const char *group) {
  char path[PATH_MAX];
  int least = INT_MAX, length = (int)strlen(mount);
  if (snprintf(path, sizeof path, "%s%s", mount, group) >= (int)sizeof path) return INT_MAX;
  for (;;) {
    int cores = cores_of(path);
    if (cores < least) least = cores;
    char *end = strrchr(path + length, '/');
    if (end == NULL) return least;
    *end = 0;
  }
}

/* Whether a comma separated list has the word. */
static bool lists(const char *list, const char *word) {
  size_t n = strlen(word);
  for (; *list != 0; list += strcspn(list, ","), list += *list == ',')
    if (strcspn(list, ",") == n && strncmp(list, word, n) == 0) return true;
  return false;
}

int lt_quota_of(const char *groups, const char *mount) {
  FILE *file = fopen(groups, "re");
  char line[PATH_MAX], first[PATH_MAX];
  int least = INT_MAX;
  if (file == NULL) return least;
  while (fgets(line, sizeof line, file) != NULL) { /* number:controllers:path */
    line[strcspn(line, "\n")] = 0;
    char *list = strchr(line, ':'), *path = list != NULL ? strchr(list + 1, ':') : NULL;
    if (path == NULL) continue;
    *path++ = 0;
    list++;
    if (*list != 0 && !lists(list, "cpu")) continue;
    snprintf(first, sizeof first, "%s%s", mount, *list != 0 ? "/cpu" : "");
    int cores = least_of(first, path);
    if (cores < least) least = cores;
  }
  fclose(file);
  return least;
}

int lt_quota_cores(void) { return lt_quota_of("/proc/self/cgroup", "/sys/fs/cgroup"); }

bool lt_waits_passively(void) {
  const char *policy = getenv("OMP_WAIT_POLICY");
  return policy != NULL && strcasecmp(policy, "passive") == 0;
}

int lt_core_count(void) {
  int cores = lt_cpu_count(), quota = lt_quota_cores();
  return quota < cores ? quota : cores;
}

bool lt_cores_list(char *text, size_t size) {
  cpu_set_t set;
  size_t used = 0;
  if (size == 0 || sched_getaffinity(0, sizeof set, &set) != 0) return false;
  text[0] = 0;
  for (size_t from = 0, to; from < CPU_SETSIZE; from = to + 1) {
    to = from;
    if (!CPU_ISSET(from, &set)) continue;
    while (to + 1 < CPU_SETSIZE && CPU_ISSET(to + 1, &set)) to++;
    int n = snprintf(text + used, size - used, to > from ? "%s%zu-%zu" : "%s%zu",
                     used > 0 ? "," : "", from, to);
    if (n < 0 || (size_t)n >= size - used) return false;
    used += (size_t)n;
  }
  return true;
}

/* "0-3,8", as taskset -c and the cpuset files of Linux have it. */
static bool parse_list(const char *list, cpu_set_t *set) {
  CPU_ZERO(set);
  for (char *end; *list != 0 && *list != '\n'; list = end + (*end == ',')) {
    long from = strtol(list, &end, 10), to = from;
    if (end == list || from < 0) return false;
    if (*end == '-') {
      list = end + 1;
      to = strtol(list, &end, 10);
      if (end == list) return false;
    }
    if (*end != ',' && *end != '\n' && *end != 0) return false;
    for (long k = from; k <= to && k < CPU_SETSIZE; k++) CPU_SET((size_t)k, set);
  }
  return true;
}

/* sched_setaffinity(0) is of the calling thread alone: those that exist already (OpenMP's, helper
   threads) have masks of their own. */
static bool run_on(const cpu_set_t *set) {
  if (sched_setaffinity(0, sizeof *set, set) != 0) return false;
  DIR *threads = opendir("/proc/self/task");
  for (struct dirent *d; threads != NULL && (d = readdir(threads)) != NULL;)
    if (d->d_name[0] != '.') sched_setaffinity((pid_t)atoi(d->d_name), sizeof *set, set);
  if (threads != NULL) closedir(threads);
  return true;
}

bool lt_cores_set(const char *list) {
  cpu_set_t set;
  return parse_list(list, &set) && run_on(&set);
}

bool lt_cores_keep(const char *list) {
  cpu_set_t own, set;
  if (!parse_list(list, &set) || sched_getaffinity(0, sizeof own, &own) != 0) return false;
  CPU_AND(&set, &set, &own);
  return CPU_COUNT(&set) > 0 && run_on(&set);
}
