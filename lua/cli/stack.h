/* lua/cli/stack.h: tracebacks without the gap that Lua leaves after ten frames. */
#ifndef LT_CLI_STACK_H
#define LT_CLI_STACK_H

#include <lua.h>

/* As luaL_traceback, but of stacks of up to 200 frames all are there. */
void lt_push_traceback(lua_State *L, lua_State *from, const char *message, int level);

#endif
