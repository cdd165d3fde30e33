/* runtime/text/utf8.h: code points in and out of UTF-8, and the bytes of byte-level tokens. */
#ifndef LT_TEXT_UTF8_H
#define LT_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code point that begins the n > 0 bytes, and how many bytes it has; -1 and 1 where they begin
   with none (no surrogates, nothing longer than it must be). */
static inline int32_t lt_utf8_get(const char *text, size_t n, size_t *size) {
  const uint8_t *s = (const uint8_t *)text;
  *size = 1;
  if (s[0] < 0x80) return s[0];
  int more = s[0] >= 0xf0 ? 3 : s[0] >= 0xe0 ? 2 : 1;
  if (s[0] < 0xc2 || s[0] > 0xf4 || n <= (size_t)more) return -1;
  int32_t code = s[0] & (0x3f >> more);
  for (int k = 1; k <= more; k++) {
    if ((s[k] & 0xc0) != 0x80) return -1;
    code = code << 6 | (s[k] & 0x3f);
  }
  if ((more == 2 && code < 0x800) || (more == 3 && code < 0x10000) || code > 0x10ffff ||
      (code >= 0xd800 && code < 0xe000))
    return -1;
  *size = (size_t)more + 1;
  return code;
}

/* Into `out`, of at least 4 bytes; returns how many. */
static inline size_t lt_utf8_put(int32_t code, char *out) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t k = size - 1; k > 0; k--, code >>= 6) out[k] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)((0xf00 >> size & 0xff) | code);
  return size;
}

/* How many of the n bytes, from the first on, are valid. */
static inline size_t lt_utf8_valid(const char *text, size_t n) {
  size_t at = 0, size;
  while (at < n) {
    if ((uint8_t)text[at] < 0x80)
      at++;
    else if (lt_utf8_get(text + at, n - at, &size) >= 0)
      at += size;
    else
      break;
  }
  return at;
}

/* White_Space of Unicode. */
static inline bool lt_is_space(int32_t code) {
  return (code >= 9 && code <= 13) || code == 32 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

/* Byte-level tokens are written with a visible character a byte: itself where it is one, else from
   U+0100 on in their order (GPT-2's bytes_to_unicode). */
static inline bool lt_byte_is_visible(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

static inline int32_t lt_byte_to_char(int byte) {
  if (lt_byte_is_visible(byte)) return byte;
  return byte <= 32 ? 256 + byte : byte <= 160 ? 256 + 33 + byte - 127 : 256 + 67;
}

/* -1: a character that stands for no byte. */
static inline int lt_char_to_byte(int32_t code) {
  if (code < 256) return code >= 0 && lt_byte_is_visible((int)code) ? (int)code : -1;
  int k = (int)code - 256;
  return k <= 32 ? k : k <= 66 ? k - 33 + 127 : k == 67 ? 173 : -1;
}

#endif
