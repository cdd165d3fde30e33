/* runtime/cuda/device_count.cu: how many NVIDIA devices there are, without initialising CUDA.

   A process that has initialised CUDA cannot fork children that use it, and initialising takes
   hundreds of milliseconds and as many megabytes: so scripts that only ask how many GPUs there are,
   and launchers of ranks, look at the driver's device nodes. The rules of CUDA_VISIBLE_DEVICES are
   those of NVIDIA's programming guide. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/device.h"

#ifndef LT_CUDA_NODES
#define LT_CUDA_NODES "/dev/nvidia"
#define LT_CUDA_MAKER "/usr/bin/nvidia-modprobe"
#define LT_CUDA_WINDOWS "/dev/dxg"
#define LT_CUDA_PROC "/proc/driver/nvidia/gpus"
#define LT_CUDA_DRIVER "libcuda.so.1"
#endif

/* The kernel module makes /dev/nvidia0, /dev/nvidia1, ... for the GPUs that it drives; containers
   get those that they may use. */
static int look_for_nodes(void) {
  char path[512];
  int n = 0;
  for (int k = 0; k < 64; k++) {
    snprintf(path, sizeof path, "%s%d", LT_CUDA_NODES, k);
    n += access(path, F_OK) == 0;
  }
  return n;
}

/* GPUs that the driver's kernel module knows. */
static int look_for_gpus(void) {
  int n = 0;
  DIR *folder = opendir(LT_CUDA_PROC);
  if (folder == nullptr) return 0;
  for (dirent *entry = readdir(folder); entry != nullptr; entry = readdir(folder))
    n += entry->d_name[0] != '.';
  closedir(folder);
  return n;
}

/* After a start of the machine nodes may be missing until CUDA, by a program that comes with the
   driver, makes them. In a Linux on Windows (WSL) there are none; of its GPUs one is used. */
static int look_for_others(void) {
  if (access(LT_CUDA_WINDOWS, F_OK) == 0) return 1;
  return access(LT_CUDA_MAKER, X_OK) == 0 ? look_for_gpus() : 0;
}

static int count_nodes(void) {
  static const int nodes = look_for_nodes(), others = nodes > 0 ? 0 : look_for_others();
  return nodes + others;
}

/* UUIDs of the GPUs, as the driver's files in /proc have them. */
enum { MOST_GPUS = 64, UUID = 64 };
typedef struct uuids {
  int n;
  char text[MOST_GPUS][UUID];
} uuids;

/* One folder for each GPU in /proc, named by its address on the bus. */
static void look_for_uuid(const char *folder, uuids *out) {
  char path[512], line[256];
  snprintf(path, sizeof path, "%s/%s/information", LT_CUDA_PROC, folder);
  FILE *file = fopen(path, "r");
  if (file == nullptr) return;
  while (fgets(line, sizeof line, file) != nullptr && out->n < MOST_GPUS)
    if (sscanf(line, "GPU UUID: %63s", out->text[out->n]) == 1) {
      out->n++;
      break;
    }
  fclose(file);
}

static uuids look_for_uuids(void) {
  uuids found = {};
  DIR *folder = opendir(LT_CUDA_PROC);
  if (folder == nullptr) return found;
  for (dirent *entry = readdir(folder); entry != nullptr; entry = readdir(folder))
    if (entry->d_name[0] != '.') look_for_uuid(entry->d_name, &found);
  closedir(folder);
  return found;
}

/* Entries of the variable, without the spaces around them. */
typedef struct entry {
  const char *text;
  size_t n;
} entry;

static int split(const char *list, entry *out) {
  int n = 0;
  while (n < MOST_GPUS) {
    const char *end = list + strcspn(list, ",");
    while (*list == ' ') list++;
    out[n] = {list, end > list ? static_cast<size_t>(end - list) : 0};
    while (out[n].n > 0 && list[out[n].n - 1] == ' ') out[n].n--;
    n++;
    if (*end == '\0') break;
    list = end + 1;
  }
  return n;
}

