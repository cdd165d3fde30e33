/* runtime/xla/pjrt.h: the part of PJRT's C interface that the backend uses.

   Our own declarations of a published layout (xla/pjrt/c/pjrt_c_api.h of openxla/xla). Functions
   take one struct that begins with its own size, and return NULL or an error. Structs and the
   table of functions only grow at their ends, so that these serve older and newer plugins: the
   table's size says which slots it has. */
#ifndef LT_XLA_PJRT_H
#define LT_XLA_PJRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pjrt_error pjrt_error;
typedef struct pjrt_event pjrt_event;
typedef struct pjrt_client pjrt_client;
typedef struct pjrt_device pjrt_device;
typedef struct pjrt_loaded pjrt_loaded; /* a program, compiled and loaded */
typedef struct pjrt_buffer pjrt_buffer;
typedef struct pjrt_executable pjrt_executable;
typedef struct pjrt_description pjrt_description; /* of a device */

typedef pjrt_error *pjrt_function(void *args);

typedef struct pjrt_head {
  size_t size;
  void *extension;
} pjrt_head;

typedef struct pjrt_version {
  pjrt_head head;
  int major, minor;
} pjrt_version;

enum { PJRT_SLOTS = 132 };
typedef struct pjrt_api {
  pjrt_head head;
  pjrt_version version;
  pjrt_function *slot[PJRT_SLOTS]; /* as many as head.size has room for */
} pjrt_api;

enum {
  PJRT_ERROR_DESTROY = 0,
  PJRT_ERROR_MESSAGE = 1,
  PJRT_ERROR_CODE = 2,
  PJRT_PLUGIN_INITIALIZE = 3,
  PJRT_EVENT_DESTROY = 5,
  PJRT_EVENT_IS_READY = 6,
  PJRT_EVENT_AWAIT = 8,
  PJRT_CLIENT_CREATE = 10,
  PJRT_CLIENT_PLATFORM_NAME = 12,
  PJRT_CLIENT_PLATFORM_VERSION = 14,
  PJRT_CLIENT_ADDRESSABLE_DEVICES = 16,
  PJRT_CLIENT_COMPILE = 20,
  PJRT_BUFFER_FROM_HOST = 22,
  PJRT_DESCRIPTION_ID = 23,
  PJRT_DESCRIPTION_KIND = 26,
  PJRT_DEVICE_DESCRIPTION = 29,
  PJRT_DEVICE_MEMORY_STATS = 34,
  PJRT_EXECUTABLE_DESTROY = 40,
  PJRT_EXECUTABLE_SERIALIZE = 49,
  PJRT_LOADED_DESTROY = 50,
  PJRT_LOADED_EXECUTABLE = 51,
  PJRT_LOADED_EXECUTE = 55,
  PJRT_DESERIALIZE_AND_LOAD = 56,
  PJRT_BUFFER_DESTROY = 58,
  PJRT_BUFFER_TO_HOST = 70,
  PJRT_SLOTS_NEEDED = 71
};

enum { PJRT_RESOURCE_EXHAUSTED = 8 }; /* an error's code */

typedef struct pjrt_error_destroy {
  pjrt_head head;
  pjrt_error *error;
} pjrt_error_destroy;

typedef struct pjrt_error_message {
  pjrt_head head;
  const pjrt_error *error;
  const char *message;
  size_t message_size;
} pjrt_error_message;

typedef struct pjrt_error_code {
  pjrt_head head;
  const pjrt_error *error;
  int code;
} pjrt_error_code;

typedef struct pjrt_initialize {
  pjrt_head head;
} pjrt_initialize;

/* Destroy, await. */
typedef struct pjrt_of_event {
  pjrt_head head;
  pjrt_event *event;
  bool is_ready; /* of PJRT_EVENT_IS_READY alone */
} pjrt_of_event;

typedef struct pjrt_named_value {
  pjrt_head head;
  const char *name;
  size_t name_size;
  int type; /* 0 text, 1 i64, 2 list of i64, 3 float, 4 bool */
  union {
    const char *text;
    int64_t integer;
    const int64_t *list;
    float number;
    bool flag;
  } value;
  size_t value_size;
} pjrt_named_value;

