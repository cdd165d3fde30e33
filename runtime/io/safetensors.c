/* runtime/io/safetensors.c: reading safetensors files, refusing every damaged one.

   The format's own rules (huggingface.co/docs/safetensors): a length, a header of JSON, then the
   bytes, without gaps or overlaps: so no byte of a file is hidden, and none belongs to two
   tensors. */
#include "io/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/file.h"
#include "io/mapping.h"
#include "io/safetensors_types.h"

enum {
  MAX_HEADER = 100000000,
  HEADER_DEPTH = 4,
  MAX_COMPARES = 1000000000,
  MAPPED_FROM = 65536 /* bytes of a tensor; smaller ones are read */
};

const lt_format lt_formats[LT_FORMAT_COUNT] = {
    {"U64", 64},
    {"I64", 64},
    {"F64", 64},
    {"C64", 64},
    {"F32", 32},
    {"U32", 32},
    {"I32", 32},
    {"BF16", 16},
    {"F16", 16},
    {"U16", 16},
    {"I16", 16},
    {"F8_E5M2FNUZ", 8},
    {"F8_E4M3FNUZ", 8},
    {"F8_E8M0", 8},
    {"F8_E4M3", 8},
    {"F8_E5M2", 8},
    {"I8", 8},
    {"U8", 8},
    {"F6_E3M2", 6},
    {"F6_E2M3", 6},
    {"F4", 4},
    {"BOOL", 8},
};

/* LT_FORMAT_COUNT: no such format. */
int lt_format_named(const char *name) {
  int k = 0;
  while (k < LT_FORMAT_COUNT && strcmp(lt_formats[k].name, name) != 0) k++;
  return k;
}

/* LT_DTYPE_NONE: not in ltrain. */
static lt_dtype dtype_named(const char *name) {
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    if (strcmp(lt_dtype_row((lt_dtype)d)->safetensors, name) == 0) return (lt_dtype)d;
  return LT_DTYPE_NONE;
}

static bool damaged(lt_ctx *c, const lt_safetensors *s, const char *name, const char *reason) {
  return lt_fail(c, LT_EIO, "%s: %s: damaged header: tensor '%.100s': %s", s->op, s->path, name,
                 reason);
}

/* An integer that is not negative; JSON reals are none, whatever their value. */
static bool read_count(const json_t *value, int64_t *out) {
  if (!json_is_integer(value)) return false;
  *out = (int64_t)json_integer_value(value);
  return *out >= 0;
}

static bool read_shape(lt_ctx *c, const lt_safetensors *s, lt_stored *t, const json_t *shape) {
  if (!json_is_array(shape)) return damaged(c, s, t->name, "its shape is not a list");
  if (json_array_size(shape) > LT_MAX_DIMS) return damaged(c, s, t->name, "more than 8 dimensions");
  t->ndim = (int)json_array_size(shape);
  for (int i = 0; i < t->ndim; i++)
    if (!read_count(json_array_get(shape, (size_t)i), &t->size[i]))
      return damaged(c, s, t->name, "a size is not a whole number");
  return true;
}

/* Does the shape take exactly the bytes that the offsets span? Bits, as formats of 4 and 6 bits
   exist; every product is checked for overflow, a size of 0 excuses the others. */
static bool check_bytes(lt_ctx *c, const lt_safetensors *s, const lt_stored *t) {
  int64_t bits = 1;
  bool empty = false, overflow = false;
  for (int i = 0; i < t->ndim; i++) {
    empty = empty || t->size[i] == 0;
    overflow = __builtin_mul_overflow(bits, t->size[i], &bits) || overflow;
  }
  overflow = __builtin_mul_overflow(bits, lt_formats[t->format].bits, &bits) || overflow;
  if (empty) bits = 0;
  if (overflow && !empty) return damaged(c, s, t->name, "its shape overflows");
  if (bits % 8 != 0) return damaged(c, s, t->name, "its elements do not fill whole bytes");
  if (t->end < t->begin) return damaged(c, s, t->name, "it ends before it begins");
  return t->end - t->begin == bits / 8 ||
         damaged(c, s, t->name, "its shape and its bytes do not agree");
}

