/* runtime/text/read_tokenizer.c: tokenizer.json (tokenizer.h); what each of its parts says is read
   in read_*.c. */
#include "text/read_tokenizer.h"

#include <stdio.h>
#include <string.h>

/* A vocabulary may have holes, but no id far beyond its tokens. */
enum { HOLES = 1 << 16, DEPTH = 24 };

/* A token of the file; one that the model, or an added token, has already keeps its id. */
static bool name_token(lt_reading *r, const char *text, size_t n, int64_t id) {
  uint64_t hash = lt_string_hash(text, n);
  if (lt_string_table_find(&r->t->names, text, n, hash) != NULL) return true;
  if (id >= r->t->n_ids) r->t->n_ids = id + 1;
  return lt_string_table_add(r->c, &r->t->names, text, n, hash, id) != NULL;
}

static bool name_vocab(lt_reading *r, const json_t *vocab, int64_t most) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)vocab, key, value) {
    int64_t id = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    if (id < 0 || id >= most)
      return lt_read_refuse(r, "model.vocab", "must have a number of 0 or more for '%.40s'%s", key,
                            id >= most ? ", near those of the others" : "");
    if (!name_token(r, key, strlen(key), id)) return false;
  }
  return true;
}

static bool name_added(lt_reading *r, const json_t *added, int64_t most) {
  json_t *value;
  size_t k;
  json_array_foreach(added, k, value) {
    const json_t *content = json_object_get(value, "content");
    const json_t *number = json_object_get(value, "id");
    int64_t id = json_is_integer(number) ? (int64_t)json_integer_value(number) : -1;
    char field[LT_FIELD];
    snprintf(field, sizeof field, "added_tokens[%zu]", k);
    if (!json_is_string(content) || json_string_length(content) == 0)
      return lt_read_refuse(r, field, "must have a content, a text");
    if (id < 0 || id >= most) return lt_read_refuse(r, field, "must have an id");
    if (!name_token(r, json_string_value(content), json_string_length(content), id)) return false;
  }
  return true;
}

static bool name_tokens(lt_reading *r, const json_t *vocab, const json_t *added) {
  lt_tokenizer *t = r->t;
  int64_t most = (int64_t)(json_object_size(vocab) + json_array_size(added)) * 4 + HOLES;
  if (!name_vocab(r, vocab, most) || !name_added(r, added, most)) return false;
  size_t n = (size_t)t->n_ids;
  t->name_of = lt_alloc(r->c, n * sizeof *t->name_of);
  t->special = lt_alloc(r->c, n * sizeof *t->special);
  if (!lt_ok(r->c)) return false;
  for (int64_t w = 0; w < t->names.count; w++) t->name_of[t->names.word[w].value] = w + 1;
  return true;
}

static bool read_all(lt_reading *r, const json_t *root) {
  const json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
  const json_t *added = json_object_get(root, "added_tokens");
  if (!json_is_object(model)) return lt_read_refuse(r, "model", "must be an object");
  if (!json_is_object(vocab)) return lt_read_refuse(r, "model.vocab", "must be an object");
  if (added != NULL && !json_is_null(added) && !json_is_array(added))
    return lt_read_refuse(r, "added_tokens", "must be a list");
  return lt_read_pre_tokenizer(r, "pre_tokenizer", json_object_get(root, "pre_tokenizer")) &&
         lt_read_normalizer(r, "normalizer", json_object_get(root, "normalizer")) &&
         name_tokens(r, vocab, added) && lt_read_model(r, model) &&
         lt_read_added_tokens(r, added) &&
         lt_read_decoder(r, "decoder", json_object_get(root, "decoder")) &&
         lt_read_post_processor(r, "post_processor", json_object_get(root, "post_processor"));
}

lt_tokenizer *lt_tokenizer_read(lt_ctx *c, const char *what, const char *text, size_t n) {
  json_t *root = lt_json_parse(c, what, text, n, DEPTH, true);
  if (root == NULL) return NULL;
  lt_reading r = {.c = c, .what = what, .t = lt_alloc(c, sizeof *r.t)};
  bool ok = r.t != NULL && read_all(&r, root);
  json_decref(root);
  if (ok) return r.t;
  lt_tokenizer_free(c, r.t);
  return NULL;
}
