/* lua/bind/io/json_read.c: JSON as Lua values (RFC 8259), made while the text is read.

   It accepts what jansson's parser does (io/json.h), which reads each byte of a string through
   several calls and makes a tree first: 25 ns a byte, where a long string here is found by one
   loop. What is wrong with a text that is refused is left to that parser to say.

   null becomes nil: a field with null is absent, and in an array it leaves a hole, since Lua has no
   other value for it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/printable.h"
#include "bind/core/raise.h"
#include "bind/core/values.h"
#include "bind/io/json.h"
#include "text/utf8.h"

typedef struct reader {
  lua_State *L;
  const char *at, *end; /* a zero byte is at `end` */
  const char *wrong;    /* with a text that is refused here alone */
  bool plain;
} reader;

static bool read_value(reader *r);

static void skip_space(reader *r) {
  while (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r') r->at++;
}

/* Whether the next character is this one, which is then behind. */
static bool take(reader *r, char ch) {
  skip_space(r);
  if (*r->at != ch) return false;
  r->at++;
  return true;
}

/* ---- strings ---- */

/* The four digits at s; -1. */
static int32_t hex4(const char *s) {
  int32_t code = 0;
  for (int k = 0; k < 4; k++) {
    char ch = s[k];
    int digit = ch >= '0' && ch <= '9'   ? ch - '0'
                : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                         : -1;
    if (digit < 0) return -1;
    code = code * 16 + digit;
  }
  return code;
}

/* The bytes of the escape at *s, behind the backslash, into `out`: how many; 0: it is none. The
   text has a quote behind it, so that no digit is looked for beyond its end. */
static size_t unescape(const char **s, char *out) {
  static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
  char ch = *(*s)++;
  for (const char *name = names; ch != 'u' && *name != 0; name += 2)
    if (*name == ch) {
      *out = name[1];
      return 1;
    }
  int32_t code = ch == 'u' ? hex4(*s) : -1;
  if (code < 0 || (code >= 0xdc00 && code < 0xe000)) return 0;
  *s += 4;
  if (code >= 0xd800 && code < 0xdc00) {
    int32_t low = (*s)[0] == '\\' && (*s)[1] == 'u' ? hex4(*s + 2) : -1;
    if (low < 0xdc00 || low >= 0xe000) return 0;
    *s += 6;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  return lt_utf8_put(code, out);
}

/* The end of the string that begins at s: its quote; NULL where it has none, or bytes that may not
   be in one. Whether it has escapes. */
static const char *end_of_string(const reader *r, const char *s, bool *escapes) {
  *escapes = false;
  for (;;) {
    unsigned char ch = (unsigned char)*s;
    size_t size = 1;
    if (ch == '"') return s;
    if (ch < 0x20) return NULL;
    if (ch == '\\') {
      *escapes = true;
      size = 2;
    } else if (ch >= 0x80 && lt_utf8_get(s, (size_t)(r->end - s), &size) < 0) {
      return NULL;
    }
    if (size > (size_t)(r->end - s)) return NULL;
    s += size;
  }
}

/* Pushes the string behind its first quote. */
static bool read_text(reader *r) {
  bool escapes;
  const char *s = r->at, *end = end_of_string(r, s, &escapes);
  if (end == NULL) return false;
  r->at = end + 1;
  if (!escapes) {
    lua_pushlstring(r->L, s, (size_t)(end - s));
    return true;
  }
  luaL_Buffer buffer;
  char *out = luaL_buffinitsize(r->L, &buffer, (size_t)(end - s)), *start = out;
  bool ok = true;
  while (ok && s < end) {
    const char *next = memchr(s, '\\', (size_t)(end - s));
    size_t n = (size_t)((next == NULL ? end : next) - s);
    memcpy(out, s, n);
    out += n;
    s += n;
    if (next == NULL) break;
    s++;
    size_t size = unescape(&s, out);
    out += size;
    ok = size > 0;
  }
  luaL_pushresultsize(&buffer, (size_t)(out - start));
  return ok;
}

/* Puts what the string on top of the stack stands for in exact JSON in its place. */
static bool make_exact(reader *r) {
  lua_State *L = r->L;
  size_t n, skip;
  double number;
  const char *text = lua_tolstring(L, -1, &n);
  lt_json_meaning meaning = lt_json_read_string(text, n, &skip, &number);
  if (meaning == LT_JSON_TEXT && skip == 0) return true;
  if (meaning == LT_JSON_DOUBLE) {
    lua_pushnumber(L, number);
  } else if (meaning == LT_JSON_TEXT) {
    lua_pushlstring(L, text + skip, n - skip);
  } else {
    luaL_Buffer buffer;
    int64_t length = lt_json_bytes(text + 1, n - 1, luaL_buffinitsize(L, &buffer, n));
    luaL_pushresultsize(&buffer, length > 0 ? (size_t)length : 0);
    if (length < 0) {
      r->wrong = "a byte string has characters above U+00FF";
      return false;
    }
  }
  lua_replace(L, -2);
  return true;
}

/* ---- numbers ---- */

static const char *digits(const char *s) {
  while (*s >= '0' && *s <= '9') s++;
  return s;
}

/* The end of the number at s, NULL where it is none; whether it has a fraction or an exponent. */
static const char *end_of_number(const char *s, bool *is_real) {
  if (*s == '-') s++;
  const char *end = *s == '0' ? s + 1 : digits(s);
  if (end == s) return NULL;
  *is_real = false;
  if (*end == '.') {
    *is_real = true;
    s = end + 1;
    end = digits(s);
    if (end == s) return NULL;
  }
  if (*end == 'e' || *end == 'E') {
    *is_real = true;
    s = end + 1;
    if (*s == '+' || *s == '-') s++;
    end = digits(s);
    if (end == s) return NULL;
  }
  return end;
}

static bool read_number(reader *r) {
  bool is_real;
  const char *end = end_of_number(r->at, &is_real);
  if (end == NULL) return false;
  if (is_real) {
    double value = lt_parse_double(r->at, NULL);
    if (!isfinite(value)) return false;
    lua_pushnumber(r->L, value);
  } else {
    errno = 0;
    long long value = strtoll(r->at, NULL, 10);
    if (errno == ERANGE) return false;
    lua_pushinteger(r->L, value);
  }
  r->at = end;
  return true;
}

/* ---- arrays and objects ---- */

static bool read_array(reader *r) {
  lua_newtable(r->L);
  if (take(r, ']')) return true;
  for (lua_Integer i = 1;; i++) {
    if (!read_value(r)) return false;
    lua_rawseti(r->L, -2, i);
    if (take(r, ']')) return true;
    if (!take(r, ',')) return false;
  }
}

/* Removes the fields of the table on top that stand for null. */
static void remove_nulls(lua_State *L) {
  for (lua_pushnil(L); lt_raw_next(L, -2) != 0;) {
    bool is_null = lua_islightuserdata(L, -1);
    lua_pop(L, 1);
    if (!is_null) continue;
    lua_pushvalue(L, -1);
    lua_pushnil(L);
    lua_rawset(L, -4); /* a field that it is at may be cleared */
  }
}

/* A key may be there once: null is a mark until the end, so that it counts. */
static bool read_object(reader *r) {
  lua_State *L = r->L;
  bool nulls = false;
  lua_newtable(L);
  if (take(r, '}')) return true;
  do {
    size_t n;
    if (!take(r, '"') || !read_text(r)) return false;
    const char *key = lua_tolstring(L, -1, &n);
    if (memchr(key, 0, n) != NULL || !take(r, ':')) return false;
    lua_pushvalue(L, -1);
    if (lt_raw_get(L, -3) != LUA_TNIL) return false;
    lua_pop(L, 1);
    if (!read_value(r)) return false;
    if (lua_isnil(L, -1)) {
      nulls = true;
      lua_pop(L, 1);
      lua_pushlightuserdata(L, r);
    }
    lua_rawset(L, -3);
  } while (take(r, ','));
  if (nulls) remove_nulls(L);
  return take(r, '}');
}

static bool take_word(reader *r, const char *word, size_t n) {
  if (strncmp(r->at, word, n) != 0) return false;
  r->at += n;
  return true;
}

/* Pushes the next value; false, with the stack as it may be, where the text is not JSON. Depth is
   limited before (LT_JSON_DEPTH). */
static bool read_value(reader *r) {
  luaL_checkstack(r->L, 6, "json");
  skip_space(r);
  switch (*r->at) {
  case '{':
    r->at++;
    return read_object(r);
  case '[':
    r->at++;
    return read_array(r);
  case '"':
    r->at++;
    return read_text(r) && (r->plain || make_exact(r));
  case 't':
    lua_pushboolean(r->L, true);
    return take_word(r, "true", 4);
  case 'f':
    lua_pushboolean(r->L, false);
    return take_word(r, "false", 5);
  case 'n':
    lua_pushnil(r->L);
    return take_word(r, "null", 4);
  default:
    return read_number(r);
  }
}

static bool read_all(reader *r) {
  if (!read_value(r)) return false;
  skip_space(r);
  return r->at == r->end;
}

/* Texts come from files: what is wrong with one is returned, with control characters made
   printable, and not raised. */
int lt_json_decode(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n);
  reader r = {.L = L, .at = text, .end = text + n, .plain = lt_json_is_plain(L, 2)};
  r.wrong = "not JSON: a zero byte ends it"; /* to jansson that is the end */
  int top = lua_gettop(L);
  if (lt_json_within_limits(b->c, "json", text, n, LT_JSON_DEPTH) && read_all(&r)) return 1;
  lua_settop(L, top);
  json_decref(lt_json_parse(b->c, "json", text, n, LT_JSON_DEPTH, true));
  if (lt_ok(b->c)) lt_fail(b->c, LT_EIO, "json: %s", r.wrong);
  lt_failure f;
  lt_take_failure(b->c, &f);
  lua_pushnil(L);
  lt_push_printable(L, f.text, strlen(f.text), LT_KEEP_NOTHING);
  return 2;
}