typedef struct pjrt_client_create {
  pjrt_head head;
  const pjrt_named_value *options;
  size_t n_options;
  void *kv_get, *kv_get_arg, *kv_put, *kv_put_arg; /* the store of a job of several hosts */
  pjrt_client *client;
  void *kv_try_get, *kv_try_get_arg;
} pjrt_client_create;

/* The platform's name, its version. */
typedef struct pjrt_client_text {
  pjrt_head head;
  pjrt_client *client;
  const char *text;
  size_t text_size;
} pjrt_client_text;

typedef struct pjrt_client_devices {
  pjrt_head head;
  pjrt_client *client;
  pjrt_device *const *devices;
  size_t n;
} pjrt_client_devices;

typedef struct pjrt_description_id {
  pjrt_head head;
  pjrt_description *description;
  int id;
} pjrt_description_id;

typedef struct pjrt_program {
  pjrt_head head;
  const char *code;
  size_t code_size;
  const char *format;
  size_t format_size;
} pjrt_program;

typedef struct pjrt_compile {
  pjrt_head head;
  pjrt_client *client;
  const pjrt_program *program;
  const char *options; /* a CompileOptionsProto */
  size_t options_size;
  pjrt_loaded *loaded;
} pjrt_compile;

typedef struct pjrt_loaded_executable {
  pjrt_head head;
  pjrt_loaded *loaded;
  pjrt_executable *executable; /* the caller's to destroy */
} pjrt_loaded_executable;

typedef struct pjrt_of_executable {
  pjrt_head head;
  pjrt_executable *executable;
} pjrt_of_executable;

typedef struct pjrt_serialize {
  pjrt_head head;
  const pjrt_executable *executable;
  const char *bytes;
  size_t size;
  void *owner;
  void (*release)(void *owner);
} pjrt_serialize;

typedef struct pjrt_load {
  pjrt_head head;
  pjrt_client *client;
  const char *bytes;
  size_t size;
  pjrt_loaded *loaded;
  const char *options;
  size_t options_size;
} pjrt_load;

typedef struct pjrt_device_description {
  pjrt_head head;
  pjrt_device *device;
  pjrt_description *description;
} pjrt_device_description;

typedef struct pjrt_kind {
  pjrt_head head;
  pjrt_description *description;
  const char *kind; /* "NVIDIA H100 80GB HBM3" */
  size_t size;
} pjrt_kind;

/* A number that a plugin may not know. */
typedef struct pjrt_known {
  int64_t value;
  bool is_known;
} pjrt_known;

typedef struct pjrt_memory_stats {
  pjrt_head head;
  pjrt_device *device;
  int64_t in_use;
  pjrt_known peak, allocations, largest, limit;
  pjrt_known reserved, peak_reserved, reservable, largest_free, pool, peak_pool;
} pjrt_memory_stats;

typedef struct pjrt_from_host {
  pjrt_head head;
  pjrt_client *client;
  const void *data;
  int type;
  const int64_t *dims;
  size_t n_dims;
  const int64_t *byte_strides;
  size_t n_byte_strides;
  int semantics; /* 0: the data has been read when the call returns */
  pjrt_device *device;
  void *memory;
  void *layout;
  pjrt_event *done;
  pjrt_buffer *buffer;
} pjrt_from_host;

typedef struct pjrt_of_buffer {
  pjrt_head head;
  pjrt_buffer *buffer;
} pjrt_of_buffer;

typedef struct pjrt_to_host {
  pjrt_head head;
  pjrt_buffer *source;
  void *layout;
  void *to;
  size_t to_size;
  pjrt_event *event;
} pjrt_to_host;

typedef struct pjrt_execute_options {
  pjrt_head head;
  void *send, *recv;
  size_t n_send, n_recv;
  int launch_id;
  const int64_t *keep; /* inputs that are not donated */
  size_t n_keep;
  void *context;
  const char *call_location;
  size_t n_tasks;
  int *tasks;
  int64_t *incarnations;
  void *slices;
  bool major_to_minor;
  void *hlo;
  size_t n_hlo;
} pjrt_execute_options;

typedef struct pjrt_execute {
  pjrt_head head;
  pjrt_loaded *loaded;
  const pjrt_execute_options *options;
  pjrt_buffer *const *const *arguments; /* [device][argument] */
  size_t n_devices, n_arguments;
  pjrt_buffer **const *outputs;
  pjrt_event **done;
  pjrt_device *device;
} pjrt_execute;

#endif
