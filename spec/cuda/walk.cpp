/* spec/cuda/walk.cpp: how runtime/cuda/tensor_iterator.cu cuts operands that 32 bits cannot index:
   run by spec/cuda/walk_spec.lua.

   No memory is touched, so that views may reach over terabytes. Prints a line a case: how many
   pieces, whether each is within 32 bits, and whether they are the elements of the operands, each
   once: by sums over their corners, as addresses are linear in indices. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda/tensor_iterator.h"

typedef struct pieces {
  int count;
  bool within;
  unsigned __int128 elements, places[2]; /* sums over all elements */
} pieces;

/* Sums of the elements of a piece, and of how far operand k reaches to both sides. */
static bool add_piece(void *ud, const lt_cuda_iter *it) {
  pieces *p = static_cast<pieces *>(ud);
  unsigned __int128 numel = 1;
  for (int d = 0; d < it->ndim; d++) numel *= it->size[d].d;
  p->count++;
  p->within = p->within && numel == it->numel && numel <= INT32_MAX;
  p->elements += numel;
  for (int k = 0; k < 2; k++) {
    int64_t reach = 0;
    for (int d = 0; d < it->ndim; d++)
      reach += llabs(static_cast<int64_t>(it->o[k].stride[d])) * (it->size[d].d - 1);
    p->within = p->within && reach <= INT32_MAX;
    /* Twice the mean place of its elements, times their number. */
    __int128 twice = 2 * static_cast<__int128>(reinterpret_cast<intptr_t>(it->o[k].data));
    for (int d = 0; d < it->ndim; d++)
      twice += static_cast<__int128>(it->o[k].stride[d]) * (it->size[d].d - 1);
    p->places[k] += static_cast<unsigned __int128>(twice) * numel;
  }
  return true;
}

static lt_view bytes_of(const int64_t *size, const int64_t *stride, int n) {
  lt_view v = {};
  v.data = reinterpret_cast<void *>(int64_t{1} << 44);
  v.dtype = LT_U8;
  v.ndim = n;
  for (int d = 0; d < n; d++) v.size[d] = size[d], v.stride[d] = stride[d];
  return v;
}

static void cut(const char *name, int n, const int64_t *size, const int64_t *a, const int64_t *b) {
  lt_view v[2] = {bytes_of(size, a, n), bytes_of(size, b, n)};
  lt_cuda_walk w;
  pieces p = {0, true, 0, {0, 0}};
  unsigned __int128 numel = 1, places[2];
  for (int d = 0; d < n; d++) numel *= static_cast<uint64_t>(size[d]);
  for (int k = 0; k < 2; k++) {
    __int128 twice = 2 * static_cast<__int128>(reinterpret_cast<intptr_t>(v[k].data));
    for (int d = 0; d < n; d++) twice += static_cast<__int128>(v[k].stride[d]) * (size[d] - 1);
    places[k] = static_cast<unsigned __int128>(twice) * numel;
  }
  lt_cuda_walk_make(&w, &v[0], 2, v);
  lt_cuda_pieces(&w, add_piece, &p);
  bool all = p.elements == numel && p.places[0] == places[0] && p.places[1] == places[1];
  printf("%s: %d pieces, %s, %s\n", name, p.count, p.within ? "within 32 bits" : "TOO FAR",
         all ? "all elements" : "OTHER ELEMENTS");
}

int main(void) {
  const int64_t far = int64_t{1} << 31;
  int64_t line[] = {1000}, one[] = {1}, wide[] = {far / 500};
  cut("dense", 1, line, one, one);
  cut("far source", 1, line, one, wide);
  cut("far result", 1, line, wide, one);
  int64_t back[] = {-far / 500};
  cut("backwards", 1, line, one, back);
  int64_t matrix[] = {3, 5}, rows[] = {5, 1}, steps[] = {far - 1, 1};
  cut("far rows", 2, matrix, rows, steps);
  int64_t many[] = {3 * far + 7}, broadcast[] = {0};
  cut("many elements", 1, many, one, one);
  cut("one element for many", 1, many, one, broadcast);
  return 0;
}
