/* lua/host/files.c: ltrain_put_file, ltrain_get_file, ltrain_remove_file: files in memory. */
#include <string.h>

#include <lauxlib.h>

#include "host/isolate/isolate.h"
#include "host/protected_calls.h"
#include "io/memory_files.h"

void lt_host_load_memory(lua_State *L, lt_ctx *c, const char *path) {
  size_t size;
  lua_pushfstring(L, "@%s", path);
  int fd = lt_memory_file_open(c, path); /* nothing raises until it is closed */
  const char *text = fd < 0 ? NULL : lt_memory_file_bytes(c, fd, &size);
  int status = text == NULL ? LUA_OK : luaL_loadbufferx(L, text, size, lua_tostring(L, -1), "t");
  if (fd >= 0) lt_memory_file_close(c, fd);
  if (text == NULL) luaL_error(L, "cannot open %s: No such file or directory", path);
  if (status != LUA_OK) lua_error(L);
}

static bool may_use(ltrain *l, const char *who, const char *path) {
  if (!lt_host_check_pointer(l, who, "the path", path)) return false;
  if (lt_is_memory_file(l->b->c, path)) return true;
  snprintf(l->message, sizeof l->message, "%s: the path must begin with \"memory:\": '%.200s'", who,
           path);
  return false;
}

static bool no_file(ltrain *l, const char *who, const char *path) {
  snprintf(l->message, sizeof l->message, "%s: no such file: %.200s", who, path);
  return false;
}

bool ltrain_put_file(ltrain *l, const char *path, const void *data, size_t size) {
  lt_failure failure;
  if (!may_use(l, "put_file", path)) return false;
  if (size > 0 && !lt_host_check_pointer(l, "put_file", "the data", data)) return false;
  if (l->worker != NULL) return lt_isolate_put_file(l, path, data, size);
  if (lt_memory_file_put(l->b->c, "put_file", path, data, size)) return true;
  if (lt_take_failure(l->b->c, &failure)) lt_host_keep_message(l, failure.text);
  return false;
}

const void *ltrain_get_file(ltrain *l, const char *path, size_t *size) {
  size_t n = 0;
  if (size != NULL) *size = 0;
  if (!may_use(l, "get_file", path)) return NULL;
  if (l->worker != NULL && !lt_isolate_read_file(l, path)) return NULL;
  int fd = lt_memory_file_open(l->b->c, path);
  if (fd < 0) return no_file(l, "get_file", path), NULL;
  const char *bytes = lt_memory_file_bytes(l->b->c, fd, &n);
  lt_memory_file_close(l->b->c, fd);
  if (size != NULL) *size = n;
  return bytes;
}

bool ltrain_remove_file(ltrain *l, const char *path) {
  if (!may_use(l, "remove_file", path)) return false;
  if (l->worker != NULL && !lt_isolate_remove_file(l, path)) return false;
  return l->worker != NULL || lt_memory_file_remove(l->b->c, path) ||
         no_file(l, "remove_file", path);
}
