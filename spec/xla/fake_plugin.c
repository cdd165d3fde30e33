/* spec/xla/fake_plugin.c: a PJRT plugin that computes nothing and fails on demand.

   LTRAIN_FAKE_PJRT is what is wrong with it, words between spaces:
     nothing     GetPjrtApi returns NULL
     old         its table ends early
     lacking     it has no Client_Compile
     no_client   Client_Create fails
     no_device   it finds no device
     prints      it prints when it starts
     refuses     programs with a tanh do not compile: the error names the line, as XLA's does
     unclear     these errors do not name it
     slow        programs take two seconds to compile
     exhausted   programs find no memory
     memory      it knows its memory
     other       another version of it
     two         it has two devices, the second with less memory
   Programs return zeros. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xla/pjrt.h"

enum { MOST = 256 };

struct pjrt_error {
  int code;
  char text[256];
};

struct pjrt_buffer {
  size_t size;
  char *data;
};

struct pjrt_loaded {
  char *text;
  size_t text_size, n;
  size_t size[MOST]; /* of results */
};

static bool is(const char *word) {
  const char *all = getenv("LTRAIN_FAKE_PJRT");
  const char *at = all != NULL ? strstr(all, word) : NULL;
  return at != NULL;
}

static pjrt_error *fail(int code, const char *text) {
  pjrt_error *e = malloc(sizeof *e);
  e->code = code;
  snprintf(e->text, sizeof e->text, "%s", text);
  return e;
}

static pjrt_error *error_destroy(void *args) {
  free(((pjrt_error_destroy *)args)->error);
  return NULL;
}

static pjrt_error *error_message(void *args) {
  pjrt_error_message *a = args;
  a->message = a->error->text;
  a->message_size = strlen(a->message);
  return NULL;
}

static pjrt_error *error_code(void *args) {
  pjrt_error_code *a = args;
  a->code = a->error->code;
  return NULL;
}

static pjrt_error *initialize(void *args) {
  (void)args;
  if (is("prints")) puts("the plugin starts");
  return NULL;
}

static pjrt_error *nothing(void *args) {
  (void)args;
  return NULL;
}

static pjrt_error *is_ready(void *args) {
  ((pjrt_of_event *)args)->is_ready = true;
  return NULL;
}

static int the_client, devices[2];

static pjrt_error *client_create(void *args) {
  if (is("no_client")) return fail(2, "no chip answers on this host");
  ((pjrt_client_create *)args)->client = (pjrt_client *)&the_client;
  return NULL;
}

static pjrt_error *platform_name(void *args) {
  pjrt_client_text *a = args;
  a->text = "fake";
  a->text_size = 4;
  return NULL;
}

static pjrt_error *platform_version(void *args) {
  pjrt_client_text *a = args;
  a->text = is("other") ? "2" : "1";
  a->text_size = 1;
  return NULL;
}

static pjrt_error *client_devices(void *args) {
  static pjrt_device *const list[] = {(pjrt_device *)&devices[0], (pjrt_device *)&devices[1]};
  pjrt_client_devices *a = args;
  a->devices = list;
  a->n = is("no_device") ? 0 : is("two") ? 2 : 1;
  return NULL;
}

static pjrt_error *device_description(void *args) {
  pjrt_device_description *a = args;
  a->description = (pjrt_description *)a->device;
  return NULL;
}

static pjrt_error *description_id(void *args) {
  pjrt_description_id *a = args;
  a->id = (const int *)a->description == &devices[1];
  return NULL;
}

static pjrt_error *memory_stats(void *args) {
  pjrt_memory_stats *a = args;
  if (!is("memory")) return fail(12, "not known");
  a->in_use = 3000000;
  a->peak = (pjrt_known){5000000, true};
  a->limit = (pjrt_known){(int *)a->device == &devices[1] ? 7000000 : 8000000, true};
  return NULL;
}

static size_t item_size(const char *type) {
  if (strncmp(type, "i1>", 3) == 0) return 1;
  int bits = atoi(type + strcspn(type, "0123456789"));
  return (size_t)bits / 8;
}

/* The results of @main: flat tensors, "tensor<64xf32>". */
static void find_results(pjrt_loaded *p) {
  const char *at = strstr(p->text, ") -> ("), *end = strchr(at, '\n');
  while ((at = strstr(at, "tensor<")) != NULL && at < end && p->n < MOST) {
    at += strlen("tensor<");
    p->size[p->n++] = (size_t)strtoull(at, (char **)&at, 10) * item_size(at + 1);
  }
}

static pjrt_loaded *loaded_new(const char *text, size_t size) {
  pjrt_loaded *p = calloc(1, sizeof *p);
  p->text = calloc(size + 1, 1);
  p->text_size = size;
  memcpy(p->text, text, size);
  find_results(p);
  return p;
}

static pjrt_error *refuse(const char *text) {
  char message[128];
  const char *found = strstr(text, "stablehlo.tanh");
  int line = 1;
  if (found == NULL) return NULL;
  for (const char *at = text; at < found; at++) line += *at == '\n';
  snprintf(message, sizeof message, "mlir_module:%d:8: error: there is no tanh here", line);
  return fail(3, is("unclear") ? "there is no tanh here" : message);
}

