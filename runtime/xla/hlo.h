/* runtime/xla/hlo.h: makes the text of StableHLO programs, a line a value.

   A value (lt_hlo) is a name with the type of a tensor; operations take values and return values.
   bool is i1. Where text cannot be made (no memory, a function without a definition) the program
   is `failed`, and its text means nothing. */
#ifndef LT_XLA_HLO_H
#define LT_XLA_HLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ltrain/tensor.h"

enum { LT_HLO_DIMS = LT_MAX_DIMS + 2 }; /* lowerings split dims */

/* Element types: those of lt_dtype, unsigned words, for random numbers, and pairs of f32 and f64,
   for Fourier transforms. */
enum { LT_HLO_U32 = LT_DTYPE_COUNT, LT_HLO_U64, LT_HLO_C64, LT_HLO_C128 };

typedef struct lt_hlo_text {
  char *text;
  size_t size, capacity;
  int values;   /* names given so far */
  bool discard; /* nothing is kept: to see whether there is a lowering */
  bool failed;
} lt_hlo_text;

typedef struct lt_hlo {
  int id;   /* 0: none */
  int part; /* of a line with several results; -1: it has one */
  int type;
  int ndim;
  int64_t size[LT_HLO_DIMS];
} lt_hlo;

/* Text by a format: $ the name of a value (const lt_hlo *), @ its type, %s a text, %d an int64_t,
   %l a list (const int64_t *, int), %v and %t the names and the types of a list of values (const
   lt_hlo *, int), %% itself. */
void lt_hlo_put(lt_hlo_text *h, const char *format, ...);
/* A line: "%7 = " and the format; `out` gets its name and keeps its type. */
lt_hlo lt_hlo_line(lt_hlo_text *h, lt_hlo out, const char *format, ...);
/* The same with n results. */
void lt_hlo_lines(lt_hlo_text *h, int n, lt_hlo *out, const char *format, ...);

bool lt_hlo_is_float(int type);
size_t lt_hlo_bytes(int type); /* of an element in memory of the host */
int lt_hlo_stored(int type);   /* what the device has in place of it: f32 where it has no f64 */

/* A type without a value. */
lt_hlo lt_hlo_of(int type, int ndim, const int64_t *size);
lt_hlo lt_hlo_scalar(int type);
lt_hlo lt_hlo_typed(lt_hlo like, int type); /* the shape of `like` */
int64_t lt_hlo_numel(lt_hlo x);

/* Elementwise, of operands of one shape and type: `op` is StableHLO's name. */
lt_hlo lt_hlo_one(lt_hlo_text *h, const char *op, lt_hlo x);
lt_hlo lt_hlo_two(lt_hlo_text *h, const char *op, lt_hlo a, lt_hlo b);
lt_hlo lt_hlo_compare(lt_hlo_text *h, const char *direction, lt_hlo a, lt_hlo b);
lt_hlo lt_hlo_choose(lt_hlo_text *h, lt_hlo condition, lt_hlo yes, lt_hlo no);
/* As lt.cast converts: to bool what is not 0; floats to integers through i64. */
lt_hlo lt_hlo_convert(lt_hlo_text *h, lt_hlo x, int type);
lt_hlo lt_hlo_bits(lt_hlo_text *h, lt_hlo x, int type); /* the same bits, of as many bytes */

/* One number in the type and shape of `like`. */
lt_hlo lt_hlo_number(lt_hlo_text *h, double value, lt_hlo like);
lt_hlo lt_hlo_integer(lt_hlo_text *h, int64_t value, lt_hlo like);
/* An operand of lt_hlo_two may be a number. */
lt_hlo lt_hlo_by(lt_hlo_text *h, const char *op, lt_hlo x, double value);
/* 0, 1, ... along a dim. */
lt_hlo lt_hlo_iota(lt_hlo_text *h, int type, lt_hlo shape, int dim);

lt_hlo lt_hlo_reshape(lt_hlo_text *h, lt_hlo x, int ndim, const int64_t *size);
lt_hlo lt_hlo_flat(lt_hlo_text *h, lt_hlo x);
lt_hlo lt_hlo_permute(lt_hlo_text *h, lt_hlo x, const int64_t *dims);
lt_hlo lt_hlo_swap(lt_hlo_text *h, lt_hlo x, int a, int b);
/* Dim k of x becomes dim dims[k] of `shape`. */
lt_hlo lt_hlo_spread(lt_hlo_text *h, lt_hlo x, lt_hlo shape, const int64_t *dims);
/* Broadcast from the right, as in arithmetic. */
lt_hlo lt_hlo_expand(lt_hlo_text *h, lt_hlo x, lt_hlo shape);
/* A vector along one dim of `shape`. */
lt_hlo lt_hlo_along(lt_hlo_text *h, lt_hlo x, lt_hlo shape, int dim);
lt_hlo lt_hlo_slice(lt_hlo_text *h, lt_hlo x, int dim, int64_t from, int64_t to, int64_t step);
/* `low` and `high` elements of `value` around, negative ones cut off. */
lt_hlo lt_hlo_pad(lt_hlo_text *h, lt_hlo x, double value, const int64_t *low, const int64_t *high);
lt_hlo lt_hlo_join(lt_hlo_text *h, int n, const lt_hlo *x, int dim);

/* Over the dims of a mask of bits, by add, multiply, maximum, minimum, and, or; keep: as dims of
   size 1. `start` is the operation's neutral element. */
lt_hlo lt_hlo_reduce(lt_hlo_text *h, const char *op, double start, lt_hlo x, unsigned dims,
                     bool keep);
lt_hlo lt_hlo_sum(lt_hlo_text *h, lt_hlo x, unsigned dims, bool keep);

/* Sums over the products of contracted dims (masks of bits, taken in order); the result has the
   batch dims, then the rest of a, then that of b. */
lt_hlo lt_hlo_dot(lt_hlo_text *h, lt_hlo a, lt_hlo b, unsigned batch_a, unsigned batch_b,
                  unsigned by_a, unsigned by_b);

#endif
