/* lua/cli/report.h: calls that end in a text on stderr and an exit status instead of an error. */
#ifndef LT_CLI_REPORT_H
#define LT_CLI_REPORT_H

#include <lua.h>

/* Exit statuses; an interrupt has 128 + its signal. */
enum { LT_EXIT_DONE = 0, LT_EXIT_ERROR = 1, LT_EXIT_USAGE = 2 };

/* A line on stderr, after what was printed. */
void lt_complain(const char *text);

/* Lua's warnings are printed as ours are, after -W or warn "@on"; errors of __gc always. */
void lt_report_warnings(lua_State *L);

/* The exit status of a load; an error is printed and popped. */
int lt_report_load(lua_State *L, int status);

/* Call what lies below `n_args` values. An error is printed with its traceback, and popped. Returns
   an exit status; the results are there when it is LT_EXIT_DONE. */
int lt_call_script(lua_State *L, int n_args, int n_results);

/* Fields of the registry: the whole traceback of the last error of a script; what it returned,
   where a prompt follows. */
#define LT_LAST_STACK "ltrain.last_stack"
#define LT_RETURNED "ltrain.returned"

#endif
