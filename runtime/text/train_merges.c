/* runtime/text/train_merges.c: the merges of a byte pair encoding (train.h): pairs of neighbouring
   symbols are counted once; a merge changes the counts of what stands beside it.

   The heap is lazy: a pair whose count has fallen is pushed again with what it has when it comes
   up, and is never searched for. Ties go by the ids, so that a vocabulary does not depend on the
   order of texts.

   Each merge costs the words in which its pair occurs, not the corpus (as Sennrich's own script
   does with its statistics and indices). The result is that of counting anew each time. */
#include "text/train.h"

#include <string.h>

#include "text/utf8.h"

enum { BYTES = 256, FIRST_PAIRS = 1 << 12 };

/* A pair of symbols: how often it occurs, and in which words it came to be. */
typedef struct pair {
  int32_t left, right; /* left < 0: an empty slot */
  int64_t count;
  lt_ids where;
  int64_t round; /* in which it was last put on the list of changed pairs */
} pair;

typedef struct entry {
  int64_t count;
  size_t pair;
} entry;

typedef struct training {
  lt_ctx *c;
  const lt_string_table *words;
  int32_t *symbol;    /* of all words; a word's begin at its `at` in the text, and get fewer */
  int32_t *length;    /* how many symbols a word still has */
  pair *pairs;        /* numbered as they came */
  size_t n_pairs, pair_capacity;
  uint32_t *slot;     /* number of the pair + 1 */
  size_t n_slots;
  entry *heap;        /* the most frequent pair first; counts may have fallen since */
  size_t n_heap, heap_capacity;
  lt_ids changed;     /* pairs that a merge has made */
  int64_t round;
  lt_trained *out;
} training;

/* Fibonacci hashing and linear probing as in bpe.c; the table holds numbers, so that pairs never
   move when it grows. */
static size_t slot_of(const training *g, int32_t left, int32_t right) {
  uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
  size_t at = (h ^ h >> 32) & (g->n_slots - 1);
  for (; g->slot[at] != 0; at = (at + 1) & (g->n_slots - 1)) {
    const pair *p = &g->pairs[g->slot[at] - 1];
    if (p->left == left && p->right == right) break;
  }
  return at;
}

/* Twice as many slots as pairs: at most half are used. Numbers of pairs are 32 bits: 4 billion
   different pairs would take 200 GB before. */
static bool grow_pairs(training *g) {
  size_t capacity = g->pair_capacity == 0 ? FIRST_PAIRS : 2 * g->pair_capacity;
  pair *pairs = lt_realloc(g->c, g->pairs, g->pair_capacity * sizeof *pairs,
                           capacity * sizeof *pairs);
  if (pairs == NULL) return false;
  g->pairs = pairs;
  g->pair_capacity = capacity;
  uint32_t *slot = lt_alloc(g->c, 2 * capacity * sizeof *slot);
  if (slot == NULL) return false;
  lt_free(g->c, g->slot, g->n_slots * sizeof *slot);
  g->slot = slot;
  g->n_slots = 2 * capacity;
  for (size_t k = 0; k < g->n_pairs; k++)
    slot[slot_of(g, pairs[k].left, pairs[k].right)] = (uint32_t)k + 1;
  return true;
}

/* Count a pair up or down in a word. A word is added to `where` when the count rises: it may lose
   the pair again later, which merge_in notices. It is not added twice in a row, which is how a
   word's own pairs come. */
static bool change(training *g, int32_t left, int32_t right, int64_t by, int64_t word) {
  if (g->n_pairs == g->pair_capacity && !grow_pairs(g)) return false;
  size_t at = slot_of(g, left, right);
  if (g->slot[at] == 0) {
    g->pairs[g->n_pairs] = (pair){.left = left, .right = right};
    g->slot[at] = (uint32_t)++g->n_pairs;
  }
  size_t number = g->slot[at] - 1;
  pair *p = &g->pairs[number];
  p->count += by;
  if (by <= 0) return true;
  if (p->where.n == 0 || p->where.id[p->where.n - 1] != word)
    lt_ids_add(g->c, &p->where, (int32_t)word);
  if (p->round != g->round) lt_ids_add(g->c, &g->changed, (int32_t)number);
  p->round = g->round;
  return lt_ok(g->c);
}