/* Exactly three keys: a fourth would be data that nobody checks. */
static bool read_entry(lt_ctx *c, const lt_safetensors *s, lt_stored *t, const json_t *entry) {
  const json_t *dtype = json_object_get(entry, "dtype");
  const json_t *offsets = json_object_get(entry, "data_offsets");
  if (json_object_size(entry) != 3 || !json_is_string(dtype) || !json_is_array(offsets))
    return damaged(c, s, t->name, "it needs dtype, shape and data_offsets, no more");
  t->format = lt_format_named(json_string_value(dtype));
  if (t->format == LT_FORMAT_COUNT)
    return lt_fail(c, LT_EIO, "%s: %s: tensor '%.100s' has the unknown dtype '%.20s'", s->op,
                   s->path, t->name, json_string_value(dtype));
  if (json_array_size(offsets) != 2 || !read_count(json_array_get(offsets, 0), &t->begin) ||
      !read_count(json_array_get(offsets, 1), &t->end))
    return damaged(c, s, t->name, "data_offsets is not a pair of whole numbers");
  return read_shape(c, s, t, json_object_get(entry, "shape")) && check_bytes(c, s, t);
}

static int by_offset(const void *a, const void *b) {
  const lt_stored *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* Tensors must lie side by side from the first byte to the last: no hole may hide something. After
   sorting by place one pass proves it, O(n log n). */
static bool check_layout(lt_ctx *c, lt_safetensors *s, int64_t file_size) {
  if (s->count > 1) qsort(s->stored, (size_t)s->count, sizeof *s->stored, by_offset);
  int64_t at = 0;
  for (int64_t i = 0; i < s->count; at = s->stored[i++].end)
    if (s->stored[i].begin != at)
      return damaged(c, s, s->stored[i].name,
                     s->stored[i].begin < at ? "it overlaps another" : "a hole before it");
  int64_t there = s->start + file_size - s->data_start;
  if (at == there) return true;
  return lt_fail(c, LT_EIO, "%s: %s: %lld bytes of tensors, the header says %lld", s->op,
                 s->path, (long long)there, (long long)at);
}

/* The format permits strings only; values with structure are JSON in a string. */
static bool read_metadata(lt_ctx *c, lt_safetensors *s) {
  s->metadata = json_object_get(s->header, "__metadata__");
  if (s->metadata == NULL) return true;
  if (!json_is_object(s->metadata))
    return lt_fail(c, LT_EIO, "%s: %s: __metadata__ is not an object", s->op, s->path);
  const char *key;
  const json_t *value;
  json_t *object = (json_t *)(uintptr_t)s->metadata;
  json_object_foreach(object, key, value) {
    if (!json_is_string(value))
      return lt_fail(c, LT_EIO, "%s: %s: metadata '%.100s' is not a string", s->op, s->path, key);
  }
  return true;
}

/* Names point into the parsed header, which lives as long as the file is open; __metadata__ has a
   place too few at most, so the capacity is an upper bound. */
static bool read_entries(lt_ctx *c, lt_safetensors *s) {
  int64_t capacity = (int64_t)json_object_size(s->header);
  s->stored = lt_alloc(c, (size_t)capacity * sizeof *s->stored);
  if (s->stored == NULL) return false;
  const char *name;
  json_t *entry;
  json_object_foreach(s->header, name, entry) {
    if (strcmp(name, "__metadata__") == 0) continue;
    lt_stored *t = &s->stored[s->count++];
    t->name = name;
    if (!read_entry(c, s, t, entry)) return false;
  }
  return true;
}

static int64_t find_stored(const lt_safetensors *s, const char *name) {
  for (int64_t i = 0; i < s->count; i++)
    if (strcmp(s->stored[i].name, name) == 0) return i;
  return -1;
}

/* Tied weights are stored once; the metadata names the others. MAX_COMPARES bounds the quadratic
   search in a file that was made to be slow. */
static bool read_aliases(lt_ctx *c, lt_safetensors *s) {
  const json_t *text = json_object_get(s->metadata, LT_ALIASES_KEY);
  if (text == NULL) return true;
  s->alias_names =
      lt_json_parse(c, s->op, json_string_value(text), json_string_length(text), 1, false);
  if (s->alias_names == NULL) return false;
  if (!json_is_object(s->alias_names))
    return lt_fail(c, LT_EIO, "%s: %s: aliases are not an object", s->op, s->path);
  if ((int64_t)json_object_size(s->alias_names) > MAX_COMPARES / (s->count + 1))
    return lt_fail(c, LT_EIO, "%s: %s: too many aliases", s->op, s->path);
  s->aliases = lt_alloc(c, json_object_size(s->alias_names) * sizeof *s->aliases);
  if (s->aliases == NULL) return false;
  const char *name;
  json_t *value;
  json_object_foreach(s->alias_names, name, value) {
    const char *target = json_string_value(value);
    int64_t stored = target != NULL ? find_stored(s, target) : -1;
    if (stored < 0 || json_object_get(s->header, name) != NULL)
      return damaged(c, s, name, "its alias names no tensor, or itself");
    s->aliases[s->n_aliases++] = (lt_alias){.name = name, .stored = stored};
  }
  return true;
}

/* The checksum is part of the text that it sums: computed with its own eight digits as zeros. The
   digits' place is found by its mark in the raw text, since a parsed and rewritten header would
   have other bytes. */
char *lt_header_crc(char *text, size_t n, uint32_t *crc) {
  static const char mark[] = "\"" LT_CRC_KEY "\":\""; /* no string of JSON has such quotes */
  const size_t length = sizeof mark - 1;
  for (char *at = text; (at = memchr(at, '"', n - (size_t)(at - text))) != NULL; at++) {
    if (n - (size_t)(at - text) < length + 8) return NULL;
    if (memcmp(at, mark, length) != 0) continue;
    memset(at + length, '0', 8);
    *crc = (uint32_t)crc32_z(crc32_z(0, NULL, 0), (const unsigned char *)text, n);
    return at + length;
  }
  return NULL;
}

/* Only files that ltrain wrote have it. It sums the header alone, so that a file of gigabytes opens
   without being read. */
static bool check_crc(lt_ctx *c, const lt_safetensors *s, char *text, size_t n) {
  const json_t *metadata = json_object_get(s->header, "__metadata__");
  const json_t *stored = json_object_get(metadata, LT_CRC_KEY);
  uint32_t crc = 0;
  if (stored == NULL) return true;
  char digits[9] = "";
  if (lt_header_crc(text, n, &crc) != NULL) snprintf(digits, sizeof digits, "%08x", (unsigned)crc);
  const char *value = json_string_value(stored);
  return (value != NULL && strcmp(value, digits) == 0) ||
         lt_fail(c, LT_EIO, "%s: %s: damaged: the bytes of the header have changed", s->op,
                 s->path);
}

/* Eight bytes of length, then JSON. A text file that is opened by mistake reads as a length of
   10^18: the message says that, not that it is damaged. */
static bool read_header(lt_ctx *c, lt_safetensors *s, int64_t file_size) {
  unsigned char head[8];
  if (file_size == 0)
    return lt_fail(c, LT_EIO, "%s: %s is not a safetensors file: it is empty", s->op, s->path);
  if (file_size < 8)
    return lt_fail(c, LT_EIO, "%s: %s is not a safetensors file: only %lld bytes", s->op, s->path,
                   (long long)file_size);
  if (!lt_file_read_at(c, s->op, s->path, s->fd, head, 8, s->start)) return false;
  uint64_t n = 0;
  for (int i = 7; i >= 0; i--) n = n << 8 | head[i];
  if (n > MAX_HEADER)
    return lt_fail(c, LT_EIO,
                   "%s: %s is not a safetensors file: it does not begin with the size of a header",
                   s->op, s->path);
  if ((int64_t)n > file_size - 8)
    return lt_fail(c, LT_EIO,
                   "%s: %s is not a safetensors file: a header of %llu bytes in %lld: is it cut "
                   "off?",
                   s->op, s->path, (unsigned long long)n, (long long)file_size);
  char *text = lt_alloc(c, n + 1);
  if (text != NULL && lt_file_read_at(c, s->op, s->path, s->fd, text, n, s->start + 8)) {
    char what[LT_FAILURE_TEXT / 2];
    snprintf(what, sizeof what, "%s: %s: header", s->op, s->path);
    s->header = lt_json_parse(c, what, text, n, HEADER_DEPTH, false);
    if (s->header != NULL) check_crc(c, s, text, n);
  }
  if (text != NULL) lt_free(c, text, n + 1);
  s->data_start = s->start + 8 + (int64_t)n;
  if (s->header == NULL || !lt_ok(c)) return false;
  return json_is_object(s->header) ||
         lt_fail(c, LT_EIO, "%s: %s: the header is not an object", s->op, s->path);
}

/* All but the tensors; closes it where that fails. */
static bool read_all(lt_ctx *c, lt_safetensors *s) {
  if (read_header(c, s, s->size) && read_metadata(c, s) && read_entries(c, s) &&
      check_layout(c, s, s->size) && read_aliases(c, s))
    return true;
  lt_safetensors_close(c, s);
  return false;
}

bool lt_safetensors_open(lt_ctx *c, lt_safetensors *s, const char *op, const char *path) {
  *s = (lt_safetensors){.op = op, .path = path};
  s->fd = lt_file_open(c, op, path, &s->size);
  return s->fd >= 0 && read_all(c, s);
}

/* A file within a file: not mapped, since lt_mapping_new maps a file from its first byte. */
bool lt_safetensors_open_within(lt_ctx *c, lt_safetensors *s, const char *op, const char *path,
                                int64_t start, int64_t size) {
  int64_t all;
  *s = (lt_safetensors){.op = op, .path = path, .start = start, .size = size, .unmappable = true};
  s->fd = lt_file_open(c, op, path, &all);
  if (s->fd < 0) return false;
  if (start <= all && size <= all - start) return read_all(c, s);
  lt_safetensors_close(c, s);
  return lt_fail(c, LT_EIO, "%s: %s: it has %lld bytes of %lld: is it cut off?", op, path,
                 (long long)all, (long long)(start + size));
}

/* Tensors in the mapped bytes retain the map: they outlive the file. */
void lt_safetensors_close(lt_ctx *c, lt_safetensors *s) {
  lt_file_close(c, s->fd);
  lt_mapping_release(c, s->map);
  if (s->stored != NULL) lt_free(c, s->stored, json_object_size(s->header) * sizeof *s->stored);
  if (s->aliases != NULL)
    lt_free(c, s->aliases, json_object_size(s->alias_names) * sizeof *s->aliases);
  json_decref(s->header);
  json_decref(s->alias_names);
  *s = (lt_safetensors){.fd = -1};
}

/* The tensor in the mapped bytes; NULL, without a failure too, when it has to be read. */
static lt_tensor *mapped(lt_ctx *c, lt_safetensors *s, const lt_stored *t, lt_dtype dtype) {
  int64_t at = s->data_start + t->begin;
  if (t->end - t->begin < MAPPED_FROM || at % (int64_t)lt_dtype_size(dtype) != 0) return NULL;
  if (s->map == NULL && !s->unmappable) s->map = lt_mapping_new(c, s->fd, (size_t)s->size);
  s->unmappable = s->map == NULL;
  return s->unmappable ? NULL : lt_mapping_tensor(c, s->map, at, dtype, t->ndim, t->size);
}

static lt_tensor *read_tensor(lt_ctx *c, lt_safetensors *s, const lt_stored *t, lt_dtype dtype) {
  lt_tensor *out = mapped(c, s, t, dtype);
  if (out != NULL || !lt_ok(c)) return out;
  out = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, t->ndim, t->size);
  if (out == NULL) return NULL;
  size_t n = (size_t)(t->end - t->begin);
  return lt_file_read_at(c, s->op, s->path, s->fd, lt_data(out), n, s->data_start + t->begin) ? out
                                                                                          : NULL;
}

