/* runtime/base/cpu_load.h: detects other programs on the cores of parallel loops.

   OpenMP's threads spin for some milliseconds before they sleep: the fastest way on cores of our
   own. On cores that others use too a spinning thread burns its time there, and is away when a
   loop needs it. So ltrain looks, ten times a second, how long its threads stood ready to run and
   did not. While that is much, a team of two is left to the first of them, and larger ones sleep
   at once. Nothing may change a result: what depends on the number of threads keeps it. Who sets
   OMP_WAIT_POLICY or GOMP_SPINCOUNT has decided, and nothing is changed. */
#ifndef LT_BASE_CPU_LOAD_H
#define LT_BASE_CPU_LOAD_H

#include "base/ctx.h"

/* Whether the cores are shared, judged by what each look saw. */
typedef struct lt_load_state {
  bool shared;
  int looks;    /* since that changed */
  int interval; /* looks until a shared time is left for a trial; longer while the load lasts */
} lt_load_state;

/* One look: `waiting` threads, on average, stood ready and did not run since the look before. */
void lt_load_judge(lt_load_state *s, double waiting);

/* Seconds that the threads of this process stood ready and did not run, so far; 0 if unknown. */
double lt_load_delay(void);

/* From now on the cores are shared (true), or ours (false). False where that changes nothing. */
bool lt_load_share(lt_ctx *c, bool shared);

/* How many threads a loop shall use that gives the same on any number, c->threads at most; looks,
   when it is time. To be called before each loop on several threads. */
int lt_load_threads(lt_ctx *c);

void lt_load_free(lt_ctx *c); /* with a root ctx, its helpers gone */

#endif
