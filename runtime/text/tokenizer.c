/* runtime/text/tokenizer.c: texts to ids and back (tokenizer.h).

   The stages are Hugging Face's: added tokens of the raw text, normalizers, added tokens of the
   normalized text, pre-tokenizers, the model. Each is a function that hands its parts to the
   next. */
#include "text/tokenizer.h"

#include <string.h>

#include "text/utf8.h"

typedef struct job {
  lt_tokenizer *t;
  lt_ids *out;
} job;

static bool one_piece(lt_ctx *c, void *ud, const char *text, size_t n) {
  job *j = ud;
  return lt_tokenizer_piece(c, j->t, text, n, j->out);
}

static bool by_pieces(lt_ctx *c, job *j, const char *text, size_t n) {
  return lt_split_text(c, j->t->split, j->t->n_splits, text, n, (lt_pieces){one_piece, j});
}

/* What comes between added tokens is for `rest`. Added tokens cut the text: neither patterns nor
   merges see across one, so that "<|endoftext|>" in a text is that token and not its characters.
   Who encodes untrusted text must take that into account. */
static bool by_added(lt_ctx *c, job *j, const lt_added_tree *added, const char *text, size_t n,
                     bool (*rest)(lt_ctx *, job *, const char *, size_t)) {
  size_t at = 0, begin, end;
  const lt_added *token;
  while ((token = lt_added_find(c, added, text, n, at, &begin, &end)) != NULL) {
    if (!lt_ok(c) || (begin > at && !rest(c, j, text + at, begin - at))) return false;
    lt_ids_add(c, j->out, token->id);
    at = end;
  }
  return lt_ok(c) && (at == n || rest(c, j, text + at, n - at));
}

static bool normalised(lt_ctx *c, job *j, const char *text, size_t n) {
  lt_json made[2] = {{.c = c}, {.c = c}};
  bool ok = lt_normalise_by(c, j->t->normalizer, j->t->n_normalizers, &text, &n, made);
  ok = ok && (n == 0 || by_added(c, j, &j->t->added_normalised, text, n, by_pieces));
  lt_json_free(&made[0]);
  lt_json_free(&made[1]);
  return ok;
}

/* What is not UTF-8 is nothing for normalizers and patterns, and goes to the model as it is. */
static bool by_validity(lt_ctx *c, job *j, const char *text, size_t n) {
  for (size_t at = 0; at < n;) {
    size_t valid = lt_utf8_valid(text + at, n - at), bad = 0, size;
    if (valid > 0 && !normalised(c, j, text + at, valid)) return false;
    at += valid;
    while (at + bad < n && lt_utf8_get(text + at + bad, n - at - bad, &size) < 0) bad++;
    if (bad > 0 && !lt_tokenizer_piece(c, j->t, text + at, bad, j->out)) return false;
    at += bad;
  }
  return true;
}

/* Linear in the text but for single long words (bpe.c). A tokenizer has a cache and a buffer, so
   that one thread at a time may encode with it; `out` is appended to, and is the caller's. */
bool lt_tokenizer_encode(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n, lt_ids *out) {
  job j = {t, out};
  return n == 0 || by_added(c, &j, &t->added, text, n, by_validity);
}

int64_t lt_tokenizer_id(const lt_tokenizer *t, const char *token, size_t n) {
  const lt_string_entry *word = lt_string_table_find(&t->names, token, n, lt_string_hash(token, n));
  return word != NULL ? word->value : -1;
}

const lt_string_entry *lt_tokenizer_name(const lt_tokenizer *t, int64_t id) {
  if (id < 0 || id >= t->n_ids || t->name_of[id] == 0) return NULL;
  return &t->names.word[t->name_of[id] - 1];
}

/* The bytes that the characters of a token stand for; itself where one stands for none. */
static void put_bytes(lt_json *out, const char *text, size_t n) {
  size_t size, start = out->size;
  for (size_t at = 0; at < n; at += size) {
    int byte = lt_char_to_byte(lt_utf8_get(text + at, n - at, &size));
    if (byte < 0) {
      out->size = start;
      lt_json_raw(out, text, n);
      return;
    }
    lt_json_char(out, (char)byte);
  }
}

static bool begins_with(const char *text, size_t n, const char *with, size_t size) {
  return n >= size && memcmp(text, with, size) == 0;
}

/* No space before these, where the file asks for `cleanup`. */
static bool sticks(const char *text, size_t n) {
  static const char *const list[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
  for (size_t k = 0; k < sizeof list / sizeof *list; k++)
    if (begins_with(text, n, list[k], strlen(list[k]))) return true;
  return false;
}

static void put_wordpiece(const lt_tokenizer *t, const char *text, size_t n, bool first,
                          lt_json *out) {
  if (!first && begins_with(text, n, t->prefix, t->n_prefix)) {
    text += t->n_prefix;
    n -= t->n_prefix;
  } else if (!first && !(t->cleanup && sticks(text, n))) {
    lt_json_char(out, ' ');
  }
  lt_json_raw(out, text, n);
}

/* An id that no token has is an error: a model whose output layer is wider than the vocabulary
   should not lose text silently. Bytes of several tokens may make one character, hence they are
   joined before anybody reads UTF-8. */
bool lt_tokenizer_decode(lt_ctx *c, const lt_tokenizer *t, const int64_t *id, int64_t n, bool skip,
                         lt_json *out) {
  bool first = true;
  for (int64_t k = 0; k < n; k++) {
    const lt_string_entry *name = lt_tokenizer_name(t, id[k]);
    if (name == NULL)
      return lt_fail(c, LT_EVALUE, "decode: there is no token with id %lld (the vocabulary has "
                     "%lld)", (long long)id[k], (long long)t->n_ids);
    if (skip && t->special[id[k]].special) continue;
    const char *text = lt_string_text(&t->names, name);
    if (t->decoder == LT_DECODE_BYTES) {
      put_bytes(out, text, name->n);
    } else if (t->decoder == LT_DECODE_WORDPIECE) {
      put_wordpiece(t, text, name->n, first, out);
    } else {
      if (t->decoder == LT_DECODE_SPACES && !first) lt_json_char(out, ' ');
      lt_json_raw(out, text, name->n);
    }
    first = false;
  }
  return lt_ok(c);
}

void lt_tokenizer_free(lt_ctx *c, lt_tokenizer *t) {
  if (t == NULL) return;
  lt_string_table_free(c, &t->vocab);
  lt_string_table_free(c, &t->names);
  lt_free(c, t->name_of, (size_t)t->n_ids * sizeof *t->name_of);
  lt_free(c, t->special, (size_t)t->n_ids * sizeof *t->special);
  lt_merges_free(c, &t->merges);
  lt_free(c, t->prefix, t->n_prefix + 1);
  for (int k = 0; k < t->n_splits; k++) lt_regex_free(c, t->split[k].pattern);
  lt_added_free(c, &t->added);
  lt_added_free(c, &t->added_normalised);
  lt_ids_free(c, &t->before);
  lt_ids_free(c, &t->after);
  lt_string_table_free(c, &t->seen);
  lt_ids_free(c, &t->seen_ids);
  lt_free(c, t->buffer, t->buffer_capacity);
  lt_free(c, t, sizeof *t);
}