static pjrt_error *compile(void *args) {
  pjrt_compile *a = args;
  struct timespec rest = {2, 0};
  while (is("slow") && nanosleep(&rest, &rest) != 0) {} /* a signal does not end it */
  pjrt_loaded *p = loaded_new(a->program->code, a->program->code_size);
  pjrt_error *error = is("refuses") ? refuse(p->text) : NULL;
  if (error == NULL) a->loaded = p;
  return error;
}

static pjrt_error *loaded_executable(void *args) {
  pjrt_loaded_executable *a = args;
  a->executable = (pjrt_executable *)a->loaded;
  return NULL;
}

static void keep(void *owner) { (void)owner; }

static pjrt_error *serialize(void *args) {
  pjrt_serialize *a = args;
  const pjrt_loaded *p = (const pjrt_loaded *)a->executable;
  a->bytes = p->text;
  a->size = p->text_size;
  a->release = keep;
  return NULL;
}

static pjrt_error *load(void *args) {
  pjrt_load *a = args;
  a->loaded = loaded_new(a->bytes, a->size);
  return NULL;
}

static pjrt_buffer *buffer_new(size_t size) {
  pjrt_buffer *b = malloc(sizeof *b);
  *b = (pjrt_buffer){size, calloc(size + 1, 1)};
  return b;
}

static pjrt_error *from_host(void *args) {
  pjrt_from_host *a = args;
  static const size_t sizes[] = {[1] = 1, [2] = 1, [3] = 2, [4] = 4, [5] = 8, [6] = 1, [7] = 2,
                                 [8] = 4, [9] = 8, [10] = 2, [11] = 4, [12] = 8, [13] = 2};
  a->buffer = buffer_new((size_t)a->dims[0] * sizes[a->type]);
  memcpy(a->buffer->data, a->data, a->buffer->size);
  return NULL;
}

static pjrt_error *execute(void *args) {
  pjrt_execute *a = args;
  if (is("exhausted")) return fail(PJRT_RESOURCE_EXHAUSTED, "cannot allocate 123 bytes");
  for (size_t p = 0; p < a->n_devices; p++)
    for (size_t k = 0; k < a->loaded->n; k++) a->outputs[p][k] = buffer_new(a->loaded->size[k]);
  return NULL;
}

static pjrt_error *buffer_destroy(void *args) {
  pjrt_of_buffer *a = args;
  free(a->buffer->data);
  free(a->buffer);
  return NULL;
}

static pjrt_error *to_host(void *args) {
  pjrt_to_host *a = args;
  memcpy(a->to, a->source->data, a->to_size < a->source->size ? a->to_size : a->source->size);
  return NULL;
}

__attribute__((visibility("default"))) const pjrt_api *GetPjrtApi(void);
const pjrt_api *GetPjrtApi(void) {
  static pjrt_api table = {
      .head = {.size = sizeof table},
      .version = {{.size = sizeof(pjrt_version)}, 0, 70},
      .slot = {[PJRT_ERROR_DESTROY] = error_destroy,
               [PJRT_ERROR_MESSAGE] = error_message,
               [PJRT_ERROR_CODE] = error_code,
               [PJRT_PLUGIN_INITIALIZE] = initialize,
               [PJRT_EVENT_DESTROY] = nothing,
               [PJRT_EVENT_IS_READY] = is_ready,
               [PJRT_EVENT_AWAIT] = nothing,
               [PJRT_CLIENT_CREATE] = client_create,
               [PJRT_CLIENT_PLATFORM_NAME] = platform_name,
               [PJRT_CLIENT_PLATFORM_VERSION] = platform_version,
               [PJRT_CLIENT_ADDRESSABLE_DEVICES] = client_devices,
               [PJRT_CLIENT_COMPILE] = compile,
               [PJRT_BUFFER_FROM_HOST] = from_host,
               [PJRT_DEVICE_DESCRIPTION] = device_description,
               [PJRT_DESCRIPTION_ID] = description_id,
               [PJRT_DEVICE_MEMORY_STATS] = memory_stats,
               [PJRT_EXECUTABLE_DESTROY] = nothing,
               [PJRT_EXECUTABLE_SERIALIZE] = serialize,
               [PJRT_LOADED_DESTROY] = nothing,
               [PJRT_LOADED_EXECUTABLE] = loaded_executable,
               [PJRT_LOADED_EXECUTE] = execute,
               [PJRT_DESERIALIZE_AND_LOAD] = load,
               [PJRT_BUFFER_DESTROY] = buffer_destroy,
               [PJRT_BUFFER_TO_HOST] = to_host}};
  if (is("nothing")) return NULL;
  if (is("old")) table.head.size = offsetof(pjrt_api, slot) + 30 * sizeof(pjrt_function *);
  if (is("lacking")) table.slot[PJRT_CLIENT_COMPILE] = NULL;
  return &table;
}
