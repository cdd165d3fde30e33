/* runtime/text/read_steps.c: reads the normalizers and pre-tokenizers of a tokenizer.json.

   A Sequence is flattened into the list of its steps, since all run one after the other anyway. */
#include <stdio.h>
#include <string.h>

#include "text/read_tokenizer.h"

static bool add_normalizer(lt_reading *r, const char *field, lt_normalizer step) {
  lt_tokenizer *t = r->t;
  if (t->n_normalizers == LT_TEXT_STEPS)
    return lt_read_refuse(r, field, "is one step too many: %d are supported", LT_TEXT_STEPS);
  t->normalizer[t->n_normalizers++] = step;
  return true;
}

/* BertNormalizer: strips accents where it makes letters small, unless it says otherwise. The steps
   are in the order of the reference (tokenizers' BertNormalizer). */
static bool read_bert_normalizer(lt_reading *r, const char *field, const json_t *value) {
  bool clean, chinese, lowercase, accents;
  return lt_read_flag(r, field, value, "clean_text", true, &clean) &&
         lt_read_flag(r, field, value, "handle_chinese_chars", true, &chinese) &&
         lt_read_flag(r, field, value, "lowercase", true, &lowercase) &&
         lt_read_flag(r, field, value, "strip_accents", lowercase, &accents) &&
         (!clean || add_normalizer(r, field, LT_CLEAN_TEXT)) &&
         (!chinese || add_normalizer(r, field, LT_SPACE_CHINESE)) &&
         (!accents || (add_normalizer(r, field, LT_NFD) &&
                       add_normalizer(r, field, LT_STRIP_ACCENTS))) &&
         (!lowercase || add_normalizer(r, field, LT_LOWERCASE));
}

bool lt_read_normalizer(lt_reading *r, const char *field, const json_t *value) {
  static const struct {
    const char *type;
    lt_normalizer step;
  } rows[] = {{"NFC", LT_NFC},   {"NFD", LT_NFD},           {"NFKC", LT_NFKC},
              {"NFKD", LT_NFKD}, {"Lowercase", LT_LOWERCASE}, {"StripAccents", LT_STRIP_MARKS}};
  if (value == NULL || json_is_null(value)) return true;
  const char *type = lt_read_type(r, field, value);
  if (type == NULL) return false;
  if (strcmp(type, "Sequence") == 0)
    return lt_read_sequence(r, field, value, "normalizers", lt_read_normalizer);
  if (strcmp(type, "BertNormalizer") == 0) return read_bert_normalizer(r, field, value);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    if (strcmp(type, rows[k].type) == 0) return add_normalizer(r, field, rows[k].step);
  return lt_read_refuse(r, field, "is a %.40s, which is not supported", type);
}

/* What these types do, as patterns. Punctuation has the ASCII symbols too, which Unicode does not
   count as such, and BERT does. */
static const struct {
  const char *type, *pattern;
  lt_behavior behavior;
  bool invert;
} fixed[] = {
    {"Whitespace", "\\w+|[^\\w\\s]+", LT_REMOVED, true},
    {"WhitespaceSplit", "\\s+", LT_REMOVED, false},
    {"Punctuation", "[\\p{P}$+<=>^`|~]", LT_ISOLATED, false},
    {"BertPreTokenizer", "\\s+", LT_REMOVED, false},
};

/* Whether no match of a pattern goes on behind a line break and visible ASCII begins one. A list
   and no analysis of patterns: with any other pattern files are read at once. */
static bool ends_at_lines(const char *pattern, size_t n) {
  const char *const known[] = {lt_pattern_gpt2, lt_pattern_llama3, fixed[0].pattern,
                               fixed[1].pattern};
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (n == strlen(known[k]) && memcmp(pattern, known[k], n) == 0) return true;
  return false;
}

/* A step; NULL: a failure. Whether files can be cut at lines is decided by the first step: later
   ones only divide its pieces. */
static lt_split *add_split(lt_reading *r, const char *field, const char *pattern, size_t n,
                           lt_behavior behavior) {
  lt_tokenizer *t = r->t;
  char what[LT_FIELD * 3];
  if (t->bytes) {
    lt_read_refuse(r, field, "comes after ByteLevel, which must be the last");
    return NULL;
  }
  if (t->n_splits == LT_TEXT_STEPS) {
    lt_read_refuse(r, field, "is one step too many: %d are supported", LT_TEXT_STEPS);
    return NULL;
  }
  snprintf(what, sizeof what, "%s: %s", r->what, field);
  lt_split *s = &t->split[t->n_splits];
  if (pattern != NULL && (s->pattern = lt_regex_new(r->c, what, pattern, n)) == NULL) return NULL;
  s->behavior = behavior;
  if (t->n_splits++ == 0) t->by_lines = pattern != NULL && ends_at_lines(pattern, n);
  return s;
}

