/* runtime/net/base64.c: base64 (base64.h). */
#include "net/base64.h"

#include <stdint.h>

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void lt_base64_encode(const void *bytes, size_t n, char *text) {
  const unsigned char *from = bytes;
  for (; n > 0; text += 4) {
    size_t k = n < 3 ? n : 3;
    uint32_t word = (uint32_t)from[0] << 16;
    if (k > 1) word |= (uint32_t)from[1] << 8;
    if (k > 2) word |= from[2];
    for (size_t i = 0; i < 4; i++) text[i] = i > k ? '=' : DIGITS[word >> (18 - 6 * i) & 63];
    from += k;
    n -= k;
  }
}

/* -1: not a digit */
static int value_of(char digit) {
  if (digit >= 'A' && digit <= 'Z') return digit - 'A';
  if (digit >= 'a' && digit <= 'z') return digit - 'a' + 26;
  if (digit >= '0' && digit <= '9') return digit - '0' + 52;
  return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

size_t lt_base64_decode(const char *text, size_t n, void *bytes) {
  unsigned char *to = bytes;
  if (n % 4 != 0) return SIZE_MAX;
  for (size_t i = 0; i < n; i += 4) {
    size_t padding = i + 4 < n ? 0 : (size_t)((text[i + 2] == '=') + (text[i + 3] == '='));
    uint32_t word = 0;
    for (size_t k = 0; k < 4; k++) {
      int value = k >= 4 - padding ? 0 : value_of(text[i + k]);
      if (value < 0) return SIZE_MAX;
      word = word << 6 | (uint32_t)value;
    }
    for (size_t k = 0; k < 3 - padding; k++) *to++ = (unsigned char)(word >> (16 - 8 * k));
  }
  return (size_t)(to - (unsigned char *)bytes);
}
