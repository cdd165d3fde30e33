/* lua/host/sandbox/budget.h: when a call from the host must end: it was cancelled, or ran for too
   long.

   A call that must end fails in every line of the script, in every operation, and in what Lua's
   own functions charge, whatever the script catches, until control is back at the host. */
#ifndef LT_HOST_SANDBOX_BUDGET_H
#define LT_HOST_SANDBOX_BUDGET_H

#include "host/state.h"

/* A call from the host begins: a new budget. */
void lt_host_arm(ltrain *l);

/* The step that begins pauses after so many seconds, at the next instruction where it can. */
void lt_host_set_deadline(ltrain *l, double seconds);

/* Whether that time is over; never without one. */
bool lt_host_is_due(const ltrain *l);

/* Whether the call must end. */
bool lt_host_ended(const ltrain *l);

/* Raise when the call must end. */
void lt_host_check(lua_State *L);

/* The call has ended: why it had to, for good; NULL when it did not have to. Another may begin. */
const char *lt_host_answer(ltrain *l);

/* Between two of these the library works for a call that has failed, within a budget of its own:
   what the call may still do stays as it is. */
typedef struct lt_host_budget {
  int64_t limit, instructions;
} lt_host_budget;
lt_host_budget lt_host_budget_begin(ltrain *l, int64_t instructions);
void lt_host_budget_end(ltrain *l, lt_host_budget before);

/* Count `n` instructions more, or as much work; raise when that is too much. */
void lt_host_spend(lua_State *L, int64_t n);

/* The same for memory, from any thread: false when that much is beyond the budget. */
bool lt_host_afford(ltrain *l, size_t bytes);

/* The same for elements of views that no memory holds (`ud`: the state): they are charged only
   where the budget is enough. */
bool lt_host_afford_elements(void *ud, int64_t elements);

/* Whether the thread died in a call that had to end. Hooks are off in it for good: nothing could
   end what its variables do as they close. */
bool lt_host_is_lost(lua_State *thread);

/* Called for the binding's threads. */
extern const lt_bind_guard lt_host_guard;

/* Give the state versions of Lua's functions that cannot get around the budget. */
void lt_host_bound(lua_State *L, const ltrain *l);

/* string.find, match, gmatch and gsub that count their steps. */
void lt_host_bound_patterns(lua_State *L);

#endif