static bool read_behavior(lt_reading *r, const char *field, const json_t *value,
                          lt_behavior *out) {
  static const char *const names[] = {
      [LT_REMOVED] = "Removed",
      [LT_ISOLATED] = "Isolated",
      [LT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
      [LT_MERGED_WITH_NEXT] = "MergedWithNext",
      [LT_CONTIGUOUS] = "Contiguous"};
  const char *name = json_string_value(json_object_get(value, "behavior"));
  for (int k = LT_REMOVED; k <= LT_CONTIGUOUS && name != NULL; k++)
    if (strcmp(name, names[k]) == 0) {
      *out = (lt_behavior)k;
      return true;
    }
  return lt_read_refuse(r, field, "has behavior '%.40s': Removed, Isolated, MergedWithPrevious, "
                        "MergedWithNext or Contiguous", name != NULL ? name : "");
}

/* A text as the pattern that matches it. */
static void quote(lt_json *out, const char *text, size_t n) {
  for (size_t k = 0; k < n; k++) {
    bool plain = (text[k] & 0x80) != 0 || (text[k] >= '0' && text[k] <= '9') ||
                 ((text[k] | 32) >= 'a' && (text[k] | 32) <= 'z');
    if (!plain) lt_json_char(out, '\\');
    lt_json_char(out, text[k]);
  }
}

static bool read_split(lt_reading *r, const char *field, const json_t *value) {
  const json_t *pattern = json_object_get(value, "pattern");
  const json_t *regex = json_object_get(pattern, "Regex");
  const json_t *literal = json_object_get(pattern, "String");
  const json_t *given = regex != NULL ? regex : literal;
  lt_behavior behavior;
  bool invert;
  if (!json_is_string(given))
    return lt_read_refuse(r, field, "has a pattern that is neither {Regex = text} nor "
                          "{String = text}");
  if (!read_behavior(r, field, value, &behavior) ||
      !lt_read_flag(r, field, value, "invert", false, &invert))
    return false;
  lt_json text = {.c = r->c};
  if (regex != NULL)
    lt_json_raw(&text, json_string_value(given), json_string_length(given));
  else
    quote(&text, json_string_value(given), json_string_length(given));
  lt_json_char(&text, 0);
  lt_split *s = lt_ok(r->c) ? add_split(r, field, text.data, text.size - 1, behavior) : NULL;
  if (s != NULL) s->invert = invert;
  lt_json_free(&text);
  return s != NULL;
}

/* ByteLevel with its regex is GPT-2's pattern and the mapping of bytes to characters; the latter is
   done in the vocabulary (read_model.c) and not in each text. It must be the last step: what
   follows would see characters that are bytes. */
static bool read_byte_level(lt_reading *r, const char *field, const json_t *value) {
  bool prefix_space, by_pattern;
  if (!lt_read_flag(r, field, value, "add_prefix_space", true, &prefix_space) ||
      !lt_read_flag(r, field, value, "use_regex", true, &by_pattern))
    return false;
  const char *pattern = by_pattern ? lt_pattern_gpt2 : NULL;
  lt_split *s = add_split(r, field, pattern, by_pattern ? strlen(pattern) : 0, LT_ISOLATED);
  if (s == NULL) return false;
  s->prefix_space = prefix_space;
  if (prefix_space) r->t->by_lines = false;
  r->t->bytes = true;
  return true;
}

static bool read_digits(lt_reading *r, const char *field, const json_t *value) {
  bool each;
  if (!lt_read_flag(r, field, value, "individual_digits", false, &each)) return false;
  const char *pattern = each ? "\\p{N}" : "\\p{N}+";
  return add_split(r, field, pattern, strlen(pattern), LT_ISOLATED) != NULL;
}

/* BertPreTokenizer is white space, then punctuation: two rows. */
static bool read_fixed(lt_reading *r, const char *field, const json_t *value, size_t k) {
  lt_behavior behavior = fixed[k].behavior;
  if (json_object_get(value, "behavior") != NULL && !read_behavior(r, field, value, &behavior))
    return false;
  lt_split *s = add_split(r, field, fixed[k].pattern, strlen(fixed[k].pattern), behavior);
  if (s != NULL) s->invert = fixed[k].invert;
  return s != NULL;
}

bool lt_read_pre_tokenizer(lt_reading *r, const char *field, const json_t *value) {
  if (value == NULL || json_is_null(value)) return true;
  const char *type = lt_read_type(r, field, value);
  if (type == NULL) return false;
  if (strcmp(type, "Sequence") == 0)
    return lt_read_sequence(r, field, value, "pretokenizers", lt_read_pre_tokenizer);
  if (strcmp(type, "Split") == 0) return read_split(r, field, value);
  if (strcmp(type, "ByteLevel") == 0) return read_byte_level(r, field, value);
  if (strcmp(type, "Digits") == 0) return read_digits(r, field, value);
  for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
    if (strcmp(type, fixed[k].type) == 0)
      return read_fixed(r, field, value, k) && (strcmp(type, "BertPreTokenizer") != 0 ||
                                                read_fixed(r, field, value, 2));
  return lt_read_refuse(r, field, "is a %.40s, which is not supported", type);
}
