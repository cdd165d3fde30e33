/* spec/cuda/fake_nccl.cpp: NCCL's functions, by NVIDIA's own header, over the fake runtime.

   Bytes travel between processes (fake_nccl_wires.cpp) when the streams' work runs, which is late;
   streams run by themselves from the first communicator on, as those of a GPU do. What the manual
   asks for is checked: types, counts, memory and streams of the communicator's device, calls of
   ranks that fit, and a communicator that is ready: one that does not block (blocking = 0) has done
   nothing until ncclCommGetAsyncError says so, and can be called for nothing else before. Sums are
   added from the last rank to the first, an order of NCCL's own.

   FAKE_NCCL_HANG=R:N, FAKE_NCCL_ERROR=R:N: of rank R the N-th operation never ends (until it is
   aborted), or fails behind its back. FAKE_NCCL_ABSENT=R: rank R never joins. */
#include <cuda_runtime.h>
#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "cuda/fake_nccl.h"
#include "cuda/fakert.h"

#define API extern "C" FAKERT_API

[[noreturn]] static void die(const std::string &text) {
  fprintf(stderr, "fake nccl: %s\n", text.c_str());
  abort();
}

enum State { JOINING, READY, ISSUING, FINALIZING, FINALIZED, GONE };

/* Never freed: a call of one that is gone is an error, not a crash. */
struct ncclComm {
  Segment *wires;
  int n, rank, device;
  bool blocking;
  State state = JOINING;
  int asked = 0; /* since it is busy */
  ncclResult_t error = ncclSuccess;
  std::string last;
  std::function<void()> issue; /* ISSUING: puts the calls on their stream */
  std::atomic<int> under_way{0};
  std::atomic<bool> stop{false};
  int operations = 0;
  int fails_in = 0; /* so many questions; 0: it does not */
};

/* The rank and number of a variable like "1:3"; whether they are these. */
static bool is_named(const char *variable, int rank, int number) {
  const char *text = getenv(variable);
  int r = -1, n = 0;
  return text != nullptr && sscanf(text, "%d:%d", &r, &n) >= 1 && r == rank && n == number;
}

static ncclResult_t refuse(ncclComm_t c, ncclResult_t r, const std::string &why) {
  if (c != nullptr) c->last = why;
  return r;
}

/* ---- types ---- */

static size_t size_of(ncclDataType_t t) {
  switch (t) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

template <class T> static T two(ncclRedOp_t op, T a, T b) {
  switch (op) {
    case ncclSum: return static_cast<T>(a + b);
    case ncclProd: return static_cast<T>(a * b);
    case ncclMax: return a > b ? a : b; /* nan is passed over, as by fmax */
    case ncclMin: return a < b ? a : b;
    default: die("an operation that this fake has not");
  }
}

template <class T, class F, class G>
static void add(ncclRedOp_t op, char *to, const char *with, size_t n, F widen, G narrow) {
  T *a = reinterpret_cast<T *>(to);
  const T *b = reinterpret_cast<const T *>(with);
  for (size_t k = 0; k < n; k++) a[k] = narrow(two(op, widen(a[k]), widen(b[k])));
}

template <class T> static void add_plain(ncclRedOp_t op, char *to, const char *with, size_t n) {
  add<T>(op, to, with, n, [](T x) { return x; }, [](T x) { return x; });
}

/* to = to (op) with */
static void combine(ncclDataType_t t, ncclRedOp_t op, char *to, const char *with, size_t n) {
  switch (t) {
    case ncclInt8: return add_plain<int8_t>(op, to, with, n);
    case ncclUint8: return add_plain<uint8_t>(op, to, with, n);
    case ncclInt32: return add_plain<int32_t>(op, to, with, n);
    case ncclUint32: return add_plain<uint32_t>(op, to, with, n);
    case ncclInt64: /* wraps */
    case ncclUint64: return add_plain<uint64_t>(op, to, with, n);
    case ncclFloat32: return add_plain<float>(op, to, with, n);
    case ncclFloat64: return add_plain<double>(op, to, with, n);
    case ncclFloat16:
      return add<__half>(op, to, with, n, [](__half x) { return __half2float(x); },
                         [](float x) { return __float2half(x); });
    case ncclBfloat16:
      return add<__nv_bfloat16>(op, to, with, n, [](__nv_bfloat16 x) { return __bfloat162float(x); },
                                [](float x) { return __float2bfloat16(x); });
    default: die("a type that this fake has not");
  }
}

/* ---- calls ---- */

enum Kind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECV };
static const char *const NAMES[] = {"ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclAllGather",
                                    "ncclReduceScatter", "ncclSend", "ncclRecv"};

