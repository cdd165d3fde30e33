/* lua/cli/output.h: output of scripts while a progress bar occupies the last line of the terminal.
   */
#ifndef LT_CLI_OUTPUT_H
#define LT_CLI_OUTPUT_H

#include <lua.h>

/* Where standard output is a terminal: have print and io.write stand above the line that
   runtime.hold_line(hide, draw) has announced; hold_line() ends that. */
void lt_output_install(lua_State *L);

#endif
