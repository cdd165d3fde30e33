/* spec/cuda/fakert.cpp: a CUDA runtime over host memory (fakert.h). */
#include "cuda/fakert.h"
#include "cuda/grids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

FAKERT_API __thread void *emu_block; /* emu.h */

enum { STREAMS = 256, HOST = STREAMS, MOST_DEVICES = 16 }; /* the host's clock is the last */

/* For each stream, and the host, up to which of its work somebody has seen. */
struct Clock {
  uint64_t at[STREAMS + 1] = {0};
  void join(const Clock &o) {
    for (int k = 0; k <= STREAMS; k++)
      if (o.at[k] > at[k]) at[k] = o.at[k];
  }
};

struct Task {
  std::function<void()> run;
  CUstream_st *after = nullptr; /* run nothing, wait for this one's position */
  uint64_t position = 0;
};

/* An operation: what was declared before its launches. */
struct Operation {
  int64_t bytes = 0, threads = 0; /* all of it; of the widest grid */
  bool is_launched = false, is_queued = false;
  std::string what;
};

/* A graph: work in its order, each with what it reads and writes. */
struct Touched {
  const void *data;
  size_t bytes;
  bool writes;
  std::string what;
};

struct CUgraphNode_st {
  bool is_kernel;
  std::string what;
  std::function<void()> run;
  std::vector<Touched> touched;
};

struct CUgraph_st {
  std::vector<CUgraphNode_st *> nodes;
  std::vector<Touched> touched; /* by the node that comes next */
  cudaStreamCaptureMode mode;
  bool is_invalid = false;
};

struct CUgraphExec_st {
  CUgraph_st *of;
  std::map<CUgraphNode_st *, std::function<void()>> run;
};

struct CUstream_st {
  int id, device;
  CUgraph_st *captured_by = nullptr;
  Operation operation;
  std::deque<Task> queue;
  uint64_t issued = 0, done = 0;
  Clock clock;
};

struct CUevent_st {
  CUgraph_st *captured_by = nullptr; /* it was recorded in a capture */
  std::shared_ptr<double> reached; /* of timed ones: when their stream came to them, in ms */
  CUstream_st *stream = nullptr;
  uint64_t at = 0;
  Clock clock;
};

struct Access {
  const char *from, *to;
  int actor;
  uint64_t time;
  bool writes;
  std::string what;
};

struct Block {
  size_t bytes;
  int device; /* -1: pinned memory of the host */
};

/* Behind each block; ASan has its own. */
#if defined __SANITIZE_ADDRESS__
enum { FENCE = 0 };
#else
enum { FENCE = 32 };
#endif
static const int FENCE_BYTE = 0xa5;

struct World {
  std::recursive_mutex lock;
  std::condition_variable_any changed;
  std::vector<CUstream_st *> streams;
  std::map<const char *, Block> blocks;             /* what malloc gave out */
  std::map<const char *, std::vector<Access>> seen; /* by block: accesses that may still race */
  Clock host;
  size_t used[MOST_DEVICES] = {0};
  fakert_counts counts = {};
  bool threads, races;
  unsigned pause;
  int devices, capability;
  std::vector<int> gpus; /* which of the machine's they are */
  size_t memory;
  std::string last; /* which kernel was issued last */
  fakert_grid narrowest = {};
  long fail_at;
  cudaError_t fault = cudaSuccess; /* that is planted: at which launch, on which device (-1: any) */
  long fault_at = 0;
  int fault_device = -1;
  long launched[MOST_DEVICES] = {0};
  cudaError_t broken[MOST_DEVICES] = {}; /* devices whose fault has come */
  bool reaches[MOST_DEVICES][MOST_DEVICES] = {};
  std::mt19937 random;
};

/* The errors that this runtime knows; CUDA's own words. */
static const struct {
  cudaError_t code;
  const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout",
     "the launch timed out and was terminated"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable",
     "uncorrectable ECC error encountered"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
    {cudaErrorHardwareStackError, "cudaErrorHardwareStackError", "hardware stack error"},
    {cudaErrorIllegalInstruction, "cudaErrorIllegalInstruction",
     "an illegal instruction was encountered"},
    {cudaErrorInvalidAddressSpace, "cudaErrorInvalidAddressSpace",
     "operation not supported on global/shared address space"},
    {cudaErrorInvalidPc, "cudaErrorInvalidPc", "invalid program counter"},
    {cudaErrorExternalDevice, "cudaErrorExternalDevice", "an error of an external device"},
    {static_cast<cudaError_t>(226), "cudaErrorContained", "an error that the GPU has contained"},
    {static_cast<cudaError_t>(721), "cudaErrorTensorMemoryLeak", "tensor memory not deallocated"},
    {static_cast<cudaError_t>(810), "cudaErrorMpsClientTerminated",
     "the MPS client was terminated"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorUnsupportedPtxVersion, "cudaErrorUnsupportedPtxVersion",
     "the provided PTX was compiled with an unsupported toolchain."},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"}, /* and all others */
};

