/* lua/cli/services.h: functions of the process (output, scripts, signals) for the subcommands,
   which are written in Lua. */
#ifndef LT_CLI_SERVICES_H
#define LT_CLI_SERVICES_H

#include <lua.h>

/* Push the table of functions that stdlib/cli/init.lua describes. */
void lt_push_services(lua_State *L);

/* Let the library's Lua have them: runtime.services() -> the table. States of other programs have
   no such function. */
void lt_offer_services(lua_State *L);

/* Modules beside the script are found before others: put its folder in front of package.path. */
void lt_prepend_script_folder(lua_State *L, const char *script);

#endif
