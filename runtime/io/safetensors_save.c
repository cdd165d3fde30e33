/* runtime/io/safetensors_save.c: writing safetensors files.

   In the order of the reference's writer: by dtype, the widest first, which keeps each tensor
   aligned to its elements, then by name: equal contents are equal files. */
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/safetensors.h"
#include "io/safetensors_types.h"

enum { MAX_HEADER = 100000000, MAX_METADATA = MAX_HEADER / 2 };

/* A tensor to write; `kept` is the one whose bytes it shares, itself when it brings its own. */
typedef struct item {
  const char *name;
  lt_tensor *tensor;
  int format;
  int64_t order, kept;
} item;

static const lt_dtype_info *row_of(const lt_tensor *t) { return lt_dtype_row((lt_dtype)t->dtype); }

static int compare(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

/* Order in which equal views of one storage become neighbours. */
static int by_view(const void *a, const void *b) {
  const lt_tensor *x = ((const item *)a)->tensor, *y = ((const item *)b)->tensor;
  if (x->storage->id != y->storage->id) return x->storage->id < y->storage->id ? -1 : 1;
  int r = compare(x->offset, y->offset);
  if (r == 0) r = compare(x->dtype, y->dtype);
  if (r == 0) r = compare(x->ndim, y->ndim);
  for (int i = 0; r == 0 && i < x->ndim; i++) r = compare(x->size[i], y->size[i]);
  for (int i = 0; r == 0 && i < x->ndim; i++) r = compare(x->stride[i], y->stride[i]);
  return r;
}

static int by_view_and_order(const void *a, const void *b) {
  int r = by_view(a, b);
  return r != 0 ? r : compare(((const item *)a)->order, ((const item *)b)->order);
}

/* lt_formats is in the order of the reference's writer, the widest elements first: a header that is
   padded to 8 bytes, and widths that only shrink, keep every tensor aligned to its elements without
   gaps. */
static int by_place(const void *a, const void *b) {
  const item *x = a, *y = b;
  return x->format != y->format ? compare(x->format, y->format) : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const item *)a)->name, ((const item *)b)->name);
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const lt_metadata *)a)->key, ((const lt_metadata *)b)->key);
}

/* Sorted by name, equal names are neighbors. Callers sort again: the order of their list does not
   matter. */
static bool check_names(lt_ctx *c, const char *op, int64_t n, item *items) {
  if (n > 1) qsort(items, (size_t)n, sizeof *items, by_name);
  for (int64_t i = 0; i < n; i++) {
    if (strcmp(items[i].name, "__metadata__") == 0)
      return lt_fail(c, LT_EARG, "%s: no tensor can be called '__metadata__'", op);
    if (i > 0 && strcmp(items[i - 1].name, items[i].name) == 0)
      return lt_fail(c, LT_EARG, "%s: two tensors are called '%.100s'", op, items[i].name);
  }
  return true;
}

static void key_and_colon(lt_json *w, bool first, const char *key) {
  if (!first) lt_json_char(w, ',');
  lt_json_string(w, key, strlen(key));
  lt_json_char(w, ':');
}

/* The names that share another's bytes, as a JSON object; their items are moved behind the others.
   Returns how many items bring bytes. */
static int64_t split_aliases(int64_t n, item *items, lt_json *w) {
  if (n > 1) qsort(items, (size_t)n, sizeof *items, by_view_and_order);
  const char **kept_name = lt_alloc(w->c, (size_t)n * sizeof *kept_name + 1);
  if (kept_name == NULL) return 0;
  for (int64_t i = 0; i < n; i++) {
    bool same = i > 0 && items[i].tensor->numel > 0 && by_view(&items[i - 1], &items[i]) == 0;
    items[i].kept = same ? items[i - 1].kept : items[i].order;
    if (items[i].kept == items[i].order) kept_name[items[i].order] = items[i].name;
  }
  if (n > 1) qsort(items, (size_t)n, sizeof *items, by_name);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    if (items[i].kept == items[i].order) {
      items[count++] = items[i];
      continue;
    }
    const char *name = kept_name[items[i].kept];
    lt_json_char(w, w->size == 0 ? '{' : ',');
    lt_json_string(w, items[i].name, strlen(items[i].name));
    lt_json_char(w, ':');
    lt_json_string(w, name, strlen(name));
  }
  if (w->size > 0) lt_json_char(w, '}');
  lt_free(w->c, kept_name, (size_t)n * sizeof *kept_name + 1);
  return count;
}

/* Keys in order of their bytes, ltrain's own among them, so that equal contents are equal files;
   hence the merge of one more key into a sorted list. Zero bytes are refused because many readers
   end a string there. */