const char *fakert_setting(const char *name, const char *otherwise) {
  const char *text = getenv(name);
  return text != nullptr && *text != '\0' ? text : otherwise;
}

/* "cudaErrorIllegalAddress@12", "cudaErrorECCUncorrectable@12:1" */
static void plant(World *w, const char *text) {
  const char *at = strchr(text, '@');
  if (at == nullptr) return;
  for (auto &e : errors)
    if (std::string(text, at) == e.name) w->fault = e.code;
  w->fault_at = atol(at + 1);
  const char *device = strchr(at, ':');
  if (device != nullptr) w->fault_device = atoi(device + 1);
}

/* CUDA_VISIBLE_DEVICES: numbers or beginnings of UUIDs (GPU-10aa.., GPU-11aa..) of GPUs of the
   machine, of which the first may be hidden for good, as by a cgroup. */
static std::vector<int> visible(void) {
  int hidden = atoi(fakert_setting("FAKERT_HIDDEN", "0"));
  int n = atoi(fakert_setting("FAKERT_DEVICES", "4")) - hidden;
  std::vector<int> all;
  const char *list = getenv("CUDA_VISIBLE_DEVICES");
  for (int k = 0; list == nullptr && k < n; k++) all.push_back(hidden + k);
  while (list != nullptr && *list != '\0') {
    int number = -1;
    if (sscanf(list, " GPU-1%d", &number) != 1 && sscanf(list, " %d", &number) != 1) break;
    if (number < 0 || number >= n) break;
    all.push_back(hidden + number);
    list += strcspn(list, ",");
    list += *list == ',';
  }
  return all;
}

static World &world() {
  static World *w = [] {
    World *made = new World;
    made->threads = strcmp(fakert_setting("FAKERT", "late"), "threads") == 0;
    made->races = strcmp(fakert_setting("FAKERT_RACES", "1"), "0") != 0;
    made->pause = static_cast<unsigned>(atoi(fakert_setting("FAKERT_PAUSE", "300")));
    made->gpus = visible();
    made->devices = static_cast<int>(made->gpus.size());
    made->capability = atoi(fakert_setting("FAKERT_CAPABILITY", "90"));
    made->memory = strtoull(fakert_setting("FAKERT_MEMORY", "17179869184"), nullptr, 10);
    made->fail_at = atol(fakert_setting("FAKERT_FAIL", "0"));
    plant(made, fakert_setting("FAKERT_FAULT", ""));
    made->random.seed(static_cast<unsigned>(atoi(fakert_setting("FAKERT_SEED", "1"))));
    return made;
  }();
  return *w;
}

typedef std::unique_lock<std::recursive_mutex> Hold;
static thread_local int device_now;
static thread_local cudaError_t last_error;

/* A process that was forked from one that had initialised CUDA cannot use it: what initialises it
   asks. */
static cudaError_t survives(void) {
  static std::atomic<pid_t> by;
  pid_t none = 0, here = getpid();
  by.compare_exchange_strong(none, here);
  return by == here ? cudaSuccess : cudaErrorInitializationError;
}

/* What needs a context makes one on this thread's device, which is 0 until it chooses one. */
static void need_context(void) {
  Hold hold(world().lock);
  world().counts.contexts |= int64_t{1} << device_now;
}

static cudaError_t result(cudaError_t e) {
  if (e != cudaSuccess && e != cudaErrorNotReady) last_error = e;
  return e;
}

/* A device's fault, if it has had one: what every call that touches it returns. */
static cudaError_t fault_of(int device) {
  if (survives() != cudaSuccess) return survives();
  Hold hold(world().lock);
  return device >= 0 && device < MOST_DEVICES ? world().broken[device] : cudaSuccess;
}

bool fakert_fails(void) {
  World &w = world();
  Hold hold(w.lock);
  return ++w.counts.calls == w.fail_at;
}

