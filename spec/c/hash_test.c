/* spec/c/hash_test.c: SHA-256 against its standard; the quick hash against what it promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/sha256.h"

/* The digest of n bytes that are taken `step` at a time. */
static void digest_of(const void *data, size_t n, size_t step, char text[65]) {
  lt_sha256 s;
  uint8_t digest[LT_SHA256_BYTES];
  lt_sha256_begin(&s);
  for (size_t at = 0; at < n; at += step)
    lt_sha256_take(&s, (const char *)data + at, n - at < step ? n - at : step);
  lt_sha256_end(&s, digest);
  for (int i = 0; i < LT_SHA256_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* FIPS 180-2, appendix B, and the empty message of NIST's CAVP vectors. */
static void sha256_is_that_of_the_standard(void **state) {
  (void)state;
  static const struct {
    const char *text, *digest;
  } vectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
  };
  char text[65];
  for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++) {
    digest_of(vectors[k].text, strlen(vectors[k].text), 64, text);
    assert_string_equal(text, vectors[k].digest);
  }
  char *million = malloc(1000000);
  memset(million, 'a', 1000000);
  digest_of(million, 1000000, 999, text);
  assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  free(million);
}

/* Lengths around the block and its padding, in parts of every size. */
static void sha256_does_not_depend_on_the_parts(void **state) {
  (void)state;
  uint8_t data[200];
  for (int i = 0; i < 200; i++) data[i] = (uint8_t)(i * 37);
  for (size_t n = 50; n <= 200; n++) {
    char whole[65], parts[65];
    digest_of(data, n, n, whole);
    for (size_t step = 1; step < 70; step += 3) {
      digest_of(data, n, step, parts);
      assert_string_equal(parts, whole);
    }
  }
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void all_differ(uint64_t *seen, int n) {
  qsort(seen, (size_t)n, sizeof *seen, by_value);
  for (int k = 1; k < n; k++) assert_true(seen[k] != seen[k - 1]);
}

/* Every single bit and every length counts. */
static void hashes_differ_where_bytes_do(void **state) {
  (void)state;
  enum { N = 300, BITS = 8 * N, ALL = BITS + N + 1 };
  static uint64_t seen[ALL];
  uint8_t data[N];
  memset(data, 0, sizeof data);
  int n = 0;
  for (int bit = 0; bit < BITS; bit++) {
    data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    seen[n++] = lt_hash_bytes(data, N, 7);
    data[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
  for (size_t length = 0; length <= N; length++) seen[n++] = lt_hash_bytes(data, length, 7);
  assert_int_equal(n, ALL);
  all_differ(seen, n);
}

/* No two bits, of what one lane takes at a time or in a row, undo each other. */
static void pairs_of_bits_count(void **state) {
  (void)state;
  enum { WORDS = 24, BITS = 256, ALL = BITS * (BITS - 1) / 2 + 1 };
  static const int place[] = {0, 1, 8, 9};
  static uint64_t seen[ALL];
  uint64_t data[WORDS] = {0};
  int n = 0;
  seen[n++] = lt_hash_bytes(data, sizeof data, 0);
  for (int i = 0; i < BITS; i++)
    for (int j = 0; j < i; j++) {
      data[place[i / 64]] ^= (uint64_t)1 << i % 64;
      data[place[j / 64]] ^= (uint64_t)1 << j % 64;
      seen[n++] = lt_hash_bytes(data, sizeof data, 0);
      memset(data, 0, sizeof data);
    }
  all_differ(seen, n);
}

/* One changed bit changes each bit of the hash half of the time. */
static void a_bit_reaches_all_others(void **state) {
  (void)state;
  enum { WORDS = 64, FLIPS = WORDS * 64 };
  uint64_t data[WORDS];
  for (int k = 0; k < WORDS; k++) data[k] = lt_hash_mix(1, (uint64_t)k);
  const uint64_t before = lt_hash_bytes(data, sizeof data, 0);
  int changed[64] = {0};
  for (int flip = 0; flip < FLIPS; flip++) {
    data[flip / 64] ^= (uint64_t)1 << flip % 64;
    uint64_t difference = lt_hash_bytes(data, sizeof data, 0) ^ before;
    for (int bit = 0; bit < 64; bit++) changed[bit] += (int)(difference >> bit & 1);
    data[flip / 64] ^= (uint64_t)1 << flip % 64;
  }
  for (int bit = 0; bit < 64; bit++) /* 2048 expected, a deviation of 32 */
    assert_true(changed[bit] > 2048 - 200 && changed[bit] < 2048 + 200);
}

/* Two changes that would undo each other in a sum or an exclusive or do not. */
static void order_and_pairs_count(void **state) {
  (void)state;
  float a[256], b[256];
  for (int k = 0; k < 256; k++) a[k] = b[k] = (float)k;
  b[3] = a[19], b[19] = a[3]; /* the same lane */
  assert_true(lt_hash_bytes(a, sizeof a, 0) != lt_hash_bytes(b, sizeof b, 0));
  for (int k = 0; k < 256; k++) b[k] = -a[k];
  assert_true(lt_hash_bytes(a, sizeof a, 0) != lt_hash_bytes(b, sizeof b, 0));
  memcpy(b, a, sizeof b);
  for (int k = 1; k < 256; k += 32) b[k] = -b[k], b[k + 16] = -b[k + 16];
  assert_true(lt_hash_bytes(a, sizeof a, 0) != lt_hash_bytes(b, sizeof b, 0));
  assert_true(lt_hash_bytes(a, sizeof a, 0) != lt_hash_bytes(a, sizeof a, 1));
}

/* RFC 4231, cases 1, 2 and 3. */
static void hmac_is_that_of_the_standard(void **state) {
  (void)state;
  char first[20], key[20], data[50], text[65];
  memset(first, 0x0b, sizeof first);
  memset(key, 0xaa, sizeof key);
  memset(data, 0xdd, sizeof data);
  const struct {
    const char *key, *data;
    size_t key_bytes, n;
    const char *digest;
  } vectors[] = {
      {first, "Hi There", 20, 8,
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?", 4, 28,
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {key, data, 20, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
  };
  for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++) {
    uint8_t digest[LT_SHA256_BYTES];
    lt_hmac_sha256(vectors[k].key, vectors[k].key_bytes, vectors[k].data, vectors[k].n, digest);
    for (int i = 0; i < LT_SHA256_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, vectors[k].digest);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sha256_is_that_of_the_standard),
      cmocka_unit_test(hmac_is_that_of_the_standard),
      cmocka_unit_test(sha256_does_not_depend_on_the_parts),
      cmocka_unit_test(hashes_differ_where_bytes_do),
      cmocka_unit_test(pairs_of_bits_count),
      cmocka_unit_test(a_bit_reaches_all_others),
      cmocka_unit_test(order_and_pairs_count),
  };
  return cmocka_run_group_tests_name("hashes", tests, NULL, NULL);
}
