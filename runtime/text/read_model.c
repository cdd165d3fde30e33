/* runtime/text/read_model.c: reads the model of a tokenizer.json: its vocabulary and merges.

   What changes ids and is not supported is an error, never left out: a tokenizer that gives other
   ids than the model was trained with looks fine and spoils every result. */
#include <stdio.h>
#include <string.h>

#include "text/read_tokenizer.h"
#include "text/utf8.h"

/* Vocabulary by bytes: with ByteLevel the keys of the file are turned into the bytes that they
   stand for, once, so that encoding needs no mapping of texts. Tokens of one byte also go into a
   table, where merging begins. */
static bool add_token(lt_reading *r, const char *text, size_t n, int64_t id) {
  lt_tokenizer *t = r->t;
  uint64_t hash = lt_string_hash(text, n);
  if (n > t->longest) t->longest = n;
  if (n == 1) t->byte_id[(uint8_t)text[0]] = (int32_t)id;
  return lt_string_table_find(&t->vocab, text, n, hash) != NULL ||
         lt_string_table_add(r->c, &t->vocab, text, n, hash, id) != NULL;
}

/* A byte-level token as the bytes that it stands for; 0: its characters stand for none. */
static size_t to_bytes(const char *text, size_t n, char *out) {
  size_t count = 0, size;
  for (size_t at = 0; at < n; at += size) {
    int byte = lt_char_to_byte(lt_utf8_get(text + at, n - at, &size));
    if (byte < 0) return 0;
    out[count++] = (char)byte;
  }
  return count;
}

/* A key with a character that stands for no byte (a plain space, say) stays out: no word has it,
   and added tokens are found before words are. */
static bool read_vocab(lt_reading *r, const json_t *vocab) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)vocab, key, value) {
    size_t n = strlen(key);
    int64_t id = (int64_t)json_integer_value(value);
    if (!r->t->bytes) {
      if (n > 0 && !add_token(r, key, n, id)) return false;
      continue;
    }
    char *bytes = lt_alloc(r->c, n + 1);
    size_t size = bytes != NULL ? to_bytes(key, n, bytes) : 0;
    bool ok = bytes != NULL && (size == 0 || add_token(r, bytes, size, id));
    lt_free(r->c, bytes, n + 1);
    if (!ok) return false;
  }
  return true;
}

/* One merge: "left right", or [left, right]. */
static bool halves_of(const json_t *value, const char **left, size_t *n_left, const char **right,
                      size_t *n_right) {
  if (json_is_array(value)) {
    const json_t *a = json_array_get(value, 0), *b = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_string(a) || !json_is_string(b)) return false;
    *left = json_string_value(a);
    *right = json_string_value(b);
    *n_left = json_string_length(a);
    *n_right = json_string_length(b);
    return true;
  }
  if (!json_is_string(value)) return false;
  *left = json_string_value(value);
  const char *space = strchr(*left, ' ');
  if (space == NULL || strchr(space + 1, ' ') != NULL) return false;
  *n_left = (size_t)(space - *left);
  *right = space + 1;
  *n_right = json_string_length(value) - *n_left - 1;
  return true;
}

/* The rank of a merge is its place in the list. Both halves and what they make must be tokens;
   looking that up here saves it in every merge. */
static bool read_merge(lt_reading *r, size_t k, const json_t *value) {
  char field[LT_FIELD];
  const char *left, *right;
  size_t n_left, n_right;
  snprintf(field, sizeof field, "model.merges[%zu]", k);
  if (!halves_of(value, &left, &n_left, &right, &n_right))
    return lt_read_refuse(r, field, "must be two tokens: \"left right\" or [\"left\", \"right\"]");
  lt_json both = {.c = r->c};
  lt_json_raw(&both, left, n_left);
  lt_json_raw(&both, right, n_right);
  lt_json_char(&both, 0);
  if (!lt_ok(r->c)) return false;
  int64_t made = lt_tokenizer_id(r->t, both.data, both.size - 1);
  int64_t a = lt_tokenizer_id(r->t, left, n_left), b = lt_tokenizer_id(r->t, right, n_right);
  bool ok = made >= 0 && a >= 0 && b >= 0;
  if (ok)
    ok = lt_merges_add(r->c, &r->t->merges,
                       (lt_merge){(int32_t)a, (int32_t)b, (int32_t)k, (int32_t)made});
  else
    lt_read_refuse(r, field, "has '%.60s', which model.vocab lacks",
                   a < 0 ? left : b < 0 ? right : both.data);
  lt_json_free(&both);
  return ok;
}

