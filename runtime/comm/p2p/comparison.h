/* runtime/comm/p2p/comparison.h: the messages of a comparison, and what all ranks have sent
   in them. */
#ifndef LT_COMM_P2P_COMPARISON_H
#define LT_COMM_P2P_COMPARISON_H

#include "comm/p2p/p2p.h"

/* A message: two bounds of the hashes, then an entry for each of the ranks from the sender on. */
struct lt_p2p_said {
  size_t bytes; /* of the message so far */
  uint64_t message[];
};

/* Whether so many ranks are few enough for entries: else messages are the bounds alone. */
bool lt_p2p_said_carries(int size);

/* For all ranks' entries, with nothing in it. NULL: out of memory. */
lt_p2p_said *lt_p2p_said_new(int size);
/* This rank's hash and entry. */
void lt_p2p_said_begin(lt_p2p_said *said, int size, const lt_comm_compare *c);
/* Bytes of a message with the first n entries, and what any rank's can have. */
size_t lt_p2p_said_bytes(const lt_p2p_said *said, int size, int n);
size_t lt_p2p_said_most(int size, int n);
/* Adds the bounds and the n entries of a message that came. */
void lt_p2p_said_join(lt_p2p_said *said, const lt_p2p_said *came, int size, int n);

/* Of all ranks' message: whether their hashes are equal. */
bool lt_p2p_said_agrees(const lt_p2p_said *said);
/* Of l->said. */
void lt_p2p_said_extents(const lt_p2p *l, int64_t *extents);
/* Whether the movement's data came with the comparison: then it is done. All ranks say the same.
   Afterwards l->said is empty. */
bool lt_p2p_said_move(lt_p2p *l, lt_comm_move *m);

#endif