struct Call {
  Kind kind;
  const void *in;
  void *out;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root; /* or peer */
  ncclComm_t comm;
  cudaStream_t stream;
  size_t bytes() const { return count * size_of(type); }
  size_t in_bytes() const { return kind == REDUCE_SCATTER ? bytes() * comm->n : bytes(); }
  size_t out_bytes() const { return kind == ALL_GATHER ? bytes() * comm->n : bytes(); }
  bool reads() const { return kind != RECV && (kind != BROADCAST || comm->rank == root); }
  bool writes() const { /* a broadcast in place leaves the root's memory alone */
    bool at_root = comm->rank == root;
    return kind == REDUCE ? at_root : kind != SEND && !(kind == BROADCAST && at_root && in == out);
  }
};

/* A part of a call's work: what travels, and what is done when it is there. */
struct Work {
  std::vector<Wire> wires;
  std::vector<std::vector<char>> rooms;
  std::function<void()> end;
};

static uint64_t kind_of(const Call &c) {
  bool pair = c.kind == SEND || c.kind == RECV;
  uint64_t h = pair ? 77 : static_cast<uint64_t>(c.kind) * 31 + static_cast<uint64_t>(c.type);
  h = h * 1000003 + (pair ? c.bytes() : c.count);
  if (c.kind == ALL_REDUCE || c.kind == REDUCE || c.kind == REDUCE_SCATTER)
    h = h * 31 + static_cast<uint64_t>(c.op);
  return c.kind == BROADCAST || c.kind == REDUCE ? h * 31 + static_cast<uint64_t>(c.root) : h;
}

/* Each rank's bytes to each other, from `from(peer)`, into rooms by rank; this rank's own too. */
static void exchange(const Call &c, Work &w, std::function<const char *(int)> from,
                     std::function<bool(int, int)> travels) {
  size_t n = c.bytes();
  w.rooms.assign(static_cast<size_t>(c.comm->n), std::vector<char>());
  for (int r = 0; r < c.comm->n; r++) {
    std::vector<char> &room = w.rooms[static_cast<size_t>(r)];
    if (travels(r, c.comm->rank)) room.resize(n + 1);
    if (r == c.comm->rank) {
      if (!room.empty()) memcpy(room.data(), from(r), n);
      continue;
    }
    if (travels(c.comm->rank, r))
      w.wires.push_back({true, r, const_cast<char *>(from(r)), n, kind_of(c)});
    if (!room.empty()) w.wires.push_back({false, r, room.data(), n, kind_of(c)});
  }
}

/* The sum of the rooms, from the last to the first. */
static void add_up(const Call &c, Work &w) {
  size_t last = w.rooms.size() - 1;
  for (size_t r = last; r-- > 0;)
    combine(c.type, c.op, w.rooms[last].data(), w.rooms[r].data(), c.count);
  memcpy(c.out, w.rooms[last].data(), c.bytes());
}

