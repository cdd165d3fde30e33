/* spec/xla/narrow_plugin.c: a PJRT plugin without f64: the one that LTRAIN_WIDE_PJRT names, but for
   programs and buffers of f64, which it refuses, under the name of a platform that nobody knows. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xla/pjrt.h"

static const pjrt_api *wide;

/* An error of its own would need more than the table's functions: the wide plugin makes one. */
static pjrt_error *refuse(pjrt_client *client) {
  static const char text[] = "there is no f64 here";
  pjrt_program p = {.head = {.size = sizeof p}, .code = text, .code_size = sizeof text - 1,
                    .format = "mlir", .format_size = 4};
  pjrt_compile a = {.head = {.size = sizeof a}, .client = client, .program = &p};
  return wide->slot[PJRT_CLIENT_COMPILE](&a);
}

static bool has_f64(const char *text, size_t size) {
  for (size_t k = 0; k + 3 <= size; k++)
    if (memcmp(text + k, "f64", 3) == 0) return true;
  return false;
}

static pjrt_error *compile(void *args) {
  const pjrt_compile *a = args;
  if (has_f64(a->program->code, a->program->code_size)) return refuse(a->client);
  return wide->slot[PJRT_CLIENT_COMPILE](args);
}

static pjrt_error *from_host(void *args) {
  const pjrt_from_host *a = args;
  enum { F64 = 12, C128 = 15 };
  if (a->type == F64 || a->type == C128) return refuse(a->client);
  return wide->slot[PJRT_BUFFER_FROM_HOST](args);
}

static pjrt_error *platform_name(void *args) {
  pjrt_client_text *a = args;
  a->text = "narrow";
  a->text_size = strlen(a->text);
  return NULL;
}

__attribute__((visibility("default"))) const pjrt_api *GetPjrtApi(void);
const pjrt_api *GetPjrtApi(void) {
  const char *path = getenv("LTRAIN_WIDE_PJRT");
  void *object = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  const pjrt_api *(*get)(void) = NULL;
  if (object != NULL) *(void **)&get = dlsym(object, "GetPjrtApi");
  if (get == NULL || (wide = get()) == NULL) return NULL;
  pjrt_api *table = malloc(wide->head.size > sizeof *table ? wide->head.size : sizeof *table);
  if (table == NULL) return NULL;
  memcpy(table, wide, wide->head.size);
  table->slot[PJRT_CLIENT_COMPILE] = compile;
  table->slot[PJRT_BUFFER_FROM_HOST] = from_host;
  table->slot[PJRT_CLIENT_PLATFORM_NAME] = platform_name;
  return table;
}
