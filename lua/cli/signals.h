/* lua/cli/signals.h: what SIGINT and SIGTERM do in the binary. Never part of the library.

   The first one asks: a running Trainer loop sees it between two batches, saves and raises; a
   script without one gets an error at its next line, and after SIGTERM, if it catches that, again.
   The second one ends the process at once; what comes within LT_SIGNAL_TWICE_MS is the first. */
#ifndef LT_CLI_SIGNALS_H
#define LT_CLI_SIGNALS_H

#include <lua.h>
#include <stdbool.h>

/* Take the signals over for the state, which has a binding; leave it alone before it closes. */
void lt_signals_install(lua_State *L);
void lt_signals_release(void);

/* In a handler: whether the kernel chose another thread, of a library, for the signal; then it is
   sent on to the state's, which may be waiting and is what the handler is about. */
bool lt_signals_forward(int number);

/* Take another signal as SIGTERM is taken. */
void lt_signals_also(int number);

/* While the prompt waits for a line a signal must wake it: no restart of the read, and any number
   of Ctrl-C. */
void lt_signals_reading(bool on);

/* Signals that are still pending. */
int lt_signals_pending(void);
void lt_signals_clear(void);

/* Whether the ranks have failed, of which this process is one: nobody waits for a line any more. */
bool lt_signals_over(void);

/* The exit status that the last signal asks for: 130, 143; 0 when there was none. */
int lt_signals_status(void);

/* The status of a script that ended with `status`: a SIGTERM that it caught counts. */
int lt_signals_end(int status);

/* Whether a signal raised an error in the script since the last lt_signals_clear. */
bool lt_signals_stopped(void);

#endif
