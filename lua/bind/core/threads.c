/* lua/bind/core/threads.c: the current Lua thread, and its debug hooks: the debugger's, the end of
   a rank after a failure, the current line.

   An outcome ends waits by itself; a rank that computes, loops or catches every error must be ended
   too. Its main thread is signalled: the handler hooks the Lua thread that runs, and the hook
   raises the outcome's text in every line of the script (never in the library's own code, which
   takes the run down) until control has reached the frame that started the ranks. Threads that are
   resumed meanwhile are hooked as they are entered. */
#include "bind/core/threads.h"

#include "bind/core/current_line.h"
#include "launch/launch.h"

lua_State *lt_bind_running(const lt_bind *b) { return b->running != NULL ? b->running : b->L; }

void lt_stops_hook(const lt_bind *b, lua_State *thread) {
  lua_sethook(thread, b->stops.hook, b->stops.hook != NULL ? LUA_MASKLINE : 0, 0);
}

enum { EVERY_EVENT = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT };

static void raise_outcome(lua_State *L, lua_Debug *ar) {
  lt_bind *b = lt_bind_get(L);
  if (b == NULL || b->c == NULL || !b->waking) {
    lua_sethook(L, NULL, 0, 0);
    return;
  }
  const lt_outcome *v = lt_world_outcome(lt_world_current(b->c));
  if (v == NULL || lua_getinfo(L, "S", ar) == 0 || lt_source_is_ours(ar->source)) return;
  if (*ar->what == 'C') return; /* at its next line: a function of C may be ours */
  lua_pushstring(L, v->text);
  lua_error(L);
}

static void hook_outcome(lua_State *L) { lua_sethook(L, raise_outcome, EVERY_EVENT, 1); }

lua_State *lt_bind_enter_thread(lt_bind *b, lua_State *thread) {
  lua_State *before = b->running;
  b->running = thread;
  if (b->stops.hook != NULL) lt_stops_hook(b, thread);
  if (b->waking) hook_outcome(thread);
  if (b->guard != NULL) b->guard->enter(thread);
  return before;
}

/* In a signal handler: nothing but lua_sethook, which may be called there. */
void lt_bind_wake(void *ud) {
  lt_bind *b = ud;
  b->waking = 1;
  hook_outcome(lt_bind_running(b));
}

/* Once; a hook that came meanwhile is left alone by lt_bind_locate. */
static void note_line(lua_State *L, lua_Debug *ar) {
  (void)ar;
  lt_bind *b = lt_bind_get(L);
  lua_sethook(L, NULL, 0, 0);
  if (b == NULL || b->c == NULL || b->c->line_watch == NULL) return;
  uint32_t line = lt_script_line(L, b, 0);
  if (line != 0) atomic_store_explicit(b->c->line_watch, line, memory_order_relaxed);
}

/* In a signal handler. A rank that only loops calls nothing of ours, which would note its line.
   What a debugger, a budget or the script has hooked stays. */
void lt_bind_locate(void *ud) {
  lt_bind *b = ud;
  lua_State *L = lt_bind_running(b);
  lua_Hook hook = lua_gethook(L);
  if (hook == NULL || hook == note_line) lua_sethook(L, note_line, LUA_MASKCOUNT, 1);
}

void lt_bind_calm(lua_State *L, lt_bind *b) {
  b->waking = 0;
  lt_stops_hook(b, L);
}
