/* lua/host/sandbox/strings.c: string.find, match, gmatch and gsub on the matcher that counts its
   steps.

   Results and errors are those of Lua's lstrlib.c, so that scripts see no difference but the
   budget. They replace the functions in the table `string`, and with it the methods of strings. */
#include <string.h>

#include <lauxlib.h>

#include "host/sandbox/budget.h"
#include "host/sandbox/patterns.h"

static lt_match begin(lua_State *L, const char *text, size_t length, const char *pattern,
                      size_t pattern_length) {
  return (lt_match){.L = L,
                    .text = text,
                    .text_end = text + length,
                    .pattern_end = pattern + pattern_length};
}

/* What is left to charge. */
static void end(lt_match *m) {
  lt_host_spend(m->L, m->steps);
  m->steps = 0;
}

/* Push capture k of the match from `s` to `e`; the whole where there are none. */
static void push_capture(const lt_match *m, int k, const char *s, const char *e) {
  if (k >= m->level) {
    if (k != 0) luaL_error(m->L, "invalid capture index %%%d", k + 1);
    lua_pushlstring(m->L, s, (size_t)(e - s));
    return;
  }
  ptrdiff_t length = m->capture[k].length;
  if (length == LT_CAPTURE_OPEN) luaL_error(m->L, "unfinished capture");
  if (length == LT_CAPTURE_POSITION)
    lua_pushinteger(m->L, m->capture[k].start - m->text + 1);
  else
    lua_pushlstring(m->L, m->capture[k].start, (size_t)length);
}

/* Push all captures; the whole match where there are none and `whole` says so. */
static int push_captures(const lt_match *m, const char *s, const char *e, bool whole) {
  int n = m->level == 0 && whole ? 1 : m->level;
  luaL_checkstack(m->L, n, "too many captures");
  for (int k = 0; k < n; k++) push_capture(m, k, s, e);
  return n;
}

/* The offset that argument 3 stands for, beyond `length` when the search begins behind the text. */
static size_t start_of(lua_State *L, size_t length) {
  lua_Integer at = luaL_optinteger(L, 3, 1);
  if (at > 0) return (size_t)at - 1;
  if (at == 0 || at < -(lua_Integer)length) return 0;
  return length - (size_t)-at;
}

static bool is_plain(const char *pattern, size_t length) {
  for (size_t k = 0; k < length; k++)
    if (pattern[k] != 0 && strchr("^$*+?.([%-", pattern[k]) != NULL) return false;
  return true;
}

static int find_plain(lua_State *L, const char *text, size_t length, size_t at, const char *wanted,
                      size_t size) {
  lt_host_spend(L, (int64_t)(length - at) / LT_BYTES_A_STEP);
  const char *found = memmem(text + at, length - at, wanted, size);
  if (found == NULL) {
    lua_pushnil(L);
    return 1;
  }
  lua_pushinteger(L, found - text + 1);
  lua_pushinteger(L, found - text + (lua_Integer)size);
  return 2;
}

/* Without an anchor the matcher is tried at each position: up to O(length) matches, each of which
   may backtrack. */
static int search(lua_State *L, bool find) {
  size_t length, size;
  const char *text = luaL_checklstring(L, 1, &length), *p = luaL_checklstring(L, 2, &size);
  size_t at = start_of(L, length);
  if (at > length) {
    lua_pushnil(L);
    return 1;
  }
  if (find && (lua_toboolean(L, 4) != 0 || is_plain(p, size)))
    return find_plain(L, text, length, at, p, size);
  lt_match m = begin(L, text, length, p, size);
  bool anchored = *p == '^';
  const char *s = text + at, *e = lt_match_at(&m, s, p + anchored);
  while (e == NULL && !anchored && s < m.text_end) e = lt_match_at(&m, ++s, p);
  end(&m);
  if (e == NULL) {
    lua_pushnil(L);
    return 1;
  }
  if (!find) return push_captures(&m, s, e, true);
  lua_pushinteger(L, s - text + 1);
  lua_pushinteger(L, e - text);
  return push_captures(&m, s, e, false) + 2;
}

static int find(lua_State *L) { return search(L, true); }

static int match(lua_State *L) { return search(L, false); }

/* gmatch */

/* `last` keeps an empty match from being found twice at one place (Lua 5.4). */
typedef struct matches {
  const char *pattern, *next, *last; /* where to continue, where the last match ended */
  lt_match m;
} matches;

