/* runtime/cuda/describe.cu: formats failures, and gives the names and properties of devices. */
#include <stdarg.h>
#include <stdio.h>

#include "cuda/device.h"

bool lt_cuda_fail(lt_ctx *c, lt_code code, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return lt_cuda_host->fail(c, code, text);
}

/* A failed query leaves its error behind; clearing it keeps it out of the next check. */
static bool properties(int index, cudaDeviceProp *p) {
  if (lt_cuda_has(index) && cudaGetDeviceProperties(p, index) == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

bool lt_cuda_describe(int index, char *text, size_t size) {
  cudaDeviceProp p;
  if (!properties(index, &p)) return false;
  snprintf(text, size, "%s", p.name);
  return true;
}

/* As NVML and nvidia-smi write it: the same device has other numbers under CUDA_VISIBLE_DEVICES. */
bool lt_cuda_bus_address(int index, char *text, size_t size) {
  cudaDeviceProp p;
  if (!properties(index, &p)) return false;
  snprintf(text, size, "%04x:%02x:%02x.0", p.pciDomainID, p.pciBusID, p.pciDeviceID);
  return true;
}
