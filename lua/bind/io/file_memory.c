/* lua/bind/io/file_memory.c: io.file_memory: tensors of the cpu in files, within a scope. */
#include "io/file_memory.h"

#include "bind/core/types.h"
#include "bind/io/io.h"
#include "device/device.h"
#include "io/file.h"

#define SCOPE_NAME "ltrain.FileMemory"

/* The folder is the value 1 of the userdata, which outlives it. */
typedef struct scope {
  lt_host_source before;
  bool open;
} scope;

static lt_storage *make(lt_ctx *c, void *folder, size_t bytes) {
  return lt_file_memory_new(c, "offload", folder, bytes);
}

static int scope_close(lua_State *L) {
  lt_bind *b = lt_enter(L);
  scope *s = luaL_checkudata(L, 1, SCOPE_NAME);
  if (s->open) lt_device_set_host_source(b->c, s->before);
  s->open = false;
  return 0;
}

/* io.file_memory(folder) -> scope, to be closed: until then tensors of the cpu that are made have
   their memory in files in the folder, but for small ones. nil and a reason */
int lt_io_file_memory(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *folder = lt_check_path(L, b, "offload");
  if (!lt_file_may_write(b->c, "offload", folder)) return lt_refused(L, b);
  scope *s = lua_newuserdatauv(L, sizeof *s, 1);
  s->open = false;
  luaL_setmetatable(L, SCOPE_NAME);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  s->before = lt_device_set_host_source(
      b->c, (lt_host_source){make, (void *)(uintptr_t)folder, LT_FILE_MEMORY_LEAST});
  s->open = true;
  return 1;
}

void lt_bind_file_memory(lua_State *L, lt_bind *b) {
  static const luaL_Reg meta[] = {{"__close", scope_close}, {"__gc", scope_close}, {NULL, NULL}};
  lt_new_type(L, b, SCOPE_NAME, meta, NULL);
}
