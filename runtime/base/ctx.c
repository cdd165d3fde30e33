/* runtime/base/ctx.c: contexts: making, failing, frames. */
#include "base/ctx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "base/load.h"
#include "base/locale.h"
#include "base/printable.h"
#include "base/threads.h"

static void *malloc_allocator(void *ud, void *ptr, size_t old_size, size_t new_size) {
  (void)ud, (void)old_size;
  if (new_size == 0) {
    free(ptr);
    return NULL;
  }
  return realloc(ptr, new_size);
}

static lt_ctx *ctx_make(const lt_registry *registry, const lt_allocator *allocator) {
  static const lt_allocator standard = {.fn = malloc_allocator};
  if (allocator == NULL) allocator = &standard;
  lt_ctx *c = allocator->fn(allocator->ud, NULL, 0, sizeof *c);
  if (c == NULL) return NULL;
  memset(c, 0, sizeof *c);
  c->memory.allocator = *allocator;
  c->registry = registry;
  c->threads = 1;
  c->modes = (lt_modes){.grad = true, .autocast_dtype = LT_BF16};
  return c;
}

lt_ctx *lt_ctx_new(const lt_registry *registry, const lt_allocator *allocator) {
  lt_ctx *c = ctx_make(registry, allocator);
  if (c == NULL) return NULL;
  c->root = c;
  c->cancel = &c->cancel_flag;
  c->lines = lt_lines_new(c);
  c->helpers = lt_helpers_new(c);
  if (c->lines == NULL || c->helpers == NULL) {
    lt_ctx_release(c);
    return NULL;
  }
  return c;
}

lt_ctx *lt_ctx_child(lt_ctx *parent) {
  lt_ctx *c = ctx_make(parent->registry, &parent->memory.allocator);
  if (c == NULL) return NULL;
  c->root = parent->root;
  c->cancel = parent->cancel;
  c->lines = parent->lines;
  c->helpers = parent->helpers;
  c->rng = parent->rng;
  c->policy = parent->policy;
  c->log = parent->log;
  c->log_ud = parent->log_ud;
  return c;
}

void lt_ctx_release(lt_ctx *c) {
  if (c == NULL) return;
  bool is_root = c->root == c;
  if (is_root && c->helpers != NULL) lt_quiesce(c);
  lt_frame_close(c, 0, 0, NULL);
  if (c->settle != NULL) c->settle(c);
  for (int i = LT_SLOT_COUNT - 1; i >= 0; i--)
    if (c->slot[i] != NULL && c->slot_drop[i] != NULL) c->slot_drop[i](c, c->slot[i]);
  if (is_root) {
    lt_load_free(c);
    lt_helpers_free(c, c->helpers);
    lt_lines_free(c, c->lines);
  }
  lt_free(c, c->frame.items, (size_t)c->frame.capacity * sizeof *c->frame.items);
  lt_memory_trim(c);
  lt_allocator allocator = c->memory.allocator;
  allocator.fn(allocator.ud, c, sizeof *c, 0);
}

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
static void make_printable(char *text, size_t room) {
  size_t n = strlen(text);
  char copy[LT_FAILURE_TEXT];
  memcpy(copy, text, n);
  lt_make_printable(text, room, copy, n, LT_KEEP_LINES);
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
  uint32_t line = lt_ctx_line(c); /* which may make room for a new one: not in a failed ctx */
  if (c->failure.code != LT_OK) return false;
  c->failure.code = code;
  c->failure.line = line;
  c->failure.late = c->failure.of_value = false;
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

void lt_cancel(lt_ctx *c, bool on) { atomic_store(c->cancel, on); }

lt_frame lt_frame_open(lt_ctx *c) { return c->frame.count; }

bool lt_frame_add(lt_ctx *c, void *object) {
  if (c->frame.count == c->frame.capacity) {
    int64_t capacity = c->frame.capacity == 0 ? 64 : 2 * c->frame.capacity;
    lt_object **items = lt_realloc(c, c->frame.items, (size_t)c->frame.capacity * sizeof *items,
                                   (size_t)capacity * sizeof *items);
    if (items == NULL) {
      lt_release(c, object);
      return false;
    }
    c->frame.items = items;
    c->frame.capacity = capacity;
  }
  c->frame.items[c->frame.count++] = object;
  return true;
}

void lt_frame_close(lt_ctx *c, lt_frame frame, int n_keep, void *const *keep) {
  for (int i = 0; i < n_keep; i++) lt_retain(keep[i]);
  while (c->frame.count > frame) lt_release(c, c->frame.items[--c->frame.count]);
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
