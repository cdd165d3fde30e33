/* runtime/text/train.c: training of byte pair encodings (train.h).

   Only the counts of different words are stored, never the texts: the memory of training grows with
   the vocabulary of the corpus, some millions of words, not with its size. */
#include "text/train.h"

#include "text/normalizer.h"
#include "text/utf8.h"

/* Words are the matches of the pattern, what is between them is dropped: REMOVED of the inverted
   match. */
lt_trainer *lt_trainer_new(lt_ctx *c, const char *pattern, size_t n, bool lowercase) {
  lt_trainer *t = lt_alloc(c, sizeof *t);
  if (t == NULL) return NULL;
  t->lowercase = lowercase;
  t->split.behavior = LT_REMOVED; /* what is between matches */
  t->split.invert = true;
  t->split.pattern = lt_regex_new(c, "text: pattern", pattern, n);
  if (t->split.pattern != NULL) return t;
  lt_trainer_free(c, t);
  return NULL;
}

void lt_trainer_free(lt_ctx *c, lt_trainer *t) {
  if (t == NULL) return;
  lt_regex_free(c, t->split.pattern);
  lt_string_table_free(c, &t->words);
  lt_free(c, t, sizeof *t);
}

static bool count_word(lt_ctx *c, void *ud, const char *text, size_t n) {
  lt_trainer *t = ud;
  uint64_t hash = lt_string_hash(text, n);
  lt_string_entry *word = lt_string_table_find(&t->words, text, n, hash);
  if (word != NULL) word->value++;
  return word != NULL || lt_string_table_add(c, &t->words, text, n, hash, 1) != NULL;
}

static bool count_words(lt_ctx *c, lt_trainer *t, const char *text, size_t n) {
  const lt_normalizer step = LT_LOWERCASE;
  lt_json made[2] = {{.c = c}, {.c = c}};
  bool ok = lt_normalise_by(c, &step, t->lowercase, &text, &n, made) &&
            lt_split_text(c, &t->split, 1, text, n, (lt_pieces){count_word, t});
  lt_json_free(&made[0]);
  lt_json_free(&made[1]);
  return ok;
}

/* What is not UTF-8 is in no word. */
bool lt_trainer_add(lt_ctx *c, lt_trainer *t, const char *text, size_t n) {
  for (size_t at = 0; at < n; at++) {
    size_t valid = lt_utf8_valid(text + at, n - at);
    if (valid > 0 && !count_words(c, t, text + at, valid)) return false;
    at += valid;
  }
  return true;
}

void lt_trained_free(lt_ctx *c, lt_trained *d) {
  lt_string_table_free(c, &d->tokens);
  lt_ids_free(c, &d->merges);
}

static void write_token(const lt_trained *d, int64_t token, lt_json *out) {
  const lt_string_entry *word = &d->tokens.word[token];
  const char *text = lt_string_text(&d->tokens, word);
  lt_json name = {.c = out->c};
  char bytes[4];
  for (size_t k = 0; k < word->n; k++)
    lt_json_raw(&name, bytes, lt_utf8_put(lt_byte_to_char((uint8_t)text[k]), bytes));
  lt_json_string(out, name.data, name.size);
  lt_json_free(&name);
}

/* Bytes are written as the characters of GPT-2's table (a printable one for each byte), the format
   of tokenizer.json; merges as pairs, since a token may contain a space's character. */
void lt_trained_write(const lt_trained *d, int64_t first, lt_json *vocab, lt_json *merges) {
  for (int64_t k = 0; k < d->tokens.count && lt_ok(vocab->c); k++) {
    if (k > 0) lt_json_char(vocab, ',');
    write_token(d, k, vocab);
    lt_json_char(vocab, ':');
    lt_json_integer(vocab, first + k);
  }
  for (int64_t k = 0; k < d->merges.n && lt_ok(merges->c); k += 2) {
    lt_json_raw(merges, k > 0 ? ",[" : "[", k > 0 ? 2 : 1);
    write_token(d, d->merges.id[k], merges);
    lt_json_char(merges, ',');
    write_token(d, d->merges.id[k + 1], merges);
    lt_json_char(merges, ']');
  }
}
