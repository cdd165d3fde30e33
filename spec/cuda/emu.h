/* spec/cuda/emu.h: runs .cu kernels on the CPU, compiled as plain C++ over NVIDIA's own headers.

   One host thread runs one block at a time. Threads of a block are fibers that share that host
   thread; a fiber is left only where a thread waits (barrier, shuffle), so kernels without barriers
   run as a plain loop on one stack. Stricter than hardware on purpose:
     - shared memory is 0xff (NaN) at the start of each block;
     - threads and blocks run forwards or backwards (EMU_ORDER=-1): a missing barrier reads 0xff;
     - a block has 48 KiB of shared memory in all;
     - a barrier that some threads do not reach, or reach at another line, ends the program with
       both places; so does a shuffle by part of a warp. */
#ifndef LT_SPEC_EMU_H
#define LT_SPEC_EMU_H
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <memory>
#include <tuple>
#include <type_traits>

#include <cuda_runtime_api.h>

#include "cuda/emu_races.h"
#include "cuda/fakert.h"

#if defined __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__

/* fakert.cpp has it, whose memory of a thread is small: the block that the thread runs. A load,
   where memory of this module would be a call, each time that a kernel asks for threadIdx. */
extern __thread void *emu_block __attribute__((tls_model("initial-exec")));