lt_dtype lt_stored_dtype(const lt_stored *t) { return dtype_named(lt_formats[t->format].name); }

/* LT_DTYPE_NONE with a failure where ltrain lacks it. */
static lt_dtype known_dtype(lt_ctx *c, const lt_safetensors *s, const lt_stored *t) {
  lt_dtype dtype = lt_stored_dtype(t);
  if (dtype == LT_DTYPE_NONE)
    lt_fail(c, LT_EDTYPE, "%s: %s: tensor '%.100s' is %s, a dtype that ltrain does not have", s->op,
            s->path, t->name, lt_formats[t->format].name);
  return dtype;
}

/* False with a failure where a BOOL is neither 0 nor 1. */
static bool check_bools(lt_ctx *c, const lt_safetensors *s, const lt_stored *t, lt_tensor *out) {
  if (out->dtype != LT_BOOL) return true;
  const uint8_t *bytes = lt_data(out);
  for (int64_t k = 0; k < out->numel; k++)
    if (bytes[k] > 1)
      return lt_fail(c, LT_EIO, "%s: %s: tensor '%.100s': byte %lld of a BOOL is %d", s->op,
                     s->path, t->name, (long long)k, bytes[k]);
  return true;
}

lt_tensor *lt_safetensors_read(lt_ctx *c, lt_safetensors *s, int64_t i) {
  const lt_stored *t = &s->stored[i];
  lt_dtype dtype = known_dtype(c, s, t);
  lt_tensor *out = dtype != LT_DTYPE_NONE ? read_tensor(c, s, t, dtype) : NULL;
  return out != NULL && check_bools(c, s, t, out) ? out : NULL;
}

