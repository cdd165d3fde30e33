/* lua/cli/main.c: the program. Subcommands are written in Lua (stdlib/cli); without one it behaves
   as stock `lua` does (stock_lua.c). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "apps/apps.h"
#include "base/cores.h"
#include "base/locale.h"
#include "base/threads.h"
#include "bind/open.h"
#include "cli/output.h"
#include "cli/stock_lua.h"
#include "cli/report.h"
#include "cli/services.h"
#include "cli/shell.h"
#include "cli/signals.h"
#include "host/install.h"
#include "registry.h"

/* Threads that operations use: OMP_NUM_THREADS, else the cores that this process may use. */
static int default_threads(void) {
  const char *wanted = getenv("OMP_NUM_THREADS");
  long value = wanted == NULL ? 0 : strtol(wanted, NULL, 10);
  if (value <= 0) return lt_core_count();
  if (value <= LT_MAX_THREADS) return (int)value;
  fprintf(stderr, "ltrain: note: OMP_NUM_THREADS=%.20s: %d threads are used\n", wanted,
          LT_MAX_THREADS);
  return LT_MAX_THREADS;
}

/* What was printed must have arrived: a full disk is reported when buffers are flushed. */
static void close_output(void) {
  bool failed = ferror(stdout) != 0;
  if (fflush(stdout) == 0 && !failed) return;
  fputs("ltrain: cannot write standard output\n", stderr);
  _exit(LT_EXIT_ERROR);
}

/* Words are letters only: anything else is a file, and no Lua need be loaded to know. */
static bool may_be_word(const char *name) {
  return *name != 0 && name[strspn(name, "abcdefghijklmnopqrstuvwxyz")] == 0;
}

/* Push stdlib/cli's function. */
static bool push_cli(lua_State *L, const char *function) {
  lt_push_require(L);
  lua_pushliteral(L, "ltrain.cli");
  if (lt_call_script(L, 1, 1) != LT_EXIT_DONE) return false;
  lua_getfield(L, -1, function);
  lua_remove(L, -2);
  return true;
}

/* Whether it is a word; what keeps it from being found out (Ctrl-C) ends the program with *status.
 */
static bool is_word(lua_State *L, const char *name, int *status) {
  if (!may_be_word(name)) return false;
  *status = LT_EXIT_ERROR;
  if (!push_cli(L, "is_word")) return false;
  lua_pushstring(L, name);
  *status = lt_call_script(L, 1, 1);
  bool found = *status == LT_EXIT_DONE && lua_toboolean(L, -1);
  lua_settop(L, 0);
  return found;
}

static int run_word(lua_State *L, int argc, char **argv) {
  if (!push_cli(L, "main")) return LT_EXIT_ERROR;
  lua_createtable(L, argc - 1, 0);
  for (int k = 1; k < argc; k++) {
    lua_pushstring(L, argv[k]);
    lua_rawseti(L, -2, k);
  }
  lt_push_services(L);
  int status = lt_call_script(L, 2, 1);
  return status == LT_EXIT_DONE ? (int)lua_tointeger(L, -1) : status;
}

static int say_help(lua_State *L) {
  if (!push_cli(L, "help") || lt_call_script(L, 0, 1) != LT_EXIT_DONE) return LT_EXIT_ERROR;
  fputs(lua_tostring(L, -1), stdout);
  return LT_EXIT_DONE;
}

/* The first argument is not a word: if it is not a file either it was meant as one. */
static bool is_misspelt_word(lua_State *L, const char *name) {
  if (!may_be_word(name)) return false;
  if (access(name, F_OK) == 0) return false;
  if (!push_cli(L, "suggest")) return false;
  lua_pushstring(L, name);
  if (lt_call_script(L, 1, 1) != LT_EXIT_DONE) return false;
  fprintf(stderr, "ltrain: no command and no file is called '%s'%s\n", name, lua_tostring(L, -1));
  return true;
}

static int run(lua_State *L, const lt_plain *p) {
  int status = LT_EXIT_DONE;
  if (p->argc > 1 && is_word(L, p->argv[1], &status)) return run_word(L, p->argc, p->argv);
  if (status != LT_EXIT_DONE) return lt_signals_status() != 0 ? lt_signals_status() : status;
  if (p->help) return say_help(L);
  if (p->script < p->argc && is_misspelt_word(L, p->argv[p->script])) return LT_EXIT_USAGE;
  return lt_plain_run(L, p);
}

/* Whether a prompt follows the script of a command word. */
static bool asks_for_prompt(int argc, char **argv) {
  for (int k = 2; k < argc && strcmp(argv[k], "--") != 0; k++)
    if (strcmp(argv[k], "-i") == 0) return true;
  return false;
}

int main(int argc, char **argv) {
  lt_locale_enter(); /* for good */
  if (getenv("LTRAIN_LAUNCH") != NULL) setvbuf(stdout, NULL, _IOLBF, 0); /* it may kill this rank */
  atexit(close_output);
  signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of its write */
  lt_plain p = {.argc = argc, .argv = argv};
  if (!lt_plain_read(&p)) return LT_EXIT_USAGE;
  if (p.ignore_environment) {
    unsetenv("LTRAIN_STDLIB");
    unsetenv("LUA_PATH"); /* read when the package library opens */
    unsetenv("LUA_PATH_5_4");
    unsetenv("LUA_CPATH");
    unsetenv("LUA_CPATH_5_4");
  }
  const lt_bind_options options = {
      .threads = default_threads(),
      /* the prompt survives its ranks */
      .owns_process = !p.interactive && p.argc > 1 && !asks_for_prompt(argc, argv),
      .policy = {.read_files = true,
                 .write_files = true,
                 .fork = true,
                 .dlopen = true,
                 .network = true,
                 .environment = true}};
  lua_State *L = lt_host_new(&options);
  if (L == NULL) {
    const char *refusal = lt_registry_here()->refusal;
    lt_complain(refusal[0] != 0 ? refusal : "not enough memory for a state");
    return LT_EXIT_ERROR;
  }
  lt_report_warnings(L);
  lt_signals_install(L);
  lt_shell_install(L);
  lt_offer_services(L);
  lt_output_install(L);
  int status = lt_signals_end(run(L, &p));
  lt_signals_release();
  lua_close(L);
  lt_apps_close();
  return status;
}
