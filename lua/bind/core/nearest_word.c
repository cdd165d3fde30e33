/* lua/bind/core/nearest_word.c: the nearest word, for "did you mean". */
#include <stdbool.h>
#include <string.h>

#include "bind/core/nearest_word.h"
#include "bind/core/raw.h"

enum { MAX_WORD = 40, FAR = 3 };

static int smallest(int a, int b, int c) {
  int m = a < b ? a : b;
  return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours; FAR when at least that many. */
static int distance(const char *a, const char *b) {
  int n = (int)strlen(a), m = (int)strlen(b), rows[3][MAX_WORD + 1];
  if (n > MAX_WORD || m > MAX_WORD || n - m >= FAR || m - n >= FAR) return FAR;
  for (int j = 0; j <= m; j++) rows[0][j] = j;
  for (int i = 1; i <= n; i++) {
    int *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      bool same = a[i - 1] == b[j - 1];
      row[j] = smallest(above[j] + 1, row[j - 1] + 1, above[j - 1] + !same);
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
    }
  }
  return rows[n % 3][m];
}

/* At most two changes away, one for a word of up to four letters. */
void lt_consider_word(lt_nearest *n, const char *unknown, const char *word) {
  int d = distance(unknown, word);
  size_t length = strlen(unknown);
  if (d >= FAR || (length <= 4 && d > 1) || (size_t)d >= length) return;
  if (n->word != NULL && d >= n->distance) {
    if (d > n->distance || strcmp(word, n->word) > 0) return; /* ties: the first in the alphabet */
  }
  n->word = word;
  n->distance = d;
}

void lt_consider_keys(lt_nearest *n, lua_State *L, int table, const char *unknown) {
  table = lua_absindex(L, table);
  for (lua_pushnil(L); lt_raw_next(L, table) != 0; lua_pop(L, 1))
    if (lua_type(L, -2) == LUA_TSTRING) lt_consider_word(n, unknown, lua_tostring(L, -2));
}
