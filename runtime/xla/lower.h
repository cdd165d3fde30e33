/* runtime/xla/lower.h: lowerings, each the StableHLO of one call of an operation (files lower_*.c).

   A lowering runs when a program is compiled, long after its calls were recorded, and serves all
   later calls of the same structure: the same op, shapes, dtypes and arguments but for numbers.
   What changes from call to call (NUMBER and SCALAR arguments, positions of random numbers, lines)
   is an input of the program: lowerings ask for it by the functions below and never read it from
   `args`. All else (INT, DIM, DIMS, SIZES, FLAG, CHOICE, ...) they read with lt_lower_argument. */
#ifndef LT_XLA_LOWER_H
#define LT_XLA_LOWER_H

#include "ltrain/backend.h"
#include "xla/hlo.h"

typedef struct lt_lowering {
  lt_hlo_text *h;
  int op;
  int n_in, n_out;
  const lt_hlo *in; /* shaped as the tensors are; id 0: an absent input */
  lt_hlo *out;      /* types of the results, which the lowering replaces by their values */
  lt_hlo *written;  /* by input: its new value, where the call writes it (lt_host.writes) */
  const lt_call *call;
  struct lt_program_text *program; /* where the inputs of the program are known */
  int call_index;
} lt_lowering;

/* False: not for this call (a dtype, a flag): it runs on the CPU. It is called once beforehand with
   h->discard to know that, when a structure is first seen. */
typedef bool lt_lower(lt_lowering *l);

/* Once, before the others; false: out of memory. */
bool lt_lowerings_open(void);
/* By op id; NULL: none. */
lt_lower *lt_lower_of(int op);

/* An argument that is part of the structure, as lt_host.argument. */
const void *lt_lower_argument(const lt_lowering *l, const char *name);
int64_t lt_lower_int(const lt_lowering *l, const char *name); /* INT, DIM, POS, CHOICE */
bool lt_lower_flag(const lt_lowering *l, const char *name);

/* A NUMBER or SCALAR argument, a scalar of the type of `like` spread over its shape. */
lt_hlo lt_lower_number(lt_lowering *l, const char *name, lt_hlo like);
/* Part 0, 1, 2 (seed, position, base) of an RNG_KEY: a scalar LT_HLO_U64. */
lt_hlo lt_lower_key(lt_lowering *l, const char *name, int part);
/* Number `k` of those that lt_derive_of makes of the arguments for each call, spread as above. */
lt_hlo lt_lower_derived(lt_lowering *l, int k, lt_hlo like);

/* Numbers that a call needs and that are computed on the host in f64, such as Adam's bias
   corrections; returns how many, at most LT_DERIVED. NULL: none. */
enum { LT_DERIVED = 8 };
typedef int lt_derive(const lt_call *call, double *out);
lt_derive *lt_derive_of(int op);

/* Notes that the op found `value` invalid where `bad` (bool, any shape) is true: the error word of
   the device gets the first such value, with the op, the call's line and the limit. `value` is i64
   of the shape of `bad`. */
void lt_lower_check(lt_lowering *l, lt_hlo bad, lt_hlo value, int64_t limit);

#endif
