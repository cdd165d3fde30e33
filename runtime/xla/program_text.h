/* runtime/xla/program_text.h: a program while its text is made. */
#ifndef LT_XLA_PROGRAM_TEXT_H
#define LT_XLA_PROGRAM_TEXT_H

#include "xla/graph.h"
#include "xla/lower.h"

enum { ERROR_WORDS = 5 }; /* whether there is one, op, line, value, limit */

struct lt_program_text {
  const lt_graph *g;
  lt_hlo *values;
  lt_hlo numbers, words, error; /* flat; error: [5] i64 */
  bool checks;
  const lt_node *node;
  size_t number, word; /* of the argument that is being read */
};

#endif
