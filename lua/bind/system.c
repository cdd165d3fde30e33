/* lua/bind/system.c: what stdlib uses instead of io and os: files, clocks, the terminal, threads.

   Functions that can fail because of the world return nil and a message; each asks the ctx's
   policy. Log objects are open files that only grow. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "bind/state.h"
#include "host/stdlib.h"
#include "io/file.h"

#define LOG_NAME "ltrain.Log"

/* nil, message: the failure in the ctx, or errno's text. */
static int give_failure(lua_State *L, lt_bind *b) {
  lt_failure f;
  lua_pushnil(L);
  if (lt_take_failure(b->c, &f))
    lua_pushstring(L, f.text);
  else
    lua_pushstring(L, strerror(errno));
  return 2;
}

static int give_truth(lua_State *L, lt_bind *b, bool ok) {
  if (!ok) return give_failure(L, b);
  lua_pushboolean(L, true);
  return 1;
}

/* Files. */

/* read_file(path) -> string */
static int read_file(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = luaL_checkstring(L, 1);
  size_t size = 0;
  lua_settop(L, 1);
  char *data = lt_file_load(b->c, "read", path, (size_t)1 << 31, &size);
  if (data == NULL) return give_failure(L, b);
  luaL_Buffer room;
  char *copy = luaL_buffinitsize(L, &room, size);
  memcpy(copy, data, size);
  lt_free(b->c, data, size + 1);
  luaL_pushresultsize(&room, size);
  return 1;
}

/* write_file(path, data): the former file stays until the new one is whole */
static int write_file(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t size;
  const char *path = luaL_checkstring(L, 1), *data = luaL_checklstring(L, 2, &size);
  return give_truth(L, b, lt_file_save(b->c, "write", path, data, size));
}

static int append_file(lua_State *L) {
  lt_bind *b = lt_enter(L);
  size_t size;
  const char *path = luaL_checkstring(L, 1), *data = luaL_checklstring(L, 2, &size);
  return give_truth(L, b, lt_file_append(b->c, "append", path, data, size));
}

static int mkdir_p(lua_State *L) {
  lt_bind *b = lt_enter(L);
  return give_truth(L, b, lt_folder_make(b->c, "mkdir", luaL_checkstring(L, 1)));
}

static int remove_file(lua_State *L) {
  lt_bind *b = lt_enter(L);
  return give_truth(L, b, lt_file_remove(b->c, "remove", luaL_checkstring(L, 1)));
}

static int rename_file(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *from = luaL_checkstring(L, 1), *to = luaL_checkstring(L, 2);
  if (!b->c->policy.write_files)
    lt_fail(b->c, LT_EIO, "rename: the host allows no writing of files");
  else if (lt_files(b->c)->rename(from, to) != 0)
    lt_fail(b->c, LT_EIO, "rename: cannot rename %s to %s: %s", from, to, strerror(errno));
  return give_truth(L, b, lt_ok(b->c));
}

/* exists(path) -> "file", "folder", "other", or nil */
static int exists(lua_State *L) {
  static const char *const names[] = {NULL, "file", "folder", "other"};
  lua_pushstring(L, names[lt_file_kind_of(lt_enter(L)->c, luaL_checkstring(L, 1))]);
  return 1;
}

/* Names found, in memory of the ctx's: Lua may not raise while the folder is open. */
typedef struct names {
  lt_ctx *c;
  char *data;
  size_t size, capacity;
} names;

static bool add_name(void *ud, const char *name) {
  names *n = ud;
  size_t length = strlen(name) + 1;
  if (n->size + length > n->capacity) {
    size_t capacity = 2 * (n->capacity + length) + 1024;
    char *grown = lt_realloc(n->c, n->data, n->capacity, capacity);
    if (grown == NULL) return false;
    n->data = grown;
    n->capacity = capacity;
  }
  memcpy(n->data + n->size, name, length);
  n->size += length;
  return true;
}