/* One after the other, each after a pause. */
static void work(CUstream_st *s) {
  World &w = world();
  for (;;) {
    Hold hold(w.lock);
    w.changed.wait(hold, [&] { return !s->queue.empty(); });
    Task t = std::move(s->queue.front());
    s->queue.pop_front();
    unsigned pause = w.pause > 0 ? static_cast<unsigned>(w.random() % w.pause) : 0;
    if (t.after != nullptr) w.changed.wait(hold, [&] { return t.after->done >= t.position; });
    hold.unlock();
    if (pause > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause));
    if (t.run) t.run();
    hold.lock();
    s->done++;
    w.changed.notify_all();
  }
}

static CUstream_st *add_stream(int device) {
  World &w = world();
  Hold hold(w.lock);
  if (w.streams.size() == STREAMS) return nullptr;
  CUstream_st *s = new CUstream_st;
  s->id = static_cast<int>(w.streams.size());
  s->device = device;
  w.streams.push_back(s);
  if (w.threads) std::thread([s] { work(s); }).detach();
  return s;
}

static thread_local int running; /* a task waits for nothing */

/* The host waits until a stream has come to a position. */
static void finish(CUstream_st *s, uint64_t until) {
  World &w = world();
  Hold hold(w.lock);
  if (w.threads) {
    w.changed.wait(hold, [&] { return s->done >= until; });
    return;
  }
  while (s->done < until && running == 0) {
    Task t = std::move(s->queue.front());
    s->queue.pop_front();
    if (t.after != nullptr) finish(t.after, t.position);
    running++;
    if (t.run) t.run();
    running--;
    s->done++;
  }
}

static void capture(CUgraph_st *g, const char *what, bool is_kernel, std::function<void()> run) {
  g->nodes.push_back(new CUgraphNode_st{is_kernel, what, std::move(run), std::move(g->touched)});
  g->touched.clear();
}

static void push(CUstream_st *s, Task t) {
  World &w = world();
  Hold hold(w.lock);
  if (s->captured_by != nullptr) {
    capture(s->captured_by, "copy", false, std::move(t.run));
    return;
  }
  s->clock.join(w.host); /* what the host has seen is before what it issues */
  s->clock.at[s->id] = ++s->issued;
  s->queue.push_back(std::move(t));
  w.changed.notify_all();
}

/* The block that holds p, or end. */
static std::map<const char *, Block>::iterator block_of(const void *p) {
  World &w = world();
  auto b = w.blocks.upper_bound(static_cast<const char *>(p));
  if (b == w.blocks.begin()) return w.blocks.end();
  --b;
  return static_cast<const char *>(p) < b->first + b->second.bytes ? b : w.blocks.end();
}

[[noreturn]] static void die(const std::string &text) {
  fprintf(stderr, "fakert: %s\n", text.c_str());
  abort();
}

static void check_fence(const char *block, size_t bytes) {
  for (int k = 0; k < FENCE; k++)
    if (static_cast<unsigned char>(block[bytes + static_cast<size_t>(k)]) != FENCE_BYTE)
      die("a block of " + std::to_string(bytes) + " bytes was written beyond its end, by " +
          world().last + " or what ran before it");
}

/* After work has run; under the lock. */
static void check_fences(void) {
  for (auto &b : world().blocks) check_fence(b.first, b.second.bytes);
}

static std::string name_of(int actor) {
  return actor == HOST ? "the host" : "stream " + std::to_string(actor);
}

/* `actor` (a stream, or HOST), now at `clock`, reads or writes bytes of a known block. */
static void touch(int actor, const Clock &clock, const void *p, size_t bytes, bool writes,
                  const char *what) {
  World &w = world();
  Hold hold(w.lock);
  auto b = block_of(p);
  if (!w.races || b == w.blocks.end() || bytes == 0) return;
  const char *from = static_cast<const char *>(p), *to = from + bytes;
  if (to > b->first + b->second.bytes) die(std::string(what) + " reaches beyond its block");
  std::vector<Access> &list = w.seen[b->first];
  size_t keep = 0;
  for (size_t k = 0; k < list.size(); k++) {
    Access &a = list[k];
    bool before = a.actor == actor || clock.at[a.actor] >= a.time;
    bool meets = a.from < to && from < a.to && (a.writes || writes);
    if (meets && !before)
      die(std::string(writes ? "the write by " : "the read by ") + what + " on " + name_of(actor) +
          " is not ordered after the " + (a.writes ? "write" : "read") + " by " + a.what + " on " +
          name_of(a.actor));
    bool same = a.actor == actor && a.from == from && a.to == to && a.writes == writes;
    bool covered = before && writes && from <= a.from && a.to <= to;
    if (!covered && !same && k != keep) list[keep] = std::move(list[k]);
    if (!covered && !same) keep++;
  }
  list.resize(keep);
  list.push_back({from, to, actor, clock.at[actor], writes, what});
}