static void plan(const Call &c, Work &w) {
  const char *in = static_cast<const char *>(c.in);
  char *out = static_cast<char *>(c.out);
  size_t n = c.bytes();
  int root = c.root;
  switch (c.kind) {
    case SEND: w.wires.push_back({true, root, const_cast<char *>(in), n, kind_of(c)}); return;
    case RECV: w.wires.push_back({false, root, out, n, kind_of(c)}); return;
    case ALL_REDUCE:
      exchange(c, w, [=](int) { return in; }, [](int, int) { return true; });
      w.end = [=, &w] { add_up(c, w); };
      return;
    case REDUCE:
      exchange(c, w, [=](int) { return in; }, [=](int, int to) { return to == root; });
      if (c.comm->rank == root) w.end = [=, &w] { add_up(c, w); };
      return;
    case REDUCE_SCATTER:
      exchange(c, w, [=](int r) { return in + static_cast<size_t>(r) * n; },
               [](int, int) { return true; });
      w.end = [=, &w] { add_up(c, w); };
      return;
    case BROADCAST:
      exchange(c, w, [=](int) { return in; }, [=](int from, int) { return from == root; });
      if (c.writes())
        w.end = [=, &w] { memcpy(out, w.rooms[static_cast<size_t>(root)].data(), n); };
      return;
    case ALL_GATHER:
      exchange(c, w, [=](int) { return in; }, [](int, int) { return true; });
      w.end = [=, &w] {
        for (size_t r = 0; r < w.rooms.size(); r++) memcpy(out + r * n, w.rooms[r].data(), n);
      };
      return;
  }
}

