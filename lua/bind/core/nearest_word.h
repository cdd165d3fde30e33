/* lua/bind/core/nearest_word.h: the nearest word, for "did you mean". */
#ifndef LT_BIND_CORE_NEAREST_WORD_H
#define LT_BIND_CORE_NEAREST_WORD_H

#include <lua.h>

/* Start with {0}; `word` is the nearest so far, within distance 2 of what was given. */
typedef struct lt_nearest {
  const char *word;
  int distance;
} lt_nearest;

void lt_consider_word(lt_nearest *n, const char *unknown, const char *word);
void lt_consider_keys(lt_nearest *n, lua_State *L, int table, const char *unknown);

#endif
