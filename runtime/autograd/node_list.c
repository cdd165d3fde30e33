/* runtime/autograd/node_list.c: growing a list of nodes, and keeping one as a heap.

   A binary heap in an array (J. Williams, Algorithm 232, 1964): children of i at 2i+1 and 2i+2. The
   largest `seq` is at the top. Elements are shifted and written once at the end, not swapped. A
   walk pushes each node once, so it costs O(n log n) comparisons of integers, small beside one
   operation per node. */
#include "autograd/node_list.h"

bool lt_node_list_add(lt_ctx *c, lt_node_list *list, lt_node *n) {
  if (list->count == list->capacity) {
    int64_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
    lt_node **grown = lt_realloc(c, list->node, (size_t)list->capacity * sizeof *grown,
                                 (size_t)capacity * sizeof *grown);
    if (grown == NULL) return false;
    list->node = grown;
    list->capacity = capacity;
  }
  list->node[list->count++] = lt_retain(n);
  return true;
}

bool lt_node_heap_push(lt_ctx *c, lt_node_list *h, lt_node *n) {
  if (!lt_node_list_add(c, h, n)) return false;
  int64_t i = h->count - 1;
  for (; i > 0 && h->node[(i - 1) / 2]->seq < n->seq; i = (i - 1) / 2)
    h->node[i] = h->node[(i - 1) / 2];
  h->node[i] = n;
  return true;
}

bool lt_node_heap_note(lt_ctx *c, lt_node_list *heap, lt_object *node, uint64_t seen,
                       uint64_t least) {
  lt_node *n = (lt_node *)node;
  if (n == NULL || n->leads == seen || n->seq < least) return true;
  n->leads = seen;
  return lt_node_heap_push(c, heap, n);
}

lt_node *lt_node_heap_pop(lt_node_list *h) {
  lt_node *top = h->node[0], *last = h->node[--h->count];
  int64_t i = 0;
  for (int64_t child = 1; child < h->count; child = 2 * i + 1) {
    if (child + 1 < h->count && h->node[child + 1]->seq > h->node[child]->seq) child++;
    if (h->node[child]->seq <= last->seq) break;
    h->node[i] = h->node[child];
    i = child;
  }
  if (h->count > 0) h->node[i] = last;
  return top;
}

void lt_node_list_free(lt_ctx *c, lt_node_list *list) {
  lt_free(c, list->node, (size_t)list->capacity * sizeof *list->node);
}
