/* lua/host/sandbox/patterns.h: a matcher of Lua's patterns that counts its steps. */
#ifndef LT_HOST_SANDBOX_PATTERNS_H
#define LT_HOST_SANDBOX_PATTERNS_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

enum { LT_CAPTURES = 32, LT_CAPTURE_OPEN = -1, LT_CAPTURE_POSITION = -2 };

typedef struct lt_capture {
  const char *start;
  ptrdiff_t length; /* or LT_CAPTURE_OPEN, LT_CAPTURE_POSITION */
} lt_capture;

enum { LT_BYTES_A_STEP = 64 }; /* that are only checked, one after the other */

typedef struct lt_match {
  lua_State *L;
  const char *text, *text_end, *pattern_end;
  int64_t steps; /* not yet charged */
  int depth, level;
  lt_capture capture[LT_CAPTURES];
} lt_match;

/* The end of what the pattern from `p` on matches at `s`, or NULL; raises what Lua does, and when
   the budget is spent. */
const char *lt_match_at(lt_match *m, const char *s, const char *p);

#endif
