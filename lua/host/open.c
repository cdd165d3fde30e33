/* lua/host/open.c: ltrain_open and ltrain_close. */
#include "host/state.h"
#include "registry.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

#include "base/threads.h"
#include "bind/core/raise.h"
#include "bind/open.h"
#include "host/install.h"
#include "host/isolate/isolate.h"
#include "host/protected_calls.h"
#include "host/sandbox/budget.h"
#include "io/memory_files.h"

/* Callbacks. */

static void forward_log(void *ud, int level, const char *text) {
  const ltrain *l = ud;
  if (l->config.log != NULL) l->config.log(l->config.ud, level, text);
}

/* runtime.write_stderr(text): what the library says is a message for the host, line by line. */
static int say(lua_State *L) {
  const char *text = luaL_checkstring(L, 1);
  lua_pushstring(L, text);
  char *line = lua_newuserdatauv(L, strlen(text) + 1, 0);
  for (const char *end; *text != 0; text = *end == 0 ? end : end + 1) {
    end = text + strcspn(text, "\n");
    memcpy(line, text, (size_t)(end - text));
    line[end - text] = 0;
    forward_log(lt_host_of(L), LTRAIN_INFO, line);
  }
  lua_pushboolean(L, true);
  return 1;
}

/* runtime.write_stdout(text) */
static int print_text(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  ltrain *l = lt_host_of(L);
  lua_State *before = lt_host_call_out(l, L);
  if (l->config.print != NULL) l->config.print(l->config.ud, text, length);
  lt_host_call_out(l, before);
  lua_pushboolean(L, true);
  return 1;
}

/* Lua's warnings come in pieces; a single "@..." is a control message, which is for `lua`. */
static void warn(void *ud, const char *text, int to_be_continued) {
  ltrain *l = ud;
  if (l->warning[0] == 0 && !to_be_continued && text[0] == '@') return;
  size_t length = strlen(l->warning);
  snprintf(l->warning + length, sizeof l->warning - length, "%s", text);
  if (to_be_continued) return;
  forward_log(l, LTRAIN_WARNING, l->warning);
  l->warning[0] = 0;
}

/* For bars: there is no terminal. Also in place of what is not the script's. */
static int give_nothing(lua_State *L) {
  (void)L;
  return 0;
}

/* (stage, epoch, batch, batches) */
static int progress(lua_State *L) {
  ltrain *l = lt_host_of(L);
  int known = 0;
  lua_Integer batches = lua_tointegerx(L, 4, &known);
  lua_State *before = lt_host_call_out(l, L);
  l->config.progress(l->config.ud, lua_tostring(L, 1), lua_tointeger(L, 2), lua_tointeger(L, 3),
                     known ? batches : -1);
  lt_host_call_out(l, before);
  return 0;
}

/* In place of the library's own: it says everything through these functions of the runtime module,
   so a host that takes them needs to know of no other place that prints. */
static void set_callbacks(lua_State *L, ltrain *l) {
  static const luaL_Reg streams[] = {{"write_stderr", say},
                                     {"write_stdout", print_text},
                                     {"isatty", give_nothing},
                                     {"terminal_width", give_nothing},
                                     {"cancel", give_nothing}, /* the host's to take back */
                                     {NULL, NULL}};
  lua_setwarnf(L, warn, l);
  l->b->c->log = forward_log;
  l->b->c->log_ud = l;
  lt_host_push_part(L, "ltrain.runtime");
  luaL_setfuncs(L, streams, 0);
  lua_pop(L, 1);
  if (l->config.progress == NULL) return;
  lt_host_push_part(L, "ltrain.trainer.host_progress");
  lua_pushcfunction(L, progress);
  lua_call(L, 1, 0);
}

/* Opening. */

static lt_policy policy_of(unsigned allow) {
  return (lt_policy){.read_files = (allow & LTRAIN_READ_FILES) != 0,
                     .write_files = (allow & LTRAIN_WRITE_FILES) != 0,
                     .fork = (allow & LTRAIN_FORK) != 0,
                     .dlopen = (allow & LTRAIN_LOAD_LIBRARIES) != 0,
                     .network = (allow & LTRAIN_NETWORK) != 0,
                     .environment = (allow & LTRAIN_ENVIRONMENT) != 0};
}

/* io and debug leave through both doors: the global, and package.loaded, from which `require "io"`
   would give it back. */
static void open_libraries(lua_State *L, unsigned allow) {
  luaL_openlibs(L);
  if ((allow & LTRAIN_LUA_LIBRARIES) != 0) return;
  static const char *const closed[] = {"io", "debug"};
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  for (size_t k = 0; k < sizeof closed / sizeof *closed; k++) {
    lua_pushnil(L);
    lua_setglobal(L, closed[k]);
    lua_pushnil(L);
    lua_setfield(L, -2, closed[k]);
  }
  lua_pop(L, 1);
}

static int64_t memory_cap(const ltrain *l) {
  return l->config.memory_cap < INT64_MAX ? (int64_t)l->config.memory_cap : INT64_MAX;
}

