/* runtime/autograd/node_list.c: growing a list of nodes. */
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

void lt_node_list_free(lt_ctx *c, lt_node_list *list) {
  lt_free(c, list->node, (size_t)list->capacity * sizeof *list->node);
}