/* Which GPU an abbreviated UUID names: -1: none, or several. Without the driver's files each is
   taken for one, by its text. */
static int gpu_of(const entry *list, int k, const uuids &known) {
  int found = -1, matches = 0;
  if (known.n == 0) {
    for (int j = 0; j < k; j++)
      if (list[j].n == list[k].n && memcmp(list[j].text, list[k].text, list[k].n) == 0) return j;
    return k;
  }
  for (int g = 0; g < known.n; g++)
    if (strncmp(known.text[g], list[k].text, list[k].n) == 0) found = g, matches++;
  return matches == 1 ? found : -1;
}

/* The kinds of entries have prefixes of four characters. */
static bool begins(const entry &e, const char *with) {
  return strncmp(e.text, with, 4) == 0 && e.n >= 4;
}

/* A number as strtol reads it: "1gpu" is 1. -1: none. */
static int number_of(const entry &e) {
  char *end;
  long n = strtol(e.text, &end, 10);
  return e.n == 0 || end == e.text || n < 0 || n > INT32_MAX ? -1 : static_cast<int>(n);
}

/* As CUDA reads it: entries of the kind of the first, numbers or UUIDs, up to the first that names
   no GPU; one that is named twice hides all. Of parts of GPUs (MIG) a process sees one. */
static int count_visible(const char *visible, int nodes) {
  entry list[MOST_GPUS];
  int seen[MOST_GPUS], n = 0, all = split(visible, list);
  if (begins(list[0], "MIG-")) return nodes > 0;
  bool by_uuid = begins(list[0], "GPU-");
  const uuids known = by_uuid ? look_for_uuids() : uuids{};
  for (; n < all; n++) {
    if (by_uuid && !begins(list[n], "GPU-")) break;
    seen[n] = by_uuid ? gpu_of(list, n, known) : number_of(list[n]);
    if (seen[n] < 0 || seen[n] >= nodes) break;
    for (int j = 0; j < n; j++)
      if (seen[j] == seen[n]) return 0;
  }
  return n;
}

/* Its version is known without initialising it. */
static bool has_driver(char *why, size_t size) {
  int version = 0;
  void *driver = dlopen(LT_CUDA_DRIVER, RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) {
    snprintf(why, size, "no NVIDIA driver: libcuda.so.1 not found");
    return false;
  }
  auto ask = reinterpret_cast<int (*)(int *)>(dlsym(driver, "cuDriverGetVersion"));
  bool old = ask != nullptr && ask(&version) == 0 && version / 1000 < CUDART_VERSION / 1000;
  if (old)
    snprintf(why, size, "the NVIDIA driver is too old: it is of CUDA %d.%d, this ltrain needs %d.0 "
             "or later", version / 1000, version % 1000 / 10, CUDART_VERSION / 1000);
  dlclose(driver);
  return !old;
}

static bool look_for_driver(void) {
  char why[256];
  return count_nodes() > 0 && has_driver(why, sizeof why);
}

/* Without a driver that runs this none can be used. */
int lt_cuda_count(void) {
  static const bool has = look_for_driver();
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  int nodes = count_nodes();
  int n = visible == nullptr ? nodes : count_visible(visible, nodes);
  if (n == 0 || !has) return 0;
  return n < LT_CUDA_MOST ? n : LT_CUDA_MOST;
}

bool lt_cuda_available(char *why, size_t size) {
  if (count_nodes() == 0)
    snprintf(why, size, "no NVIDIA GPU on this machine, or its driver is not loaded (no %s0)",
             LT_CUDA_NODES);
  else if (has_driver(why, size) && lt_cuda_count() == 0)
    snprintf(why, size, "CUDA_VISIBLE_DEVICES=%.80s hides all GPUs",
             getenv("CUDA_VISIBLE_DEVICES"));
  return lt_cuda_count() > 0;
}
