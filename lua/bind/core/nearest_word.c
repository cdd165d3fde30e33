/* lua/bind/core/nearest_word.c: the nearest of a list of names by edit distance, for "did you
   mean". */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <lauxlib.h>

#include "bind/core/nearest_word.h"
#include "bind/core/raw.h"

enum { MAX_WORD = 64, FAR = 3 };

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

void lt_consider_word(lt_nearest *n, const char *unknown, const char *word) {
  size_t length = strlen(unknown);
  int most = length <= 1 ? 0 : length <= 5 ? 1 : 2;
  int d = strcasecmp(unknown, word) == 0 ? -1 : distance(unknown, word);
  if (d > most || (n->word != NULL && d > n->distance)) return;
  if (n->word != NULL && d == n->distance && strcmp(word, n->word) >= 0) return;
  n->word = word;
  n->distance = d;
}

int lt_nearest_word(lua_State *L) {
  lt_nearest nearest = {0};
  luaL_checktype(L, 2, LUA_TTABLE);
  const char *unknown = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : NULL;
  for (lua_Integer k = 1; unknown != NULL && lt_raw_geti(L, 2, k) == LUA_TSTRING; k++) {
    lt_consider_word(&nearest, unknown, lua_tostring(L, -1));
    lua_pop(L, 1); /* the list has it */
  }
  lua_pushstring(L, nearest.word);
  return 1;
}
