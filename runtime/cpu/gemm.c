/* runtime/cpu/gemm.c: matrix products in f64 and i64.

   Loops blocked for the caches around a tile in registers, after K. Goto and R. van de Geijn,
   Anatomy of High-Performance Matrix Multiplication, 2008. Sums go over the terms in order, in
   f64 too: the same bits on any number of threads. */
#include "cpu/gemm.h"

enum { ROWS = 6, COLS = 8, TERMS = 256 };

#define T          double
#define NAME(f)    f##_f64
#define SCALE(sum) (g->alpha * (sum))
#include "cpu/gemm_type.h"
#undef T
#undef NAME
#undef SCALE

/* Unsigned, so that overflow wraps. */
#define T          uint64_t
#define NAME(f)    f##_i64
#define SCALE(sum) (sum)
#include "cpu/gemm_type.h"
