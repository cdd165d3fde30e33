/* runtime/cuda/multi_tensor.cu: copies of those tensors of a list whose elements are in another
   order than those of their row's first, e.g. a gradient that is a transposed view. */
#include "cuda/multi_tensor.h"

static bool is_compact(const lt_view *v) {
  int64_t n = 1;
  for (int d = v->ndim - 1; d >= 0; n *= v->size[d], d--)
    if (v->size[d] != 1 && v->stride[d] != n) return false;
  return true;
}

/* Whether element i of each, in the order of the first's memory, is element i of its memory.
   Tensors of one layout, whatever it is (channels-last weights with such gradients), are lists of
   numbers to an optimizer. */
static bool is_one_row(const lt_view *v, int groups) {
  bool compact = true;
  for (int g = 0; g < groups && compact; g++) compact = is_compact(&v[g]);
  if (compact) return true;
  lt_cuda_walk w;
  lt_cuda_walk_make(&w, &v[0], groups, v);
  for (int g = 0; g < groups; g++)
    if (w.ndim != 1 || (w.size[0] > 1 && w.v[g].stride[0] != 1)) return false;
  return true;
}

static void make_compact(lt_view *v, char *data) {
  int64_t n = 1;
  v->data = data;
  for (int d = v->ndim - 1; d >= 0; d--) v->stride[d] = n, n *= v->size[d];
}

/* Called in three ways over the same list in the same order (size, copy in, copy out), so that `at`
   names the same place each time. */
bool lt_list_views(const lt_list_job *j, int k, lt_list_way way, int64_t *at, lt_view *v) {
  for (int g = 0; g < j->groups; g++)
    if (!lt_cuda_view(j->c, j->in[g * j->n + k], &v[g])) return false;
  int64_t n = lt_cuda_numel(&v[0]);
  if (n == 0 || is_one_row(v, j->groups)) return true;
  for (int g = 0; g < j->groups; g++) {
    if (is_compact(&v[g])) continue;
    lt_view own = v[g];
    make_compact(&v[g], j->copies == nullptr ? nullptr : j->copies + *at);
    *at += (n * lt_cuda_item_size(v[g].dtype) + 15) / 16 * 16;
    if (way == LT_LIST_IN && !lt_cuda_move(j->c, &v[g], &own)) return false;
    if (way == LT_LIST_OUT && j->writes(g) && !lt_cuda_move(j->c, &own, &v[g])) return false;
  }
  return true;
}

static bool go(lt_list_job *j, lt_list_way way, int64_t *at) {
  lt_view v[LT_LIST_GROUPS];
  for (int k = 0; k < j->n; k++)
    if (!lt_list_views(j, k, way, at, v)) return false;
  return true;
}

bool lt_list_begin(lt_list_job *j) {
  int64_t bytes = 0, again = 0;
  j->copies = nullptr;
  if (!go(j, LT_LIST_SIZE, &bytes)) return false;
  if (bytes == 0) return true;
  j->copies = lt_cuda_scratch<char>(j->c, bytes);
  return j->copies != nullptr && go(j, LT_LIST_IN, &again);
}

bool lt_list_end(lt_list_job *j) {
  int64_t again = 0;
  return j->copies == nullptr || go(j, LT_LIST_OUT, &again);
}
