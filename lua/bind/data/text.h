/* lua/bind/data/text.h: tokenizers for the library's own Lua (`c.text`). */
#ifndef LT_BIND_DATA_TEXT_H
#define LT_BIND_DATA_TEXT_H

#include "bind/core/state.h"
#include "text/tokenizer.h"

/* Found at index 1 as lt_bind_io is: see state.h. */
void lt_bind_text(lua_State *L, lt_bind *b);
void lt_bind_text_tokens(lua_State *L, lt_bind *b); /* after it: to its table */

/* text.trainer(pattern, lowercase) -> trainer (text_train.c) */
int lt_text_trainer(lua_State *L);
void lt_bind_trainer(lua_State *L, lt_bind *b);

/* The tokenizer at `index`. */
lt_tokenizer *lt_check_tokenizer(lua_State *L, int index);

#endif