/* More frequent first; ties by the ids of the pair. Counts are compared as they were when the entry
   was pushed. */
static bool comes_first(const training *g, entry a, entry b) {
  const pair *p = &g->pairs[a.pair], *q = &g->pairs[b.pair];
  if (a.count != b.count) return a.count > b.count;
  return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static bool push(training *g, entry new) {
  if (g->n_heap == g->heap_capacity) {
    size_t capacity = g->heap_capacity == 0 ? FIRST_PAIRS : 2 * g->heap_capacity;
    entry *heap = lt_realloc(g->c, g->heap, g->heap_capacity * sizeof *heap,
                             capacity * sizeof *heap);
    if (heap == NULL) return false;
    g->heap = heap;
    g->heap_capacity = capacity;
  }
  size_t k = g->n_heap++;
  for (; k > 0 && comes_first(g, new, g->heap[(k - 1) / 2]); k = (k - 1) / 2)
    g->heap[k] = g->heap[(k - 1) / 2];
  g->heap[k] = new;
  return true;
}

static entry pop(training *g) {
  entry first = g->heap[0], last = g->heap[--g->n_heap];
  size_t k = 0, below;
  while ((below = 2 * k + 1) < g->n_heap) {
    if (below + 1 < g->n_heap && comes_first(g, g->heap[below + 1], g->heap[below])) below++;
    if (!comes_first(g, g->heap[below], last)) break;
    g->heap[k] = g->heap[below];
    k = below;
  }
  g->heap[k] = last;
  return first;
}

/* The pairs that the last round has made wait for their turn. */
static bool push_changed(training *g) {
  for (int64_t k = 0; k < g->changed.n; k++) {
    size_t number = (size_t)g->changed.id[k];
    int64_t count = g->pairs[number].count;
    if (count > 0 && !push(g, (entry){count, number})) return false;
  }
  g->changed.n = 0;
  g->round++;
  return lt_ok(g->c);
}

/* The bytes as tokens. */
static void number_bytes(training *g, int32_t *symbol_of) {
  for (int32_t code = 0; code < 2 * BYTES; code++) {
    int byte = lt_char_to_byte(code);
    if (byte < 0) continue;
    char text = (char)byte;
    int64_t next = g->out->tokens.count;
    symbol_of[byte] = (int32_t)next;
    lt_string_table_add(g->c, &g->out->tokens, &text, 1, lt_string_hash(&text, 1), next);
  }
}

/* Symbols of all words stand in one array, a word's at the place of its text: a token of one byte
   each at first, so that the text's length is the array's. */
static bool begin(training *g) {
  const lt_string_table *w = g->words;
  int32_t symbol_of[BYTES];
  number_bytes(g, symbol_of);
  g->symbol = lt_alloc(g->c, w->n_text * sizeof *g->symbol);
  g->length = lt_alloc(g->c, (size_t)w->count * sizeof *g->length);
  if (!lt_ok(g->c)) return false;
  for (int64_t k = 0; k < w->count; k++) {
    int32_t *s = g->symbol + w->word[k].at;
    g->length[k] = (int32_t)w->word[k].n;
    for (size_t i = 0; i < w->word[k].n; i++)
      s[i] = symbol_of[(uint8_t)w->text[w->word[k].at + i]];
    for (size_t i = 0; i + 1 < w->word[k].n; i++)
      if (!change(g, s[i], s[i + 1], w->word[k].value, k)) return false;
  }
  return push_changed(g);
}

/* Merge a pair within a word, counting its neighbours anew. From left to right, without overlaps:
   of a a a the first two become one. Symbols move to the front in place; counts change for the
   pairs that were and that are, with the number of times the word occurs. */
static bool merge_in(training *g, int64_t word, int32_t left, int32_t right, int32_t made) {
  int32_t *s = g->symbol + g->words->word[word].at, n = g->length[word], kept = 0;
  int64_t by = g->words->word[word].value;
  bool ok = true;
  for (int32_t k = 0; k < n; k++) {
    if (k + 1 >= n || s[k] != left || s[k + 1] != right) {
      s[kept++] = s[k];
      continue;
    }
    if (kept > 0)
      ok = ok && change(g, s[kept - 1], left, -by, word) && change(g, s[kept - 1], made, by, word);
    if (k + 2 < n)
      ok = ok && change(g, right, s[k + 2], -by, word) && change(g, made, s[k + 2], by, word);
    s[kept++] = made;
    k++;
  }
  g->length[word] = kept;
  return ok;
}

static bool merge_everywhere(training *g, size_t number, int32_t made) {
  lt_ids where = g->pairs[number].where;
  int32_t left = g->pairs[number].left, right = g->pairs[number].right;
  g->pairs[number].where = (lt_ids){0};
  bool ok = true;
  for (int64_t k = 0; k < where.n && ok; k++) ok = merge_in(g, where.id[k], left, right, made);
  lt_ids_free(g->c, &where);
  return ok && push_changed(g);
}

/* The token that two make: of one text there is one token, however it came to be. Two merges may
   make the same text ("a" + "bc", "ab" + "c"): that is one token with one id, but both merges stay
   on the list. */
static int64_t join(training *g, const pair *p) {
  lt_string_table *tokens = &g->out->tokens;
  const lt_string_entry *left = &tokens->word[p->left], *right = &tokens->word[p->right];
  size_t n = left->n + right->n, n_left = left->n;
  char *text = lt_alloc(g->c, n);
  if (text == NULL) return -1;
  memcpy(text, lt_string_text(tokens, left), n_left);
  memcpy(text + n_left, lt_string_text(tokens, right), n - n_left);
  uint64_t hash = lt_string_hash(text, n);
  lt_string_entry *made = lt_string_table_find(tokens, text, n, hash);
  if (made == NULL) made = lt_string_table_add(g->c, tokens, text, n, hash, tokens->count);
  lt_free(g->c, text, n);
  return made != NULL ? made->value : -1;
}

/* Ends with enough tokens, or when the most frequent pair is rarer than `least`: no later pair is
   more frequent, since merging only lowers counts of pairs that exist, and those that it makes
   occur at most as often as the pair that was merged. */
static bool merge_most_frequent(training *g, int64_t n_tokens, int64_t least) {
  while (g->out->tokens.count < n_tokens && g->n_heap > 0) {
    entry top = pop(g);
    const pair *p = &g->pairs[top.pair];
    if (p->count != top.count) { /* it has become rarer since */
      if (p->count > 0 && !push(g, (entry){p->count, top.pair})) return false;
      continue;
    }
    if (top.count < least) break;
    if (p->where.n == 0) continue; /* it came twice */
    lt_ids_add(g->c, &g->out->merges, p->left);
    lt_ids_add(g->c, &g->out->merges, p->right);
    int64_t made = join(g, p);
    if (made < 0 || !merge_everywhere(g, top.pair, (int32_t)made)) return false;
  }
  return lt_ok(g->c);
}

/* The words stay as they were: their texts are read, their symbols are copies. */
bool lt_trainer_merge(lt_ctx *c, lt_trainer *t, int64_t n_tokens, int64_t min_frequency,
                      lt_trained *out) {
  training g = {.c = c, .words = &t->words, .round = 1, .out = out};
  bool ok = begin(&g) && merge_most_frequent(&g, n_tokens, min_frequency);
  for (size_t k = 0; k < g.n_pairs; k++) lt_ids_free(c, &g.pairs[k].where);
  lt_free(c, g.pairs, g.pair_capacity * sizeof *g.pairs);
  lt_free(c, g.slot, g.n_slots * sizeof *g.slot);
  lt_free(c, g.heap, g.heap_capacity * sizeof *g.heap);
  lt_ids_free(c, &g.changed);
  lt_free(c, g.symbol, t->words.n_text * sizeof *g.symbol);
  lt_free(c, g.length, (size_t)t->words.count * sizeof *g.length);
  return ok;
}
