/* runtime/cuda/host_memory.cu: pinned memory of the host.

   What was pinned here is listed: CUDA can say that memory is pinned, but not by whom, and copies
   of others' memory are staged (device.cu). */
#include <mutex>
#include <new>

#include "cuda/device.h"

struct pinned {
  pinned *next;
  const char *memory;
  size_t bytes;
};

static std::mutex lock;
static pinned *list;

void *lt_cuda_host_alloc(size_t bytes) {
  void *p = nullptr;
  pinned *entry = new (std::nothrow) pinned{nullptr, nullptr, bytes > 0 ? bytes : 1};
  if (entry == nullptr) return nullptr;
  cudaError_t e = cudaHostAlloc(&p, entry->bytes, cudaHostAllocPortable);
  cudaGetLastError();
  if (e != cudaSuccess) {
    delete entry;
    return nullptr;
  }
  std::lock_guard<std::mutex> hold(lock);
  entry->memory = static_cast<const char *>(p);
  entry->next = list;
  list = entry;
  return p;
}

static void forget(const void *memory) {
  std::lock_guard<std::mutex> hold(lock);
  for (pinned **link = &list; *link != nullptr; link = &(*link)->next) {
    pinned *entry = *link;
    if (entry->memory != memory) continue;
    *link = entry->next;
    delete entry;
    return;
  }
}

void lt_cuda_host_free(void *memory, size_t bytes) {
  (void)bytes;
  forget(memory);
  cudaFreeHost(memory);
  cudaGetLastError();
}

bool lt_cuda_host_has(const void *memory) {
  uintptr_t at = reinterpret_cast<uintptr_t>(memory);
  std::lock_guard<std::mutex> hold(lock);
  for (const pinned *entry = list; entry != nullptr; entry = entry->next)
    if (at - reinterpret_cast<uintptr_t>(entry->memory) < entry->bytes) return true;
  return false;
}
