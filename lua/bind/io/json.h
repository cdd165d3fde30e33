/* lua/bind/io/json.h: conversion between Lua tables and JSON. */
#ifndef LT_BIND_IO_JSON_H
#define LT_BIND_IO_JSON_H

#include "bind/core/state.h"
#include "io/json.h"

/* io.json_encode(value [, {plain = true}]) -> text. Keys of objects are sorted; an empty table is
   {}; 1 and 1.0 stay apart. Exact unless plain: what json_decode gives back is the same value bit
   for bit (see io/json.h). Raises on what JSON has no form for. */
int lt_json_encode(lua_State *L);

/* io.json_decode(text [, {plain = true}]) -> value, or nil and what is wrong. Null becomes nil. */
int lt_json_decode(lua_State *L);

/* Whether the options at an index ask for plain JSON. */
bool lt_json_is_plain(lua_State *L, int index);

/* Push a userdata that owns an empty text: freed also when Lua raises in the middle. */
lt_json *lt_push_text(lua_State *L, lt_bind *b);

/* Make the kind of that userdata. */
void lt_bind_json(lua_State *L, lt_bind *b);

#endif
