/* lua/host/sandbox/patterns.c: Lua's patterns with a count of steps.

   A pattern that backtracks may take longer than anybody waits, in C, where no hook comes. This
   matcher has the results and errors of Lua's (manual, 6.4.1), which host_limits_test.c compares,
   and charges its steps to the host's budget.

   Backtracking without memoization, exponential for nested quantifiers at worst, as Lua's: the
   budget bounds the time and MAX_DEPTH (Lua's MAXCCALLS, 200) the C stack. Steps are summed here
   and charged each SPEND_AT, since charging touches an atomic counter. */
#include "host/sandbox/patterns.h"

#include <ctype.h>
#include <string.h>

#include <lauxlib.h>

#include "host/sandbox/budget.h"

enum { MAX_DEPTH = 200, SPEND_AT = 1024 };

static const char *match(lt_match *m, const char *s, const char *p);

static void step(lt_match *m) {
  if (++m->steps < SPEND_AT) return;
  lt_host_spend(m->L, m->steps);
  m->steps = 0;
}

static int byte(const char *s) { return (unsigned char)*s; }

/* Behind the single character class at `p`. */
static const char *class_end(const lt_match *m, const char *p) {
  if (*p == '%') {
    if (p + 1 == m->pattern_end) luaL_error(m->L, "malformed pattern (ends with '%%')");
    return p + 2;
  }
  if (*p++ != '[') return p;
  if (*p == '^') p++;
  do { /* a ']' that comes first is one of the set */
    if (p == m->pattern_end) luaL_error(m->L, "malformed pattern (missing ']')");
    if (*p++ == '%' && p < m->pattern_end) p++;
  } while (*p != ']');
  return p + 1;
}

static bool is_in_class(int c, int letter) {
  static const struct {
    char letter;
    int (*has)(int c);
  } classes[] = {{'a', isalpha}, {'c', iscntrl}, {'d', isdigit}, {'g', isgraph}, {'l', islower},
                 {'p', ispunct}, {'s', isspace}, {'u', isupper}, {'w', isalnum}, {'x', isxdigit}};
  int lower = tolower(letter);
  for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
    if (classes[k].letter == lower) return (classes[k].has(c) != 0) == (lower == letter);
  return lower == 'z' ? (c == 0) == (lower == letter) : letter == c;
}

/* Whether `c` is in the set at `p`, whose ']' is at `last`. */
static bool is_in_set(int c, const char *p, const char *last) {
  bool wanted = p[1] != '^';
  if (!wanted) p++;
  while (++p < last) {
    if (*p == '%') {
      if (is_in_class(c, byte(++p))) return wanted;
    } else if (p[1] == '-' && p + 2 < last) {
      if (byte(p) <= c && c <= byte(p + 2)) return wanted;
      p += 2;
    } else if (byte(p) == c) {
      return wanted;
    }
  }
  return !wanted;
}

/* Whether the character at `s` is one of the class from `p` to `end`. */
static bool is_single(lt_match *m, const char *s, const char *p, const char *end) {
  m->steps += (end - p) / LT_BYTES_A_STEP; /* of a long set */
  step(m);
  if (s >= m->text_end) return false;
  switch (*p) {
  case '.':
    return true;
  case '%':
    return is_in_class(byte(s), byte(p + 1));
  case '[':
    return is_in_set(byte(s), p, end - 1);
  default:
    return *p == *s;
  }
}

/* %bxy, whose x is at `p`. */
static const char *match_balance(lt_match *m, const char *s, const char *p) {
  if (p >= m->pattern_end - 1)
    luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
  if (*s != *p) return NULL;
  for (int depth = 1; ++s < m->text_end;) {
    step(m);
    if (*s == p[1]) {
      if (--depth == 0) return s + 1;
    } else if (*s == *p) {
      depth++;
    }
  }
  return NULL;
}

/* %f[set], whose set is at `p`; moves `p` behind it. */
static bool is_frontier(lt_match *m, const char *s, const char **p) {
  const char *set = *p;
  if (*set != '[') luaL_error(m->L, "missing '[' after '%%f' in pattern");
  *p = class_end(m, set);
  m->steps += (*p - set) / LT_BYTES_A_STEP;
  int before = s == m->text ? 0 : byte(s - 1);
  return !is_in_set(before, set, *p - 1) && is_in_set(byte(s), set, *p - 1);
}

