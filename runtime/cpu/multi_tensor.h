/* runtime/cpu/multi_tensor.h: lists of tensors processed in one parallel region: optimizer steps
   and norms.

   One parallel region over all tensors: each is cut into chunks, and a chunk belongs to one tensor,
   so neither values nor sums depend on the number of threads.

   A model has hundreds of small parameters. One region for each would start the threads hundreds of
   times in a step; PyTorch's foreach optimizers merge them for the same reason. */
#ifndef LT_CPU_MULTI_TENSOR_H
#define LT_CPU_MULTI_TENSOR_H

#include "cpu/scratch.h"
#include "cpu/tile.h"

enum { GROUPS = 5 };

/* Chunks of a list: those of tensor k are numbered first[k]..first[k + 1] - 1. */
typedef struct job {
  lt_tensor *const *in; /* groups one after the other */
  int op, n, groups;    /* n: tensors in a group */
  const int64_t *first;
  const void *args;
  double *partial;      /* one for each chunk, for norms */
  double k[8];          /* constants of the step, made in double */
} job;

static inline bool cut(lt_ctx *c, job *j) {
  int64_t *first = lt_cpu_scratch(c, LT_I64, j->n + 1);
  if (first == NULL) return false;
  first[0] = 0;
  for (int k = 0; k < j->n; k++)
    first[k + 1] = first[k] + (j->in[k]->numel + LT_CHUNK - 1) / LT_CHUNK;
  j->first = first;
  return true;
}

/* The tensor that a chunk belongs to. By bisection: the last tensor whose first chunk is not after
   this one. */
static inline int tensor_of(const job *j, int64_t chunk) {
  int low = 0, high = j->n - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (j->first[middle] <= chunk)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* What a chunk works on: element from..to-1 of tensor `tensor` of each group. */
typedef struct part {
  lt_iter it;
  int64_t from, to, run; /* elements at a time: all at once when nothing has to be converted */
} part;

static inline part part_of(const job *j, int64_t chunk, lt_dtype own) {
  part p;
  int tensor = tensor_of(j, chunk);
  lt_tensor *operands[GROUPS];
  for (int g = 0; g < j->groups; g++) operands[g] = j->in[g * j->n + tensor];
  LT_CPU(lt_iter_make)(&p.it, lt_tensor_shape(operands[0]), j->groups, operands);
  p.from = (chunk - j->first[tensor]) * LT_CHUNK;
  p.to = p.from + LT_CHUNK < p.it.numel ? p.from + LT_CHUNK : p.it.numel;
  p.run = LT_CHUNK;
  for (int g = 0; g < j->groups; g++)
    if (!p.it.operand[g].linear || p.it.operand[g].dtype != own) p.run = LT_TILE;
  return p;
}

static inline int64_t elements_of(const job *j) {
  int64_t sum = 0;
  for (int64_t k = 0; k < j->n; k++) sum += j->in[k]->numel;
  return sum;
}

static inline bool run(lt_ctx *c, job *j, const lt_call *call,
                       void (*chunk)(void *ud, int64_t number)) {
  j->in = call->in;
  j->n = call->n_in / j->groups; /* what a step is checked by is left over */
  if (j->n == 0) return true;
  lt_frame frame = lt_frame_open(c);
  if (cut(c, j)) lt_parallel_work(c, elements_of(j), j->first[j->n], chunk, j);
  lt_frame_close(c, frame, 0, NULL);
  return lt_ok(c);
}

/* Whether the last input of a step says that it is not to be taken. */
static inline bool is_refused(lt_ctx *c, const lt_call *call, bool checked) {
  if (!checked || call->n_in == 0) return false;
  lt_frame frame = lt_frame_open(c);
  lt_tensor *found = lt_cpu_contiguous(c, call->in[call->n_in - 1], LT_F64);
  bool refused = found == NULL || *(double *)lt_data(found) != 0;
  lt_frame_close(c, frame, 0, NULL);
  return refused;
}

#endif
