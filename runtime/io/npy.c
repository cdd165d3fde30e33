/* runtime/io/npy.c: reading and writing .npy. Everything is checked before memory is asked for.

   The format is that of numpy.lib.format. Its header is a dict as Python writes it: just that is
   read here, and no other Python. */
#include "io/npy.h"

#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "io/byte_order.h"
#include "io/file.h"
#include "io/mapping.h"

enum {
  LONGEST = LT_NPY_HEAD - 12, /* of a header, as NumPy has it, behind magic, version and length */
  ALIGN = 64,
  MAPPED_FROM = 65536, /* bytes; smaller arrays are read */
};

typedef struct header {
  lt_dtype dtype;
  bool swapped, fortran;
  int ndim;
  int64_t size[LT_MAX_DIMS];
  size_t at, bytes; /* of the data */
} header;

/* The header's text, read from its start. */
typedef struct text {
  lt_ctx *c;
  const char *op, *path, *at, *end;
} text;

static bool damaged(const text *t, const char *reason) {
  return lt_fail(t->c, LT_EIO, "%s: %s: not a .npy file of NumPy: %s", t->op, t->path, reason);
}

/* Grammar. */

/* White space that Python's repr and NumPy's padding write. */
static void skip(text *t) {
  while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t')) t->at++;
}

/* The next token, if it is this one. */
static bool take(text *t, const char *word) {
  size_t n = strlen(word);
  skip(t);
  if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0) return false;
  t->at += n;
  return true;
}

/* A string in quotes, which has no escapes here. */
static bool take_string(text *t, char *out, size_t size) {
  skip(t);
  char quote = t->at < t->end ? *t->at : 0;
  if (quote != '\'' && quote != '"') return false;
  const char *begin = ++t->at;
  while (t->at < t->end && *t->at != quote && *t->at != '\\') t->at++;
  size_t n = (size_t)(t->at - begin);
  if (t->at == t->end || *t->at != quote || n >= size) return false;
  memcpy(out, begin, n);
  out[n] = 0;
  t->at++;
  return true;
}

static bool take_size(text *t, int64_t *out) {
  skip(t);
  const char *begin = t->at;
  for (*out = 0; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
    if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, *t->at - '0', out))
      return false;
  bool some = t->at > begin;
  if (some) take(t, "L"); /* Python 2's */
  return some;
}

/* A tuple of Python: "()" has no dims, "(3,)" one; "(3)" would be a number and is refused. */
static bool take_shape(text *t, header *h) {
  if (!take(t, "(")) return damaged(t, "its shape is not a tuple");
  for (h->ndim = 0; !take(t, ")");) {
    if (h->ndim == LT_MAX_DIMS)
      return lt_fail(t->c, LT_EIO, "%s: %s has more than %d dimensions", t->op, t->path,
                     LT_MAX_DIMS);
    if (!take_size(t, &h->size[h->ndim++])) return damaged(t, "its shape has no sizes");
    if (take(t, ",")) continue;
    if (!take(t, ")")) return damaged(t, "its shape does not end");
    return h->ndim > 1 || damaged(t, "its shape is not a tuple"); /* (3) is a number */
  }
  return true;
}

/* NumPy's letter of a dtype; 0: it has none. */
static char letter_of(lt_dtype d) {
  if (d == LT_BOOL) return 'b';
  return d == LT_BF16 ? 0 : lt_dtype_name(d)[0];
}

static bool unknown_dtype(const text *t, const char *descr) {
  const char *what = "there is no such dtype here";
  if (strchr(descr, 'O') != NULL) what = "it contains Python objects, which only Python can "
    "unpickle";
  if (strchr(descr, 'c') != NULL) what = "complex numbers: save the real and imaginary parts";
  if (strchr("SUVMma", descr[0] != 0 ? descr[1] : 0) != NULL && descr[0] != 0)
    what = "it contains no numbers";
  return lt_fail(t->c, LT_EIO, "%s: %s has dtype '%s': %s", t->op, t->path, descr, what);
}

/* A string such as "<f4": order of bytes ("|": one byte, "=" the machine's), letter, size.
   Structured dtypes and objects are refused by name: unpickling could run code. */
