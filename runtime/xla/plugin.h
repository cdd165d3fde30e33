/* runtime/xla/plugin.h: the PJRT plugin of this process, its client, and calls to it. */
#ifndef LT_XLA_PLUGIN_H
#define LT_XLA_PLUGIN_H

#include "ltrain/backend.h"
#include "xla/hlo.h"
#include "xla/pjrt.h"

extern const lt_host *lt_xla_host;

/* Finds the plugin's file, without opening it; false: `why`. */
bool lt_xla_find_plugin(char *path, size_t size, char *why, size_t why_size);

/* Opens the plugin and makes its client, at the first call of a process. */
bool lt_xla_plugin_open(lt_ctx *c);
/* "cpu", "0.115": of the open plugin. */
const char *lt_xla_platform(void);

/* A failure in the ctx for an error of the plugin, which is released; `what` was tried. */
bool lt_xla_ok(lt_ctx *c, pjrt_error *error, const char *what);

/* NULL: a failure in the ctx. */
pjrt_loaded *lt_xla_compile(lt_ctx *c, const char *text, size_t size);
/* `n` elements in one dim; the data has been read when it returns. `type`: of hlo.h. */
pjrt_buffer *lt_xla_upload(lt_ctx *c, const void *data, int type, int64_t n);
/* Starts the copy of a whole buffer; the event is the caller's. */
bool lt_xla_download(lt_ctx *c, pjrt_buffer *source, void *to, size_t bytes, pjrt_event **event);
bool lt_xla_execute(lt_ctx *c, pjrt_loaded *loaded, int n_in, pjrt_buffer *const *in,
                    pjrt_buffer **out);
void lt_xla_buffer_free(pjrt_buffer *buffer);
bool lt_xla_event_ready(pjrt_event *event);
/* Waits, and releases the event. */
bool lt_xla_event_wait(lt_ctx *c, pjrt_event *event, const char *what);

#endif
