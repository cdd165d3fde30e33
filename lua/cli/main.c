/* lua/cli/main.c: the binary: `ltrain FILE`, -e, -l, -i, - behave as stock `lua` does.

   So `ltrain /usr/bin/busted spec.lua` works: arg, `...`, a #! line, LUA_INIT, exit status. Command
   words (`ltrain run model.lua`) are written in Lua: stdlib/cli. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "host/install.h"
#include "ltrain/version.h"

enum { USAGE = 2 };

typedef struct settings {
  int argc;
  char **argv;
  int script;        /* index in argv, argc: none */
  bool interactive, version, execute, ignore_environment, warnings;
} settings;

static void complain(const char *text) {
  fflush(stdout);
  fprintf(stderr, "ltrain: %s\n", text);
}

static int usage(const char *bad) {
  if (strcmp(bad, "-e") == 0 || strcmp(bad, "-l") == 0)
    fprintf(stderr, "ltrain: '%s' needs argument\n", bad);
  else
    fprintf(stderr, "ltrain: unrecognized option '%s'\n", bad);
  fprintf(stderr, "usage: ltrain [options] [script [args]]\n"
                  "  -e stat   execute string 'stat'\n"
                  "  -i        enter interactive mode after executing 'script'\n"
                  "  -l mod    require library 'mod' into global 'mod'\n"
                  "  -v        show version information\n"
                  "  -E        ignore environment variables\n"
                  "  -W        turn warnings on\n"
                  "  --        stop handling options\n"
                  "  -         stop handling options and execute stdin\n"
                  "`ltrain --help` lists the command words.\n");
  return USAGE;
}

/* Message handler: a traceback after the message. */
static int add_traceback(lua_State *L) {
  const char *message = lua_tostring(L, 1);
  if (message == NULL) {
    if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING) return 1;
    message = lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
  }
  luaL_traceback(L, L, message, 1);
  return 1;
}

/* Tell of an error on top of the stack. */
static int report(lua_State *L, int status) {
  if (status == LUA_OK) return status;
  const char *message = lua_tostring(L, -1);
  complain(message != NULL ? message : "(error message not a string)");
  lua_pop(L, 1);
  return status;
}

static int call(lua_State *L, int n_args, int n_results) {
  int base = lua_gettop(L) - n_args;
  lua_pushcfunction(L, add_traceback);
  lua_insert(L, base);
  int status = lua_pcall(L, n_args, n_results, base);
  lua_remove(L, base);
  return status;
}

static int run_string(lua_State *L, const char *text, const char *name) {
  int status = luaL_loadbuffer(L, text, strlen(text), name);
  if (status == LUA_OK) status = call(L, 0, 0);
  return report(L, status);
}

/* -l mod: global `mod` is what require gives. */
static int require_global(lua_State *L, const char *name) {
  lua_getglobal(L, "require");
  lua_pushstring(L, name);
  int status = call(L, 1, 1);
  if (status == LUA_OK) lua_setglobal(L, name);
  return report(L, status);
}

/* The prompt and -e know `lt` without a require. */
static void predefine(lua_State *L) {
  static const char text[] = "local _ENV <const> = ...\n"
                             "lt = nil\n"
                             "setmetatable(_ENV, {__index = function(t, k)\n"
                             "  if k ~= 'lt' then return nil end\n"
                             "  local lt = require 'ltrain'\n"
                             "  rawset(t, 'lt', lt)\n"
                             "  return lt\n"
                             "end})\n";
  lua_pushglobaltable(L);
  bool free_to = lua_getmetatable(L, -1) == 0;
  if (!free_to) {
    lua_pop(L, 2);
    return;
  }
  luaL_loadbuffer(L, text, sizeof text - 1, "=ltrain.predefine");
  lua_insert(L, -2);
  report(L, call(L, 1, 0));
}

/* Options in front of the script; returns the offending one or NULL. */
static const char *read_options(settings *s) {
  for (s->script = 1; s->script < s->argc; s->script++) {
    const char *a = s->argv[s->script];
    if (a[0] != '-' || a[1] == 0) return NULL;
    if (strcmp(a, "--") == 0) {
      s->script++;
      return NULL;
    }
    if (strcmp(a, "--version") == 0) {
      s->version = true;
      continue;
    }
    bool single = a[2] == 0;
    switch (a[1]) {
    case 'E':
      if (!single) return a;
      s->ignore_environment = true;
      break;
    case 'W':
      if (!single) return a;
      break;
    case 'i':
      if (!single) return a;
      s->interactive = s->version = true;
      break;
    case 'v':
      if (!single) return a;
      s->version = true;
      break;
    case 'e': s->execute = true; /* fall through */
    case 'l':
      if (single && (++s->script >= s->argc || s->argv[s->script][0] == '-')) return a;
      break;
    default: return a;
    }
  }
  return NULL;
}

static void set_arg(lua_State *L, const settings *s) {
  lua_createtable(L, s->argc, 1);
  int zero = s->script < s->argc ? s->script : 0;
  for (int k = 0; k < s->argc; k++) {
    lua_pushstring(L, s->argv[k]);
    lua_rawseti(L, -2, k - zero);
  }
  lua_setglobal(L, "arg");
}

