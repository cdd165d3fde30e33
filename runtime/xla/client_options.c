/* runtime/xla/client_options.c: options of the plugin's client: LTRAIN_PJRT_OPTIONS, a list like
   "cpu_device_count=8,memory_fraction=0.5,preallocate=false", which each plugin defines. */
#include <stdlib.h>
#include <string.h>

#include "xla/plugin.h"

static void set_value(pjrt_named_value *v, const char *text, size_t size) {
  char *end = NULL;
  int64_t integer = strtoll(text, &end, 10);
  *v = (pjrt_named_value){.head = {.size = sizeof *v}, .name = v->name, .name_size = v->name_size,
                          .value_size = 1};
  if (size > 0 && end == text + size) {
    v->type = 1, v->value.integer = integer;
    return;
  }
  float number = strtof(text, &end);
  if (size > 0 && end == text + size) {
    v->type = 3, v->value.number = number;
  } else if (size == 4 && memcmp(text, "true", 4) == 0) {
    v->type = 4, v->value.flag = true;
  } else if (size == 5 && memcmp(text, "false", 5) == 0) {
    v->type = 4, v->value.flag = false;
  } else {
    v->type = 0, v->value.text = text, v->value_size = size;
  }
}

static bool is_set(const pjrt_named_value *list, int n, const char *name) {
  for (int k = 0; k < n; k++)
    if (list[k].name_size == strlen(name) && memcmp(list[k].name, name, list[k].name_size) == 0)
      return true;
  return false;
}

/* GPUs: the plugin would take three quarters of the memory at once. */
int lt_xla_client_options(const char *plugin, pjrt_named_value list[LT_CLIENT_OPTIONS]) {
  int n = 0;
  const char *at = getenv("LTRAIN_PJRT_OPTIONS");
  while (at != NULL && *at != 0 && n < LT_CLIENT_OPTIONS - 1) {
    size_t size = strcspn(at, ",");
    const char *equals = memchr(at, '=', size);
    if (equals != NULL) {
      list[n].name = at;
      list[n].name_size = (size_t)(equals - at);
      set_value(&list[n++], equals + 1, size - (size_t)(equals + 1 - at));
    }
    at += size + (at[size] == ',');
  }
  bool gpu = strstr(plugin, "cuda") != NULL || strstr(plugin, "rocm") != NULL;
  if (gpu && !is_set(list, n, "preallocate")) {
    list[n].name = "preallocate";
    list[n].name_size = 11;
    set_value(&list[n++], "false", 5);
  }
  return n;
}
