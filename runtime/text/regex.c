/* runtime/text/regex.c: patterns (regex.h).

   Patterns of tokenizer.json are written for Oniguruma; PCRE2 reads the same syntax but for the
   classes \s and \w, which are written out below. Compiled to machine code where PCRE2 has a
   compiler for the machine. */
#include "text/regex.h"

#include <string.h>

#include "io/json.h"
#include "text/libraries.h"

/* Steps of one match: an honest pattern takes some hundreds; one that explodes must not hang. */
enum { MATCH_LIMIT = 10000000, MESSAGE = 160 };

const char lt_pattern_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char lt_pattern_llama3[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

struct lt_regex {
  const lt_pcre2 *library;
  void *code, *data, *context;
};

/* PCRE2's \s has a character more than White_Space, its \w has no marks. */
static const char space[] = "\\p{Z}\\t-\\r\\x{85}";
static const char word[] = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}";

static void raw(lt_json *out, const char *text) { lt_json_raw(out, text, strlen(text)); }

/* The escape \s, \w, \S, \W or another, inside brackets or outside of them. */
static void write_escape(lt_json *out, char letter, bool in_class) {
  const char *members = letter == 's' || letter == 'S' ? space : word;
  bool negated = letter == 'S' || letter == 'W';
  if (strchr("sSwW", letter) == NULL || (in_class && negated)) {
    lt_json_char(out, '\\');
    lt_json_char(out, letter);
  } else {
    if (!in_class) raw(out, negated ? "[^" : "[");
    raw(out, members);
    if (!in_class) lt_json_char(out, ']');
  }
}

/* The pattern as PCRE2 reads it. Brackets are followed one level deep: the patterns that are met
   have no nested classes. */
static void translate(lt_json *out, const char *pattern, size_t n) {
  bool in_class = false;
  for (size_t k = 0; k < n; k++) {
    if (pattern[k] == '\\' && k + 1 < n) {
      write_escape(out, pattern[++k], in_class);
      continue;
    }
    if (pattern[k] == '[') in_class = true;
    if (pattern[k] == ']') in_class = false;
    lt_json_char(out, pattern[k]);
  }
}

/* UTF: offsets fall between characters. UCP: \p and case go by Unicode. An error names the
   pattern's file, not this library. */
static bool compile(lt_ctx *c, lt_regex *r, const char *what, const lt_json *pattern) {
  const lt_pcre2 *p = r->library;
  int error;
  size_t where;
  r->code = p->compile((const uint8_t *)pattern->data, pattern->size, LT_PCRE2_UTF | LT_PCRE2_UCP,
                       &error, &where, NULL);
  if (r->code == NULL) {
    uint8_t message[MESSAGE] = {0};
    p->get_error_message(error, message, sizeof message);
    return lt_fail(c, LT_EIO, "%s: not a pattern: %s", what, (const char *)message);
  }
  p->jit_compile(r->code, LT_PCRE2_JIT_COMPLETE); /* without it the interpreter matches */
  r->data = p->match_data_create_from_pattern(r->code, NULL);
  r->context = p->match_context_create(NULL);
  if (r->data == NULL || r->context == NULL) return lt_fail(c, LT_EMEMORY, "%s: no memory", what);
  p->set_match_limit(r->context, MATCH_LIMIT);
  return true;
}

lt_regex *lt_regex_new(lt_ctx *c, const char *what, const char *pattern, size_t n) {
  const lt_pcre2 *library = lt_pcre2_open(c);
  lt_regex *r = library != NULL ? lt_alloc(c, sizeof *r) : NULL;
  if (r == NULL) return NULL;
  r->library = library;
  lt_json text = {.c = c};
  translate(&text, pattern, n);
  lt_json_char(&text, 0);
  text.size--;
  bool ok = lt_ok(c) && compile(c, r, what, &text);
  lt_json_free(&text);
  if (ok) return r;
  lt_regex_free(c, r);
  return NULL;
}

/* Also of one that was half made: each part may be missing. */
void lt_regex_free(lt_ctx *c, lt_regex *r) {
  if (r == NULL) return;
  if (r->context != NULL) r->library->match_context_free(r->context);
  if (r->data != NULL) r->library->match_data_free(r->data);
  if (r->code != NULL) r->library->code_free(r->code);
  lt_free(c, r, sizeof *r);
}

/* NO_UTF_CHECK: callers pass valid UTF-8 only, and a check of the whole text in each call would
   make a text of n matches O(n^2). */
int lt_regex_find(lt_ctx *c, lt_regex *r, const char *text, size_t n, size_t from, size_t *begin,
                  size_t *end) {
  int found = r->library->match(r->code, (const uint8_t *)text, n, from, LT_PCRE2_NO_UTF_CHECK,
                                r->data, r->context);
  if (found == LT_PCRE2_NOMATCH) return 0;
  if (found < 0) {
    lt_fail(c, LT_EVALUE, "text: a pattern of the tokenizer takes too long on this text");
    return -1;
  }
  const size_t *bounds = r->library->get_ovector_pointer(r->data);
  *begin = bounds[0];
  *end = bounds[1];
  if (*end < *begin) *end = *begin; /* \K within a lookahead */
  return 1;
}
