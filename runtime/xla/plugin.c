/* runtime/xla/plugin.c: opens a PJRT plugin, makes its client, and reports its errors.

   A plugin is opened once a process and never closed: making a second client is not safe with all
   of them. What a plugin may lack or get wrong is checked before it is used. */
#include "xla/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const pjrt_api *api;
static pjrt_client *client;
static char platform[64], version[256];
static pjrt_device *const *devices;
static size_t n_devices;
static pid_t opened_by;

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

/* Warnings of XLA are for those who build compilers; errors come back from calls. */
static bool open_file(lt_ctx *c, const char *path, const pjrt_api **out) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
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

static bool make_client(lt_ctx *c, const char *path) {
  pjrt_initialize start = {HEAD(start)};
  pjrt_named_value options[LT_CLIENT_OPTIONS];
  pjrt_client_create make = {HEAD(make), .options = options,
                             .n_options = (size_t)lt_xla_client_options(path, options)};
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
  devices = all.devices;
  n_devices = all.n;
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

pjrt_device *const *lt_xla_devices(size_t *n) {
  if (n != NULL) *n = n_devices;
  return devices;
}
