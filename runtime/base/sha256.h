/* runtime/base/sha256.h: SHA-256 (FIPS 180-4), for hashes that anyone can check, and HMAC (RFC
   2104), which proves that the sender knows a secret.

   Own code and not a library's: it is a page of a standard that does not change, checked against
   its test vectors, and every build has it. */
#ifndef LT_BASE_SHA256_H
#define LT_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { LT_SHA256_BYTES = 32, LT_SHA256_BLOCK = 64 };

typedef struct lt_sha256 {
  uint32_t state[8];
  uint64_t bytes; /* taken so far */
  uint8_t block[LT_SHA256_BLOCK];
} lt_sha256;

void lt_sha256_begin(lt_sha256 *s);
void lt_sha256_take(lt_sha256 *s, const void *data, size_t n);
void lt_sha256_end(lt_sha256 *s, uint8_t digest[LT_SHA256_BYTES]);

/* HMAC-SHA-256 of n bytes with a key of at most LT_SHA256_BLOCK bytes. */
void lt_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t n,
                    uint8_t digest[LT_SHA256_BYTES]);

#endif
