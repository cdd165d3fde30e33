/* runtime/text/added_tokens.c: added tokens, found in a text before it is split (added_tokens.h).

   A trie of bytes (D. Knuth, The Art of Computer Programming, volume 3, section 6.3) with children
   as lists of siblings: there are some dozens of added tokens, seldom two with one beginning, so
   that a list is short and a node is a few bytes. `begins`, the set of first bytes, lets a text
   without any be passed over at a look for each byte. Of tokens that begin at one place the longest
   wins, as in Hugging Face's tokenizers, whose Aho-Corasick automaton is asked for leftmost-longest
   matches. */
#include "text/added_tokens.h"

#include "text/libraries.h"
#include "text/utf8.h"

typedef struct lt_added_node node;

/* Node 0 is the root, so that 0 can say "none" in `child` and `sibling`. */
static bool grow_nodes(lt_ctx *c, lt_added_tree *a) {
  int32_t capacity = a->node_capacity == 0 ? 64 : 2 * a->node_capacity;
  node *list = lt_realloc(c, a->node, (size_t)a->node_capacity * sizeof *list,
                          (size_t)capacity * sizeof *list);
  if (list == NULL) return false;
  a->node = list;
  a->node_capacity = capacity;
  if (a->n_nodes == 0) a->n_nodes = 1;
  return true;
}

static int32_t child_of(const lt_added_tree *a, int32_t at, uint8_t byte) {
  for (int32_t k = a->node[at].child; k != 0; k = a->node[k].sibling)
    if (a->node[k].byte == byte) return k;
  return 0;
}

/* The empty text is not added by callers: its first byte is read. Numbers of tokens in nodes count
   from 1. */
bool lt_added_add(lt_ctx *c, lt_added_tree *a, const char *text, size_t n, lt_added token) {
  if (a->n == a->capacity) {
    int32_t capacity = a->capacity == 0 ? 16 : 2 * a->capacity;
    lt_added *list = lt_realloc(c, a->token, (size_t)a->capacity * sizeof *list,
                                (size_t)capacity * sizeof *list);
    if (list == NULL) return false;
    a->token = list;
    a->capacity = capacity;
  }
  int32_t at = 0;
  for (size_t k = 0; k < n; k++) {
    if (a->n_nodes == a->node_capacity && !grow_nodes(c, a)) return false;
    int32_t next = child_of(a, at, (uint8_t)text[k]);
    if (next == 0) {
      next = a->n_nodes++;
      a->node[next] = (node){.byte = (uint8_t)text[k], .sibling = a->node[at].child};
      a->node[at].child = next;
    }
    at = next;
  }
  a->begins[(uint8_t)text[0]] = true;
  a->token[a->n] = token;
  a->node[at].token = ++a->n;
  return true;
}

void lt_added_free(lt_ctx *c, lt_added_tree *a) {
  lt_free(c, a->node, (size_t)a->node_capacity * sizeof *a->node);
  lt_free(c, a->token, (size_t)a->capacity * sizeof *a->token);
  *a = (lt_added_tree){0};
}

/* The longest token that begins at `at`: where it ends; NULL: none does. */
static const lt_added *longest(const lt_added_tree *a, const char *text, size_t n, size_t at,
                               size_t *end) {
  const lt_added *found = NULL;
  for (int32_t k = 0; at < n && (k = child_of(a, k, (uint8_t)text[at])) != 0;) {
    at++;
    if (a->node[k].token != 0) {
      found = &a->token[a->node[k].token - 1];
      *end = at;
    }
  }
  return found;
}

/* The character that ends at `at` > 0; -1: none. */
static int32_t before(const char *text, size_t at, size_t *size) {
  size_t k = at - 1;
  while (k > 0 && at - k < 4 && ((uint8_t)text[k] & 0xc0) == 0x80) k--;
  int32_t code = lt_utf8_get(text + k, at - k, size);
  return *size == at - k ? code : -1;
}

/* Letters, marks, digits, connectors, as categories of utf8proc: Lu Ll Lt Lm Lo Mn Mc Me Nd Nl, Pc;
   letters in circles and squares; joiners. This is \w of the regular expressions of Rust, with
   which Hugging Face's tokenizers decide `single_word`: Alphabetic, M, Nd, Pc and Join_Control. */
static bool is_word(lt_ctx *c, int32_t code) {
  if (code < 0x80)
    return (code >= '0' && code <= '9') || code == '_' || (code >= 'A' && code <= 'Z') ||
           (code >= 'a' && code <= 'z');
  const lt_utf8proc *u = lt_utf8proc_open(c);
  int category = u != NULL ? u->category(code) : 0;
  return (category >= 1 && category <= 10) || category == 12 ||
         (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
         (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189) ||
         code == 0x200c || code == 0x200d;
}

/* No word character right before or behind. */
static bool stands_alone(lt_ctx *c, const char *text, size_t n, size_t begin, size_t end) {
  size_t size;
  if (begin > 0 && is_word(c, before(text, begin, &size))) return false;
  return end == n || !is_word(c, lt_utf8_get(text + end, n - end, &size));
}

/* With lstrip and rstrip the spaces beside a token belong to it; to the left not further than
   `from`, where the token before it ended. */
static void take_spaces(const lt_added *t, const char *text, size_t n, size_t from, size_t *begin,
                        size_t *end) {
  size_t size;
  while (t->lstrip && *begin > from && lt_is_space(before(text, *begin, &size))) *begin -= size;
  while (t->rstrip && *end < n && lt_is_space(lt_utf8_get(text + *end, n - *end, &size)))
    *end += size;
}

const lt_added *lt_added_find(lt_ctx *c, const lt_added_tree *a, const char *text, size_t n,
                              size_t from, size_t *begin, size_t *end) {
  if (a->n == 0) return NULL;
  for (size_t at = from; at < n; at++) {
    if (!a->begins[(uint8_t)text[at]]) continue;
    const lt_added *t = longest(a, text, n, at, end);
    if (t == NULL) continue;
    if (t->single_word && !stands_alone(c, text, n, at, *end)) {
      at = *end - 1;
      continue;
    }
    *begin = at;
    take_spaces(t, text, n, from, begin, end);
    return t;
  }
  return NULL;
}