static bool take_dtype(text *t, header *h) {
  char descr[64];
  skip(t);
  if (t->at < t->end && *t->at == '[') {
    int n = 1;
    while (n < 60 && t->at + n < t->end && t->at[n - 1] != ']') n++;
    return lt_fail(t->c, LT_EIO,
                   "%s: %s has a structured dtype, %.*s: save each field as a separate array",
                   t->op, t->path, n, t->at);
  }
  if (!take_string(t, descr, sizeof descr)) return damaged(t, "its dtype is not a string");
  bool ordered = descr[0] == '<' || descr[0] == '>' || descr[0] == '|' || descr[0] == '=';
  for (int d = 0; ordered && d < LT_DTYPE_COUNT; d++) {
    char own[8] = {letter_of((lt_dtype)d), (char)('0' + lt_dtype_size((lt_dtype)d)), 0};
    if (own[0] == 0 || strcmp(descr + 1, own) != 0) continue;
    h->dtype = (lt_dtype)d;
    h->swapped = descr[0] == '>' && lt_dtype_size((lt_dtype)d) > 1;
    return true;
  }
  return unknown_dtype(t, descr);
}

static bool take_flag(text *t, bool *out) {
  *out = take(t, "True");
  return *out || take(t, "False") || damaged(t, "fortran_order is neither True nor False");
}

/* The three keys that numpy.lib.format writes, each once, in any order, and nothing else. */
static bool take_dict(text *t, header *h) {
  bool dtype = false, order = false, shape = false;
  char key[20];
  if (!take(t, "{")) return damaged(t, "its header is not a dict");
  while (!take(t, "}")) {
    if (!take_string(t, key, sizeof key) || !take(t, ":"))
      return damaged(t, "its header is not a dict of names");
    bool *seen = strcmp(key, "descr") == 0           ? &dtype
                 : strcmp(key, "fortran_order") == 0 ? &order
                 : strcmp(key, "shape") == 0         ? &shape
                                                     : NULL;
    if (seen == NULL || *seen) return damaged(t, "its header has a name that is not NumPy's");
    *seen = true;
    if (!(seen == &dtype   ? take_dtype(t, h)
          : seen == &order ? take_flag(t, &h->fortran)
                           : take_shape(t, h)))
      return false;
    if (!take(t, ",")) {
      if (!take(t, "}")) return damaged(t, "its header does not end");
      break;
    }
  }
  skip(t);
  if (t->at != t->end) return damaged(t, "something follows its header");
  return (dtype && order && shape) || damaged(t, "its header lacks dtype, order or shape");
}

/* Reads the header from the first n of `total` bytes. Version 1 has 16 bits for the header's
   length, 2 and 3 have 32 (3 in UTF-8). The size of the data must be that of the rest of the file
   exactly: a truncated array is found before memory is taken. */
static bool read_header(text *t, const char *bytes, size_t n, int64_t total, header *h) {
  const unsigned char *b = (const unsigned char *)bytes;
  if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
    return damaged(t, "it does not begin as one");
  bool old = b[6] == 1;
  if (b[6] < 1 || b[6] > 3) return damaged(t, "its version is unknown");
  size_t front = old ? 10 : 12, length = (size_t)(b[8] | b[9] << 8);
  if (n < front) return damaged(t, "it ends within its header");
  if (!old) length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (length > LONGEST) return damaged(t, "its header is too long");
  if (n - front < length) return damaged(t, "it ends within its header");
  t->at = bytes + front;
  t->end = t->at + length;
  *h = (header){.at = front + length};
  if (!take_dict(t, h)) return false;
  h->bytes = lt_dtype_size(h->dtype);
  bool empty = false, huge = false;
  for (int k = 0; k < h->ndim; k++) {
    empty = empty || h->size[k] == 0;
    huge = __builtin_mul_overflow(h->bytes, (size_t)h->size[k], &h->bytes) || huge;
  }
  if (empty) h->bytes = 0;
  if (huge && !empty) return damaged(t, "its shape overflows");
  if ((int64_t)h->bytes == total - (int64_t)h->at) return true;
  return lt_fail(t->c, LT_EIO, "%s: %s: its shape needs %zu bytes of data, and it has %lld", t->op,
                 t->path, h->bytes, (long long)(total - (int64_t)h->at));
}

