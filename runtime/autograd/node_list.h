/* runtime/autograd/node_list.h: a list of nodes that grows; it holds a reference to each. */
#ifndef LT_AUTOGRAD_NODE_LIST_H
#define LT_AUTOGRAD_NODE_LIST_H

#include "ops/node.h"

typedef struct lt_node_list {
  lt_node **node;
  int64_t count, capacity;
} lt_node_list;

bool lt_node_list_add(lt_ctx *c, lt_node_list *list, lt_node *n);

/* Free its memory: whoever took the nodes out has released them. */
void lt_node_list_free(lt_ctx *c, lt_node_list *list);

#endif