static int open_state(lua_State *L) {
  ltrain *l = lua_touserdata(L, 1);
  int threads = l->config.threads < 1                ? 1
                : l->config.threads > LT_MAX_THREADS ? LT_MAX_THREADS
                                                     : l->config.threads;
  open_libraries(L, l->config.allow);
  lt_host_give_print(L, l);
  lt_host_bound(L, l);
  const lt_bind_options options = {.owned = true,
                                   .threads = threads,
                                   .limits = {.threads = threads, .memory = memory_cap(l)},
                                   .policy = policy_of(l->config.allow),
                                   .allocator = &l->allocator};
  lt_host_install(L, &options);
  l->b = lt_bind_get(L);
  l->b->guard = &lt_host_guard;
  l->b->c->afford = lt_host_afford_elements;
  l->b->c->afford_ud = l;
  set_callbacks(L, l);
  lua_newtable(L);
  l->hold_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pushboolean(L, false);
  l->thread_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lt_memory_file_begin(l->b->c);
  lt_host_restrict(L, &l->config);
  if (!lt_ok(l->b->c)) lt_raise_failure(L, l->b);
  return 0;
}

static _Thread_local const char *refused_config;

/* Limits that would silently be none are not limits that a host wanted. */
static bool copy_config(const ltrain_config *config, ltrain_config *to) {
  refused_config = NULL;
  if (lt_host_lua_fault() != NULL) {
    static char text[256];
    snprintf(text, sizeof text, "open: %s", lt_host_lua_fault());
    refused_config = text;
    return false;
  }
  static _Thread_local char small[100];
  if (!lt_host_stack_fits(small, sizeof small)) {
    refused_config = small;
    return false;
  }
  if (config == NULL) return true;
  if (config->size <= offsetof(ltrain_config, alloc))
    refused_config = "open: the size of the config is not set: initialise it with "
                     "LTRAIN_CONFIG_INIT";
  else
    memcpy(to, config, config->size < sizeof *config ? config->size : sizeof *config);
  if (to->max_instructions < 0) refused_config = "open: max_instructions is negative";
  if (to->threads < 0) refused_config = "open: threads is negative";
  if ((to->allow & ~(unsigned)LTRAIN_EVERYTHING) != 0) {
    static _Thread_local char text[80];
    snprintf(text, sizeof text, "open: allow has bits of no permission: 0x%x",
             to->allow & ~(unsigned)LTRAIN_EVERYTHING);
    refused_config = text;
  }
  if (refused_config == NULL) refused_config = lt_isolate_fault(to);
  if (to->isolate && to->memory_cap == 0) to->memory_cap = LT_ISOLATE_MEMORY;
  return refused_config == NULL;
}

/* An isolated state's limit of instructions is the worker's: nothing of a script runs here. */
static bool isolate(ltrain *l) {
  static _Thread_local char text[LT_FAILURE_TEXT];
  if (!l->config.isolate) return true;
  bool started = lt_isolate_start(l, text, sizeof text);
  l->config.max_instructions = 0;
  if (!started) refused_config = text;
  return started;
}

/* The struct comes from the host's allocator, too, and the Lua state finds it in its extra space: a
   callback of Lua has nothing but the state. */
ltrain *ltrain_open(const ltrain_config *given) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  if (!copy_config(given, &config)) return NULL;
  ltrain *l =
      config.alloc != NULL ? config.alloc(config.ud, NULL, 0, sizeof *l) : malloc(sizeof *l);
  if (l == NULL) return NULL;
  memset(l, 0, sizeof *l);
  l->thread = pthread_self();
  l->config = config;
  lt_exports_begin(&l->exports);
  l->allocator = (lt_allocator){.fn = lt_host_allocate, .ud = l};
  l->L = lua_newstate(lt_host_allocate, l);
  if (l->L != NULL) {
    *(ltrain **)lua_getextraspace(l->L) = l;
    lua_pushcfunction(l->L, open_state);
    lua_pushlightuserdata(l->L, l);
    if (lua_pcall(l->L, 1, 0, 0) == LUA_OK && isolate(l)) return l;
  }
  ltrain_close(l);
  return NULL;
}

/* Finalizers and what a paused call closes end, too: nobody can cancel them. */
enum { CLOSING_INSTRUCTIONS = 10000000 };

/* Closed from a callback: nothing could return to what called that. The call that runs fails. */
static bool is_in_a_call(ltrain *l) {
  static const char text[] = "close: the state is in a call: close it when that has returned";
  if (l->depth == 0) return false;
  if (l->closing) return true;
  lt_host_keep_message(l, text);
  if (l->why[0] == 0) snprintf(l->why, sizeof l->why, "%s", text);
  atomic_store(&l->cancelled, true);
  lt_cancel(l->b->c, true);
  return true;
}

void ltrain_close(ltrain *l) {
  if (l == NULL || is_in_a_call(l)) return;
  if (l->b != NULL) lt_host_arm(l);
  l->depth = 1; /* nothing new begins */
  l->closing = true;
  lt_isolate_end(l);
  if (l->limit == 0) l->limit = CLOSING_INSTRUCTIONS;
  if (l->stepped != NULL) lua_resetthread(l->stepped); /* what its loops close */
  if (l->b != NULL) lt_exports_release(l);
  if (l->b != NULL) lt_host_tensors_release(l);
  if (l->b != NULL) lt_bind_close(l->b, l->L);
  if (l->L != NULL) lua_close(l->L);
  l->b = NULL;
  lt_exports_end(l);
}

/* Without a state, why there is none: the config, the machine, or else memory. */
const char *ltrain_errmsg(const ltrain *l) {
  if (l != NULL) return l->message;
  if (refused_config != NULL) return refused_config;
  const char *refusal = lt_registry_here()->refusal;
  return refusal[0] != 0 ? refusal : "not enough memory";
}
