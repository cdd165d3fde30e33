/* lua/host/ltrain.c: the public functions of ltrain.h for calls and values. Opening a state is in
   open.c, stepping in step.c, tensors in host_memory.c. */
#include "host/ltrain.h"

#include <string.h>

#include <lauxlib.h>

#include "host/isolate/isolate.h"
#include "host/protected_calls.h"
#include "io/memory_files.h"

static int run_file(lua_State *L) {
  const lt_request *r = lua_touserdata(L, 1);
  if (lt_is_memory_file(r->l->b->c, r->name))
    lt_host_load_memory(L, r->l->b->c, r->name);
  else if (luaL_loadfilex(L, r->name, "t") != LUA_OK) lua_error(L);
  lua_call(L, 0, 0);
  return 0;
}

bool ltrain_dofile(ltrain *l, const char *path) {
  if (!lt_host_check_pointer(l, "dofile", "the path", path))
    return false; /* Lua would read stdin */
  lt_request r = {.l = l, .name = path};
  return lt_request_run(l, l->worker == NULL ? run_file : lt_isolate_run_file, &r);
}

static int run_string(lua_State *L) {
  const lt_request *r = lua_touserdata(L, 1);
  lua_pushfstring(L, "=%s", r->name);
  if (luaL_loadbufferx(L, r->code, strlen(r->code), lua_tostring(L, -1), "t") != LUA_OK)
    lua_error(L);
  lua_call(L, 0, 0);
  return 0;
}

bool ltrain_dostring(ltrain *l, const char *code, const char *name) {
  if (!lt_host_check_pointer(l, "dostring", "the code", code)) return false;
  lt_request r = {.l = l, .name = name == NULL ? "host" : name, .code = code};
  return lt_request_run(l, l->worker == NULL ? run_string : lt_isolate_run_string, &r);
}

static int call_named(lua_State *L) {
  lt_request *r = lua_touserdata(L, 1);
  int n = lt_push_call(L, r), results = (int)strlen(r->format);
  luaL_checkstack(L, results, "too many results");
  lua_call(L, n, results);
  return results;
}

bool ltrain_call(ltrain *l, const char *name, const char *format, ...) {
  if (!lt_host_named(l, "call", name, format)) return false;
  lt_request r = {.l = l, .name = name, .format = format};
  va_start(r.values.list, format);
  bool ok = lt_request_run(l, l->worker == NULL ? call_named : lt_isolate_call, &r);
  va_end(r.values.list);
  return ok;
}

static int get_named(lua_State *L) {
  lt_request *r = lua_touserdata(L, 1);
  lt_push_named(L, r->name);
  return 1;
}

/* Whether name and format are those of one value. */
static bool names_value(ltrain *l, const char *who, const char *name, const char *format) {
  if (!lt_host_named(l, who, name, format)) return false;
  if (strlen(format) == 1 && strchr(name, ':') == NULL) return true;
  snprintf(l->message, sizeof l->message,
           "%s: expected one letter and a name without ':': \"%.80s\", \"%.80s\"", who, format,
           name);
  return false;
}

bool ltrain_get(ltrain *l, const char *name, const char *format, ...) {
  if (!names_value(l, "get", name, format)) return false;
  lt_request r = {.l = l, .name = name, .format = format};
  va_start(r.values.list, format);
  bool ok = lt_request_run(l, l->worker == NULL ? get_named : lt_isolate_get, &r);
  va_end(r.values.list);
  return ok;
}

static int set_named(lua_State *L) {
  lt_request *r = lua_touserdata(L, 1);
  lt_push_argument(L, r->l->b, r->format[0], &r->values);
  lt_store_named(L, r->name);
  return 0;
}

bool ltrain_set(ltrain *l, const char *name, const char *format, ...) {
  if (!names_value(l, "set", name, format)) return false;
  lt_request r = {.l = l, .name = name, .format = format};
  va_start(r.values.list, format);
  bool ok = lt_request_run(l, l->worker == NULL ? set_named : lt_isolate_set, &r);
  va_end(r.values.list);
  return ok;
}

void ltrain_cancel(ltrain *l) {
  if (l == NULL) return;
  atomic_store(&l->cancelled, true);
  lt_cancel(l->b->c, true);
  if (l->worker != NULL) lt_isolate_kill(l->worker);
}

lt_ctx *ltrain_context(ltrain *l) { return l == NULL ? NULL : l->b->c; }

struct lua_State *ltrain_lua(ltrain *l) {
  return l == NULL || !lt_isolate_permits(l, "lua") ? NULL : l->L;
}