static int run_option_scripts(lua_State *L, const settings *s) {
  for (int k = 1; k < s->script && k < s->argc; k++) {
    char letter = s->argv[k][1];
    if (letter == 'W') lua_warning(L, "@on", 0);
    if (letter != 'e' && letter != 'l') continue;
    const char *value = s->argv[k] + 2;
    if (*value == 0) value = s->argv[++k];
    int status = letter == 'e' ? run_string(L, value, "=(command line)") : require_global(L, value);
    if (status != LUA_OK) return status;
  }
  return LUA_OK;
}

static int run_script(lua_State *L, const settings *s) {
  const char *name = s->argv[s->script];
  bool from_stdin = strcmp(name, "-") == 0 && strcmp(s->argv[s->script - 1], "--") != 0;
  int status = luaL_loadfile(L, from_stdin ? NULL : name);
  if (status == LUA_OK) {
    int n = s->argc - s->script - 1;
    luaL_checkstack(L, n + 3, "too many arguments to script");
    for (int k = 1; k <= n; k++) lua_pushstring(L, s->argv[s->script + k]);
    status = call(L, n, 0);
  }
  return report(L, status);
}

static int run_init(lua_State *L) {
  const char *name = "=LUA_INIT_5_4", *init = getenv("LUA_INIT_5_4");
  if (init == NULL) name = "=LUA_INIT", init = getenv("LUA_INIT");
  if (init == NULL) return LUA_OK;
  if (init[0] != '@') return run_string(L, init, name);
  int status = luaL_loadfile(L, init + 1);
  if (status == LUA_OK) status = call(L, 0, 0);
  return report(L, status);
}

/* A plain prompt: expressions are printed. */
static int incomplete(lua_State *L, int status) {
  if (status != LUA_ERRSYNTAX) return 0;
  size_t length;
  const char *message = lua_tolstring(L, -1, &length);
  return length >= 5 && strcmp(message + length - 5, "<eof>") == 0;
}

static int load_lines(lua_State *L) {
  char line[4096];
  fputs("> ", stdout);
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) return -1;
  lua_settop(L, 0);
  lua_pushfstring(L, "return %s", line);
  if (luaL_loadbuffer(L, lua_tostring(L, 1), lua_rawlen(L, 1), "=stdin") == LUA_OK) return LUA_OK;
  lua_settop(L, 0);
  lua_pushstring(L, line);
  for (;;) {
    int status = luaL_loadbuffer(L, lua_tostring(L, 1), lua_rawlen(L, 1), "=stdin");
    if (!incomplete(L, status)) return status;
    lua_settop(L, 1);
    fputs(">> ", stdout);
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) return -1;
    lua_pushstring(L, line);
    lua_concat(L, 2);
  }
}

static void prompt(lua_State *L) {
  int status;
  while ((status = load_lines(L)) != -1) {
    lua_replace(L, 1);
    lua_settop(L, 1);
    if (status == LUA_OK) status = call(L, 0, LUA_MULTRET);
    if (report(L, status) != LUA_OK || lua_gettop(L) == 0) continue;
    lua_getglobal(L, "print");
    lua_insert(L, 1);
    report(L, call(L, lua_gettop(L) - 1, 0));
  }
  lua_settop(L, 0);
  fputs("\n", stdout);
}

static int run(lua_State *L, const settings *s) {
  if (s->ignore_environment) {
    lua_pushboolean(L, true);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  set_arg(L, s);
  bool has_script = s->script < s->argc;
  bool at_terminal = isatty(STDIN_FILENO) != 0;
  if (s->version) printf("ltrain %s (%s)\n", LT_VERSION, LUA_RELEASE);
  if (!has_script) predefine(L);
  if (!s->ignore_environment && run_init(L) != LUA_OK) return EXIT_FAILURE;
  if (run_option_scripts(L, s) != LUA_OK) return EXIT_FAILURE;
  if (has_script && run_script(L, s) != LUA_OK) return EXIT_FAILURE;
  if (s->interactive || (!has_script && !s->execute && !s->version && at_terminal)) {
    prompt(L);
  } else if (!has_script && !s->execute && !s->version) {
    int status = luaL_loadfile(L, NULL);
    if (status == LUA_OK) status = call(L, 0, 0);
    if (report(L, status) != LUA_OK) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  settings s = {.argc = argc, .argv = argv};
  const char *bad = read_options(&s);
  if (bad != NULL) return usage(bad);
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  const lt_bind_options options = {
      .threads = cpus > 0 ? (int)cpus : 1,
      .policy = {.read_files = true, .write_files = true, .fork = true, .dlopen = true,
                 .network = true}};
  lua_State *L = lt_host_new(&options);
  if (L == NULL) {
    complain("not enough memory for a state");
    return EXIT_FAILURE;
  }
  int status = run(L, &s);
  lua_close(L);
  return status;
}
