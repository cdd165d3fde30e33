/* runtime/base/round.h: rounding up to multiples; the smaller of two sizes. */
#ifndef LT_BASE_ROUND_H
#define LT_BASE_ROUND_H

#include <stdint.h>

/* The smallest multiple of `step` that is at least n; both are not negative. */
static inline int64_t lt_round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

static inline int64_t lt_least(int64_t a, int64_t b) { return a < b ? a : b; }

#endif
