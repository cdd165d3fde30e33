/* spec/cuda/fake_nccl.h: what the files of the fake NCCL share: how bytes travel between processes.

   A communicator's ranks share a file that they map: a ring of bytes for each pair of ranks. */
#ifndef LT_SPEC_FAKE_NCCL_H
#define LT_SPEC_FAKE_NCCL_H

#include <stddef.h>
#include <stdint.h>

#include <atomic>
#include <vector>

enum { FAKE_NCCL_RANKS = 8, FAKE_NCCL_ID = 128 };

struct Segment;

/* Makes the file, whose name the id holds. False: it cannot be made. */
bool wires_make(char id[FAKE_NCCL_ID]);
/* Maps it and joins as `rank` of `n`, on a device; nullptr: the id is of no communicator. */
Segment *wires_join(const char id[FAKE_NCCL_ID], int n, int rank, int device);
/* Whether all have joined; the file is gone then. */
bool wires_all_there(Segment *s);
int wires_device(const Segment *s, int rank);

/* Bytes to or from a rank. Those of one pair and direction travel in their order; the kind says what
   they belong to, and must be the same at both ends. */
struct Wire {
  bool sends;
  int peer;
  char *data;
  size_t bytes;
  uint64_t kind;
  size_t done = 0; /* with the 8 bytes of the kind before the data */
};

/* Moves all of them, as far as the other ranks let it; false: `stop` was set before the end. */
bool wires_run(Segment *s, int rank, std::vector<Wire> &wires, const std::atomic<bool> &stop);

#endif
