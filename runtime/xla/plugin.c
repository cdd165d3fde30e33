/* runtime/xla/plugin.c: opens a PJRT plugin, makes its client, and reports its errors.

   A plugin is opened once a process and never closed: making a second client is not safe with all
   of them. What a plugin may lack or get wrong is checked before it is used. */
#include "xla/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const pjrt_api *api;
static pjrt_client *client;
static pjrt_device *device;
static char platform[64], version[256];
static pid_t opened_by;

/* CompileOptionsProto: executable_build_options (3): num_replicas (4) 1, num_partitions (5) 1. */
static const char compile_options[] = {0x1a, 4, 0x20, 1, 0x28, 1};

#define HEAD(variable) .head = {.size = sizeof(variable)}

/* What is used without a question. */
static const struct {
  int slot;
  const char *name;
} needed[] = {{PJRT_ERROR_DESTROY, "Error_Destroy"},
              {PJRT_ERROR_MESSAGE, "Error_Message"},
              {PJRT_ERROR_CODE, "Error_GetCode"},
              {PJRT_PLUGIN_INITIALIZE, "Plugin_Initialize"},
              {PJRT_EVENT_DESTROY, "Event_Destroy"},
              {PJRT_EVENT_IS_READY, "Event_IsReady"},
              {PJRT_EVENT_AWAIT, "Event_Await"},
              {PJRT_CLIENT_CREATE, "Client_Create"},
              {PJRT_CLIENT_PLATFORM_NAME, "Client_PlatformName"},
              {PJRT_CLIENT_PLATFORM_VERSION, "Client_PlatformVersion"},
              {PJRT_CLIENT_ADDRESSABLE_DEVICES, "Client_AddressableDevices"},
              {PJRT_CLIENT_COMPILE, "Client_Compile"},
              {PJRT_BUFFER_FROM_HOST, "Client_BufferFromHostBuffer"},
              {PJRT_LOADED_EXECUTE, "LoadedExecutable_Execute"},
              {PJRT_BUFFER_DESTROY, "Buffer_Destroy"},
              {PJRT_BUFFER_TO_HOST, "Buffer_ToHostBuffer"}};

pjrt_error *lt_xla_call(int slot, void *args) { return api->slot[slot](args); }

bool lt_xla_has(int slot) {
  size_t end = offsetof(pjrt_api, slot) + ((size_t)slot + 1) * sizeof(pjrt_function *);
  return api->head.size >= end && api->slot[slot] != NULL;
}

const pjrt_version *lt_xla_interface(void) { return &api->version; }

pjrt_client *lt_xla_client(void) { return client; }

pjrt_device *lt_xla_device(int k) { return k == 0 ? device : NULL; }

bool lt_xla_memory(int index, pjrt_memory_stats *out) {
  *out = (pjrt_memory_stats){.head = {.size = sizeof *out}, .device = device};
  return index == 0 && client != NULL && lt_xla_has(PJRT_DEVICE_MEMORY_STATS) &&
         lt_xla_passed(lt_xla_call(PJRT_DEVICE_MEMORY_STATS, out));
}

bool lt_xla_passed(pjrt_error *error) {
  pjrt_error_destroy destroy = {HEAD(destroy), .error = error};
  if (error != NULL) api->slot[PJRT_ERROR_DESTROY](&destroy);
  return error == NULL;
}

void lt_xla_message(const pjrt_error *error, char *text, size_t size) {
  pjrt_error_message m = {HEAD(m), .error = error};
  api->slot[PJRT_ERROR_MESSAGE](&m);
  snprintf(text, size, "%.*s", m.message_size > size ? (int)size : (int)m.message_size, m.message);
}

bool lt_xla_ok(lt_ctx *c, pjrt_error *error, const char *what) {
  if (error == NULL) return true;
  pjrt_error_code code = {HEAD(code), .error = error};
  api->slot[PJRT_ERROR_CODE](&code);
  char message[500], text[800];
  lt_xla_message(error, message, sizeof message);
  snprintf(text, sizeof text, "%s: %s", what, message);
  lt_xla_passed(error);
  return code.code == PJRT_RESOURCE_EXHAUSTED ? lt_xla_host->exhausted(c, lt_xla_name(), 0, text)
                                              : lt_xla_host->fail(c, LT_EDEVICE, text);
}