static bool check_range(lt_ctx *c, const lt_safetensors *s, const lt_stored *t, lt_dtype dtype,
                        int64_t from, int64_t n) {
  int64_t numel = (t->end - t->begin) / (int64_t)lt_dtype_size(dtype);
  if (from >= 0 && n >= 0 && from <= numel && n <= numel - from) return true;
  return lt_fail(c, LT_EARG, "%s: %s: tensor '%.100s' has %lld elements, not %lld from %lld on",
                 s->op, s->path, t->name, (long long)numel, (long long)n, (long long)from);
}

bool lt_safetensors_read_into(lt_ctx *c, lt_safetensors *s, int64_t i, int64_t from,
                              lt_tensor *out) {
  const lt_stored *t = &s->stored[i];
  lt_dtype dtype = known_dtype(c, s, t);
  if (dtype == LT_DTYPE_NONE || !lt_assert(c, out->dtype == (int8_t)dtype && out->contiguous) ||
      !check_range(c, s, t, dtype, from, out->numel))
    return false;
  int64_t item = (int64_t)lt_dtype_size(dtype);
  void *bytes = lt_tensor_ptr(c, out, LT_WRITE);
  return bytes != NULL &&
         lt_file_read_at(c, s->op, s->path, s->fd, bytes, (size_t)(out->numel * item),
                         s->data_start + t->begin + from * item) &&
         check_bools(c, s, t, out);
}