/* The kernel: one for all calls of a group. */
static void run(const std::vector<Call> &calls, bool hangs) {
  ncclComm_t comm = calls[0].comm;
  std::vector<std::unique_ptr<Work>> works;
  std::vector<Wire> wires;
  for (const Call &c : calls) {
    works.push_back(std::make_unique<Work>());
    plan(c, *works.back());
    wires.insert(wires.end(), works.back()->wires.begin(), works.back()->wires.end());
  }
  while (hangs && !comm->stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (wires_run(comm->wires, comm->rank, wires, comm->stop))
    for (auto &w : works)
      if (w->end) w->end();
  comm->under_way--;
}

/* ---- what is checked ---- */

static std::string check_memory(const Call &c, const void *p, size_t bytes) {
  cudaPointerAttributes a;
  if (bytes == 0) return "";
  if (p == nullptr || cudaPointerGetAttributes(&a, p) != cudaSuccess ||
      a.type != cudaMemoryTypeDevice)
    return "a pointer that is none of a device";
  return a.device == c.comm->device ? "" : "memory of another device than the communicator's";
}

static std::string check_overlap(const Call &c) {
  const char *in = static_cast<const char *>(c.in), *out = static_cast<const char *>(c.out);
  bool apart = in + c.in_bytes() <= out || out + c.out_bytes() <= in;
  size_t shift = static_cast<size_t>(c.comm->rank) * c.bytes();
  bool in_place = c.kind == ALL_GATHER       ? in == out + shift
                  : c.kind == REDUCE_SCATTER ? out == in + shift
                                             : in == out;
  return apart || in_place || !c.reads() || !c.writes() ? "" : "operands overlap";
}

static ncclResult_t check(const Call &c) {
  ncclComm_t comm = c.comm;
  if (comm == nullptr) return ncclInvalidArgument;
  std::string what = NAMES[c.kind];
  if (comm->state == GONE) die(what + ": the communicator was destroyed or aborted");
  if (comm->error != ncclSuccess) return comm->error;
  if (comm->state != READY)
    return refuse(comm, ncclInvalidUsage, what + ": the communicator is not ready");
  bool rooted = c.kind == BROADCAST || c.kind == REDUCE || c.kind == SEND || c.kind == RECV;
  if (size_of(c.type) == 0) return refuse(comm, ncclInvalidArgument, what + ": no such type");
  if (c.op < ncclSum || c.op > ncclMin)
    return refuse(comm, ncclInvalidArgument, what + ": no such operation");
  if (rooted && (c.root < 0 || c.root >= comm->n))
    return refuse(comm, ncclInvalidArgument, what + ": no such rank");
  std::string why;
  if (c.reads()) why = check_memory(c, c.in, c.in_bytes());
  if (why.empty() && c.writes()) why = check_memory(c, c.out, c.out_bytes());
  if (why.empty()) why = check_overlap(c);
  if (!why.empty()) return refuse(comm, ncclInvalidArgument, what + ": " + why);
  if (c.stream == nullptr) die(what + ": on the default stream");
  if (fakert_stream_device(c.stream) != comm->device)
    die(what + ": a stream of another device than the communicator's");
  return ncclSuccess;
}

/* ---- issuing ---- */

static thread_local int depth;
static thread_local std::vector<Call> grouped;

static void put_on_stream(const std::vector<Call> &calls) {
  ncclComm_t comm = calls[0].comm;
  bool hangs = is_named("FAKE_NCCL_HANG", comm->rank, comm->operations);
  bool fails = is_named("FAKE_NCCL_ERROR", comm->rank, comm->operations);
  for (const Call &c : calls) {
    if (c.reads()) fakert_touch(c.stream, c.in, c.in_bytes(), false, NAMES[c.kind]);
    if (c.writes()) fakert_touch(c.stream, c.out, c.out_bytes(), true, NAMES[c.kind]);
  }
  fakert_queue(calls[0].stream, NAMES[calls[0].kind], [=] { run(calls, hangs || fails); });
  if (fails) comm->fails_in = 20;
}

static ncclResult_t issue(std::vector<Call> calls) {
  if (calls.empty()) return ncclSuccess;
  ncclComm_t comm = calls[0].comm;
  for (const Call &c : calls)
    if (c.comm != comm || c.stream != calls[0].stream)
      die("a group of several communicators or streams");
  comm->operations++;
  comm->under_way++;
  if (comm->blocking) {
    put_on_stream(calls);
    return ncclSuccess;
  }
  comm->state = ISSUING;
  comm->asked = 0;
  comm->issue = [=] { put_on_stream(calls); };
  return ncclInProgress;
}

static ncclResult_t call(const Call &c) {
  ncclResult_t r = check(c);
  if (r != ncclSuccess) return r;
  grouped.push_back(c);
  if (depth > 0) return c.comm->blocking ? ncclSuccess : ncclInProgress;
  std::vector<Call> alone;
  alone.swap(grouped);
  return issue(alone);
}

API ncclResult_t ncclGroupStart(void) {
  depth++;
  return ncclSuccess;
}
API ncclResult_t ncclGroupEnd(void) {
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0) return ncclSuccess;
  std::vector<Call> calls;
  calls.swap(grouped);
  return issue(calls);
}

API ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t op,
                               ncclComm_t c, cudaStream_t s) {
  return call({ALL_REDUCE, in, out, n, t, op, 0, c, s});
}
API ncclResult_t ncclReduce(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t op,
                            int root, ncclComm_t c, cudaStream_t s) {
  return call({REDUCE, in, out, n, t, op, root, c, s});
}
API ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t t, int root,
                               ncclComm_t c, cudaStream_t s) {
  return call({BROADCAST, in, out, n, t, ncclSum, root, c, s});
}
API ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t t, ncclComm_t c,
                               cudaStream_t s) {
  return call({ALL_GATHER, in, out, n, t, ncclSum, 0, c, s});
}
API ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t t,
                                   ncclRedOp_t op, ncclComm_t c, cudaStream_t s) {
  return call({REDUCE_SCATTER, in, out, n, t, op, 0, c, s});
}
API ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                          cudaStream_t s) {
  if (depth == 0) fakert_count_message();
  return call({SEND, in, nullptr, n, t, ncclSum, peer, c, s});
}
API ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                          cudaStream_t s) {
  return call({RECV, nullptr, out, n, t, ncclSum, peer, c, s});
}

/* ---- communicators ---- */

API ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
API const char *ncclGetErrorString(ncclResult_t r) {
  switch (r) {
    case ncclSuccess: return "no error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}
API const char *ncclGetLastError(ncclComm_t c) { return c != nullptr ? c->last.c_str() : ""; }

API ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static_assert(FAKE_NCCL_ID == NCCL_UNIQUE_ID_BYTES, "the header's id");
  return wires_make(id->internal) ? ncclSuccess : ncclSystemError;
}

API ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int n, ncclUniqueId id, int rank,
                                        ncclConfig_t *config) {
  ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
  if (n < 1 || n > FAKE_NCCL_RANKS || rank < 0 || rank >= n || config == nullptr ||
      config->magic != fresh.magic || config->size != sizeof *config ||
      config->version != fresh.version)
    return ncclInvalidArgument;
  int device;
  if (cudaGetDevice(&device) != cudaSuccess) return ncclUnhandledCudaError;
  fakert_run_by_itself();
  ncclComm_t c = new ncclComm;
  c->n = n, c->rank = rank, c->device = device;
  c->blocking = config->blocking != 0;
  c->wires = nullptr;
  *out = c;
  if (!is_named("FAKE_NCCL_ABSENT", rank, 0)) {
    c->wires = wires_join(id.internal, n, rank, fakert_gpu(device));
    if (c->wires == nullptr) return ncclInvalidArgument;
  }
  if (!c->blocking) return ncclInProgress;
  ncclResult_t now;
  do
    ncclCommGetAsyncError(c, &now);
  while (now == ncclInProgress);
  return now;
}

static void look_for_twins(ncclComm_t c) {
  for (int a = 0; a < c->n; a++)
    for (int b = 0; b < a; b++)
      if (wires_device(c->wires, a) == wires_device(c->wires, b)) {
        c->error = ncclInvalidUsage;
        c->last = "Duplicate GPU detected : rank " + std::to_string(b) + " and rank " +
                  std::to_string(a) + " both on CUDA device " +
                  std::to_string(wires_device(c->wires, a));
      }
}

/* What takes a while is done at the third time that somebody asks. */
API ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *now) {
  if (c->state == GONE) die("ncclCommGetAsyncError: the communicator was destroyed or aborted");
  if (c->error == ncclSuccess && c->state != READY && c->state != FINALIZED && ++c->asked > 2) {
    if (c->state == JOINING && c->wires != nullptr && wires_all_there(c->wires)) {
      look_for_twins(c);
      c->state = READY;
    } else if (c->state == ISSUING) {
      c->issue();
      c->state = READY;
    } else if (c->state == FINALIZING && c->under_way == 0) {
      c->state = FINALIZED;
    }
  }
  if (c->fails_in > 0 && --c->fails_in == 0) {
    c->error = ncclRemoteError;
    c->last = "NET/Fake: connection closed by remote peer";
  }
  bool idle = c->state == READY || c->state == FINALIZED;
  *now = c->error != ncclSuccess ? c->error : idle ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

API ncclResult_t ncclCommFinalize(ncclComm_t c) {
  if (c->state != READY) return refuse(c, ncclInvalidUsage, "finalize: not ready");
  c->state = FINALIZING;
  c->asked = 0;
  return ncclInProgress;
}
API ncclResult_t ncclCommDestroy(ncclComm_t c) {
  if (c->state == GONE) die("ncclCommDestroy: the communicator was destroyed or aborted");
  if (c->state != FINALIZED) die("ncclCommDestroy: not finalized: it would block");
  c->state = GONE;
  return ncclSuccess;
}
API ncclResult_t ncclCommAbort(ncclComm_t c) {
  if (c->state == GONE) die("ncclCommAbort: the communicator was destroyed or aborted");
  int not_on_stream = c->state == ISSUING;
  c->stop = true;
  c->state = GONE;
  while (c->under_way > not_on_stream) /* its kernels end when those before them have ended */
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return ncclSuccess;
}
