/* runtime/text/model.c: the ids of one piece of text, by byte pair encoding, WordPiece or look-up
   of entire words; and a cache of the words seen.

   WordPiece: M. Schuster and K. Nakajima, Japanese and Korean Voice Search, 2012, as BERT uses it.
   Byte pair encoding is in bpe.c. The words that were met are the cache of Hugging Face's
   tokenizers: natural text repeats itself (Zipf), so that most words take a look-up in place of
   merging. */
#include <string.h>

#include "text/tokenizer.h"
#include "text/utf8.h"

/* Words that are kept, and how long they may be. When there are too many all are forgotten: the
   frequent ones are soon back. */
enum { KEPT_WORDS = 1 << 16, KEPT_BYTES = 64 };

static int32_t find(const lt_tokenizer *t, const char *text, size_t n) {
  const lt_string_entry *word = lt_string_table_find(&t->vocab, text, n, lt_string_hash(text, n));
  return word != NULL ? (int32_t)word->value : -1;
}

/* Adds the unknown token; with fuse_unk one for a run of unknown symbols. */
static void add_unknown(lt_ctx *c, const lt_tokenizer *t, lt_ids *out, bool *after_unknown) {
  if (t->unk >= 0 && !(t->fuse_unk && *after_unknown)) lt_ids_add(c, out, t->unk);
  *after_unknown = true;
}

/* The symbols that merging begins with: bytes or characters. */
static void symbols_of(lt_ctx *c, const lt_tokenizer *t, const char *text, size_t n, lt_ids *out) {
  size_t size = 1;
  bool after_unknown = false;
  for (size_t at = 0; at < n; at += size) {
    int32_t id;
    if (t->bytes) {
      id = t->byte_id[(uint8_t)text[at]];
    } else {
      lt_utf8_get(text + at, n - at, &size);
      id = size == 1 ? t->byte_id[(uint8_t)text[at]] : find(t, text + at, size);
    }
    if (id < 0) {
      add_unknown(c, t, out, &after_unknown);
    } else {
      lt_ids_add(c, out, id);
      after_unknown = false;
    }
  }
}

/* ignore_merges (Llama 3's files): a word that is in the vocabulary is that token, whether or not
   merges lead to it. */
static bool by_merging(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n, lt_ids *out) {
  int32_t id_of_word = t->ignore_merges && n <= t->longest ? find(t, text, n) : -1;
  if (id_of_word >= 0) {
    lt_ids_add(c, out, id_of_word);
    return lt_ok(c);
  }
  int64_t from = out->n;
  symbols_of(c, t, text, n, out);
  if (!lt_ok(c)) return false;
  int64_t left = lt_bpe_merge(c, &t->merges, out->id + from, out->n - from);
  if (left >= 0) out->n = from + left;
  return left >= 0;
}

/* Bytes that begin a character: all but those of the form 10xxxxxx. */
static int64_t count_chars(const char *text, size_t n) {
  int64_t count = 0;
  for (size_t k = 0; k < n; k++) count += ((uint8_t)text[k] & 0xc0) != 0x80;
  return count;
}

/* The prefix, then the word: the prefix of a later part is written over the end of the one before
   it. */
static char *spread(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n) {
  size_t size = t->n_prefix + n;
  if (size > t->buffer_capacity) {
    lt_free(c, t->buffer, t->buffer_capacity);
    t->buffer_capacity = 0;
    t->buffer = lt_alloc(c, 2 * size);
    if (t->buffer == NULL) return NULL;
    t->buffer_capacity = 2 * size;
  }
  memcpy(t->buffer + t->n_prefix, text, n);
  return t->buffer + t->n_prefix;
}

/* Greedy: the longest token of the vocabulary first, then the rest with the prefix (##) before it.
   A word of which a part is unknown is all unknown, and so is one of more than max_chars
   characters. Ends are tried from the longest that the vocabulary has, only between characters: n *
   longest look-ups at most. */
static bool by_longest(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n, lt_ids *out) {
  int64_t from = out->n;
  char *word = count_chars(text, n) <= t->max_chars ? spread(c, t, text, n) : NULL;
  if (!lt_ok(c)) return false;
  for (size_t at = 0, end; word != NULL && at < n; at = end) {
    size_t prefix = at > 0 ? t->n_prefix : 0;
    if (prefix > 0) memcpy(word + at - prefix, t->prefix, prefix);
    int32_t id = -1;
    end = t->longest < n - at + prefix ? at + (t->longest > prefix ? t->longest - prefix : 0) : n;
    for (; end > at; end--) {
      bool within = end < n && ((uint8_t)text[end] & 0xc0) == 0x80;
      if (!within && (id = find(t, word + at - prefix, end - at + prefix)) >= 0) break;
    }
    if (id < 0)
      word = NULL;
    else
      lt_ids_add(c, out, id);
  }
  if (word == NULL) {
    out->n = from;
    if (t->unk >= 0) lt_ids_add(c, out, t->unk);
  }
  return lt_ok(c);
}

/* By the model alone, without the cache: WordLevel words are one look-up anyway. */
static bool compute(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n, lt_ids *out) {
  if (t->model == LT_BPE) return by_merging(c, t, text, n, out);
  if (t->model == LT_WORDPIECE) return by_longest(c, t, text, n, out);
  int32_t id = find(t, text, n);
  if (id < 0) id = t->unk;
  if (id >= 0) lt_ids_add(c, out, id);
  return lt_ok(c);
}

/* The ids of a kept word stand in seen_ids behind their number. All are dropped at once when the
   table is full: no order of use has to be maintained, which would cost on every hit. */
static bool keep(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n, uint64_t hash,
                 const int32_t *id, int64_t count) {
  if (t->seen.count >= KEPT_WORDS) {
    lt_string_table_clear(&t->seen);
    t->seen_ids.n = 0;
  }
  if (lt_string_table_add(c, &t->seen, text, n, hash, t->seen_ids.n) == NULL) return false;
  lt_ids_add(c, &t->seen_ids, (int32_t)count);
  for (int64_t k = 0; k < count; k++) lt_ids_add(c, &t->seen_ids, id[k]);
  return lt_ok(c);
}

/* The cache is keyed by text, not by hash: a collision would give another word's ids. Words longer
   than KEPT_BYTES are rare, seldom come again and would fill it. */
bool lt_tokenizer_piece(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n, lt_ids *out) {
  if (n > KEPT_BYTES || t->model == LT_WORDLEVEL) return compute(c, t, text, n, out);
  uint64_t hash = lt_string_hash(text, n);
  const lt_string_entry *word = lt_string_table_find(&t->seen, text, n, hash);
  if (word != NULL) {
    const int32_t *kept = t->seen_ids.id + word->value;
    for (int32_t k = 1; k <= kept[0]; k++) lt_ids_add(c, out, kept[k]);
    return lt_ok(c);
  }
  int64_t from = out->n;
  return compute(c, t, text, n, out) &&
         keep(c, t, text, n, hash, out->id + from, out->n - from);
}
