/* lua/cli/shell.h: os.execute and io.popen of the binary. */
#ifndef LT_CLI_SHELL_H
#define LT_CLI_SHELL_H

#include <lua.h>

/* Put them in the place of Lua's own. */
void lt_shell_install(lua_State *L);

#endif
