/* spec/cuda/emu_races.h: what ThreadSanitizer is told of a grid (LT_SANITIZE=thread), so that it
   finds races between threads of a block, in shared and global memory, and between blocks.

   To it each thread of a grid is a fiber, ordered after the launch; barriers and __syncwarp order
   the threads that come to them, shuffles and votes do not, as CUDA has it. Blocks have one of two
   sets of fibers, stacks and shared memory in turn: neighbours are not ordered, every other one is.
   EMU_RACES=1 asks for it: fibers take a while to make. Nothing without ThreadSanitizer. */
#ifndef LT_SPEC_EMU_RACES_H
#define LT_SPEC_EMU_RACES_H

#if defined __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#include <stdlib.h>
#define EMU_HIDDEN __attribute__((no_sanitize("thread"), noinline))
namespace emu {
enum { SETS = 2 };
struct Races {
  void *home, *fiber[SETS][1024];
  /* What orders: their addresses count. By turns, so that a thread that is ahead orders none. */
  char launch, end, set[SETS][2], block[2], warp[32][2];
};
inline thread_local Races races;
inline const bool races_asked = getenv("EMU_RACES") != nullptr;
EMU_HIDDEN inline void races_to(unsigned set, unsigned t) {
  void *&fiber = races.fiber[set][t];
  if (races_asked && fiber == nullptr) fiber = __tsan_create_fiber(0);
  if (races_asked) __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
}
EMU_HIDDEN inline void races_home() {
  if (races_asked) __tsan_switch_to_fiber(races.home, __tsan_switch_to_fiber_no_sync);
}
EMU_HIDDEN inline void races_launch() {
  races.home = __tsan_get_current_fiber();
  __tsan_release(&races.launch);
}
EMU_HIDDEN inline void races_launched() { __tsan_acquire(&races.end); }
/* A thread of a block: the threads of the last block of its set are before it. */
EMU_HIDDEN inline void races_begin(unsigned epoch) {
  __tsan_acquire(&races.launch);
  __tsan_acquire(&races.set[epoch % SETS][(epoch / SETS + 1) % 2]);
}
EMU_HIDDEN inline void races_end(unsigned epoch) {
  __tsan_release(&races.set[epoch % SETS][epoch / SETS % 2]);
  __tsan_release(&races.end);
}
EMU_HIDDEN inline void races_come(void *gate) { __tsan_release(gate); }
EMU_HIDDEN inline void races_pass(void *gate) { __tsan_acquire(gate); }
} // namespace emu
#define EMU_GATE(kind, side) (&emu::races.kind[side])
#else
#define EMU_HIDDEN
namespace emu {
enum { SETS = 1 };
inline void races_to(unsigned, unsigned) {}
inline void races_home() {}
inline void races_launch() {}
inline void races_launched() {}
inline void races_begin(unsigned) {}
inline void races_end(unsigned) {}
inline void races_come(void *) {}
inline void races_pass(void *) {}
} // namespace emu
#define EMU_GATE(kind, side) nullptr
#endif

#endif