static bool fail(lt_ctx *c, const char *path, const char *why) {
  char text[600];
  snprintf(text, sizeof text, "xla: %.400s: %.180s", path, why);
  return lt_xla_host->fail(c, LT_EDEVICE, text);
}

static bool check_table(lt_ctx *c, const char *path, const pjrt_api *table) {
  char why[128];
  if (table == NULL) return fail(c, path, "its GetPjrtApi returned nothing");
  size_t least = offsetof(pjrt_api, slot) + PJRT_SLOTS_NEEDED * sizeof(pjrt_function *);
  snprintf(why, sizeof why, "too old: a table of %zu bytes, and %zu are needed", table->head.size,
           least);
  if (table->head.size < least) return fail(c, path, why);
  for (size_t k = 0; k < sizeof needed / sizeof *needed; k++) {
    snprintf(why, sizeof why, "it lacks PJRT_%s", needed[k].name);
    if (table->slot[needed[k].slot] == NULL) return fail(c, path, why);
  }
  return true;
}

/* dlerror names the file first, mostly. */
static bool fail_open(lt_ctx *c, const char *path, const char *why) {
  size_t n = strlen(path);
  bool named = strncmp(why, path, n) == 0 && strncmp(why + n, ": ", 2) == 0;
  return fail(c, path, named ? why + n + 2 : why);
}

static bool open_file(lt_ctx *c, const char *path, const pjrt_api **out) {
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (object == NULL) return fail_open(c, path, dlerror());
  const pjrt_api *(*get)(void);
  *(void **)&get = dlsym(object, "GetPjrtApi");
  if (get == NULL) {
    dlclose(object);
    return fail(c, path, "not a PJRT plugin: it has no GetPjrtApi");
  }
  *out = get();
  return check_table(c, path, *out);
}

/* GPUs: the plugin would take three quarters of the memory at once. */
static bool make_client(lt_ctx *c, const char *path) {
  pjrt_initialize start = {HEAD(start)};
  pjrt_named_value options[] = {{HEAD(options[0]), .name = "preallocate", .name_size = 11,
                                 .type = 4, .value.flag = false, .value_size = 1}};
  bool gpu = strstr(path, "cuda") != NULL || strstr(path, "rocm") != NULL;
  pjrt_client_create make = {HEAD(make), .options = options, .n_options = gpu ? 1 : 0};
  if (!lt_xla_ok(c, api->slot[PJRT_PLUGIN_INITIALIZE](&start), "xla: cannot start the plugin") ||
      !lt_xla_ok(c, api->slot[PJRT_CLIENT_CREATE](&make), "xla: no client of the plugin"))
    return false;
  pjrt_client_devices all = {HEAD(all), .client = make.client};
  if (!lt_xla_ok(c, api->slot[PJRT_CLIENT_ADDRESSABLE_DEVICES](&all), "xla: devices"))
    return false;
  if (all.n == 0) return fail(c, path, "the plugin finds no device");
  pjrt_client_text name = {HEAD(name), .client = make.client};
  pjrt_client_text number = {HEAD(number), .client = make.client};
  if (!lt_xla_ok(c, api->slot[PJRT_CLIENT_PLATFORM_NAME](&name), "xla: platform") ||
      !lt_xla_ok(c, api->slot[PJRT_CLIENT_PLATFORM_VERSION](&number), "xla: version"))
    return false;
  snprintf(platform, sizeof platform, "%.*s", (int)name.text_size, name.text);
  snprintf(version, sizeof version, "%.*s", (int)number.text_size, number.text);
  device = all.devices[0];
  client = make.client;
  return true;
}

static bool open_once(lt_ctx *c) {
  char path[4096], why[256];
  if (client != NULL) return true;
  if (!lt_xla_find_plugin(path, sizeof path, why, sizeof why))
    return lt_xla_host->fail(c, LT_EDEVICE, why);
  if (api == NULL && !open_file(c, path, &api)) {
    api = NULL;
    return false;
  }
  return make_client(c, path);
}

