/* lua/bind/system/embedded.h: the Lua sources of stdlib/ and what they are compiled to.
 *
 * The tables are generated at build time (tools/embed_stdlib.cmake, tools/compile_stdlib.c), sorted
 * by name.
 * stdlib/init.lua is `ltrain`, stdlib/nn/init.lua `ltrain.nn`, stdlib/nn/Module.lua
 * `ltrain.nn.Module`.
 */
#ifndef LT_BIND_SYSTEM_EMBEDDED_H
#define LT_BIND_SYSTEM_EMBEDDED_H

#include <stddef.h>
#include <string.h>

typedef struct {
  const char *name;   /* the argument of `require` */
  const char *source; /* NUL terminated */
  size_t size;        /* bytes, without the NUL */
} lt_embedded;

typedef struct {
  const char *code; /* as lua_dump gives it */
  size_t size;
} lt_compiled;

extern const lt_embedded lt_stdlib[];
extern const int lt_stdlib_count;

/* lt_stdlib_code[k] is lt_stdlib[k] compiled by the release of Lua whose lua_ident this is. */
extern const char lt_stdlib_lua[];
extern const lt_compiled lt_stdlib_code[];

/* Files of the dashboard's page by their names; dygraph.min.js where the build has found it. */
extern const lt_embedded lt_assets[];
extern const int lt_assets_count;

/* The place of `name` in one of the two lists of n; -1: it is not there. */
static inline int lt_embedded_find(const lt_embedded *list, int n, const char *name) {
  int low = 0;
  while (low < n) {
    int middle = low + (n - low) / 2, order = strcmp(list[middle].name, name);
    if (order == 0) return middle;
    if (order < 0)
      low = middle + 1;
    else
      n = middle;
  }
  return -1;
}

#endif