/* list_dir(path) -> sorted table of names */
static int list_dir(lua_State *L) {
  lt_bind *b = lt_enter(L);
  names n = {.c = b->c};
  const char *path = luaL_checkstring(L, 1);
  bool ok = lt_folder_list(b->c, "list", path, add_name, &n);
  if (!ok) {
    lt_free(b->c, n.data, n.capacity);
    return give_failure(L, b);
  }
  char *copy = lua_newuserdatauv(L, n.size + 1, 0);
  if (n.size > 0) memcpy(copy, n.data, n.size);
  lt_free(b->c, n.data, n.capacity);
  lua_newtable(L);
  lua_Integer count = 0;
  for (size_t at = 0; at < n.size; at += strlen(copy + at) + 1) {
    lua_Integer k = ++count;
    for (; k > 1; k--) { /* insertion: names keep sorted */
      lua_rawgeti(L, -1, k - 1);
      bool after = strcmp(lua_tostring(L, -1), copy + at) > 0;
      if (!after) {
        lua_pop(L, 1);
        break;
      }
      lua_rawseti(L, -2, k);
    }
    lua_pushstring(L, copy + at);
    lua_rawseti(L, -2, k);
  }
  return 1;
}

/* Logs: files that only grow. */

typedef struct log_file {
  int fd;
  pid_t pid; /* a forked child must not write into its parent's file */
} log_file;

/* open_log(path [, {truncate = true}]) -> log */
static int open_log(lua_State *L) {
  lt_bind *b = lt_enter(L);
  const char *path = luaL_checkstring(L, 1);
  bool truncate = lua_istable(L, 2) && lua_getfield(L, 2, "truncate") != LUA_TNIL &&
                  lua_toboolean(L, -1);
  log_file *log = lua_newuserdatauv(L, sizeof *log, 0);
  *log = (log_file){.fd = -1, .pid = getpid()};
  luaL_setmetatable(L, LOG_NAME);
  if (!b->c->policy.write_files) {
    lt_fail(b->c, LT_EIO, "open_log: the host allows no writing of files");
    return give_failure(L, b);
  }
  int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (truncate ? O_TRUNC : 0);
  log->fd = lt_files(b->c)->open(path, flags, 0666);
  if (log->fd >= 0) return 1;
  lt_fail(b->c, LT_EIO, "open_log: cannot open %s: %s", path, strerror(errno));
  return give_failure(L, b);
}

static int log_write(lua_State *L) {
  lt_bind *b = lt_enter(L);
  log_file *log = luaL_checkudata(L, 1, LOG_NAME);
  size_t size;
  const char *data = luaL_checklstring(L, 2, &size);
  if (log->pid != getpid()) return give_truth(L, b, true);
  if (log->fd < 0) lt_fail(b->c, LT_EIO, "log: it is closed");
  while (lt_ok(b->c) && size > 0) {
    ssize_t n = lt_files(b->c)->write(log->fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      lt_fail(b->c, LT_EIO, "log: cannot write: %s", strerror(errno));
      break;
    }
    data += n;
    size -= (size_t)n;
  }
  return give_truth(L, b, lt_ok(b->c));
}

/* log:flush(): to the disk */
static int log_flush(lua_State *L) {
  lt_bind *b = lt_enter(L);
  log_file *log = luaL_checkudata(L, 1, LOG_NAME);
  if (log->fd >= 0 && log->pid == getpid() && lt_files(b->c)->fsync(log->fd) != 0 &&
      errno != EINVAL)
    lt_fail(b->c, LT_EIO, "log: cannot flush: %s", strerror(errno));
  return give_truth(L, b, lt_ok(b->c));
}

static int log_close(lua_State *L) {
  lt_bind *b = lua_touserdata(L, lua_upvalueindex(1));
  log_file *log = luaL_checkudata(L, 1, LOG_NAME);
  if (log->fd >= 0 && b->c != NULL) lt_files(b->c)->close(log->fd);
  log->fd = -1;
  return 0;
}

/* The process and the terminal. */

static int clock_now(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  lua_pushnumber(L, (double)t.tv_sec + (double)t.tv_nsec * 1e-9);
  return 1;
}

static int time_now(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  lua_pushnumber(L, (double)t.tv_sec + (double)t.tv_nsec * 1e-9);
  return 1;
}

static int get_env(lua_State *L) {
  lua_pushstring(L, getenv(luaL_checkstring(L, 1)));
  return 1;
}

static int stream_of(lua_State *L) {
  static const char *const streams[] = {"stdin", "stdout", "stderr", NULL};
  return luaL_checkoption(L, 1, "stdout", streams);
}

