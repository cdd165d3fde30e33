/* lua/cli/stock_lua.c: `ltrain FILE`, -e, -l, -i, - as stock `lua` has them.

   So `ltrain /usr/bin/busted spec.lua` works: arg, `...`, a #! line, LUA_INIT, exit status. */
#include "cli/stock_lua.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "bind/core/current_line.h"
#include "bind/core/nearest_word.h"
#include "bind/core/state.h"
#include "cli/report.h"
#include "cli/services.h"
#include "device/device.h"
#include "launch/launch.h"
#include "ltrain/version.h"

static bool refuse(const char *option) {
  bool lacks = strcmp(option, "-e") == 0 || strcmp(option, "-l") == 0;
  lt_nearest near = {0};
  lt_consider_word(&near, option, "--version");
  lt_consider_word(&near, option, "--help");
  if (lacks)
    fprintf(stderr, "ltrain: %s needs an argument\n", option);
  else
    fprintf(stderr,
            near.word != NULL
              ? "ltrain: unknown option %s; did you mean %s?\n"
              : "ltrain: unknown option %s; options of a command follow it: ltrain run SCRIPT %s\n",
            option, near.word != NULL ? near.word : option);
  fputs("usage: ltrain COMMAND ... | [-e CODE] [-l MODULE] [-i] [-E] [-W] [-v] [SCRIPT [args]]\n"
        "see `ltrain --help`\n",
        stderr);
  return false;
}

/* One option that takes nothing; false when there is none of that name. */
static bool read_flag(lt_plain *p, const char *option) {
  if (strcmp(option, "--version") == 0 || strcmp(option, "-v") == 0)
    p->version = true;
  else if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
    p->help = true;
  else if (strcmp(option, "-i") == 0)
    p->interactive = true;
  else if (strcmp(option, "-E") == 0)
    p->ignore_environment = true;
  else
    return strcmp(option, "-W") == 0; /* acted on later, in order */
  return true;
}

/* The order and the limits of lua.c: options end at the first argument that is none, so that all
   that follows the script belongs to it. */
bool lt_plain_read(lt_plain *p) {
  for (p->script = 1; p->script < p->argc; p->script++) {
    const char *option = p->argv[p->script];
    if (option[0] != '-' || option[1] == 0) return true;
    if (strcmp(option, "--") == 0) {
      p->script++;
      return true;
    }
    if (read_flag(p, option)) continue;
    if (option[1] != 'e' && option[1] != 'l') return refuse(option);
    if (option[1] == 'e') p->execute = true;
    if (option[2] != 0) continue;
    p->script++;
    if (p->script >= p->argc || p->argv[p->script][0] == '-') return refuse(option);
  }
  return true;
}

/* As in lua.c the script is arg[0], and what is before it has negative indices: programs find their
   interpreter that way. */
static void set_arg(lua_State *L, const lt_plain *p) {
  lua_createtable(L, p->argc, 1);
  int zero = p->script < p->argc ? p->script : 0;
  for (int k = 0; k < p->argc; k++) {
    lua_pushstring(L, p->argv[k]);
    lua_rawseti(L, -2, k - zero);
  }
  lua_setglobal(L, "arg");
}

/* The prompt and -e know `lt` without a require; it is loaded when first used. */
static void predefine(lua_State *L) {
  static const char text[] = "local globals <const> = ...\n"
                             "setmetatable(globals, {__index = function(t, k)\n"
                             "  if k ~= 'lt' then return nil end\n"
                             "  t.lt = require 'ltrain'\n"
                             "  return t.lt\n"
                             "end})\n";
  lua_pushglobaltable(L);
  if (lua_getmetatable(L, -1) != 0) {
    lua_pop(L, 2);
    return;
  }
  luaL_loadbuffer(L, text, sizeof text - 1, "=ltrain.predefine");
  lua_pushvalue(L, -2);
  lt_call_script(L, 1, 0);
  lua_pop(L, 1);
}

static int run_string(lua_State *L, const char *text, const char *name) {
  int status = lt_report_load(L, luaL_loadbuffer(L, text, strlen(text), name));
  return status == LT_EXIT_DONE ? lt_call_script(L, 0, 0) : status;
}

/* -l mod: global `mod` is what require gives. */
static int require_global(lua_State *L, const char *name) {
  lua_getglobal(L, "require");
  lua_pushstring(L, name);
  int status = lt_call_script(L, 1, 1);
  if (status == LT_EXIT_DONE) lua_setglobal(L, name);
  return status;
}

/* -e, -l and -W, in order. */
static int run_options(lua_State *L, const lt_plain *p) {
  for (int k = 1; k < p->script && k < p->argc; k++) {
    const char *option = p->argv[k];
    if (strcmp(option, "-W") == 0) lua_warning(L, "@on", 0);
    if (option[0] != '-' || (option[1] != 'e' && option[1] != 'l')) continue;
    const char *value = option[2] != 0 ? option + 2 : p->argv[++k];
    int status =
        option[1] == 'e' ? run_string(L, value, "=(command line)") : require_global(L, value);
    if (status != LT_EXIT_DONE) return status;
  }
  return LT_EXIT_DONE;
}

/* Calls a function of stdlib/cli/process_group.lua, which joins and leaves the ranks that a
   launcher started; its argument is on the stack. Returns its exit status, or LT_EXIT_DONE. */
