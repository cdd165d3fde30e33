/* spec/c/text_test.c: hostile tokenizer files and texts: refused, or done with; never a crash, and
   under sanitizers no leak. LT_FUZZ=n tries n of each; every day it is some thousands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "registry.h"
#include "text/tokenizer.h"
#include "text/train.h"

enum { SIZE = 4096, TEXT = 400 };

static long tries(long everyday) {
  const char *n = getenv("LT_FUZZ");
  return n != NULL ? atol(n) : everyday;
}

static uint32_t state = 1;
static uint32_t draw(uint32_t below) {
  state = state * 1664525 + 1013904223;
  return (state >> 8) % below;
}

/* Files that have each kind of part. */
#define BYTES "\"!\":0,\"'\":1,\"a\":2,\"b\":3,\"ab\":4,\"\\u0120\":5,\"\\u0120a\":6,\"1\":7"
#define MERGES "\"merges\":[\"a b\",[\"\\u0120\",\"a\"]]"
#define ADDED(more) \
  "\"added_tokens\":[{\"id\":8,\"content\":\"<s>\",\"special\":true},{\"id\":9,\"content\":" \
  "\"Ab c\",\"lstrip\":true,\"rstrip\":true,\"single_word\":true,\"normalized\":true}" more "]"
static const char *const seeds[] = {
    "{" ADDED("") ",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
    "\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
    "\"vocab\":{" BYTES "}," MERGES ",\"ignore_merges\":true}}",
    "{" ADDED("") ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},"
    "{\"type\":\"Lowercase\"},{\"type\":\"StripAccents\"}]},\"pre_tokenizer\":{\"type\":"
    "\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
    "\"(?i:'s)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":"
    "\"Isolated\",\"invert\":false},{\"type\":\"Split\",\"pattern\":{\"String\":\"b.\"},"
    "\"behavior\":\"MergedWithNext\"},{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":"
    "\"ByteLevel\",\"use_regex\":false}]},\"post_processor\":{\"type\":\"TemplateProcessing\","
    "\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}],"
    "\"special_tokens\":{\"<s>\":{\"ids\":[8]}}},\"model\":{\"vocab\":{" BYTES "}," MERGES "}}",
    "{" ADDED(",{\"id\":7,\"content\":\"[UNK]\",\"special\":true}")
    ",\"normalizer\":{\"type\":\"BertNormalizer\",\"strip_accents\":null},\"pre_tokenizer\":"
    "{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":"
    "[\"b\",2],\"cls\":[\"a\",1]},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\"},"
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"max_input_chars_per_word\":9,"
    "\"vocab\":{\"[UNK]\":0,\"a\":1,\"b\":2,\"##b\":3,\"##a\":4,\"\\u00e9\":5}}}",
    "{\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"decoder\":{\"type\":\"Fuse\"},\"model\":"
    "{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"ab\":2}}}",
    "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"fuse_unk\":true,\"vocab\":{\"?\":0,"
    "\"a\":1,\"\\u00e9\":2,\"a\\u00e9\":3},\"merges\":[\"a \\u00e9\"]}}"};

static const char *const words[] = {
    "\"ByteLevel\"", "\"Sequence\"", "\"Split\"", "\"NFC\"", "null", "true", "[]", "{}", "-1",
    "4000000000", "\"Removed\"", "\"Contiguous\"", "\"(a+)+$\"", "\"\\\\s\"", "\"[\"", "\"\"",
    "\"WordPiece\"", "65535", "\"Fuse\"", "\"\\u0000\"", "\"(?=b)\"", "\"\\\\Ka\"",
    "\"MergedWithPrevious\""};

/* A seed with bytes changed, a word in the place of another value, a part cut out or twice. */
static size_t mutate(char *out, const char *seed) {
  size_t n = strlen(seed);
  memcpy(out, seed, n);
  for (uint32_t k = draw(3); k < 3; k++) {
    size_t at = draw((uint32_t)n), size = draw(30);
    const char *word = words[draw(sizeof words / sizeof *words)];
    if (size > n - at) size = n - at;
    switch (draw(4)) {
    case 0:
      out[at] = "{}[]\",:019aA\\#\xc3\xff"[draw(17)];
      break;
    case 1: /* a value */
      while (at < n && out[at] != ':') at++;
      for (size = 0; at + 1 + size < n && strchr(",}]", out[at + 1 + size]) == NULL;) size++;
      if (at + 1 < n && n - size + strlen(word) < SIZE) {
        memmove(out + at + 1 + strlen(word), out + at + 1 + size, n - at - 1 - size);
        memcpy(out + at + 1, word, strlen(word));
        n = n - size + strlen(word);
      }
      break;
    case 2:
      memmove(out + at, out + at + size, n - at - size);
      n -= size;
      break;
    default:
      if (n + size < SIZE) {
        memmove(out + at + size, out + at, n - at);
        n += size;
      }
    }
    if (n == 0) return 0;
  }
  return n;
}