/* The operation is over. Work of a library has grids that nobody knows. Under the lock. */
static void end_operation(CUstream_st *s) {
  Operation o = std::move(s->operation);
  s->operation = Operation();
  fakert_grid &most = world().narrowest;
  if (!o.is_launched || o.is_queued || o.threads == 0) return;
  if (most.threads > 0 && o.bytes * most.threads <= most.bytes * o.threads) return;
  most = fakert_grid{{0}, o.threads, o.bytes};
  snprintf(most.what, sizeof most.what, "%s", o.what.c_str());
}

static void note_grid(CUstream_st *s, const char *what, int64_t threads) {
  Operation &o = s->operation;
  o.is_launched = true;
  if (threads > o.threads) o.threads = threads;
  o.what = what;
}

fakert_grid fakert_take_narrowest(void) {
  Hold hold(world().lock);
  for (CUstream_st *s : world().streams) end_operation(s);
  fakert_grid taken = world().narrowest;
  world().narrowest = {};
  return taken;
}

void fakert_touch(cudaStream_t stream, const void *data, size_t bytes, bool writes,
                  const char *what) {
  Hold hold(world().lock);
  if (stream->captured_by != nullptr) {
    stream->captured_by->touched.push_back({data, bytes, writes, what});
    return;
  }
  if (stream->operation.is_launched || stream->operation.is_queued) end_operation(stream);
  stream->operation.bytes += static_cast<int64_t>(bytes);
  Clock next = stream->clock;
  next.join(world().host);
  next.at[stream->id] = stream->issued + 1;
  touch(stream->id, next, data, bytes, writes, what);
}

void fakert_host_touch(const void *data, size_t bytes, bool writes, const char *what) {
  Hold hold(world().lock);
  touch(HOST, world().host, data, bytes, writes, what);
}

int fakert_stream_device(cudaStream_t stream) { return stream->device; }

void fakert_run_by_itself(void) {
  World &w = world();
  Hold hold(w.lock);
  if (w.threads) return;
  w.threads = true;
  for (CUstream_st *s : w.streams) std::thread([s] { work(s); }).detach();
}

void fakert_queue(cudaStream_t stream, const char *what, std::function<void()> run) {
  Hold hold(world().lock);
  if (stream->captured_by != nullptr) {
    capture(stream->captured_by, what, false, std::move(run));
    return;
  }
  world().counts.launches++;
  stream->operation.is_queued = true;
  push(stream, {std::move(run)});
}

void fakert_launch(cudaStream_t stream, const char *what, dim3 grid, dim3 block,
                   std::function<void()> run) {
  if (stream == nullptr) die(std::string(what) + ": a launch on the default stream");
  if (stream->device != device_now)
    die(std::string(what) + ": a launch on a stream of another device");
  if (block.x * block.y * block.z > 1024 || grid.y > 65535 || grid.z > 65535) {
    result(cudaErrorInvalidConfiguration);
    return;
  }
  if (fakert_fails()) {
    result(cudaErrorLaunchFailure);
    return;
  }
  Hold hold(world().lock);
  if (fault_of(device_now) != cudaSuccess) {
    result(fault_of(device_now));
    return;
  }
  if (stream->captured_by != nullptr) {
    capture(stream->captured_by, what, true, std::move(run));
    return;
  }
  World &w = world();
  int device = device_now;
  bool planted = w.fault_device < 0 || w.fault_device == device;
  if (w.fault_at > 0 && planted && ++w.launched[device] == w.fault_at) {
    push(stream, {[device] {
      Hold hold(world().lock);
      world().broken[device] = world().fault;
    }});
    return;
  }
  world().last = what;
  int64_t threads = static_cast<int64_t>(grid.x) * grid.y * grid.z * block.x * block.y * block.z;
  world().counts.threads += threads;
  world().counts.launches++;
  note_grid(stream, what, threads);
  push(stream, {std::move(run)});
}

int fakert_device(void) { return device_now; }
int fakert_capability(void) { return world().capability; }

int fakert_gpu(int device) { return world().gpus[static_cast<size_t>(device)]; }

