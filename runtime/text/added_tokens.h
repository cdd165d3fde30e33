/* runtime/text/added_tokens.h: added tokens: texts that are one token wherever they occur. */
#ifndef LT_TEXT_ADDED_TOKENS_H
#define LT_TEXT_ADDED_TOKENS_H

#include "base/ctx.h"

typedef struct lt_added {
  int32_t id;
  bool special;     /* decoding leaves it out if asked */
  bool single_word; /* no letter, mark, digit or _ beside it */
  bool lstrip, rstrip; /* takes the white space before, after it */
} lt_added;

/* Start from {0}: a tree of bytes. */
typedef struct lt_added_tree {
  struct lt_added_node {
    uint8_t byte;
    int32_t child, sibling; /* 0: none */
    int32_t token;          /* number of the token that ends here + 1, 0: none */
  } *node;                  /* [0] is the root */
  int32_t n_nodes, node_capacity;
  lt_added *token;
  int32_t n, capacity;
  bool begins[256]; /* the bytes that tokens begin with */
} lt_added_tree;

bool lt_added_add(lt_ctx *c, lt_added_tree *a, const char *text, size_t n, lt_added token);
void lt_added_free(lt_ctx *c, lt_added_tree *a);

/* The first token at or after `from`, the longest of those that begin there, and its bounds (with
   the space that it takes, not before `from`); NULL: none. */
const lt_added *lt_added_find(lt_ctx *c, const lt_added_tree *a, const char *text, size_t n,
                              size_t from, size_t *begin, size_t *end);

#endif
