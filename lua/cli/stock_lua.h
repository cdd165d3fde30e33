/* lua/cli/stock_lua.h: the program without a subcommand: it behaves as stock `lua` does. */
#ifndef LT_CLI_STOCK_LUA_H
#define LT_CLI_STOCK_LUA_H

#include <lua.h>
#include <stdbool.h>

typedef struct lt_plain {
  int argc;
  char **argv;
  int script; /* index in argv, argc: none */
  bool interactive, version, execute, ignore_environment, help;
} lt_plain;

/* Read the options in front of the script; false when one is bad, which is reported. */
bool lt_plain_read(lt_plain *p);

/* Do it; the exit status. */
int lt_plain_run(lua_State *L, const lt_plain *p);

#endif