namespace emu {
enum { MAX_THREADS = 1024, WARP = 32, STACK = 256 << 10, SHARED = 48 << 10 };

struct Fiber {
  void *sp;
  char *stack;
  const unsigned *gate; /* waits while *gate == seen */
  unsigned seen, line;
  bool done;
};
struct Warp {
  unsigned gate, arrived, line;
  uint64_t slot[2][WARP];
};
struct Block { /* what one host thread is running */
  dim3 tid, bid, bdim, gdim;
  unsigned t, n;       /* current thread, threads */
  unsigned gate, arrived, line;
  size_t shared, fixed; /* shared memory: of the launch; the kernel's own, as far as it was used */
  unsigned epoch;      /* counts blocks: shared memory is poisoned when it changes */
  const char *kernel;
  void (*body)(void *);
  void *ud;
  void *home;          /* the scheduler's stack pointer */
  const void *home_stack; size_t home_size;
  char *free_stack[MAX_THREADS + 1];
  int n_free;
  char *own_stack[SETS][MAX_THREADS]; /* where ThreadSanitizer looks */
  unsigned set;
  Fiber f[MAX_THREADS];
  Warp w[MAX_THREADS / WARP];
  char *dynamic;       /* of the block's set */
  alignas(128) char room[SETS][SHARED];
};
inline thread_local std::unique_ptr<Block> owned;
#define EMU_ME (static_cast<emu::Block *>(emu_block))

[[noreturn]] inline void die(const char *what, unsigned a, unsigned b) {
  fprintf(stderr, "emu: %s: block %u thread %u: %s (line %u, line %u)\n", EMU_ME->kernel,
          EMU_ME->bid.x, EMU_ME->t, what, a, b);
  abort();
}

/* Saves what a call must keep, swaps stacks. */
extern "C" void emu_switch(void **save, void *to);
#if defined __x86_64__
asm(".text\n.weak emu_switch\n.type emu_switch,@function\nemu_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size emu_switch,.-emu_switch\n");
enum { FRAME = 7 };
#elif defined __aarch64__
asm(".text\n.weak emu_switch\n.type emu_switch,%function\nemu_switch:\nsub sp,sp,#160\n"
    "stp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp x25,x26,[sp,#48]\n"
    "stp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\nstp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\n"
    "stp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\nmov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
    "ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\n"
    "ldp x27,x28,[sp,#64]\nldp x29,x30,[sp,#80]\nldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\n"
    "ldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\nadd sp,sp,#160\nret\n");
#endif

EMU_HIDDEN inline void place(unsigned t) {
  EMU_ME->t = t;
  const dim3 &d = EMU_ME->bdim;
  EMU_ME->tid = dim3(t % d.x, t / d.x % d.y, t / (d.x * d.y));
}
/* ASan must know each change of stacks; these are nothing without it. */
inline void leaving(void **fake, const void *stack, size_t size) {
#if defined __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(fake, stack, size);
#else
  (void)fake, (void)stack, (void)size;
#endif
}
inline void arrived(void *fake) {
#if defined __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, &EMU_ME->home_stack, &EMU_ME->home_size);
#else
  (void)fake;
#endif
}

EMU_HIDDEN inline void enter() { /* a fiber's first and last function */
  arrived(NULL);
  races_begin(EMU_ME->epoch);
  EMU_ME->body(EMU_ME->ud);
  races_end(EMU_ME->epoch);
  EMU_ME->f[EMU_ME->t].done = true;
  leaving(NULL, EMU_ME->home_stack, EMU_ME->home_size);
  races_home();
  void *unused;
  emu_switch(&unused, EMU_ME->home);
  abort();
}
EMU_HIDDEN inline void pause() { /* back to the scheduler */
  unsigned t = EMU_ME->t;
  void *fake = NULL;
  leaving(&fake, EMU_ME->home_stack, EMU_ME->home_size);
  races_home();
  emu_switch(&EMU_ME->f[t].sp, EMU_ME->home);
  arrived(fake);
}
EMU_HIDDEN inline void resume(unsigned t) {
  place(t);
  Fiber &f = EMU_ME->f[t];
  void *fake = NULL;
  leaving(&fake, f.stack, STACK);
  races_to(EMU_ME->set, t);
  emu_switch(&EMU_ME->home, f.sp);
#if defined __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
  if (f.done && SETS == 1) EMU_ME->free_stack[EMU_ME->n_free++] = f.stack;
}
EMU_HIDDEN inline char *new_stack() {
  void *p = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) die("no memory for stacks", 0, 0);
  return (char *)p;
}
EMU_HIDDEN inline char *stack_of(unsigned t) {
  char *&own = EMU_ME->own_stack[EMU_ME->set][t];
  if (SETS > 1) return own != nullptr ? own : own = new_stack();
  return EMU_ME->n_free > 0 ? EMU_ME->free_stack[--EMU_ME->n_free] : new_stack();
}
EMU_HIDDEN inline void start(unsigned t) {
  Fiber &f = EMU_ME->f[t];
  f.stack = stack_of(t);
  f.done = false;
  f.gate = NULL;
#if defined __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(f.stack + STACK - (20 << 10), 20 << 10); /* `enter` of others, which never returned */
#endif
#if defined __x86_64__
  void **sp = (void **)(f.stack + STACK - t % 60 * 320) - 1; /* else all stacks share cache sets */
  *sp = NULL; /* keeps the ABI's alignment: at entry rsp + 8 is a multiple of 16 */
  *--sp = (void *)enter;
  sp -= 6;
#else
  void **sp = (void **)(f.stack + STACK - t % 60 * 320) - 20;
  sp[11] = (void *)enter;
#endif
  f.sp = sp;
  resume(t);
}

/* Waits until `count` threads have come to this gate. */
EMU_HIDDEN inline void wait(unsigned &gate, unsigned &came, unsigned &line, unsigned count,
                            unsigned at) {
  if (came == 0) line = at;
  if (line != at) die("barrier reached at different lines", line, at);
  if (++came == count) {
    came = 0;
    gate++;
    return;
  }
  Fiber &f = EMU_ME->f[EMU_ME->t];
  f.gate = &gate, f.seen = gate, f.line = at;
  pause();
}
EMU_HIDDEN inline void barrier(unsigned line) {
  void *order = EMU_GATE(block, EMU_ME->gate & 1);
  races_come(order);
  wait(EMU_ME->gate, EMU_ME->arrived, EMU_ME->line, EMU_ME->n, line);
  races_pass(order);
}

