/* runtime/text/read_decoder.c: reads the added tokens, post-processor and decoder of a
   tokenizer.json. */
#include <string.h>

#include "text/read_tokenizer.h"

/* An id is called by another text from now on. */
static bool rename_id(lt_reading *r, const char *text, size_t n, int32_t id) {
  lt_string_table *names = &r->t->names;
  uint64_t hash = lt_string_hash(text, n);
  const lt_string_entry *name = lt_string_table_find(names, text, n, hash);
  if (name == NULL) name = lt_string_table_add(r->c, names, text, n, hash, id);
  if (name != NULL) r->t->name_of[id] = name - names->word + 1;
  return name != NULL;
}

/* A token that is found in the normalised text is normalised itself. */
static bool add_normalised(lt_reading *r, const char *text, size_t n, lt_added token) {
  lt_json made[2] = {{.c = r->c}, {.c = r->c}};
  bool ok = lt_normalise_by(r->c, r->t->normalizer, r->t->n_normalizers, &text, &n, made);
  if (ok && n > 0)
    ok = lt_added_add(r->c, &r->t->added_normalised, text, n, token) &&
         rename_id(r, text, n, token.id);
  lt_json_free(&made[0]);
  lt_json_free(&made[1]);
  return ok;
}

/* An added token that contains a line break, or takes the spaces before it, could cross a cut at a
   line: files are not read in pieces then. */
bool lt_read_added_tokens(lt_reading *r, const json_t *list) {
  const json_t *value;
  size_t k;
  json_array_foreach(list, k, value) {
    const json_t *content = json_object_get(value, "content");
    const char *text = json_string_value(content);
    size_t n = json_string_length(content);
    lt_added token = {.id = (int32_t)lt_tokenizer_id(r->t, text, n)};
    bool normalised;
    if (!lt_read_flag(r, "added_tokens", value, "special", false, &token.special) ||
        !lt_read_flag(r, "added_tokens", value, "single_word", false, &token.single_word) ||
        !lt_read_flag(r, "added_tokens", value, "lstrip", false, &token.lstrip) ||
        !lt_read_flag(r, "added_tokens", value, "rstrip", false, &token.rstrip) ||
        !lt_read_flag(r, "added_tokens", value, "normalized", !token.special, &normalised))
      return false;
    r->t->special[token.id] = token;
    if (token.lstrip || memchr(text, '\n', n) != NULL) r->t->by_lines = false;
    if (normalised ? !add_normalised(r, text, n, token)
                   : !lt_added_add(r->c, &r->t->added, text, n, token))
      return false;
  }
  return true;
}

static bool add_ids(lt_reading *r, const char *field, const json_t *list, lt_ids *out) {
  const json_t *value;
  size_t k;
  if (!json_is_array(list)) return lt_read_refuse(r, field, "has a special token without ids");
  json_array_foreach(list, k, value) {
    int64_t id = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    if (id < 0 || id >= r->t->n_ids)
      return lt_read_refuse(r, field, "has a special token with an id that no token has");
    lt_ids_add(r->c, out, (int32_t)id);
  }
  return lt_ok(r->c);
}

/* TemplateProcessing: what stands before and after the one sequence of `single`. Pairs of sequences
   (`pair`) are not read: nothing here encodes two texts as one. */
static bool read_template(lt_reading *r, const char *field, const json_t *value) {
  const json_t *single = json_object_get(value, "single"), *part;
  const json_t *tokens = json_object_get(value, "special_tokens");
  lt_ids *out = &r->t->before;
  size_t k;
  if (!json_is_array(single)) return lt_read_refuse(r, field, "has no list `single`");
  json_array_foreach(single, k, part) {
    const json_t *token = json_object_get(part, "SpecialToken");
    if (token == NULL) {
      if (json_object_get(part, "Sequence") == NULL || out == &r->t->after)
        return lt_read_refuse(r, field, "must have one sequence in `single`");
      out = &r->t->after;
      continue;
    }
    const char *name = json_string_value(json_object_get(token, "id"));
    const json_t *known = name != NULL ? json_object_get(tokens, name) : NULL;
    if (!add_ids(r, field, json_object_get(known, "ids"), out)) return false;
  }
  return out == &r->t->after || lt_read_refuse(r, field, "must have one sequence in `single`");
}

/* BertProcessing, RobertaProcessing: cls = [token, id] before and sep after. */
static bool read_cls_sep(lt_reading *r, const char *field, const json_t *value) {
  static const char *const names[] = {"cls", "sep"};
  for (int k = 0; k < 2; k++) {
    const json_t *id = json_array_get(json_object_get(value, names[k]), 1);
    int64_t number = json_is_integer(id) ? (int64_t)json_integer_value(id) : -1;
    if (number < 0 || number >= r->t->n_ids)
      return lt_read_refuse(r, field, "has no token `%s`", names[k]);
    lt_ids_add(r->c, k == 0 ? &r->t->before : &r->t->after, (int32_t)number);
  }
  return lt_ok(r->c);
}

/* Of several in a Sequence the ids add up, in the order of the file. */
bool lt_read_post_processor(lt_reading *r, const char *field, const json_t *value) {
  if (value == NULL || json_is_null(value)) return true;
  const char *type = lt_read_type(r, field, value);
  if (type == NULL) return false;
  if (strcmp(type, "Sequence") == 0)
    return lt_read_sequence(r, field, value, "processors", lt_read_post_processor);
  if (strcmp(type, "ByteLevel") == 0) return true; /* it moves offsets, not ids */
  if (strcmp(type, "TemplateProcessing") == 0) return read_template(r, field, value);
  if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
    return read_cls_sep(r, field, value);
  return lt_read_refuse(r, field, "is a %.40s, which is not supported", type);
}

static bool read_wordpiece(lt_reading *r, const char *field, const json_t *value) {
  const char *prefix = json_string_value(json_object_get(value, "prefix"));
  lt_tokenizer *t = r->t;
  if (t->prefix == NULL || prefix == NULL || strcmp(prefix, t->prefix) != 0)
    return lt_read_refuse(r, field, "must have the prefix of model.continuing_subword_prefix");
  t->decoder = LT_DECODE_WORDPIECE;
  return lt_read_flag(r, field, value, "cleanup", true, &t->cleanup);
}

/* WordPiece's prefix in the decoder must be the model's, as decoding takes off what encoding put
   on. */
bool lt_read_decoder(lt_reading *r, const char *field, const json_t *value) {
  if (value == NULL || json_is_null(value)) return true;
  const char *type = lt_read_type(r, field, value);
  if (type == NULL) return false;
  if (strcmp(type, "WordPiece") == 0) return read_wordpiece(r, field, value);
  if (strcmp(type, "ByteLevel") == 0 || strcmp(type, "Fuse") == 0) {
    r->t->decoder = *type == 'B' ? LT_DECODE_BYTES : LT_DECODE_FUSE;
    return true;
  }
  return lt_read_refuse(r, field, "is a %.40s, which is not supported", type);
}
