/* runtime/base/printable.c: replaces control characters by escapes. */
#include "base/printable.h"

#include <stdio.h>
#include <string.h>

/* The bytes of an escape sequence that sets colours, "\27[1;31m"; 0: none begins here. */
static size_t colour_at(const char *text, size_t n) {
  if (n < 3 || text[0] != '\033' || text[1] != '[') return 0;
  size_t k = 2;
  while (k < n && ((text[k] >= '0' && text[k] <= '9') || text[k] == ';')) k++;
  return k < n && text[k] == 'm' ? k + 1 : 0;
}

/* The character at `text`: how many bytes it has, and its number; one byte that is not UTF-8: its
   own. */
typedef struct character {
  size_t bytes;
  unsigned code;
  bool is_utf8;
} character;

static character character_at(const char *text, size_t n) {
  const unsigned char *p = (const unsigned char *)text;
  character one = {.bytes = 1, .code = p[0], .is_utf8 = p[0] < 0x80};
  size_t size = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
  if (p[0] < 0xc2 || p[0] > 0xf4 || size > n) return one;
  unsigned code = p[0] & (0x7fu >> size);
  for (size_t k = 1; k < size; k++) {
    if ((p[k] & 0xc0) != 0x80) return one;
    code = code << 6 | (p[k] & 0x3fu);
  }
  return (character){.bytes = size, .code = code, .is_utf8 = true};
}

/* Whether it is to be written as digits. */
static bool is_control(character one, lt_printable_keep keep) {
  unsigned code = one.code;
  if (code < 0x20 || code == 0x7f)
    return keep == LT_KEEP_NOTHING || (code != '\n' && code != '\t');
  return !one.is_utf8 || (code >= 0x80 && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

static size_t next_control(const char *text, size_t n, lt_printable_keep keep, size_t at,
                           size_t *bytes, unsigned *code) {
  while (at < n) {
    size_t colour = keep == LT_KEEP_COLOURS ? colour_at(text + at, n - at) : 0;
    character one = character_at(text + at, n - at);
    *bytes = one.bytes;
    *code = one.code;
    if (colour == 0 && is_control(one, keep)) return at;
    at += colour > 0 ? colour : one.bytes;
  }
  return n;
}

bool lt_is_printable(const char *text, size_t n, lt_printable_keep keep) {
  size_t bytes;
  unsigned code;
  return next_control(text, n, keep, 0, &bytes, &code) == n;
}

static void put(char *out, size_t capacity, size_t at, const char *text, size_t n) {
  if (at + 1 >= capacity) return;
  memcpy(out + at, text, n < capacity - 1 - at ? n : capacity - 1 - at);
}

size_t lt_make_printable(char *out, size_t capacity, const char *text, size_t n,
                         lt_printable_keep keep) {
  size_t done = 0, at = 0;
  while (at < n) {
    size_t bytes = 0;
    unsigned code = 0;
    size_t control = next_control(text, n, keep, at, &bytes, &code);
    put(out, capacity, done, text + at, control - at);
    done += control - at;
    at = control + bytes;
    if (control == n) break;
    char digits[16];
    int length = snprintf(digits, sizeof digits, bytes > 1 ? "\\u{%X}" : "\\%u", code);
    put(out, capacity, done, digits, (size_t)length);
    done += (size_t)length;
  }
  if (capacity > 0) out[done < capacity ? done : capacity - 1] = 0;
  return done;
}
