/* lua/bind/core/nearest_word.h: the nearest of a list of names by edit distance, for "did you
   mean". */
#ifndef LT_BIND_CORE_NEAREST_WORD_H
#define LT_BIND_CORE_NEAREST_WORD_H

#include <lua.h>

/* Start with {0}; `word` is the nearest so far: at most two insertions, deletions, replacements or
   swaps of neighbours away, one for a word of up to five letters, none for one letter; the same in
   other case is nearest of all. */
typedef struct lt_nearest {
  const char *word;
  int distance;
} lt_nearest;

void lt_consider_word(lt_nearest *n, const char *unknown, const char *word);

/* runtime.nearest(name, words) -> the nearest of a list, or nil */
int lt_nearest_word(lua_State *L);

#endif
