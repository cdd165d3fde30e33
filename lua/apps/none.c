/* lua/apps/none.c: a build without apps (LT_APPS=OFF). */
#include "apps/apps.h"
#include "bind/core/parts.h"

void lt_bind_apps(lua_State *L, lt_bind *b) {
  (void)L;
  (void)b;
}

void lt_apps_add_services(lua_State *L) { (void)L; }

void lt_apps_close(void) {}