int fakert_device_of(const void *memory) {
  Hold hold(world().lock);
  auto b = block_of(memory);
  return b == world().blocks.end() ? -1 : b->second.device;
}

void fakert_count_message(void) {
  Hold hold(world().lock);
  world().counts.messages++;
}

fakert_counts fakert_take_counts(void) {
  Hold hold(world().lock);
  fakert_counts taken = world().counts;
  world().counts = {};
  world().counts.calls = taken.calls;
  world().counts.contexts = taken.contexts;
  return taken;
}

void fakert_set_node(cudaGraphExec_t graph, cudaGraphNode_t node, const char *what,
                     std::function<void()> run) {
  Hold hold(world().lock);
  auto known = graph->run.find(node);
  if (fakert_fails() || known == graph->run.end() || !node->is_kernel || node->what != what) {
    result(cudaErrorInvalidValue);
    return;
  }
  known->second = std::move(run);
}

/* What a capture forbids ends it. `s`: a stream that the call is about; nullptr: all of them, which
   captures of mode relaxed allow. */
static cudaError_t refuse_captured(CUstream_st *s, bool always) {
  World &w = world();
  Hold hold(w.lock);
  cudaError_t e = cudaSuccess;
  for (CUstream_st *one : w.streams) {
    if (one->captured_by == nullptr || (s != nullptr && one != s)) continue;
    if (!always && one->captured_by->mode == cudaStreamCaptureModeRelaxed) continue;
    one->captured_by->is_invalid = true;
    e = cudaErrorStreamCaptureUnsupported;
  }
  return e;
}

/* From here on: the runtime's own functions. */
#define API extern "C" FAKERT_API

API cudaError_t CUDARTAPI cudaGetDeviceCount(int *n) {
  if (survives() != cudaSuccess) return result(survives());
  *n = world().devices;
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaSetDevice(int device) {
  if (survives() != cudaSuccess) return result(survives());
  if (fakert_fails()) return result(cudaErrorInvalidDevice);
  if (device < 0 || device >= world().devices) return result(cudaErrorInvalidDevice);
  device_now = device;
  need_context(); /* from CUDA 12 on */
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaGetDevice(int *device) {
  if (fakert_fails()) return result(cudaErrorInitializationError);
  *device = device_now;
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int device) {
  if (survives() != cudaSuccess) return result(survives());
  if (fakert_fails()) return result(cudaErrorInvalidValue);
  if (device < 0 || device >= world().devices) return result(cudaErrorInvalidDevice);
  switch (static_cast<int>(what)) {
    case cudaDevAttrMultiProcessorCount: *value = 8; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor: *value = fakert_capability() / 10; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = fakert_capability() % 10; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; return cudaSuccess;
    default: return result(cudaErrorInvalidValue);
  }
}
API cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp *out, int device) {
  if (survives() != cudaSuccess) return result(survives());
  if (fakert_fails()) return result(cudaErrorInvalidDevice);
  if (device < 0 || device >= world().devices) return result(cudaErrorInvalidDevice);
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "Fake GPU %d", device);
  out->totalGlobalMem = world().memory;
  out->multiProcessorCount = 8;
  out->major = fakert_capability() / 10, out->minor = fakert_capability() % 10;
  out->pciDomainID = 0x10, out->pciBusID = 0xfa + fakert_gpu(device);
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (survives() != cudaSuccess) return result(survives());
  if (fakert_fails()) return result(cudaErrorInitializationError);
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaGetLastError(void) {
  cudaError_t e = last_error;
  last_error = cudaSuccess;
  return e;
}
API cudaError_t CUDARTAPI cudaPeekAtLastError(void) { return last_error; }
API const char *CUDARTAPI cudaGetErrorName(cudaError_t e) {
  for (auto &known : errors)
    if (known.code == e) return known.name;
  return "cudaErrorInvalidValue";
}
API const char *CUDARTAPI cudaGetErrorString(cudaError_t e) {
  for (auto &known : errors)
    if (known.code == e) return known.text;
  return "invalid argument";
}

static cudaError_t allocate(void **p, size_t bytes, int device) {
  need_context();
  World &w = world();
  Hold hold(w.lock);
  if (fault_of(device_now) != cudaSuccess) return result(fault_of(device_now));
  bool full = device >= 0 && w.used[device] + bytes > w.memory;
  if (full || fakert_fails() || posix_memalign(p, 512, bytes + FENCE) != 0) {
    *p = nullptr;
    return result(cudaErrorMemoryAllocation);
  }
  memset(*p, 0xff, bytes);
  memset(static_cast<char *>(*p) + bytes, FENCE_BYTE, FENCE);
  if (device >= 0) w.used[device] += bytes;
  w.blocks[static_cast<const char *>(*p)] = {bytes, device};
  return cudaSuccess;
}

API cudaError_t CUDARTAPI cudaMalloc(void **p, size_t bytes) {
  if (refuse_captured(nullptr, false) != cudaSuccess)
    return result(cudaErrorStreamCaptureUnsupported);
  return allocate(p, bytes, device_now);
}
API cudaError_t CUDARTAPI cudaHostAlloc(void **p, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(p, bytes, -1);
}

API cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t s) {
  need_context();
  if (s == nullptr) return result(cudaErrorInvalidValue); /* nobody may use the default stream */
  if (refuse_captured(s, true) != cudaSuccess) return result(cudaErrorStreamCaptureUnsupported);
  finish(s, s->issued);
  Hold hold(world().lock);
  world().host.join(s->clock);
  world().counts.waits++;
  check_fences();
  if (fault_of(s->device) != cudaSuccess) return result(fault_of(s->device));
  return fakert_fails() ? result(cudaErrorLaunchFailure) : cudaSuccess;
}
API cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t s) {
  need_context();
  if (refuse_captured(s, true) != cudaSuccess) return result(cudaErrorStreamCaptureUnsupported);
  if (fault_of(s->device) != cudaSuccess) return result(fault_of(s->device));
  Hold hold(world().lock);
  return s->done == s->issued ? cudaSuccess : cudaErrorNotReady;
}
API cudaError_t CUDARTAPI cudaDeviceSynchronize(void) {
  if (refuse_captured(nullptr, true) != cudaSuccess)
    return result(cudaErrorStreamCaptureUnsupported);
  for (size_t k = 0; k < world().streams.size(); k++)
    if (world().streams[k]->device == device_now) cudaStreamSynchronize(world().streams[k]);
  return result(fault_of(device_now));
}

