/* lua/bind/core/option_fields.h: reads fields of option tables that stdlib passes. */
#ifndef LT_BIND_CORE_OPTION_FIELDS_H
#define LT_BIND_CORE_OPTION_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

/* `otherwise` where it is absent; raises when it is not a whole number. */
int64_t lt_field_int(lua_State *L, int index, const char *name, int64_t otherwise);

/* 0 where it is absent or no number. */
double lt_field_number(lua_State *L, int index, const char *name);

/* Whether it is there and not false. */
bool lt_field_flag(lua_State *L, int index, const char *name);

/* NULL where it is not a string. The table keeps the text. */
const char *lt_field_text(lua_State *L, int index, const char *name);

#endif
