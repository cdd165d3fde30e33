/* runtime/xla/plugin.h: the PJRT plugin of this process, its client, and calls to it. */
#ifndef LT_XLA_PLUGIN_H
#define LT_XLA_PLUGIN_H

#include "ltrain/backend.h"
#include "xla/hlo.h"
#include "xla/pjrt.h"
#include "xla/storage.h"

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
/* Of device k of lt_xla_device. False: the plugin does not know, or is not open. */
bool lt_xla_memory(int k, pjrt_memory_stats *out);
/* The plugin's devices; *n, where it is not NULL, how many they are. */
pjrt_device *const *lt_xla_devices(size_t *n);

enum { LT_CLIENT_OPTIONS = 16 };
/* The options of a plugin's client; how many they are. */
int lt_xla_client_options(const char *plugin, pjrt_named_value list[LT_CLIENT_OPTIONS]);

/* How many of the plugin's devices the device stands for, and device k of these (partitions.c). */
int lt_xla_partitions(void);
pjrt_device *lt_xla_device(int k);
/* Whether it may stand for *n from number *first on; *n 0: all. Sets what it is to be. */
bool lt_xla_may_partition(lt_ctx *c, int *first, int *n);
/* Sets them; true: other devices than before. */
bool lt_xla_partition(int first, int n);
/* Whether n elements that are written to a storage are sharded. */
static inline bool lt_slot_shards(const lt_slot *s, int64_t n) {
  return s->sharded && n % lt_xla_partitions() == 0 && lt_xla_partitions() > 1;
}

/* The text of an error, which stays. */
void lt_xla_message(const pjrt_error *error, char *text, size_t size);
/* A failure in the ctx for an error of the plugin, which is released; `what` was tried. */
bool lt_xla_ok(lt_ctx *c, pjrt_error *error, const char *what);

/* The options with which programs are compiled; returns their bytes. */
enum { LT_COMPILE_OPTIONS = 1024 };
size_t lt_xla_compile_options(char out[LT_COMPILE_OPTIONS]);
pjrt_error *lt_xla_compile(const char *text, size_t size, pjrt_loaded **out);
/* `n` elements of a type of hlo.h in one dim; the data has been read when it returns. */
lt_leaf *lt_leaf_upload(lt_ctx *c, const void *data, int type, int64_t n, bool sharded);
/* Whether the plugin has f64 (narrow.c). n doubles as floats, which the caller frees, NULL: no
   memory; `bytes` of doubles from `offset` on out of all values of a leaf as floats. */
bool lt_xla_has_f64(void);
float *lt_narrow_values(const void *doubles, int64_t n);
void lt_narrow_read(void *to, const void *whole, size_t offset, size_t bytes);
/* Starts the copy of a whole leaf; the event is the caller's. */
bool lt_leaf_download(lt_ctx *c, const lt_leaf *l, void *to, size_t bytes, pjrt_event **event);
/* Gets it, whole, to each of the devices of today, if it is on others. */
bool lt_leaf_spread(lt_ctx *c, lt_leaf *l, int type, int64_t n);
/* Results are sharded or whole, by `sharded`. False: *error is the plugin's, or the failure is in
   the ctx. */
bool lt_xla_execute(lt_ctx *c, pjrt_loaded *loaded, size_t n_in, lt_leaf *const *in, size_t n_out,
                    const char *sharded, lt_leaf **out, pjrt_error **error);
bool lt_xla_event_ready(pjrt_event *event);
/* Waits, and releases the event. */
bool lt_xla_event_wait(lt_ctx *c, pjrt_event *event, const char *what);

#endif
