/* lua/apps/no_apps.c: empty functions in place of the apps, for a build without them
   (LT_APPS=OFF). */
#include "apps/apps.h"
#include "bind/core/openers.h"

void lt_bind_apps(lua_State *L, lt_bind *b) {
  (void)L;
  (void)b;
}

void lt_apps_add_services(lua_State *L) { (void)L; }

void lt_apps_close(void) {}
