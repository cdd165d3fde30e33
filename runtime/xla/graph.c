/* runtime/xla/graph.c: the graph of the device, its lists and how its stream is read. */
#include "xla/graph.h"

#include <stdlib.h>

lt_graph lt_xla_graph;
const char lt_xla_no_args[LT_NO_ARGS];

bool lt_view_is_whole(const lt_flat_view *v, int64_t n) {
  int64_t numel = 1;
  for (int k = v->ndim - 1; k >= 0; k--) {
    if (v->size[k] != 1 && v->stride[k] != numel) return false;
    numel *= v->size[k];
  }
  return v->offset == 0 && numel == n;
}

bool lt_list_grow(void *list, size_t more, size_t size) {
  LT_LIST(char) *l = list;
  size_t capacity = 2 * l->capacity + more + 64;
  char *p = realloc(l->at, capacity * size);
  if (p == NULL) return false;
  l->at = p;
  l->capacity = capacity;
  return true;
}

const int64_t *lt_stream_call(const int64_t *at, const int64_t *offsets, lt_flat_view *v) {
  int64_t n = at[1] + at[2];
  at += 4 + at[3];
  for (int64_t k = 0; k < n; k++) {
    v[k] = (lt_flat_view){.value = -1, .written = -1, .type = (int)*at++};
    if (v[k].type < 0) continue;
    v[k].ndim = (int)*at++;
    for (int d = 0; d < v[k].ndim; d++) v[k].size[d] = *at++;
  }
  for (int64_t k = 0; k < n; k++) {
    v[k].offset = offsets[k];
    if (v[k].type < 0) continue;
    v[k].value = at[0];
    v[k].written = at[1];
    v[k].boxed = (at[2] & 1) != 0;
    at += 3;
    for (int d = 0; d < v[k].ndim; d++) v[k].stride[d] = *at++;
  }
  return at;
}

const int64_t *lt_stream_next(const int64_t *at, const int64_t *end) {
  while (at < end && lt_node_is_value(*at)) at += 3;
  return at < end ? at : NULL;
}

const int64_t *lt_stream_shapes(const int64_t *call) { return call + 4 + call[3]; }

const int64_t *lt_stream_after_shape(const int64_t *shape) {
  return shape[0] < 0 ? shape + 1 : shape + 2 + shape[1];
}

const int64_t *lt_stream_after(const int64_t *call) {
  const int64_t *shape = lt_stream_shapes(call), *at = shape;
  int64_t n = call[1] + call[2];
  for (int64_t k = 0; k < n; k++) at = lt_stream_after_shape(at);
  for (int64_t k = 0; k < n; k++, shape = lt_stream_after_shape(shape))
    if (shape[0] >= 0) at += 3 + shape[1];
  return at;
}
