/* runtime/text/normalizer.c: normalizers (normalizer.h).

   Each normalizer of Hugging Face's tokenizers that the supported files use; Unicode's data come
   from utf8proc. The forms NFC, NFD, NFKC and NFKD are those of Unicode's Standard Annex 15. */
#include "text/normalizer.h"

#include <stdlib.h>

#include "text/libraries.h"
#include "text/utf8.h"

enum { REPLACEMENT = 0xfffd, DOTTED_I = 0x130, DOT_ABOVE = 0x307 };

static void put(lt_json *out, int32_t code) {
  char bytes[4];
  lt_json_raw(out, bytes, lt_utf8_put(code, bytes));
}

/* BERT's clean_text: controls, format characters, surrogates and private use (categories that
   utf8proc numbers last) and U+FFFD go, white space becomes one space each. */
static void clean(const lt_utf8proc *u, int32_t code, lt_json *out) {
  if (lt_is_space(code))
    lt_json_char(out, ' ');
  else if (code < 0x80 ? code >= 32 && code != 127
                       : code != REPLACEMENT && u->category(code) < LT_CATEGORY_CC)
    put(out, code);
}

/* The blocks that BERT's tokenizer treats as ideographs: each such character becomes a word.
   Hiragana, Katakana and Hangul are not among them. */
static bool is_chinese(int32_t code) {
  static const int32_t ranges[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                      {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
                                      {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++)
    if (code >= ranges[k][0] && code <= ranges[k][1]) return true;
  return false;
}

static void space_chinese(int32_t code, lt_json *out) {
  bool spaced = code >= 0x3400 && is_chinese(code);
  if (spaced) lt_json_char(out, ' ');
  put(out, code);
  if (spaced) lt_json_char(out, ' ');
}

/* Each character by itself, also a sigma at the end of a word, where Unicode's full mapping looks
   at its neighbours: Rust's char::to_lowercase, which Hugging Face's calls. Only U+0130 becomes two
   characters. */
static void lower(const lt_utf8proc *u, int32_t code, lt_json *out) {
  if (code < 0x80) {
    lt_json_char(out, (char)(code >= 'A' && code <= 'Z' ? code + 32 : code));
  } else if (code == DOTTED_I) {
    lt_json_char(out, 'i');
    put(out, DOT_ABOVE);
  } else {
    put(out, u->to_lower(code));
  }
}

static bool is_mark(int category) {
  return category >= LT_CATEGORY_MN && category <= LT_CATEGORY_ME;
}

/* ASCII is decided without a look at tables: in Latin texts that is nearly every character. */
static bool by_character(lt_ctx *c, lt_normalizer step, const char *text, size_t n,
                         lt_json *out) {
  const lt_utf8proc *u = lt_utf8proc_open(c);
  size_t size;
  if (u == NULL) return false;
  for (size_t at = 0; at < n; at += size) {
    int32_t code = lt_utf8_get(text + at, n - at, &size);
    if (step == LT_CLEAN_TEXT) clean(u, code, out);
    if (step == LT_SPACE_CHINESE) space_chinese(code, out);
    if (step == LT_LOWERCASE) lower(u, code, out);
    if (step == LT_STRIP_ACCENTS && (code < 0x80 || u->category(code) != LT_CATEGORY_MN))
      put(out, code);
    if (step == LT_STRIP_MARKS && (code < 0x80 || !is_mark(u->category(code)))) put(out, code);
  }
  return lt_ok(c);
}

static bool is_ascii(const char *text, size_t n) {
  for (size_t k = 0; k < n; k++)
    if ((text[k] & 0x80) != 0) return false;
  return true;
}

/* ASCII is in all forms, and most texts are ASCII: they are copied without a look at Unicode's
   tables. utf8proc allocates with malloc, so what it made is copied into our text and freed. STABLE
   keeps characters that Unicode says must not change between versions. */
static bool by_form(lt_ctx *c, int options, const char *text, size_t n, lt_json *out) {
  if (is_ascii(text, n)) {
    lt_json_raw(out, text, n);
    return lt_ok(c);
  }
  const lt_utf8proc *u = lt_utf8proc_open(c);
  uint8_t *made = NULL;
  if (u == NULL) return false;
  ptrdiff_t size = u->map((const uint8_t *)text, (ptrdiff_t)n, &made, options);
  if (size < 0) return lt_fail(c, LT_EMEMORY, "text: cannot normalise %zu bytes", n);
  lt_json_raw(out, (const char *)made, (size_t)size);
  free(made);
  return lt_ok(c);
}

bool lt_normalise(lt_ctx *c, lt_normalizer step, const char *text, size_t n, lt_json *out) {
  switch (step) {
  case LT_CLEAN_TEXT:
  case LT_SPACE_CHINESE:
  case LT_STRIP_ACCENTS:
  case LT_STRIP_MARKS:
  case LT_LOWERCASE:
    return by_character(c, step, text, n, out);
  case LT_NFC:
    return by_form(c, LT_UTF8PROC_STABLE | LT_UTF8PROC_COMPOSE, text, n, out);
  case LT_NFD:
    return by_form(c, LT_UTF8PROC_STABLE | LT_UTF8PROC_DECOMPOSE, text, n, out);
  case LT_NFKC:
    return by_form(c, LT_UTF8PROC_STABLE | LT_UTF8PROC_COMPOSE | LT_UTF8PROC_COMPAT, text, n, out);
  case LT_NFKD:
    return by_form(c, LT_UTF8PROC_STABLE | LT_UTF8PROC_DECOMPOSE | LT_UTF8PROC_COMPAT, text, n,
                   out);
  }
  return false;
}

/* The steps take turns with two buffers: *text points into one of them afterwards, or is still the
   caller's where there is no step. */
bool lt_normalise_by(lt_ctx *c, const lt_normalizer *steps, int n_steps, const char **text,
                     size_t *n, lt_json made[2]) {
  for (int k = 0; k < n_steps; k++) {
    lt_json *out = &made[k & 1];
    out->size = 0;
    if (!lt_normalise(c, steps[k], *text, *n, out)) return false;
    *text = out->data;
    *n = out->size;
  }
  return true;
}
