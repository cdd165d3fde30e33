/* lua/bind/core/current_line.h: finds the current line of the running script, and its Module. */
#ifndef LT_BIND_CORE_CURRENT_LINE_H
#define LT_BIND_CORE_CURRENT_LINE_H

#include <string.h>

#include "bind/core/state.h"

/* Whether a chunk's source name is one of the library's: those that no file can have, "=ltrain" and
   "=ltrain.nn.Linear". */
static inline bool lt_source_is_ours(const char *source) {
  return strncmp(source, "=ltrain", 7) == 0 && (source[7] == '.' || source[7] == 0);
}

/* The script's line is that of the call that begins now. */
uint32_t lt_find_line(void *ud); /* the ctx finds it so; ud: the binding */
static inline void lt_note_line(lt_bind *b) {
  lt_ctx_set_line(b->c, b->c->line_watch != NULL ? lt_find_line(b) : LT_LINE_LATER);
}

/* The id of the script's line that is running, from `level` on (a hook's own is 0), 0: none. */
uint32_t lt_script_line(lua_State *L, lt_bind *b, int level);

/* The script's innermost line, its short name into `file`; 0 and "" when no script is running. */
int lt_script_place(lua_State *L, lt_bind *b, char *file, size_t size);

/* runtime.path_of(file) -> the whole path of a file that messages name (current_line.c). */
int lt_path_of(lua_State *L);

/* Push "model.lua:14: " of the script's innermost line. Where none of its frames is on the stack,
   of the function in runtime.places whose work this is, or "". */
void lt_push_where(lua_State *L);

/* Add runtime.places to the table on top: functions of the script. `hook` is the one that runs, and
   may have gone in a tail call; `source` gave what is being read; `script` is the main chunk. */
void lt_add_places(lua_State *L);

/* The function at `index` is the script's main chunk. */
void lt_set_script(lua_State *L, int index);

/* Push the path of the innermost Module on the stack ("Net.head"), or nil. */
void lt_push_module_path(lua_State *L);

#endif
