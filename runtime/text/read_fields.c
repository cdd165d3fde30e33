/* runtime/text/read_fields.c: reads fields of a tokenizer.json, with errors that name the field. */
#include "text/read_tokenizer.h"

#include <stdarg.h>
#include <stdio.h>

bool lt_read_refuse(lt_reading *r, const char *field, const char *format, ...) {
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return lt_fail(r->c, LT_EIO, "%s: %s %s", r->what, field, text);
}

const char *lt_read_type(lt_reading *r, const char *field, const json_t *value) {
  const char *type = json_string_value(json_object_get(value, "type"));
  if (!json_is_object(value))
    lt_read_refuse(r, field, "must be an object");
  else if (type == NULL)
    lt_read_refuse(r, field, "has no type");
  return lt_ok(r->c) ? type : NULL;
}

bool lt_read_flag(lt_reading *r, const char *field, const json_t *object, const char *name,
                  bool absent, bool *out) {
  const json_t *value = json_object_get(object, name);
  *out = value == NULL || json_is_null(value) ? absent : json_is_true(value);
  if (value == NULL || json_is_null(value) || json_is_boolean(value)) return true;
  char path[LT_FIELD];
  snprintf(path, sizeof path, "%s.%s", field, name);
  return lt_read_refuse(r, path, "must be true or false");
}

bool lt_read_sequence(lt_reading *r, const char *field, const json_t *value, const char *list,
                      bool (*each)(lt_reading *, const char *field, const json_t *value)) {
  const json_t *members = json_object_get(value, list);
  char path[LT_FIELD];
  snprintf(path, sizeof path, "%s.%s", field, list);
  if (!json_is_array(members)) return lt_read_refuse(r, path, "must be a list");
  for (size_t k = 0; k < json_array_size(members); k++) {
    snprintf(path, sizeof path, "%s.%s[%zu]", field, list, k);
    if (!each(r, path, json_array_get(members, k))) return false;
  }
  return true;
}
