/* runtime/cuda/count.cu: how many NVIDIA devices there are, without initialising CUDA. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/device.h"

#ifndef LT_CUDA_NODES
#define LT_CUDA_NODES "/dev/nvidia"
#define LT_CUDA_DRIVER "libcuda.so.1"
#endif

static int look_for_nodes(void) {
  char path[512];
  int n = 0;
  for (int k = 0; k < 64; k++) {
    snprintf(path, sizeof path, "%s%d", LT_CUDA_NODES, k);
    n += access(path, F_OK) == 0;
  }
  return n;
}

static int count_nodes(void) {
  static const int nodes = look_for_nodes();
  return nodes;
}

/* As CUDA reads it: entries up to the first that is no device; UUIDs are taken for devices. */
static int count_visible(const char *visible, int nodes) {
  int n = 0;
  while (*visible != '\0' && n < nodes) {
    char *end;
    long index = strtol(visible, &end, 10);
    bool is_uuid = strncmp(visible, "GPU-", 4) == 0 || strncmp(visible, "MIG-", 4) == 0;
    if (!is_uuid && (end == visible || index < 0 || index >= nodes)) break;
    n++;
    visible += strcspn(visible, ",");
    visible += *visible == ',';
  }
  return n;
}

int lt_cuda_count(void) {
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  int nodes = count_nodes();
  int n = visible == nullptr ? nodes : count_visible(visible, nodes);
  return n < LT_CUDA_MOST ? n : LT_CUDA_MOST;
}

static bool has_driver(void) {
#ifdef LT_CUDA_DRIVER
  void *driver = dlopen(LT_CUDA_DRIVER, RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  dlclose(driver);
#endif
  return true;
}

bool lt_cuda_available(char *why, size_t size) {
  if (count_nodes() == 0)
    snprintf(why, size, "no NVIDIA GPU on this machine (no %s0)", LT_CUDA_NODES);
  else if (lt_cuda_count() == 0)
    snprintf(why, size, "CUDA_VISIBLE_DEVICES=%.80s hides all GPUs",
             getenv("CUDA_VISIBLE_DEVICES"));
  else if (!has_driver())
    snprintf(why, size, "no NVIDIA driver: libcuda.so.1 not found");
  else
    return true;
  return false;
}
