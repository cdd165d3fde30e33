/* spec/cuda/fake_driver.cpp: of NVIDIA's driver the version alone, that of FAKE_DRIVER. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

extern "C" __attribute__((visibility("default"))) int cuDriverGetVersion(int *version) {
  const char *set = getenv("FAKE_DRIVER");
  *version = set != nullptr ? atoi(set) : CUDART_VERSION;
  return 0;
}
