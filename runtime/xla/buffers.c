/* runtime/xla/buffers.c: leaves: copies to and from them, programs that run on them. */
#include <stdlib.h>
#include <string.h>

#include "xla/plugin.h"
#include "xla/storage.h"

#define HEAD(variable) .head = {.size = sizeof(variable)}
/* Plugins check the size of these structs, which end before `is_ready`. */
#define EVENT_HEAD {offsetof(pjrt_of_event, is_ready), NULL}

static lt_leaf *leaf_new(lt_ctx *c, bool sharded) {
  lt_leaf *l = calloc(1, sizeof *l);
  if (l == NULL) lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory");
  else *l = (lt_leaf){.users = 1, .n = lt_xla_partitions(), .sharded = sharded,
                     .first = lt_xla_device(0)};
  return l;
}

lt_leaf *lt_leaf_retain(lt_leaf *l) {
  l->users++;
  return l;
}

static void free_buffers(lt_leaf *l) {
  for (int k = 0; k < l->n; k++) {
    pjrt_of_buffer a = {HEAD(a), .buffer = l->buffers[k]};
    if (l->buffers[k] != NULL) lt_xla_call(PJRT_BUFFER_DESTROY, &a); /* nobody to report it to */
  }
}

void lt_leaf_release(lt_leaf *l) {
  if (l == NULL || --l->users > 0) return;
  free_buffers(l);
  free(l);
}

static int type_code(int type) {
  static const int codes[] = {[LT_F32] = 11, [LT_F64] = 12,     [LT_F16] = 10,    [LT_BF16] = 13,
                              [LT_I64] = 5,  [LT_I32] = 4,      [LT_U8] = 6,      [LT_BOOL] = 1,
                              [LT_I16] = 3,  [LT_U16] = 7,      [LT_I8] = 2,
                              [LT_HLO_U32] = 8, [LT_HLO_U64] = 9};
  return codes[type];
}

static pjrt_buffer *upload(lt_ctx *c, const void *data, int type, int64_t n, int k) {
  pjrt_from_host a = {HEAD(a), .client = lt_xla_client(), .data = data, .type = type_code(type),
                      .dims = &n, .n_dims = 1, .device = lt_xla_device(k)};
  if (!lt_xla_ok(c, lt_xla_call(PJRT_BUFFER_FROM_HOST, &a), "xla: copy to the device"))
    return NULL;
  pjrt_of_event done = {EVENT_HEAD, .event = a.done};
  if (a.done != NULL) lt_xla_call(PJRT_EVENT_DESTROY, &done);
  return a.buffer;
}

lt_leaf *lt_leaf_upload(lt_ctx *c, const void *data, int type, int64_t n, bool sharded) {
  bool narrows = lt_hlo_stored(type) != type;
  float *narrow = narrows ? lt_narrow_values(data, n) : NULL;
  if (narrows) data = narrow, type = lt_hlo_stored(type);
  lt_leaf *l = leaf_new(c, sharded);
  bool ok = l != NULL && (!narrows || narrow != NULL);
  for (int k = 0; ok && k < l->n; k++) {
    int64_t part = sharded ? n / l->n : n;
    size_t at = sharded ? (size_t)(part * k) * lt_hlo_bytes(type) : 0;
    l->buffers[k] = upload(c, (const char *)data + at, type, part, k);
    ok = l->buffers[k] != NULL;
  }
  free(narrow);
  if (ok) return l;
  if (narrows && narrow == NULL) lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory");
  lt_leaf_release(l);
  return NULL;
}

static bool download(lt_ctx *c, pjrt_buffer *source, void *to, size_t bytes, pjrt_event **event) {
  pjrt_to_host a = {HEAD(a), .source = source, .to = to, .to_size = bytes};
  if (!lt_xla_ok(c, lt_xla_call(PJRT_BUFFER_TO_HOST, &a), "xla: copy to the host")) return false;
  *event = a.event;
  return true;
}