/* Waits, as the real one; freed memory is 0xff, then gone. */
static cudaError_t release(void *p) {
  if (survives() != cudaSuccess) return result(survives());
  need_context();
  if (fakert_fails()) return result(cudaErrorInvalidValue);
  World &w = world();
  if (p == nullptr) return cudaSuccess;
  if (refuse_captured(nullptr, true) != cudaSuccess)
    return result(cudaErrorStreamCaptureUnsupported);
  for (size_t k = 0; k < w.streams.size(); k++) cudaStreamSynchronize(w.streams[k]);
  Hold hold(w.lock);
  auto b = w.blocks.find(static_cast<const char *>(p));
  if (b == w.blocks.end()) return result(cudaErrorInvalidValue);
  check_fence(b->first, b->second.bytes);
  if (b->second.device >= 0) w.used[b->second.device] -= b->second.bytes;
  memset(p, 0xff, b->second.bytes);
  w.seen.erase(b->first);
  w.blocks.erase(b);
  free(p);
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaFree(void *p) { return release(p); }
API cudaError_t CUDARTAPI cudaFreeHost(void *p) { return release(p); }

API cudaError_t CUDARTAPI cudaMemGetInfo(size_t *left, size_t *total) {
  need_context();
  if (fault_of(device_now) != cudaSuccess) return result(fault_of(device_now));
  if (fakert_fails()) return result(cudaErrorInvalidValue);
  *total = world().memory;
  *left = *total - world().used[device_now];
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p) {
  if (survives() != cudaSuccess) return result(survives());
  need_context();
  if (fakert_fails()) return result(cudaErrorInvalidValue);
  Hold hold(world().lock);
  auto b = block_of(p);
  memset(out, 0, sizeof *out);
  if (b == world().blocks.end()) return cudaSuccess;
  out->type = b->second.device < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  out->device = b->second.device;
  return cudaSuccess;
}

API cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int) {
  if (fault_of(device_now) != cudaSuccess) return result(fault_of(device_now));
  if (flags != cudaStreamNonBlocking || fakert_fails()) return result(cudaErrorInvalidValue);
  *out = add_stream(device_now);
  return *out != nullptr ? cudaSuccess : result(cudaErrorMemoryAllocation);
}
API cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  if (survives() != cudaSuccess) return result(survives());
  need_context();
  if (fakert_fails()) return result(cudaErrorMemoryAllocation);
  *out = new CUevent_st;
  if ((flags & cudaEventDisableTiming) == 0) (*out)->reached = std::make_shared<double>(-1);
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t e) {
  need_context();
  delete e;
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  Hold hold(world().lock);
  if (fault_of(s->device) != cudaSuccess) return result(fault_of(s->device));
  if (s->device != device_now || fakert_fails()) return result(cudaErrorInvalidValue);
  if (s->captured_by != nullptr) {
    e->captured_by = s->captured_by, e->stream = s;
    return cudaSuccess;
  }
  std::shared_ptr<double> reached = e->reached;
  if (reached) {
    push(s, {[reached] {
      auto now = std::chrono::steady_clock::now().time_since_epoch();
      *reached = std::chrono::duration<double, std::milli>(now).count();
    }});
  }
  *e = CUevent_st{nullptr, reached, s, s->issued, s->clock};
  return cudaSuccess;
}

