/* runtime/base/sha256.c: SHA-256, with the names of FIPS 180-4; HMAC over it.

   FIPS 180-4, section 6.2; HMAC: RFC 2104, for keys of one block at most. */
#include "base/sha256.h"

#include <string.h>

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t word_at(const uint8_t *b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The message schedule of one block. */
static void schedule(uint32_t w[64], const uint8_t *block) {
  for (int t = 0; t < 16; t++) w[t] = word_at(block + 4 * t);
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
    uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
}

static void compress(uint32_t *state, const uint8_t *block) {
  uint32_t w[64];
  schedule(w, block);
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
#pragma GCC unroll 8 /* the names go round: no moves */
  for (int t = 0; t < 64; t++) {
    uint32_t ch = (e & f) ^ (~e & g), maj = (a & b) ^ (a & c) ^ (b & c);
    uint32_t t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ch + k[t] + w[t];
    uint32_t t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + maj;
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t after[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++) state[i] += after[i];
}

void lt_sha256_begin(lt_sha256 *s) {
  *s = (lt_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                             0x1f83d9ab, 0x5be0cd19}};
}

void lt_sha256_take(lt_sha256 *s, const void *data, size_t n) {
  const uint8_t *at = data;
  size_t filled = s->bytes % LT_SHA256_BLOCK;
  s->bytes += n;
  if (filled > 0) {
    size_t left = LT_SHA256_BLOCK - filled, part = n < left ? n : left;
    memcpy(s->block + filled, at, part);
    if (part < left) return;
    compress(s->state, s->block);
    at += part;
    n -= part;
  }
  for (; n >= LT_SHA256_BLOCK; at += LT_SHA256_BLOCK, n -= LT_SHA256_BLOCK) compress(s->state, at);
  if (n > 0) memcpy(s->block, at, n);
}

void lt_sha256_end(lt_sha256 *s, uint8_t digest[LT_SHA256_BYTES]) {
  static const uint8_t padding[LT_SHA256_BLOCK] = {0x80};
  uint64_t bits = s->bytes * 8;
  size_t filled = s->bytes % LT_SHA256_BLOCK;
  /* A one bit, zeros, and the length in bits: to the end of a block (FIPS 180-4, section 5.1.1). */
  lt_sha256_take(s, padding, filled < 56 ? 56 - filled : 120 - filled);
  uint8_t length[8];
  for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
  lt_sha256_take(s, length, sizeof length);
  for (int i = 0; i < LT_SHA256_BYTES; i++)
    digest[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* H(key ^ pad, data) */
static void keyed(const uint8_t key[LT_SHA256_BLOCK], uint8_t pad, const void *data, size_t n,
                  uint8_t digest[LT_SHA256_BYTES]) {
  lt_sha256 s;
  uint8_t block[LT_SHA256_BLOCK];
  for (int i = 0; i < LT_SHA256_BLOCK; i++) block[i] = key[i] ^ pad;
  lt_sha256_begin(&s);
  lt_sha256_take(&s, block, sizeof block);
  lt_sha256_take(&s, data, n);
  lt_sha256_end(&s, digest);
}

void lt_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t n,
                    uint8_t digest[LT_SHA256_BYTES]) {
  uint8_t padded[LT_SHA256_BLOCK] = {0}, inner[LT_SHA256_BYTES];
  memcpy(padded, key, key_bytes);
  keyed(padded, 0x36, data, n, inner);
  keyed(padded, 0x5c, inner, sizeof inner, digest);
}