static void write_metadata(lt_json *w, const char *op, int64_t n, lt_metadata *metadata,
                           const lt_json *aliases) {
  bool first = true, aliases_done = aliases->size == 0;
  if (n == 0 && aliases_done) return;
  if (n > 1) qsort(metadata, (size_t)n, sizeof *metadata, by_key);
  key_and_colon(w, true, "__metadata__");
  lt_json_char(w, '{');
  for (int64_t i = 0; i <= n; i++) {
    if (!aliases_done && (i == n || strcmp(metadata[i].key, LT_ALIASES_KEY) > 0)) {
      key_and_colon(w, first, LT_ALIASES_KEY);
      lt_json_string(w, aliases->data, aliases->size);
      first = false;
      aliases_done = true;
    }
    if (i == n) break;
    if (metadata[i].value_size > MAX_METADATA)
      lt_fail(w->c, LT_EARG, "%s: metadata '%.100s' is larger than %d bytes", op, metadata[i].key,
              MAX_METADATA);
    if (memchr(metadata[i].value, 0, metadata[i].value_size) != NULL)
      lt_fail(w->c, LT_EARG, "%s: metadata '%.100s' contains a zero byte", op, metadata[i].key);
    if (strcmp(metadata[i].key, LT_ALIASES_KEY) == 0)
      lt_fail(w->c, LT_EARG, "%s: the metadata key '%s' is ltrain's own", op, LT_ALIASES_KEY);
    if (i > 0 && strcmp(metadata[i - 1].key, metadata[i].key) == 0)
      lt_fail(w->c, LT_EARG, "%s: two metadata keys '%.100s'", op, metadata[i].key);
    key_and_colon(w, first, metadata[i].key);
    lt_json_string(w, metadata[i].value, metadata[i].value_size);
    first = false;
  }
  lt_json_char(w, '}');
}

/* "name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]} */
static void write_entry(lt_json *w, bool first, const item *t, int64_t begin, int64_t end) {
  const char *format = lt_formats[t->format].name;
  key_and_colon(w, first, t->name);
  lt_json_raw(w, "{\"dtype\":\"", 10);
  lt_json_raw(w, format, strlen(format));
  lt_json_raw(w, "\",\"shape\":[", 11);
  for (int i = 0; i < t->tensor->ndim; i++) {
    if (i > 0) lt_json_char(w, ',');
    lt_json_integer(w, t->tensor->size[i]);
  }
  lt_json_raw(w, "],\"data_offsets\":[", 18);
  lt_json_integer(w, begin);
  lt_json_char(w, ',');
  lt_json_integer(w, end);
  lt_json_raw(w, "]}", 2);
}

static size_t bytes_of(const lt_tensor *t) { return (size_t)t->numel * lt_item_size(t); }

/* Begins with the 8 bytes of the length, which are filled in last. */
static bool write_header(lt_json *w, const char *op, int64_t count, const item *items,
                         int64_t n_metadata, lt_metadata *metadata, const lt_json *aliases) {
  lt_json_raw(w, "\0\0\0\0\0\0\0\0{", 9);
  write_metadata(w, op, n_metadata, metadata, aliases);
  int64_t at = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t end = at + (int64_t)bytes_of(items[i].tensor);
    write_entry(w, w->size == 9, &items[i], at, end);
    at = end;
  }
  lt_json_char(w, '}');
  while (lt_ok(w->c) && w->size % 8 != 0) lt_json_char(w, ' ');
  if (!lt_ok(w->c)) return false;
  uint64_t n = w->size - 8;
  if (n > MAX_HEADER)
    return lt_fail(w->c, LT_EARG, "%s: names and metadata take %zu bytes, the format allows %d", op,
                   w->size, MAX_HEADER);
  for (int i = 0; i < 8; i++) w->data[i] = (char)(n >> (8 * i));
  uint32_t crc;
  char digits[9], *crc_at = n_metadata > 0 ? lt_header_crc(w->data + 8, n, &crc) : NULL;
  if (crc_at == NULL) return true;
  snprintf(digits, sizeof digits, "%08x", (unsigned)crc);
  memcpy(crc_at, digits, 8);
  return true;
}

/* Where the bytes of tensors come from: they are in memory, and made dense, or are asked for. */
typedef struct source {
  lt_tensor *(*dense)(lt_ctx *c, lt_tensor *t);
  lt_fill fill;
  void *ud;
} source;

/* The header is written already, with the offsets that the announced tensor has: another size would
   shift all that follows. */
static lt_tensor *filled(lt_ctx *c, const lt_saving *file, const item *it, const source *from) {
  lt_tensor *t = from->fill(c, from->ud, it->name);
  if (t == NULL) return NULL;
  if (t->dtype == it->tensor->dtype && t->numel == it->tensor->numel && t->contiguous) return t;
  lt_fail(c, LT_EARG, "%s: tensor '%.100s' is another one than was announced", file->op, it->name);
  return NULL;
}