lt_tensor *lt_safetensors_read_range(lt_ctx *c, lt_safetensors *s, int64_t i, int64_t from,
                                     int64_t n) {
  lt_dtype dtype = known_dtype(c, s, &s->stored[i]);
  if (dtype == LT_DTYPE_NONE || !check_range(c, s, &s->stored[i], dtype, from, n)) return NULL;
  lt_tensor *out = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, 1, &n);
  return out != NULL && lt_safetensors_read_into(c, s, i, from, out) ? out : NULL;
}

/* Sums of what is on a device are made of a copy: zlib's CRC runs on the host, about as fast as
   memory is read. */
bool lt_tensor_crc32(lt_ctx *c, lt_tensor *t, uint32_t *out) {
  if (!lt_ok(c) || !lt_assert(c, t->contiguous)) return false;
  size_t n = (size_t)t->numel * lt_item_size(t);
  bool here = lt_device_table(c, t->storage->device)->host_memory;
  void *bounce = here ? NULL : lt_alloc(c, n);
  const void *bytes = here ? lt_tensor_ptr(c, t, LT_READ) : bounce;
  bool ok = bytes != NULL && (here || lt_tensor_read(c, t, bounce));
  if (ok) *out = (uint32_t)crc32_z(crc32_z(0, NULL, 0), n > 0 ? bytes : "", n);
  lt_free(c, bounce, n);
  return ok;
}