/* Data. */

/* The tensor as it is to be seen; `flat` has its elements in the order of the file. Fortran order
   needs no copy: strides that grow from the first dim. */
static lt_tensor *finish(text *t, const header *h, lt_tensor *flat) {
  if (flat == NULL) return NULL;
  unsigned char *bytes = lt_data(flat);
  if (h->swapped) lt_swap_bytes(bytes, flat->numel, lt_item_size(flat));
  for (int64_t k = 0; h->dtype == LT_BOOL && k < flat->numel; k++)
    if (bytes[k] > 1) {
      damaged(t, "it is bool, and has bytes that are neither 0 nor 1");
      return NULL;
    }
  int64_t stride[LT_MAX_DIMS], step = 1;
  for (int k = 0; k < h->ndim; k++) {
    int dim = h->fortran ? k : h->ndim - 1 - k;
    stride[dim] = step;
    step *= h->size[dim] > 0 ? h->size[dim] : 1;
  }
  if (!lt_shape_check(t->c, h->ndim, h->size)) return NULL;
  return lt_tensor_make(t->c, flat->storage, h->dtype, h->ndim, h->size, stride, 0);
}

/* n elements from `at`: mapped, NULL without a failure where they are to be read. Only from 64 KiB
   on: a mapping costs two system calls and a page fault for each 4 KiB, a short read one. Elements
   that are not aligned in the file cannot be used in place. */
static lt_tensor *map_elements(lt_ctx *c, int fd, int64_t file, int64_t at, lt_dtype dtype,
                               int64_t n) {
  if (n < MAPPED_FROM / (int64_t)lt_dtype_size(dtype) || at % (int64_t)lt_dtype_size(dtype) != 0)
    return NULL;
  lt_mapping *m = lt_mapping_new(c, fd, (size_t)file);
  lt_tensor *t = m != NULL ? lt_mapping_tensor(c, m, at, dtype, 1, &n) : NULL;
  lt_mapping_release(c, m);
  return t;
}

static lt_tensor *elements(lt_ctx *c, const char *op, const char *path, int fd, int64_t file,
                           int64_t at, lt_dtype dtype, int64_t n) {
  lt_tensor *t = map_elements(c, fd, file, at, dtype, n);
  if (t != NULL || !lt_ok(c)) return t;
  t = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, 1, &n);
  if (t == NULL) return NULL;
  size_t bytes = (size_t)n * lt_dtype_size(dtype);
  return bytes == 0 || lt_file_read_at(c, op, path, fd, lt_data(t), bytes, at) ? t : NULL;
}

lt_tensor *lt_npy_read(lt_ctx *c, const char *op, const char *path) {
  text t = {.c = c, .op = op, .path = path};
  char head[LT_NPY_HEAD];
  header h;
  int64_t file;
  int fd = lt_file_open(c, op, path, &file);
  if (fd < 0) return NULL;
  size_t n = file < (int64_t)sizeof head ? (size_t)file : sizeof head;
  lt_tensor *flat = NULL;
  if (lt_file_read_at(c, op, path, fd, head, n, 0) && read_header(&t, head, n, file, &h))
    flat = elements(c, op, path, fd, file, (int64_t)h.at, h.dtype,
                    (int64_t)(h.bytes / lt_dtype_size(h.dtype)));
  lt_file_close(c, fd);
  return flat != NULL ? finish(&t, &h, flat) : NULL;
}

lt_tensor *lt_npy_parse(lt_ctx *c, const char *op, const char *path, const char *bytes, size_t n) {
  text t = {.c = c, .op = op, .path = path};
  header h;
  if (!read_header(&t, bytes, n, (int64_t)n, &h)) return NULL;
  int64_t numel = (int64_t)(h.bytes / lt_dtype_size(h.dtype));
  lt_tensor *flat = lt_tensor_empty(c, LT_CPU_DEVICE, h.dtype, 1, &numel);
  if (flat == NULL) return NULL;
  if (numel > 0) memcpy(lt_data(flat), bytes + h.at, h.bytes);
  return finish(&t, &h, flat);
}

