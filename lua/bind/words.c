/* lua/bind/words.c: the nearest word, for "did you mean". */
#include <string.h>

#include "bind/words.h"

enum { MAX_WORD = 40, FAR = 3 };

static int smallest(int a, int b, int c) {
  int m = a < b ? a : b;
  return m < c ? m : c;
}

/* Levenshtein distance, or FAR when it is at least that. */
static int distance(const char *a, const char *b) {
  int n = (int)strlen(a), m = (int)strlen(b), row[MAX_WORD + 1];
  if (n > MAX_WORD || m > MAX_WORD || n - m >= FAR || m - n >= FAR) return FAR;
  for (int j = 0; j <= m; j++) row[j] = j;
  for (int i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      int above = row[j];
      row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[m];
}

void lt_consider_word(lt_nearest *n, const char *given, const char *word) {
  int d = distance(given, word);
  if (d >= FAR || (size_t)d >= strlen(given)) return;
  if (n->word != NULL && d >= n->distance) {
    if (d > n->distance || strcmp(word, n->word) > 0) return; /* ties: the first in the alphabet */
  }
  n->word = word;
  n->distance = d;
}

void lt_consider_keys(lt_nearest *n, lua_State *L, int table, const char *given) {
  table = lua_absindex(L, table);
  for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1))
    if (lua_type(L, -2) == LUA_TSTRING) lt_consider_word(n, given, lua_tostring(L, -2));
}
