/* lua/bind/system/embedded.h: the Lua sources of stdlib/ and what they are compiled to.
 *
 * The tables are generated at build time (tools/embed_stdlib.cmake, tools/compile_stdlib.c), both
 * sorted by file path.
 * stdlib/init.lua is `ltrain`, stdlib/nn/init.lua `ltrain.nn`, stdlib/nn/Module.lua
 * `ltrain.nn.Module`.
 */
#ifndef LT_BIND_SYSTEM_EMBEDDED_H
#define LT_BIND_SYSTEM_EMBEDDED_H

#include <stddef.h>

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

#endif
