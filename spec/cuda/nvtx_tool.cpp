/* spec/cuda/nvtx_tool.cpp: a tool that NVTX loads (NVTX_INJECTION64_PATH), as a profiler's: prints
   the ranges that it is told of. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static int push(const char *name) {
  printf("push %s\n", name);
  return 0;
}

static int pop(void) {
  printf("pop\n");
  return 0;
}

static void mark(const char *name) { printf("mark %s\n", name); }

template <class F> static void put(NvtxFunctionTable table, int slot, F *fn) {
  *table[slot] = reinterpret_cast<NvtxFunctionPointer>(fn);
}

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get) {
  auto callbacks = static_cast<const NvtxExportTableCallbacks *>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  setvbuf(stdout, nullptr, _IONBF, 0);
  if (callbacks == nullptr ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
    return 0;
  put(table, NVTX_CBID_CORE_RangePushA, push);
  put(table, NVTX_CBID_CORE_RangePop, pop);
  put(table, NVTX_CBID_CORE_MarkA, mark);
  return 1;
}
