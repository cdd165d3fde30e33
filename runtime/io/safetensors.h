/* runtime/io/safetensors.h: tensors in files that other tools read and that run no code.

   Layout: u64 N, N bytes of JSON, the bytes of the tensors. All of the header is checked before
   memory is asked for: a damaged or hostile file is refused in a sentence. A tensor saved under
   several names is stored once; the other names are JSON in the metadata under LT_ALIASES_KEY. */
#ifndef LT_IO_SAFETENSORS_H
#define LT_IO_SAFETENSORS_H

#include "device/device.h"
#include "io/json.h"

#define LT_ALIASES_KEY "ltrain.aliases"

/* The metadata key of a CRC-32 of the header's JSON, with eight zeros in its place. It is written
   where the metadata has the key, whatever the value; where it is there, a reader checks it. */
#define LT_CRC_KEY "ltrain.crc32"

typedef struct lt_named_tensor {
  const char *name;
  lt_tensor *tensor;
} lt_named_tensor;

typedef struct lt_metadata {
  const char *key, *value;
  size_t value_size;
} lt_metadata;

/* Write the tensors in the order of the reference writer, with metadata keys sorted (the array is
   sorted in place). `dense` gives a row-major copy of a tensor that is not (NULL: all are). The
   former file stays until the new one is whole. */
bool lt_safetensors_save(lt_ctx *c, const char *op, const char *path, int64_t n,
                         const lt_named_tensor *tensors, int64_t n_metadata, lt_metadata *metadata,
                         lt_tensor *(*dense)(lt_ctx *c, lt_tensor *t));

/* The header of such a file, with its length before it (the caller frees it), and for each of the
   tensors where its bytes begin behind the header: -1 where they are those of another. */
bool lt_safetensors_layout(lt_ctx *c, const char *op, int64_t n, const lt_named_tensor *tensors,
                           int64_t n_metadata, lt_metadata *metadata, lt_json *header,
                           int64_t *places);

/* The same of tensors that need not be in memory together: of the given ones shapes and dtypes
   count, and each is replaced by what fill(c, ud, name) returns when it is its turn. */
typedef lt_tensor *(*lt_fill)(lt_ctx *c, void *ud, const char *name);
bool lt_safetensors_stream(lt_ctx *c, const char *op, const char *path, int64_t n,
                           const lt_named_tensor *tensors, int64_t n_metadata,
                           lt_metadata *metadata, lt_fill fill, void *ud);

/* A tensor in an open file. */
typedef struct lt_stored {
  const char *name;
  int format; /* of the file's own list of types */
  int ndim;
  int64_t size[LT_MAX_DIMS];
  int64_t begin, end; /* bytes after the header */
} lt_stored;

typedef struct lt_alias {
  const char *name;
  int64_t stored; /* whose tensor it shares */
} lt_alias;

typedef struct lt_safetensors {
  const char *op, *path; /* the caller's, valid until closed */
  int fd;
  int64_t start; /* of the bytes below within the file */
  int64_t data_start;
  int64_t count;
  lt_stored *stored; /* in the order of their bytes */
  int64_t n_aliases;
  lt_alias *aliases;
  const json_t *metadata;       /* object of strings, NULL when there is none */
  json_t *header, *alias_names; /* own the names above */
  int64_t size;                 /* of all of it */
  struct lt_mapping *map;       /* its bytes, once a tensor is in them (io/mapping.h) */
  bool unmappable;
} lt_safetensors;

/* Open and check a file; false with nothing to close. */
bool lt_safetensors_open(lt_ctx *c, lt_safetensors *s, const char *op, const char *path);

/* The same of `size` bytes of a larger file from `start` on. Its tensors are read, never mapped:
   what is there may be overwritten while they live. */
bool lt_safetensors_open_within(lt_ctx *c, lt_safetensors *s, const char *op, const char *path,
                                int64_t start, int64_t size);
void lt_safetensors_close(lt_ctx *c, lt_safetensors *s);

/* One tensor on the cpu; it belongs to the open frame. A large one is in the file's mapped bytes,
   copied where it is written; a small one, or one that is not aligned, is read. Types that ltrain
   lacks fail here. */
lt_tensor *lt_safetensors_read(lt_ctx *c, lt_safetensors *s, int64_t i);

/* The dtype of a tensor in a file; LT_DTYPE_NONE: ltrain lacks it. */
lt_dtype lt_stored_dtype(const lt_stored *t);

/* n elements of one, in row-major order from number `from` on, as [n]: read, never mapped. */
lt_tensor *lt_safetensors_read_range(lt_ctx *c, lt_safetensors *s, int64_t i, int64_t from,
                                     int64_t n);

/* The same into a contiguous tensor of the host that has this dtype: as many as it has elements. */
bool lt_safetensors_read_into(lt_ctx *c, lt_safetensors *s, int64_t i, int64_t from,
                              lt_tensor *out);

/* The eight digits of the header's CRC within its text, NULL when it has none; *crc is what they
   should be. They are zeros afterwards. */
char *lt_header_crc(char *text, size_t n, uint32_t *crc);

/* CRC-32 (as zlib) of the bytes of a row-major tensor. */
bool lt_tensor_crc32(lt_ctx *c, lt_tensor *t, uint32_t *out);

#endif
