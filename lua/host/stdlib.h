/* lua/host/stdlib.h: the Lua sources of stdlib/, compiled into the library.
 *
 * The table is generated at build time (tools/embed_stdlib.cmake), sorted by file path.
 * stdlib/init.lua is `ltrain`, stdlib/nn/init.lua `ltrain.nn`, stdlib/core/Module.lua
 * `ltrain.core.Module`.
 */
#ifndef LT_HOST_STDLIB_H
#define LT_HOST_STDLIB_H

#include <stddef.h>

typedef struct {
  const char *name;   /* what `require` is given */
  const char *source; /* NUL terminated */
  size_t size;        /* bytes, without the NUL */
} lt_embedded;

extern const lt_embedded lt_stdlib[];
extern const int lt_stdlib_count;

#endif