/* Greedy: as many as there are, then one less each time the rest does not match. */
static const char *expand_most(lt_match *m, const char *s, const char *p, const char *end) {
  ptrdiff_t n = 0;
  while (is_single(m, s + n, p, end)) n++;
  for (; n >= 0; n--) {
    const char *found = match(m, s + n, end + 1);
    if (found != NULL) return found;
  }
  return NULL;
}

static const char *expand_least(lt_match *m, const char *s, const char *p, const char *end) {
  for (;; s++) {
    const char *found = match(m, s, end + 1);
    if (found != NULL) return found;
    if (!is_single(m, s, p, end)) return NULL;
  }
}

/* A capture that leads nowhere is closed again on the way back: captures always describe the path
   that is being tried. */
static const char *open_capture(lt_match *m, const char *s, const char *p, ptrdiff_t length) {
  if (m->level >= LT_CAPTURES) luaL_error(m->L, "too many captures");
  m->capture[m->level++] = (lt_capture){s, length};
  const char *found = match(m, s, p);
  if (found == NULL) m->level--;
  return found;
}

static const char *close_capture(lt_match *m, const char *s, const char *p) {
  int k = m->level - 1;
  while (k >= 0 && m->capture[k].length != LT_CAPTURE_OPEN) k--;
  if (k < 0) luaL_error(m->L, "invalid pattern capture");
  m->capture[k].length = s - m->capture[k].start;
  const char *found = match(m, s, p);
  if (found == NULL) m->capture[k].length = LT_CAPTURE_OPEN;
  return found;
}

/* %1 and so on: the text of a capture again. */
static const char *match_again(lt_match *m, const char *s, int digit) {
  int k = digit - '1';
  if (k < 0 || k >= m->level || m->capture[k].length == LT_CAPTURE_OPEN)
    luaL_error(m->L, "invalid capture index %%%d", k + 1);
  size_t length = (size_t)m->capture[k].length;
  if ((size_t)(m->text_end - s) < length) return NULL;
  m->steps += (int64_t)(length / LT_BYTES_A_STEP);
  return memcmp(m->capture[k].start, s, length) == 0 ? s + length : NULL;
}

/* The class at *p with what follows it: where that ends, or NULL; *p becomes what is still to match
   there, NULL when nothing is. */
static const char *match_repeated(lt_match *m, const char *s, const char **p) {
  const char *class = *p, *end = class_end(m, class), *found;
  bool one = is_single(m, s, class, end);
  *p = NULL;
  switch (*end) { /* 0 at the pattern's end */
  case '+':
    return one ? expand_most(m, s + 1, class, end) : NULL;
  case '*':
    if (one) return expand_most(m, s, class, end);
    break;
  case '-':
    if (one) return expand_least(m, s, class, end);
    break;
  case '?':
    if (one && (found = match(m, s + 1, end + 1)) != NULL) return found;
    break;
  default:
    *p = end;
    return one ? s + 1 : NULL;
  }
  *p = end + 1;
  return s;
}

/* The same of what begins with '%' and is not a class, at *s; false when it is one. */
static bool match_special(lt_match *m, const char **s, const char **p) {
  switch ((*p)[1]) {
  case 'b':
    *s = match_balance(m, *s, *p + 2);
    *p += 4;
    return true;
  case 'f':
    *p += 2;
    if (!is_frontier(m, *s, p)) *s = NULL;
    return true;
  default:
    if (!isdigit(byte(*p + 1))) return false;
    *s = match_again(m, *s, byte(*p + 1));
    *p += 2;
    return true;
  }
}

/* The end of what the pattern from `p` matches at `s`, or NULL. */
static const char *match(lt_match *m, const char *s, const char *p) {
  if (m->depth-- == 0) luaL_error(m->L, "pattern too complex");
  while (s != NULL && p != NULL && p != m->pattern_end) {
    step(m);
    if (*p == '(') {
      bool is_position = p[1] == ')';
      s = open_capture(m, s, p + (is_position ? 2 : 1),
                       is_position ? LT_CAPTURE_POSITION : LT_CAPTURE_OPEN);
      p = NULL;
    } else if (*p == ')') {
      s = close_capture(m, s, p + 1);
      p = NULL;
    } else if (*p == '$' && p + 1 == m->pattern_end) {
      if (s != m->text_end) s = NULL;
      p = NULL;
    } else if (*p != '%' || !match_special(m, &s, &p)) {
      s = match_repeated(m, s, &p);
    }
  }
  m->depth++;
  return s;
}

const char *lt_match_at(lt_match *m, const char *s, const char *p) {
  m->level = 0;
  m->depth = MAX_DEPTH;
  return match(m, s, p);
}