static int call_world(lua_State *L, const char *function) {
  lt_push_require(L);
  lua_pushliteral(L, "ltrain.cli.process_group");
  if (lt_call_script(L, 1, 1) != LT_EXIT_DONE) return LT_EXIT_ERROR;
  lua_getfield(L, -1, function);
  lua_replace(L, -2);
  lua_insert(L, -2);
  int status = lt_call_script(L, 1, 1);
  if (status != LT_EXIT_DONE) return status;
  status = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return status;
}

/* Whether ranks of a loop continue with what runs here. */
static bool is_rank(lua_State *L) {
  const lt_bind *b = lt_bind_get(L);
  return b != NULL && lt_world_current(b->c) != NULL;
}

/* The last act of a rank, whose script ended with `status`. */
static int leave(lua_State *L, int status) {
  lua_pushinteger(L, status);
  return call_world(L, "leave");
}

/* A script that returns a table (on top) may be meant for `ltrain run`: stdlib/cli/run.lua knows.
 */
static void hint(lua_State *L, const char *script) {
  if (!lua_istable(L, -1)) return;
  lt_push_require(L);
  lua_pushliteral(L, "ltrain.cli.run");
  if (lt_call_script(L, 1, 1) != LT_EXIT_DONE) return;
  lua_getfield(L, -1, "hint");
  lua_pushvalue(L, -3);
  lua_pushstring(L, script);
  if (lt_call_script(L, 2, 1) == LT_EXIT_DONE && lua_type(L, -1) == LUA_TSTRING)
    lt_complain(lua_tostring(L, -1));
}

/* The ranks of a launcher are joined before the script runs and left after it, whether or not it
   trains: a rank that ended alone would be reported as lost. */
static int run_script(lua_State *L, const lt_plain *p) {
  const char *name = p->argv[p->script];
  bool from_stdin = strcmp(name, "-") == 0 && strcmp(p->argv[p->script - 1], "--") != 0;
  int status = lt_report_load(L, luaL_loadfile(L, from_stdin ? NULL : name));
  if (status != LT_EXIT_DONE) return status;
  if (!from_stdin) lt_prepend_script_folder(L, name);
  lt_set_script(L, -1);
  lt_push_services(L);
  status = call_world(L, "join");
  if (status != LT_EXIT_DONE) return status;
  int n = p->argc - p->script - 1;
  luaL_checkstack(L, n + 3, "too many arguments to script");
  for (int k = 1; k <= n; k++) lua_pushstring(L, p->argv[p->script + k]);
  int top = lua_gettop(L) - n - 1;
  int status_of_script = lt_call_script(L, n, 1);
  if (status_of_script == LT_EXIT_DONE && p->interactive) {
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, LT_RETURNED);
  } else if (status_of_script == LT_EXIT_DONE) {
    hint(L, name);
  }
  lua_settop(L, top);
  return leave(L, status_of_script);
}

static int run_stdin(lua_State *L) {
  int status = lt_report_load(L, luaL_loadfile(L, NULL));
  return status == LT_EXIT_DONE ? lt_call_script(L, 0, 0) : status;
}

/* LUA_INIT, as in lua.c; the one with the version wins. */
static int run_init(lua_State *L) {
  const char *name = "=LUA_INIT_5_4", *init = getenv("LUA_INIT_5_4");
  if (init == NULL) name = "=LUA_INIT", init = getenv("LUA_INIT");
  if (init == NULL) return LT_EXIT_DONE;
  if (init[0] != '@') return run_string(L, init, name);
  int status = lt_report_load(L, luaL_loadfile(L, init + 1));
  return status == LT_EXIT_DONE ? lt_call_script(L, 0, 0) : status;
}

static int run_prompt(lua_State *L) {
  lt_push_require(L);
  lua_pushliteral(L, "ltrain.cli.apps");
  if (lt_call_script(L, 1, 1) != LT_EXIT_DONE) return LT_EXIT_ERROR;
  lua_getfield(L, -1, "open_prompt");
  lt_push_services(L);
  if (lt_call_script(L, 1, 1) != LT_EXIT_DONE) return LT_EXIT_ERROR;
  return (int)lua_tointeger(L, -1);
}

static void say_version(void) { printf("ltrain %s (%s)\n", LT_VERSION, LUA_RELEASE); }

/* As in lua.c an error ends the program; with -i the prompt opens all the same, to see what went
   wrong. */
int lt_plain_run(lua_State *L, const lt_plain *p) {
  bool has_script = p->script < p->argc;
  bool has_work = has_script || p->execute || p->version;
  bool prompts = p->interactive || (!has_work && isatty(STDIN_FILENO) != 0);
  int status = LT_EXIT_DONE;
  set_arg(L, p);
  if (p->version || prompts) say_version();
  if (prompts || !has_script) predefine(L);
  if (prompts) lt_device_note_all(lt_bind_get(L)->c, true); /* for `:mem` */
  if (!p->ignore_environment) status = run_init(L);
  if (status == LT_EXIT_DONE) status = run_options(L, p);
  if (status == LT_EXIT_DONE && has_script)
    status = run_script(L, p);
  else if (p->execute && is_rank(L))
    status = leave(L, status);
  if (status != LT_EXIT_DONE && !p->interactive) return status;
  if (prompts) return run_prompt(L);
  return has_work ? status : run_stdin(L);
}