/* A poll that has found nothing a few times lets the work run: else who polls would never end. */
API cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t e) {
  need_context();
  if (fakert_fails()) return result(cudaErrorLaunchFailure);
  static thread_local int asked;
  if (e->stream == nullptr) return cudaSuccess;
  Hold hold(world().lock);
  if (e->captured_by != nullptr) return result(cudaErrorCapturedEvent);
  if (e->stream->done < e->at) {
    if (world().threads || ++asked % 8 != 0) return cudaErrorNotReady;
    finish(e->stream, e->at);
  }
  world().host.join(e->clock);
  return result(fault_of(e->stream->device));
}
API cudaError_t CUDARTAPI cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
  if (!from->reached || !to->reached) return result(cudaErrorInvalidValue);
  if (cudaEventQuery(from) != cudaSuccess || cudaEventQuery(to) != cudaSuccess)
    return cudaErrorNotReady;
  *ms = static_cast<float>(*to->reached - *from->reached);
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t e) {
  need_context();
  if (e->stream == nullptr) return cudaSuccess;
  if (e->captured_by != nullptr) return result(cudaErrorCapturedEvent);
  finish(e->stream, e->at);
  Hold hold(world().lock);
  world().host.join(e->clock);
  world().counts.waits++;
  check_fences();
  if (fault_of(e->stream->device) != cudaSuccess) return result(fault_of(e->stream->device));
  return fakert_fails() ? result(cudaErrorLaunchFailure) : cudaSuccess;
}
API cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  if (fakert_fails()) return result(cudaErrorInvalidResourceHandle);
  Hold hold(world().lock);
  if (fault_of(s->device) != cudaSuccess) return result(fault_of(s->device));
  if (e->stream == nullptr) return cudaSuccess;
  if (e->captured_by != s->captured_by) { /* no stream joins another's capture here */
    (s->captured_by != nullptr ? s->captured_by : e->captured_by)->is_invalid = true;
    return result(cudaErrorStreamCaptureIsolation);
  }
  if (s->captured_by != nullptr) return cudaSuccess;
  Task t;
  t.after = e->stream, t.position = e->at;
  push(s, std::move(t));
  s->clock.join(e->clock);
  return cudaSuccess;
}

/* Pageable memory is read before the call returns (host to device), and the call waits (device to
   host); pinned memory is read or written when the copy runs: the host must not touch it before. */
