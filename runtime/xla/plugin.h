/* runtime/xla/plugin.h: the PJRT plugin of this process, its client, and calls to it. */
#ifndef LT_XLA_PLUGIN_H
#define LT_XLA_PLUGIN_H

#include "ltrain/backend.h"
#include "xla/hlo.h"
#include "xla/pjrt.h"

extern const lt_host *lt_xla_host;

/* Finds the plugin's file, without opening it; false: `why`. */
bool lt_xla_find_plugin(char *path, size_t size, char *why, size_t why_size);

/* The name of the devices: that before the file in LTRAIN_PJRT_PLUGIN, else "xla". */
const char *lt_xla_name(void);

/* Opens the plugin and makes its client, at the first call of a process. */
bool lt_xla_plugin_open(lt_ctx *c);
/* "cpu": of the open plugin. */
const char *lt_xla_platform(void);
const char *lt_xla_version(void);
const pjrt_version *lt_xla_interface(void);
/* Calls a function of the plugin's table; whether the table has it: those from
   PJRT_SLOTS_NEEDED on, and some others that not all plugins have. */
pjrt_error *lt_xla_call(int slot, void *args);
bool lt_xla_has(int slot);
/* Releases an error that need not be reported; true: there was none. */
bool lt_xla_passed(pjrt_error *error);
pjrt_client *lt_xla_client(void);
pjrt_device *lt_xla_device(int k);
/* False: the plugin does not know, or is not open. */
bool lt_xla_memory(int index, pjrt_memory_stats *out);

/* The text of an error, which stays. */
void lt_xla_message(const pjrt_error *error, char *text, size_t size);
/* A failure in the ctx for an error of the plugin, which is released; `what` was tried. */
bool lt_xla_ok(lt_ctx *c, pjrt_error *error, const char *what);

/* The options with which programs are compiled. */
const char *lt_xla_compile_options(size_t *size);
pjrt_error *lt_xla_compile(const char *text, size_t size, pjrt_loaded **out);
/* `n` elements in one dim; the data has been read when it returns. `type`: of hlo.h. */
pjrt_buffer *lt_xla_upload(lt_ctx *c, const void *data, int type, int64_t n);
/* Starts the copy of a whole buffer; the event is the caller's. */
bool lt_xla_download(lt_ctx *c, pjrt_buffer *source, void *to, size_t bytes, pjrt_event **event);
pjrt_error *lt_xla_execute(pjrt_loaded *loaded, int n_in, pjrt_buffer *const *in,
                           pjrt_buffer **out);
void lt_xla_buffer_free(pjrt_buffer *buffer);
bool lt_xla_event_ready(pjrt_event *event);
/* Waits, and releases the event. */
bool lt_xla_event_wait(lt_ctx *c, pjrt_event *event, const char *what);

#endif
