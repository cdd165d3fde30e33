/* lua/apps/apps.h: the C functions of the apps; no_apps.c replaces them in a build without apps
   (LT_APPS=OFF). */
#ifndef LT_APPS_APPS_H
#define LT_APPS_APPS_H

#include <lua.h>

/* Add read_line, remember and edits, the prompt's, to the table on top (prompt_services.c). */
void lt_apps_add_services(lua_State *L);

/* Save the prompt's history, give the terminal back. */
void lt_apps_close(void);

#endif
