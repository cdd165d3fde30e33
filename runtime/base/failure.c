/* runtime/base/failure.c: the first failure of a context, its text and its line; what is logged. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/ctx.h"
#include "base/locale.h"
#include "base/printable.h"

/* glibc prints the sign of a NaN, which says nothing: " -nan" becomes " nan". */
static void drop_nan_sign(char *text) {
  for (char *at = text; (at = strstr(at, "-nan")) != NULL;) {
    bool number = at > text && (at[-1] == ' ' || at[-1] == '(' || at[-1] == '{');
    if (number)
      memmove(at, at + 1, strlen(at));
    else
      at++;
  }
}

/* Names and headers of files are in it: whoever prints it prints no escape sequence. */
static void make_printable(char *text, size_t capacity) {
  size_t n = strlen(text);
  char copy[LT_FAILURE_TEXT];
  memcpy(copy, text, n);
  lt_make_printable(text, capacity, copy, n, LT_KEEP_LINES);
}

uint32_t lt_ctx_find_line(lt_ctx *c) {
  c->line = 0; /* of a failure while it is being found */
  if (c->find_line != NULL) c->line = c->find_line(c->line_ud);
  if (c->line_wanted != NULL) *c->line_wanted = c->line;
  c->line_wanted = NULL;
  return c->line;
}

bool lt_fail(lt_ctx *c, lt_code code, const char *format, ...) {
  if (c->failure.code != LT_OK) return false;
  uint32_t line = lt_ctx_line(c); /* which may drop old ones: not in a failed ctx */
  if (c->failure.code != LT_OK) return false;
  c->failure.code = code;
  c->failure.line = line;
  c->failure.deferred = c->failure.of_value = false;
  c->failure.shapes[0] = 0;
  snprintf(c->failure.op, sizeof c->failure.op, "%s", c->op != NULL ? c->op : "");
  va_list args;
  va_start(args, format);
  lt_format_list(c->failure.text, sizeof c->failure.text, format, args);
  va_end(args);
  drop_nan_sign(c->failure.text);
  if (!lt_is_printable(c->failure.text, strlen(c->failure.text), LT_KEEP_LINES))
    make_printable(c->failure.text, sizeof c->failure.text);
  return false;
}

bool lt_take_failure(lt_ctx *c, lt_failure *out) {
  if (c->failure.code == LT_OK) return false;
  if (out != NULL) *out = c->failure;
  c->failure.code = LT_OK;
  return true;
}

void lt_log(lt_ctx *c, lt_level level, const char *format, ...) {
  if (c->log == NULL) return;
  char text[LT_FAILURE_TEXT];
  va_list args;
  va_start(args, format);
  lt_format_list(text, sizeof text, format, args);
  va_end(args);
  c->log(c->log_ud, (int)level, text);
}