bool lt_npy_layout(lt_ctx *c, const char *op, const char *path, const char *bytes, size_t n,
                   int64_t total, lt_dtype *dtype, int *ndim, int64_t *size) {
  text t = {.c = c, .op = op, .path = path};
  header h;
  if (!read_header(&t, bytes, n, total, &h)) return false;
  *dtype = h.dtype;
  *ndim = h.ndim;
  memcpy(size, h.size, (size_t)h.ndim * sizeof *size);
  return true;
}

/* numpy.fromfile: elements without a header, from `offset`; ndim < 0: as many as there are. */
lt_tensor *lt_bare_read(lt_ctx *c, const char *op, const char *path, lt_dtype dtype,
                        int64_t offset, int ndim, const int64_t *size) {
  int64_t file, n = 1, item = (int64_t)lt_dtype_size(dtype), rest[1];
  int fd = lt_file_open(c, op, path, &file);
  if (fd < 0) return NULL;
  lt_tensor *flat = NULL;
  bool fits = offset <= file, fails = false;
  for (int k = 0; k < ndim; k++) fails = __builtin_mul_overflow(n, size[k], &n) || fails;
  if (ndim < 0) n = rest[0] = fits ? (file - offset) / item : 0;
  fits = fits && !fails && n <= (file - offset) / item;
  if (!fits)
    lt_fail(c, LT_EIO, "%s: %s has %lld bytes: too few for the shape%s", op, path,
            (long long)file, offset > 0 ? " behind the offset" : "");
  else if (ndim < 0 && (file - offset) % item != 0)
    lt_fail(c, LT_EIO, "%s: %s: %lld bytes are not a whole number of %s", op, path,
            (long long)(file - offset), lt_dtype_name(dtype));
  else
    flat = elements(c, op, path, fd, file, offset, dtype, n);
  lt_file_close(c, fd);
  text t = {.c = c, .op = op, .path = path};
  header h = {.dtype = dtype, .ndim = ndim < 0 ? 1 : ndim};
  memcpy(h.size, ndim < 0 ? rest : size, (size_t)h.ndim * sizeof *size);
  return flat != NULL ? finish(&t, &h, flat) : NULL;
}

/* Writing. */

/* Version 1.0, little-endian, C order, padded to 64 bytes: np.load(mmap_mode) of it is aligned.
   bf16 has no NumPy dtype. */
bool lt_npy_write(lt_json *out, const char *op, const lt_tensor *t) {
  char dict[LT_MAX_DIMS * 24 + 128], letter = letter_of((lt_dtype)t->dtype);
  size_t item = lt_item_size(t), n;
  if (letter == 0)
    return lt_fail(out->c, LT_EDTYPE, "%s: NumPy has no %s: cast it, x:float()", op,
                   lt_dtype_name((lt_dtype)t->dtype));
  n = (size_t)snprintf(dict, sizeof dict, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (",
                       item > 1 ? '<' : '|', letter, item);
  for (int k = 0; k < t->ndim; k++)
    n += (size_t)snprintf(dict + n, sizeof dict - n, "%lld,%s", (long long)t->size[k],
                          k + 1 < t->ndim ? " " : "");
  if (t->ndim > 1) n--; /* (3,) but (3, 4) */
  n += (size_t)snprintf(dict + n, sizeof dict - n, "), }");
  size_t total = (10 + n + 1 + ALIGN - 1) / ALIGN * ALIGN, length = total - 10;
  char front[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(length & 255),
                    (char)(length >> 8)};
  lt_json_raw(out, front, sizeof front);
  lt_json_raw(out, dict, n);
  for (size_t k = 10 + n; k + 1 < total; k++) lt_json_char(out, ' ');
  lt_json_char(out, '\n');
  if (t->numel > 0) lt_json_raw(out, lt_data(t), (size_t)t->numel * item);
  return lt_ok(out->c);
}