static size_t random_text(char *out, size_t most) {
  static const char *const parts[] = {
      "a", "b", "ab", " ", "\n", "Ab c", "<s>", "\xc3\xa9", "e\xcc\x81", "\xe6\xbc\xa2", "\xff",
      "\xc3", "\xed\xa0\x80", "\xf0\x9f\x98\x80", "'s", "12", ".", "\xe2\x80\xa8", "\t", "", "[UNK]",
      "\xef\xb7\xba", "\xc4\xb0", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
  size_t n = 0, wanted = draw((uint32_t)most);
  while (n < wanted) {
    const char *part = parts[draw(sizeof parts / sizeof *parts)];
    size_t size = draw(20) == 0 ? 1 : strlen(part);
    if (n + size > most) break;
    memcpy(out + n, part, size);
    n += size;
    if (draw(25) == 0) out[n - (n > 0)] = (char)draw(256);
  }
  return n;
}

/* The ids of a text, each in the vocabulary, and what they say. */
static void encode_some(lt_ctx *c, lt_tokenizer *t, lt_json *out) {
  char drawn[TEXT];
  size_t n = random_text(drawn, sizeof drawn);
  char *text = malloc(n + (n == 0)); /* the sanitizer sees what is read behind it */
  memcpy(text, drawn, n);
  lt_ids ids = {0};
  int64_t wide[2 * TEXT];
  out->size = 0;
  if (lt_tokenizer_encode(c, t, text, n, &ids) && ids.n <= 2 * TEXT) {
    for (int64_t k = 0; k < ids.n; k++) {
      assert_in_range(ids.id[k], 0, t->n_ids - 1);
      wide[k] = ids.id[k];
    }
    lt_tokenizer_decode(c, t, wide, ids.n, draw(2) == 0, out);
  }
  lt_ids_free(c, &ids);
  free(text);
  lt_take_failure(c, NULL);
}

static void survives_hostile_files(void **unused) {
  (void)unused;
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_json out = {.c = c};
  char file[SIZE];
  long read = 0, all = tries(6000);
  for (long k = 0; k < all; k++) {
    size_t n = mutate(file, seeds[draw(sizeof seeds / sizeof *seeds)]);
    lt_tokenizer *t = lt_tokenizer_read(c, "fuzz", file, n);
    for (int text = 0; text < 3 && t != NULL; text++) encode_some(c, t, &out);
    read += t != NULL;
    lt_tokenizer_free(c, t);
    lt_failure f = {0};
    if (lt_take_failure(c, &f)) assert_memory_equal(f.text, "fuzz: ", 6);
  }
  assert_true(read > all / 20 && read < all - all / 20);
  lt_json_free(&out);
  lt_ctx_release(c);
}

static void survives_hostile_texts(void **unused) {
  (void)unused;
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_json out = {.c = c};
  for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++) {
    lt_tokenizer *t = lt_tokenizer_read(c, "fuzz", seeds[k], strlen(seeds[k]));
    assert_non_null(t);
    for (long text = tries(2000); text > 0; text--) encode_some(c, t, &out);
    lt_tokenizer_free(c, t);
  }
  lt_json_free(&out);
  lt_ctx_release(c);
}

/* A byte-level tokenizer is trained on texts of odd bytes: each comes back from it. */
static void odd_bytes_come_back(void **unused) {
  (void)unused;
  lt_ctx *c = lt_ctx_new(lt_registry_here(), NULL);
  lt_json vocab = {.c = c}, merges = {.c = c}, file = {.c = c}, out = {.c = c};
  lt_trainer *trainer = lt_trainer_new(c, lt_pattern_gpt2, strlen(lt_pattern_gpt2), false);
  lt_trained trained = {0};
  char text[TEXT];
  for (int k = 0; k < 300; k++) {
    size_t n = random_text(text, sizeof text);
    assert_true(lt_trainer_add(c, trainer, text, n));
  }
  assert_true(lt_trainer_merge(c, trainer, 300, 1, &trained));
  lt_trained_write(&trained, 0, &vocab, &merges);
  const char *parts[] = {"{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                         "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
                         "\"vocab\":{",
                         "},\"merges\":[", "]}}"};
  lt_json_raw(&file, parts[0], strlen(parts[0]));
  lt_json_raw(&file, vocab.data, vocab.size);
  lt_json_raw(&file, parts[1], strlen(parts[1]));
  lt_json_raw(&file, merges.data, merges.size);
  lt_json_raw(&file, parts[2], strlen(parts[2]));
  lt_tokenizer *t = lt_tokenizer_read(c, "fuzz", file.data, file.size);
  assert_non_null(t);
  assert_int_equal(t->n_ids, 300);
  for (long k = tries(3000); k > 0; k--) {
    size_t n = random_text(text, sizeof text);
    lt_ids ids = {0};
    int64_t wide[TEXT];
    out.size = 0;
    assert_true(lt_tokenizer_encode(c, t, text, n, &ids));
    assert_true(ids.n <= TEXT);
    for (int64_t i = 0; i < ids.n; i++) wide[i] = ids.id[i];
    assert_true(lt_tokenizer_decode(c, t, wide, ids.n, true, &out));
    assert_int_equal(out.size, n);
    if (n > 0) assert_memory_equal(out.data, text, n);
    lt_ids_free(c, &ids);
  }
  lt_tokenizer_free(c, t);
  lt_trained_free(c, &trained);
  lt_trainer_free(c, trainer);
  lt_json *texts[] = {&vocab, &merges, &file, &out};
  for (int k = 0; k < 4; k++) lt_json_free(texts[k]);
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(survives_hostile_files),
      cmocka_unit_test(survives_hostile_texts),
      cmocka_unit_test(odd_bytes_come_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