/* Upvalues: the text, the pattern, the matches. */
static int next_match(lua_State *L) {
  matches *all = lua_touserdata(L, lua_upvalueindex(3));
  all->m.L = L;
  for (const char *s = all->next; s <= all->m.text_end; s++) {
    const char *e = lt_match_at(&all->m, s, all->pattern);
    if (e == NULL || e == all->last) continue;
    all->next = all->last = e;
    end(&all->m);
    return push_captures(&all->m, s, e, true);
  }
  all->next = all->m.text_end + 1;
  end(&all->m);
  return 0;
}

static int gmatch(lua_State *L) {
  size_t length, size;
  const char *text = luaL_checklstring(L, 1, &length), *p = luaL_checklstring(L, 2, &size);
  size_t at = start_of(L, length);
  lua_settop(L, 2);
  matches *all = lua_newuserdatauv(L, sizeof *all, 0);
  *all = (matches){.pattern = p, .m = begin(L, text, length, p, size)};
  all->next = text + (at > length ? length + 1 : at);
  lua_pushcclosure(L, next_match, 3);
  return 1;
}

/* gsub */

/* Add the text of argument 3, with what its "%1" stand for. */
static void add_text(const lt_match *m, luaL_Buffer *out, const char *s, const char *e) {
  size_t length;
  const char *text = lua_tolstring(m->L, 3, &length), *text_end = text + length, *mark;
  while ((mark = memchr(text, '%', (size_t)(text_end - text))) != NULL) {
    luaL_addlstring(out, text, (size_t)(mark - text));
    if (mark[1] == '%') {
      luaL_addchar(out, '%');
    } else if (mark[1] == '0') {
      luaL_addlstring(out, s, (size_t)(e - s));
    } else if (mark[1] >= '1' && mark[1] <= '9') {
      push_capture(m, mark[1] - '1', s, e);
      luaL_tolstring(m->L, -1, NULL); /* a position */
      lua_remove(m->L, -2);
      luaL_addvalue(out);
    } else {
      luaL_error(m->L, "invalid use of '%%' in replacement string");
    }
    text = mark + 2;
  }
  luaL_addlstring(out, text, (size_t)(text_end - text));
}

/* Add what takes the place of the match; false: it stays. */
static bool add_value(const lt_match *m, luaL_Buffer *out, const char *s, const char *e, int kind) {
  lua_State *L = m->L;
  if (kind == LUA_TFUNCTION) {
    lua_pushvalue(L, 3);
    lua_call(L, push_captures(m, s, e, true), 1);
  } else if (kind == LUA_TTABLE) {
    push_capture(m, 0, s, e);
    lua_gettable(L, 3);
  } else {
    add_text(m, out, s, e);
    return true;
  }
  if (lua_toboolean(L, -1) == 0) {
    lua_pop(L, 1);
    luaL_addlstring(out, s, (size_t)(e - s));
    return false;
  }
  if (lua_isstring(L, -1) == 0)
    luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
  luaL_addvalue(out);
  return true;
}

/* The loop is lstrlib.c's: an empty match at the end of the match before is passed over (Lua
   5.4). */
static int gsub(lua_State *L) {
  size_t length, size;
  const char *s = luaL_checklstring(L, 1, &length), *p = luaL_checklstring(L, 2, &size);
  int kind = lua_type(L, 3);
  lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)length + 1), n = 0;
  luaL_argexpected(L,
                   kind == LUA_TNUMBER || kind == LUA_TSTRING || kind == LUA_TFUNCTION ||
                       kind == LUA_TTABLE,
                   3, "string/function/table");
  bool anchored = *p == '^', changed = false;
  lt_match m = begin(L, s, length, p, size);
  luaL_Buffer out;
  luaL_buffinit(L, &out);
  for (const char *last = NULL; n < most;) {
    const char *e = lt_match_at(&m, s, p + anchored);
    if (e != NULL && e != last) {
      n++;
      if (add_value(&m, &out, s, e, kind)) changed = true;
      s = last = e;
    } else if (s < m.text_end) {
      luaL_addchar(&out, *s++);
    } else {
      break;
    }
    if (anchored) break;
  }
  end(&m);
  luaL_addlstring(&out, s, (size_t)(m.text_end - s));
  luaL_pushresult(&out);
  if (!changed) lua_pushvalue(L, 1);
  lua_pushinteger(L, n);
  return 2;
}

void lt_host_bound_patterns(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"find", find}, {"match", match}, {"gmatch", gmatch}, {"gsub", gsub}, {NULL, NULL}};
  lua_getglobal(L, "string");
  luaL_setfuncs(L, functions, 0);
  lua_pop(L, 1);
}