/* A text of the model, NULL where it has none. */
static bool read_text(lt_reading *r, const json_t *model, const char *name, const char **out) {
  const json_t *value = json_object_get(model, name);
  char field[LT_FIELD];
  *out = json_string_value(value);
  if (value == NULL || json_is_null(value) || *out != NULL) return true;
  snprintf(field, sizeof field, "model.%s", name);
  return lt_read_refuse(r, field, "must be a text");
}

/* A WordPiece or WordLevel model cannot do without one: there are texts that it has no tokens
   for. */
static bool read_unknown(lt_reading *r, const json_t *model, bool needed) {
  const char *token;
  r->t->unk = -1;
  if (!read_text(r, model, "unk_token", &token)) return false;
  if (token == NULL) return !needed || lt_read_refuse(r, "model.unk_token", "must be a token");
  r->t->unk = (int32_t)lt_tokenizer_id(r->t, token, strlen(token));
  return r->t->unk >= 0 ||
         lt_read_refuse(r, "model.unk_token", "is '%.60s', which model.vocab lacks", token);
}

/* What would change the ids and is not supported. */
static bool refuse_options(lt_reading *r, const json_t *model) {
  static const char *const texts[] = {"continuing_subword_prefix", "end_of_word_suffix"};
  for (size_t k = 0; k < 2; k++) {
    const char *text;
    char field[LT_FIELD];
    snprintf(field, sizeof field, "model.%s", texts[k]);
    if (!read_text(r, model, texts[k], &text)) return false;
    if (text != NULL && *text != 0)
      return lt_read_refuse(r, field, "of a BPE model is not supported");
  }
  if (json_is_true(json_object_get(model, "byte_fallback")))
    return lt_read_refuse(r, "model.byte_fallback", "is not supported");
  if (json_number_value(json_object_get(model, "dropout")) > 0)
    return lt_read_refuse(r, "model.dropout", "is not supported: the same text has the same ids");
  return true;
}

static bool read_bpe(lt_reading *r, const json_t *model) {
  const json_t *merges = json_object_get(model, "merges");
  if (!json_is_array(merges)) return lt_read_refuse(r, "model.merges", "must be a list");
  if (!refuse_options(r, model) || !read_unknown(r, model, false) ||
      !lt_read_flag(r, "model", model, "fuse_unk", false, &r->t->fuse_unk) ||
      !lt_read_flag(r, "model", model, "ignore_merges", false, &r->t->ignore_merges))
    return false;
  for (size_t k = 0; k < json_array_size(merges); k++)
    if (!read_merge(r, k, json_array_get(merges, k))) return false;
  return true;
}

static bool read_wordpiece(lt_reading *r, const json_t *model) {
  lt_tokenizer *t = r->t;
  const json_t *most = json_object_get(model, "max_input_chars_per_word");
  const char *prefix;
  if (!read_unknown(r, model, true) ||
      !read_text(r, model, "continuing_subword_prefix", &prefix))
    return false;
  if (prefix == NULL) prefix = "##";
  t->max_chars = json_is_integer(most) ? (int64_t)json_integer_value(most) : 100;
  t->n_prefix = strlen(prefix);
  t->prefix = lt_alloc(r->c, t->n_prefix + 1);
  if (t->prefix != NULL) memcpy(t->prefix, prefix, t->n_prefix);
  return lt_ok(r->c);
}

/* Older files do not say which model theirs is. */
static const char *type_of(const json_t *model) {
  const char *type = json_string_value(json_object_get(model, "type"));
  if (type != NULL) return type;
  if (json_object_get(model, "merges") != NULL) return "BPE";
  return json_object_get(model, "continuing_subword_prefix") != NULL ? "WordPiece" : "WordLevel";
}

/* The pre-tokenizer was read before: whether keys are bytes (`bytes`) is known from it. */
bool lt_read_model(lt_reading *r, const json_t *model) {
  static const char *const types[] = {
      [LT_BPE] = "BPE", [LT_WORDPIECE] = "WordPiece", [LT_WORDLEVEL] = "WordLevel"};
  lt_tokenizer *t = r->t;
  const char *type = type_of(model);
  int k = LT_BPE;
  while (k <= LT_WORDLEVEL && strcmp(type, types[k]) != 0) k++;
  if (k > LT_WORDLEVEL)
    return lt_read_refuse(r, "model.type", "is %.40s: BPE, WordPiece and WordLevel are supported",
                          type);
  t->model = (lt_model)k;
  if (t->bytes && t->model != LT_BPE)
    return lt_read_refuse(r, "model.type", "is %s: with ByteLevel it must be BPE", type);
  for (int byte = 0; byte < 256; byte++) t->byte_id[byte] = -1;
  if (!read_vocab(r, json_object_get(model, "vocab"))) return false;
  if (t->model == LT_BPE) return read_bpe(r, model);
  return t->model == LT_WORDPIECE ? read_wordpiece(r, model) : read_unknown(r, model, true);
}
