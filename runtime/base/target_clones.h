/* runtime/base/target_clones.h: functions compiled twice, for the baseline and for recent x86
   processors (target_clones).

   The loader chooses when the program starts, before ThreadSanitizer is there, which gcc calls even
   then. For short loops outside of cpu/, which has its own levels. */
#ifndef LT_BASE_TARGET_CLONES_H
#define LT_BASE_TARGET_CLONES_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define LT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define LT_CLONES
#endif

#endif