bool lt_xla_plugin_open(lt_ctx *c) {
  pthread_mutex_lock(&lock);
  if (opened_by == 0) opened_by = getpid();
  bool ok = opened_by == getpid()
                ? open_once(c)
                : lt_xla_host->fail(c, LT_EDEVICE,
                                    "xla was used before this process was forked: leave tensors "
                                    "on the CPU before fit, the Trainer moves them");
  pthread_mutex_unlock(&lock);
  return ok;
}

const char *lt_xla_platform(void) { return platform; }

const char *lt_xla_version(void) { return version; }

const char *lt_xla_compile_options(size_t *size) {
  *size = sizeof compile_options;
  return compile_options;
}

pjrt_error *lt_xla_compile(const char *text, size_t size, pjrt_loaded **out) {
  pjrt_program p = {HEAD(p), .code = text, .code_size = size, .format = "mlir", .format_size = 4};
  pjrt_compile a = {HEAD(a), .client = client, .program = &p, .options = compile_options,
                    .options_size = sizeof compile_options};
  pjrt_error *error = api->slot[PJRT_CLIENT_COMPILE](&a);
  *out = error == NULL ? a.loaded : NULL;
  return error;
}

static int type_code(int type) {
  static const int codes[] = {[LT_F32] = 11, [LT_F64] = 12,     [LT_F16] = 10,    [LT_BF16] = 13,
                              [LT_I64] = 5,  [LT_I32] = 4,      [LT_U8] = 6,      [LT_BOOL] = 1,
                              [LT_I16] = 3,  [LT_U16] = 7,      [LT_I8] = 2,
                              [LT_HLO_U32] = 8, [LT_HLO_U64] = 9};
  return codes[type];
}

pjrt_buffer *lt_xla_upload(lt_ctx *c, const void *data, int type, int64_t n) {
  pjrt_from_host a = {HEAD(a), .client = client, .data = data, .type = type_code(type),
                      .dims = &n, .n_dims = 1, .device = device};
  if (!lt_xla_ok(c, api->slot[PJRT_BUFFER_FROM_HOST](&a), "xla: copy to the device")) return NULL;
  pjrt_of_event done = {{offsetof(pjrt_of_event, is_ready), NULL}, .event = a.done};
  if (a.done != NULL) api->slot[PJRT_EVENT_DESTROY](&done);
  return a.buffer;
}

bool lt_xla_download(lt_ctx *c, pjrt_buffer *source, void *to, size_t bytes, pjrt_event **event) {
  pjrt_to_host a = {HEAD(a), .source = source, .to = to, .to_size = bytes};
  if (!lt_xla_ok(c, api->slot[PJRT_BUFFER_TO_HOST](&a), "xla: copy to the host")) return false;
  *event = a.event;
  return true;
}

pjrt_error *lt_xla_execute(pjrt_loaded *loaded, int n_in, pjrt_buffer *const *in,
                           pjrt_buffer **out) {
  pjrt_execute_options options = {HEAD(options)};
  pjrt_execute a = {HEAD(a), .loaded = loaded, .options = &options, .arguments = &in,
                    .n_devices = 1, .n_arguments = (size_t)n_in, .outputs = &out};
  return api->slot[PJRT_LOADED_EXECUTE](&a);
}

void lt_xla_buffer_free(pjrt_buffer *buffer) {
  pjrt_of_buffer a = {HEAD(a), .buffer = buffer};
  if (buffer != NULL) api->slot[PJRT_BUFFER_DESTROY](&a); /* nobody to report an error to */
}

bool lt_xla_event_ready(pjrt_event *event) {
  pjrt_of_event a = {HEAD(a), .event = event};
  return api->slot[PJRT_EVENT_IS_READY](&a) != NULL || a.is_ready;
}

bool lt_xla_event_wait(lt_ctx *c, pjrt_event *event, const char *what) {
  pjrt_of_event a = {{offsetof(pjrt_of_event, is_ready), NULL}, .event = event};
  if (event == NULL) return true;
  bool ok = lt_xla_ok(c, api->slot[PJRT_EVENT_AWAIT](&a), what);
  api->slot[PJRT_EVENT_DESTROY](&a);
  return ok;
}