static int is_tty(lua_State *L) {
  lua_pushboolean(L, isatty(stream_of(L)));
  return 1;
}

/* terminal_width([stream]) -> columns, or nil when it is no terminal */
static int terminal_width(lua_State *L) {
  struct winsize w;
  if (ioctl(stream_of(L), TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
    lua_pushinteger(L, w.ws_col);
  else
    lua_pushnil(L);
  return 1;
}

static int write_stream(lua_State *L, int fd) {
  size_t size;
  const char *data = luaL_checklstring(L, 1, &size);
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return luaL_fileresult(L, 0, NULL);
    data += n;
    size -= (size_t)n;
  }
  lua_pushboolean(L, true);
  return 1;
}

static int write_stdout(lua_State *L) { return write_stream(L, STDOUT_FILENO); }
static int write_stderr(lua_State *L) { return write_stream(L, STDERR_FILENO); }

static int host_name(lua_State *L) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  lua_pushstring(L, name);
  return 1;
}

static int process_id(lua_State *L) {
  lua_pushinteger(L, getpid());
  return 1;
}

static int cpu_count(lua_State *L) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  lua_pushinteger(L, n > 0 ? n : 1);
  return 1;
}

static int get_threads(lua_State *L) {
  lua_pushinteger(L, lt_enter(L)->c->threads);
  return 1;
}

static int set_threads(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_Integer n = luaL_checkinteger(L, 1);
  if (n < 1 || n > 1024)
    lt_raise(L, b, LT_EARG, "set_threads: must be 1 to 1024, got %lld", (long long)n);
  b->c->threads = (int)n;
  return 0;
}

/* Ending early. */

static int cancel(lua_State *L) {
  lt_cancel(lt_enter(L)->c, lua_isnone(L, 1) || lua_toboolean(L, 1));
  return 0;
}

static int cancelled(lua_State *L) {
  lua_pushboolean(L, atomic_load(lt_enter(L)->c->cancel));
  return 1;
}

/* interrupted() -> how often Ctrl-C was pressed since clear_interrupt() */
static int interrupted(lua_State *L) {
  lua_pushinteger(L, atomic_load(&lt_enter(L)->interrupts));
  return 1;
}

static int clear_interrupt(lua_State *L) {
  atomic_store(&lt_enter(L)->interrupts, 0);
  return 0;
}

/* stdlib() -> names of all chunks of the library, sorted */
static int list_stdlib(lua_State *L) {
  lua_createtable(L, lt_stdlib_count, 0);
  for (int k = 0; k < lt_stdlib_count; k++) {
    lua_pushstring(L, lt_stdlib[k].name);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

static void add_log_class(lua_State *L, lt_bind *b) {
  static const luaL_Reg methods[] = {
      {"write", log_write}, {"flush", log_flush}, {"close", log_close}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", log_close}, {"__close", log_close}, {NULL, NULL}};
  luaL_newmetatable(L, LOG_NAME);
  lt_add_functions(L, b, meta);
  lua_newtable(L);
  lt_add_functions(L, b, methods);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}

void lt_bind_system(lua_State *L, lt_bind *b) {
  static const luaL_Reg runtime[] = {
      {"read_file", read_file},       {"write_file", write_file},
      {"append_file", append_file},   {"open_log", open_log},
      {"mkdir_p", mkdir_p},           {"list_dir", list_dir},
      {"exists", exists},             {"remove", remove_file},
      {"rename", rename_file},        {"clock", clock_now},
      {"time", time_now},             {"getenv", get_env},
      {"isatty", is_tty},             {"terminal_width", terminal_width},
      {"write_stdout", write_stdout}, {"write_stderr", write_stderr},
      {"hostname", host_name},        {"pid", process_id},
      {"cpu_count", cpu_count},       {"get_threads", get_threads},
      {"set_threads", set_threads},   {"cancel", cancel},
      {"cancelled", cancelled},       {"interrupted", interrupted},
      {"clear_interrupt", clear_interrupt}, {"stdlib", list_stdlib},
      {NULL, NULL}};
  add_log_class(L, b);
  lua_getfield(L, 1, "runtime");
  lt_add_functions(L, b, runtime);
  lua_pop(L, 1);
}
