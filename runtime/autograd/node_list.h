/* runtime/autograd/node_list.h: a list of nodes that grows; it holds a reference to each. */
#ifndef LT_AUTOGRAD_NODE_LIST_H
#define LT_AUTOGRAD_NODE_LIST_H

#include "ops/node.h"

typedef struct lt_node_list {
  lt_node **node;
  int64_t count, capacity;
} lt_node_list;

bool lt_node_list_add(lt_ctx *c, lt_node_list *list, lt_node *n);

/* The list as a heap by age: the newest node comes out first, with its reference. */
bool lt_node_heap_push(lt_ctx *c, lt_node_list *heap, lt_node *n);
lt_node *lt_node_heap_pop(lt_node_list *heap); /* one that is not empty */

/* Push a node once in a search, which marks nodes with the number `seen`; not NULL, and not nodes
   older than `least`. */
bool lt_node_heap_note(lt_ctx *c, lt_node_list *heap, lt_object *node, uint64_t seen,
                       uint64_t least);

/* Free its memory; its nodes were removed and released before. */
void lt_node_list_free(lt_ctx *c, lt_node_list *list);

#endif
