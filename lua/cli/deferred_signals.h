/* lua/cli/deferred_signals.h: signals that are recorded, for Lua to act on at its next safe point.

   SLURM announces the end of a job with one; what then is to be done needs minutes of a batch's
   time, not an error at the next line. */
#ifndef LT_CLI_DEFERRED_SIGNALS_H
#define LT_CLI_DEFERRED_SIGNALS_H

#include <lua.h>

/* Add note_signal, noted, interrupt and stop_by to the table on top of the stack (services.c). */
void lt_notes_push(lua_State *L);

/* The exit status of the signal that `interrupt` named last: 128 + n; 0 when there was none. */
int lt_notes_status(void);

#endif