template <class T> EMU_HIDDEN inline T exchange(unsigned mask, T v, unsigned from, unsigned line) {
  static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
  Warp &w = EMU_ME->w[EMU_ME->t / WARP];
  if (mask != 0xffffffffu || EMU_ME->n % WARP != 0) die("shuffle by part of a warp", line, mask);
  unsigned side = w.gate & 1; /* two sides: a fast lane writes the next while others read this */
  memcpy(&w.slot[side][EMU_ME->t % WARP], &v, sizeof v);
  wait(w.gate, w.arrived, w.line, WARP, line);
  T r;
  memcpy(&r, &w.slot[side][from % WARP], sizeof r);
  return r;
}
EMU_HIDDEN inline void sync_warp(unsigned line) {
  unsigned warp = EMU_ME->t / WARP;
  void *order = EMU_GATE(warp[warp], EMU_ME->w[warp].gate & 1);
  (void)warp;
  races_come(order);
  exchange(0xffffffffu, 0, 0, line);
  races_pass(order);
}
EMU_HIDDEN inline unsigned ballot(unsigned mask, bool p, unsigned line) {
  Warp &w = EMU_ME->w[EMU_ME->t / WARP];
  unsigned side = w.gate & 1, bits = 0;
  exchange(mask, (uint64_t)p, 0, line);
  for (int l = 0; l < WARP; l++) bits |= (unsigned)(w.slot[side][l] & 1) << l;
  return bits;
}

inline int order() {
  static const int o = getenv("EMU_ORDER") ? atoi(getenv("EMU_ORDER")) : 1;
  return o;
}
EMU_HIDDEN inline void poison(void *memory, size_t bytes) { /* memset would be an access */
  for (volatile char *at = (volatile char *)memory; bytes > 0; bytes--) *at++ = (char)0xff;
}
EMU_HIDDEN inline void run_block() {
  EMU_ME->epoch++, EMU_ME->gate = EMU_ME->arrived = 0, EMU_ME->fixed = 0;
  EMU_ME->set = EMU_ME->epoch % SETS, EMU_ME->dynamic = EMU_ME->room[EMU_ME->set];
  if (SETS == 1)
    memset(EMU_ME->dynamic, 0xff, EMU_ME->shared);
  else
    poison(EMU_ME->dynamic, EMU_ME->shared);
  for (unsigned k = 0; k < (EMU_ME->n + WARP - 1) / WARP; k++)
    EMU_ME->w[k].gate = EMU_ME->w[k].arrived = 0;
  for (unsigned k = 0; k < EMU_ME->n; k++) start(order() > 0 ? k : EMU_ME->n - 1 - k);
  for (bool alive = true, moved; alive;) {
    alive = moved = false;
    for (unsigned i = 0; i < EMU_ME->n; i++) {
      unsigned k = order() > 0 ? i : EMU_ME->n - 1 - i;
      if (EMU_ME->f[k].done) continue;
      alive = true;
      if (*EMU_ME->f[k].gate == EMU_ME->f[k].seen) continue;
      moved = true;
      resume(k);
    }
    if (alive && !moved)
      for (unsigned k = 0; k < EMU_ME->n; k++)
        if (!EMU_ME->f[k].done)
          place(k), die("waits for threads that never come", EMU_ME->f[k].line, 0);
  }
}

