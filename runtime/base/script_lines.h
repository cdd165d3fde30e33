/* runtime/base/script_lines.h: lines of scripts as 32-bit ids, so that nodes and storages can refer
   to theirs. */
#ifndef LT_BASE_SCRIPT_LINES_H
#define LT_BASE_SCRIPT_LINES_H

#include "base/ctx.h"

/* The id of `source`:`line`, interned; 0 when there is no memory. Source is copied. Of very many
   lines the earliest are forgotten. */
uint32_t lt_line_id(lt_ctx *c, const char *source, int line);

/* Its source and line; false for 0 and for what was forgotten. */
bool lt_line_place(const lt_ctx *c, uint32_t id, char *source, size_t size, int *line);

/* Write "model.lua:14" (or "?" for 0 and for what was forgotten) into buffer and return it. */
const char *lt_line_text(const lt_ctx *c, uint32_t id, char *buffer, size_t size);

/* The table itself, made and freed with the root ctx. */
lt_line_table *lt_lines_new(lt_ctx *c);
void lt_lines_free(lt_ctx *c, lt_line_table *t);

#endif