static bool write_tensor(lt_ctx *c, lt_saving *file, const item *it, const source *from) {
  lt_frame frame = lt_frame_open(c);
  lt_tensor *t = it->tensor;
  if (from->fill != NULL) t = filled(c, file, it, from);
  else if (!t->contiguous && from->dense != NULL) t = from->dense(c, t);
  bool ok = t != NULL && lt_assert(c, t->contiguous);
  size_t n = ok ? bytes_of(t) : 0;
  if (n > 0 && lt_device_table(c, t->storage->device)->host_memory) {
    const void *bytes = lt_tensor_ptr(c, t, LT_READ);
    ok = bytes != NULL && lt_saving_write(c, file, bytes, n);
  } else if (n > 0) {
    void *bounce = lt_alloc(c, n);
    ok = bounce != NULL && lt_tensor_read(c, t, bounce) && lt_saving_write(c, file, bounce, n);
    lt_free(c, bounce, n);
  }
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

/* What a file will have: its header, and the tensors that bring bytes in their order. */
typedef struct layout {
  lt_json header;
  item *items;
  int64_t count, n;
} layout;

static void discard(lt_ctx *c, layout *l) {
  lt_json_free(&l->header);
  lt_free(c, l->items, (size_t)l->n * sizeof *l->items + 1);
}

/* False with a failure and nothing to discard. */
static bool make_layout(lt_ctx *c, layout *l, const char *op, int64_t n,
                        const lt_named_tensor *tensors, int64_t n_metadata, lt_metadata *metadata) {
  if (!lt_ok(c) || !lt_device_synchronize_all(c)) return false; /* a late error comes first */
  for (int64_t k = 0; k < n; k++)
    if (!lt_check_data(c, op, tensors[k].tensor)) return false;
  item *items = lt_alloc(c, (size_t)n * sizeof *items + 1);
  if (items == NULL) return false;
  for (int64_t i = 0; i < n; i++)
    items[i] = (item){.name = tensors[i].name,
                      .tensor = tensors[i].tensor,
                      .format = lt_format_named(row_of(tensors[i].tensor)->safetensors),
                      .order = i};
  *l = (layout){.header.c = c, .items = items, .n = n};
  lt_json aliases = {.c = c};
  if (check_names(c, op, n, items)) {
    l->count = split_aliases(n, items, &aliases);
    if (l->count > 1) qsort(items, (size_t)l->count, sizeof *items, by_place);
    write_header(&l->header, op, l->count, items, n_metadata, metadata, &aliases);
  }
  lt_json_free(&aliases);
  if (!lt_ok(c)) discard(c, l);
  return lt_ok(c);
}

/* The header of a file without the file: a snapshot in memory gets the same bytes, but its tensors
   come in any order, each to its place. */
bool lt_safetensors_layout(lt_ctx *c, const char *op, int64_t n, const lt_named_tensor *tensors,
                           int64_t n_metadata, lt_metadata *metadata, lt_json *header,
                           int64_t *places) {
  layout l;
  if (!make_layout(c, &l, op, n, tensors, n_metadata, metadata)) return false;
  for (int64_t i = 0; i < n; i++) places[i] = -1;
  int64_t at = 0;
  for (int64_t i = 0; i < l.count; i++) {
    places[l.items[i].order] = at;
    at += (int64_t)bytes_of(l.items[i].tensor);
  }
  *header = l.header;
  l.header = (lt_json){.c = c};
  discard(c, &l);
  return true;
}

static bool save(lt_ctx *c, const char *op, const char *path, int64_t n,
                 const lt_named_tensor *tensors, int64_t n_metadata, lt_metadata *metadata,
                 const source *from) {
  layout l;
  lt_saving file = {.fd = -1};
  if (!make_layout(c, &l, op, n, tensors, n_metadata, metadata)) return false;
  if (lt_saving_open(c, &file, op, path)) {
    bool ok = lt_saving_write(c, &file, l.header.data, l.header.size);
    for (int64_t i = 0; i < l.count && ok; i++) ok = write_tensor(c, &file, &l.items[i], from);
    lt_saving_commit(c, &file);
  }
  discard(c, &l);
  return lt_ok(c);
}

bool lt_safetensors_save(lt_ctx *c, const char *op, const char *path, int64_t n,
                         const lt_named_tensor *tensors, int64_t n_metadata, lt_metadata *metadata,
                         lt_tensor *(*dense)(lt_ctx *c, lt_tensor *t)) {
  return save(c, op, path, n, tensors, n_metadata, metadata, &(source){.dense = dense});
}

bool lt_safetensors_stream(lt_ctx *c, const char *op, const char *path, int64_t n,
                           const lt_named_tensor *tensors, int64_t n_metadata,
                           lt_metadata *metadata, lt_fill fill, void *ud) {
  return save(c, op, path, n, tensors, n_metadata, metadata, &(source){.fill = fill, .ud = ud});
}