/* Runs a whole grid now, in this host thread. */
template <class F> EMU_HIDDEN inline void run(const char *name, dim3 grid, dim3 block, size_t shared, F f) {
  if (emu_block == nullptr) owned.reset(new Block()), emu_block = owned.get();
  if (block.x * block.y * block.z > MAX_THREADS || shared > SHARED)
    die("too large", block.x, 0);
  EMU_ME->kernel = name, EMU_ME->shared = shared, EMU_ME->bdim = block, EMU_ME->gdim = grid;
  EMU_ME->n = block.x * block.y * block.z;
  EMU_ME->body = [](void *ud) { (*(F *)ud)(); };
  EMU_ME->ud = &f;
  unsigned n = grid.x * grid.y * grid.z;
  races_launch();
  for (unsigned i = 0; i < n; i++) {
    unsigned b = order() > 0 ? i : n - 1 - i;
    EMU_ME->bid = dim3(b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y));
    run_block();
  }
  races_launched();
}
template <class T, int N> struct Shared {
  alignas(16) T v[SETS][N];
  unsigned epoch;
  EMU_HIDDEN T *get() {
    T *own = v[EMU_ME->set];
    if (epoch == EMU_ME->epoch) return own;
    if (SETS == 1)
      memset((void *)own, 0xff, sizeof *v);
    else
      poison(own, sizeof *v);
    epoch = EMU_ME->epoch;
    EMU_ME->fixed += sizeof *v;
    if (EMU_ME->fixed + EMU_ME->shared > SHARED)
      die("more than 48 KiB of shared memory", unsigned(EMU_ME->fixed), unsigned(EMU_ME->shared));
    return own;
  }
};

template <class T, class F> inline T atomic(T *p, F f) {
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  U old = __atomic_load_n((U *)p, __ATOMIC_RELAXED), now;
  T was, is;
  do {
    memcpy(&was, &old, sizeof was);
    is = f(was);
    memcpy(&now, &is, sizeof now);
  } while (!__atomic_compare_exchange_n((U *)p, &old, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return was;
}
} // namespace emu

#define threadIdx (EMU_ME->tid)
#define blockIdx (EMU_ME->bid)
#define blockDim (EMU_ME->bdim)
#define gridDim (EMU_ME->gdim)
#define __syncthreads() emu::barrier(__LINE__)
#define __syncwarp(...) emu::sync_warp(__LINE__)
#define EMU_LANE (EMU_ME->t % emu::WARP)
#define __shfl_sync(m, v, l) emu::exchange(m, v, (unsigned)(l), __LINE__)
#define __shfl_xor_sync(m, v, x) emu::exchange(m, v, EMU_LANE ^ (unsigned)(x), __LINE__)
#define __shfl_down_sync(m, v, d) \
  emu::exchange(m, v, EMU_LANE + (d) < 32 ? EMU_LANE + (unsigned)(d) : EMU_LANE, __LINE__)
#define __shfl_up_sync(m, v, d) \
  emu::exchange(m, v, EMU_LANE >= (unsigned)(d) ? EMU_LANE - (unsigned)(d) : EMU_LANE, __LINE__)
#define __ballot_sync(m, p) emu::ballot(m, p, __LINE__)
#define __any_sync(m, p) (emu::ballot(m, p, __LINE__) != 0)
#define __all_sync(m, p) (emu::ballot(m, p, __LINE__) == 0xffffffffu)

template <class T> inline T atomicAdd(T *p, T v) { return emu::atomic(p, [=](T o) { return o + v; }); }
template <class T> inline T atomicMax(T *p, T v) { return emu::atomic(p, [=](T o) { return o > v ? o : v; }); }
template <class T> inline T atomicOr(T *p, T v) { return emu::atomic(p, [=](T o) { return o | v; }); }
template <class T> inline T atomicExch(T *p, T v) { return emu::atomic(p, [=](T) { return v; }); }
template <class T> inline T atomicCAS(T *p, T c, T v) { return emu::atomic(p, [=](T o) { return o == c ? v : o; }); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __threadfence(); }
inline void __threadfence_block() { __threadfence(); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline void sincospi(double x, double *s, double *c) { *s = sin(M_PI * x), *c = cos(M_PI * x); }
inline void sincospif(float x, float *s, float *c) {
  double a, b;
  sincospi(x, &a, &b);
  *s = (float)a, *c = (float)b;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
template <class T> inline T __ldg(const T *p) { return *p; }
#endif