static cudaError_t copy(void *to, const void *from, size_t n, bool to_host, bool from_host,
                        cudaStream_t s) {
  World &w = world();
  Hold hold(w.lock);
  if (s != nullptr && fault_of(s->device) != cudaSuccess) return result(fault_of(s->device));
  bool to_known = block_of(to) != w.blocks.end(), from_known = block_of(from) != w.blocks.end();
  if (s != nullptr && s->captured_by != nullptr && !(to_known && from_known)) {
    s->captured_by->is_invalid = true; /* memory that is not pinned */
    return result(cudaErrorStreamCaptureUnsupported);
  }
  if ((!to_known && !to_host) || (!from_known && !from_host) || s == nullptr || fakert_fails())
    return result(cudaErrorInvalidValue);
  if (s->captured_by == nullptr) w.counts.copies++;
  fakert_touch(s, from, n, false, "copy");
  fakert_touch(s, to, n, true, "copy");
  if (from_known) {
    push(s, {[=] { memcpy(to, from, n); }});
  } else {
    std::vector<char> staged(static_cast<const char *>(from), static_cast<const char *>(from) + n);
    push(s, {[=, staged = std::move(staged)] { memcpy(to, staged.data(), n); }});
  }
  hold.unlock();
  return to_known ? cudaSuccess : cudaStreamSynchronize(s);
}
API cudaError_t CUDARTAPI cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind,
                                          cudaStream_t s) {
  return copy(to, from, n, kind == cudaMemcpyDeviceToHost, kind == cudaMemcpyHostToDevice, s);
}
API cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                              int from_device, size_t n, cudaStream_t s) {
  Hold hold(world().lock);
  bool direct = world().reaches[to_device][from_device] && world().reaches[from_device][to_device];
  if (direct) world().counts.direct++;
  hold.unlock();
  return copy(to, from, n, false, false, s);
}
API cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  const char *set = getenv("FAKERT_PEERS");
  int n = world().devices;
  if (fakert_fails()) return result(cudaErrorInvalidDevice);
  if (device < 0 || device >= n || peer < 0 || peer >= n) return result(cudaErrorInvalidDevice);
  *can = device != peer && (set == nullptr || atoi(set) != 0);
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned) {
  int can = 0;
  if (fakert_fails()) return result(cudaErrorInvalidDevice);
  if (cudaDeviceCanAccessPeer(&can, device_now, peer) != cudaSuccess || can == 0)
    return result(cudaErrorInvalidDevice);
  Hold hold(world().lock);
  bool &reaches = world().reaches[device_now][peer];
  if (reaches) return result(cudaErrorPeerAccessAlreadyEnabled);
  reaches = true;
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t s) {
  if (fakert_fails()) return result(cudaErrorInvalidValue);
  fakert_touch(s, p, n, true, "memset");
  push(s, {[=] { memset(p, value, n); }});
  return cudaSuccess;
}

/* ---- graphs ---- */

API cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  Hold hold(world().lock);
  if (s == nullptr || fakert_fails()) return result(cudaErrorStreamCaptureUnsupported);
  if (s->captured_by != nullptr) return result(cudaErrorIllegalState);
  s->captured_by = new CUgraph_st;
  s->captured_by->mode = mode;
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
  Hold hold(world().lock);
  *out = nullptr;
  if (s->captured_by == nullptr) return result(cudaErrorIllegalState);
  CUgraph_st *g = s->captured_by;
  s->captured_by = nullptr;
  if (g->is_invalid) {
    cudaGraphDestroy(g);
    return result(cudaErrorStreamCaptureInvalidated);
  }
  if (fakert_fails()) {
    cudaGraphDestroy(g);
    return result(cudaErrorMemoryAllocation);
  }
  *out = g;
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus *status,
                                                   unsigned long long *, cudaGraph_t *,
                                                   const cudaGraphNode_t **last,
                                                   const cudaGraphEdgeData **, size_t *n) {
  Hold hold(world().lock);
  if (fakert_fails()) return result(cudaErrorInvalidValue);
  const CUgraph_st *g = s->captured_by;
  *status = g == nullptr      ? cudaStreamCaptureStatusNone
            : g->is_invalid ? cudaStreamCaptureStatusInvalidated
                            : cudaStreamCaptureStatusActive;
  if (last != nullptr && g != nullptr && !g->nodes.empty()) *last = &g->nodes.back();
  if (n != nullptr) *n = g != nullptr && !g->nodes.empty() ? 1 : 0;
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g,
                                               unsigned long long) {
  Hold hold(world().lock);
  if (fakert_fails()) return result(cudaErrorMemoryAllocation);
  *out = new CUgraphExec_st{g, {}};
  for (CUgraphNode_st *node : g->nodes) (*out)->run[node] = node->run;
  return cudaSuccess;
}
/* The functions are copied: what a node is given later is for later launches. */
API cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
  Hold hold(world().lock);
  if (fault_of(s->device) != cudaSuccess) return result(fault_of(s->device));
  if (s->captured_by != nullptr || s->device != device_now || fakert_fails())
    return result(cudaErrorInvalidValue);
  world().counts.launches++;
  for (CUgraphNode_st *node : exec->of->nodes) {
    for (const Touched &t : node->touched)
      fakert_touch(s, t.data, t.bytes, t.writes, t.what.c_str());
    push(s, {exec->run[node]});
    s->operation = Operation();
  }
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec) {
  Hold hold(world().lock);
  delete exec;
  return cudaSuccess;
}
API cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t g) {
  Hold hold(world().lock);
  for (CUgraphNode_st *node : g->nodes) delete node;
  delete g;
  return cudaSuccess;
}
