/* runtime/xla/program_text.h: a program while its text is made. */
#ifndef LT_XLA_PROGRAM_TEXT_H
#define LT_XLA_PROGRAM_TEXT_H

#include "xla/graph.h"
#include "xla/lower.h"

enum { ERROR_WORDS = 5 }; /* whether there is one, op, line, value, limit */

struct lt_program_text {
  const lt_graph *g;
  lt_hlo *values;
  lt_hlo numbers, wide, words, error; /* flat; error: [5] i64 */
  lt_program_uses uses;
  unsigned char *links; /* by value: rows of one tensor in a row that made it (program.c) */
  const lt_node *node;
  const lt_program_io *io;
  size_t number, word; /* of the argument that is being read */
};

/* Element k of a flat value, a scalar. */
lt_hlo lt_hlo_element(lt_hlo_text *h, lt_hlo flat, size_t k);

#endif