/* Parts but the last are waited for: only what a script has sharded is read so. */
bool lt_leaf_download(lt_ctx *c, const lt_leaf *l, void *to, size_t bytes, pjrt_event **event) {
  int parts = l->sharded ? l->n : 1;
  size_t each = bytes / (size_t)parts;
  for (int k = 0; k < parts; k++) {
    if (k > 0 && !lt_xla_event_wait(c, *event, "xla: copy to the host")) return false;
    if (!download(c, l->buffers[k], (char *)to + each * (size_t)k, each, event)) return false;
  }
  return true;
}

bool lt_leaf_spread(lt_ctx *c, lt_leaf *l, int type, int64_t n) {
  type = lt_hlo_stored(type);
  size_t bytes = (size_t)n * lt_hlo_bytes(type);
  pjrt_event *event = NULL;
  if (l->n == lt_xla_partitions() && l->first == lt_xla_device(0)) return true;
  char *host = malloc(bytes + 1);
  if (host == NULL) return lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory");
  bool ok = lt_leaf_download(c, l, host, bytes, &event) &&
            lt_xla_event_wait(c, event, "xla: copy to the host");
  lt_leaf *other = ok ? lt_leaf_upload(c, host, type, n, false) : NULL;
  free(host);
  if (other == NULL) return false;
  other->users = l->users;
  lt_leaf before = *l;
  *l = *other;
  free_buffers(&before);
  free(other);
  return true;
}

static bool leaves_new(lt_ctx *c, size_t n, const char *sharded, lt_leaf **out) {
  for (size_t k = 0; k < n; k++) {
    if ((out[k] = leaf_new(c, sharded[k] != 0)) != NULL) continue;
    while (k > 0) lt_leaf_release(out[--k]);
    return false;
  }
  return true;
}

/* Runs it with a list of arguments and one of results for each device, in `all`. */
static pjrt_error *execute(pjrt_loaded *loaded, size_t n_in, lt_leaf *const *in, size_t n_out,
                           lt_leaf **out, pjrt_buffer **all) {
  pjrt_buffer *const *arguments[LT_PARTITIONS];
  pjrt_buffer **results[LT_PARTITIONS];
  int parts = lt_xla_partitions();
  for (int p = 0; p < parts; p++, all += n_in + n_out) {
    for (size_t k = 0; k < n_in; k++) all[k] = in[k]->buffers[p];
    arguments[p] = all;
    results[p] = all + n_in;
  }
  pjrt_execute_options options = {HEAD(options)};
  pjrt_execute a = {HEAD(a), .loaded = loaded, .options = &options, .arguments = arguments,
                    .n_devices = (size_t)parts, .n_arguments = n_in, .outputs = results};
  pjrt_error *error = lt_xla_call(PJRT_LOADED_EXECUTE, &a);
  for (size_t k = 0; k < n_out && error == NULL; k++)
    for (int p = 0; p < parts; p++) out[k]->buffers[p] = results[p][k];
  return error;
}

bool lt_xla_execute(lt_ctx *c, pjrt_loaded *loaded, size_t n_in, lt_leaf *const *in, size_t n_out,
                    const char *sharded, lt_leaf **out, pjrt_error **error) {
  *error = NULL;
  pjrt_buffer **all = calloc((size_t)lt_xla_partitions() * (n_in + n_out) + 1, sizeof *all);
  if (all == NULL) return lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory");
  bool ok = leaves_new(c, n_out, sharded, out);
  if (ok) *error = execute(loaded, n_in, in, n_out, out, all);
  for (size_t k = 0; k < n_out && *error != NULL; k++) lt_leaf_release(out[k]);
  free(all);
  return ok && *error == NULL;
}

bool lt_xla_event_ready(pjrt_event *event) {
  pjrt_of_event a = {HEAD(a), .event = event};
  return lt_xla_call(PJRT_EVENT_IS_READY, &a) != NULL || a.is_ready;
}

bool lt_xla_event_wait(lt_ctx *c, pjrt_event *event, const char *what) {
  pjrt_of_event a = {EVENT_HEAD, .event = event};
  if (event == NULL) return true;
  bool ok = lt_xla_ok(c, lt_xla_call(PJRT_EVENT_AWAIT, &a), what);
  lt_xla_call(PJRT_EVENT_DESTROY, &a);
  return ok;
}
