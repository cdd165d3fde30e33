/* runtime/io/zip.h: zip files whose members are stored as they are, as PyTorch writes them, or,
   where that is asked for, deflated, as NumPy can.

   The directory and the places of all members are checked when a file is opened: what is outside
   of it, compressed, encrypted, or there twice is refused, also members that share bytes. So all of
   them together are no larger than the file, or, deflated, than io/decompression_limit.h allows. */
#ifndef LT_IO_ZIP_H
#define LT_IO_ZIP_H

#include "tensor/tensor.h"

typedef struct lt_member {
  const char *name; /* not ended by a NUL */
  size_t name_size;
  int64_t begin, size; /* of its bytes in the file */
  int64_t packed;      /* those it has there when it is deflated to `size`; 0: it is stored */
  uint32_t crc;        /* 0: none was written */
} lt_member;

typedef struct lt_zip {
  const char *op, *path; /* the caller's, valid until closed */
  int fd;
  int64_t size; /* of the file */
  int64_t count;
  lt_member *members; /* by name */
  char *directory;    /* owns the names */
  size_t directory_size;
  struct lt_mapping *map; /* once a tensor is in it (io/mapping.h) */
  bool unmappable, inflates;
  bool unchecked; /* bytes of members are not compared with their CRC, and bools not checked */
} lt_zip;

/* Open and check a file; false with nothing to close. `inflates`: members may be deflated; these
   can be read, but not as tensors. */
bool lt_zip_open(lt_ctx *c, lt_zip *z, const char *op, const char *path, bool inflates);
void lt_zip_close(lt_ctx *c, lt_zip *z);

/* NULL: no member has the name. */
const lt_member *lt_zip_find(const lt_zip *z, const char *name, size_t n);

/* The bytes of a member, m->size of them, checked against its CRC; free them with
   lt_free(c, bytes, m->size + 1). */
char *lt_zip_read(lt_ctx *c, const lt_zip *z, const lt_member *m);

/* The first n bytes of a member, which has as many; they are not checked. */
bool lt_zip_head(lt_ctx *c, const lt_zip *z, const lt_member *m, char *out, size_t n);

/* A member as a tensor of one dim on the cpu; it belongs to the open frame. A large one is in the
   file's mapped bytes, copied where it is written. */
lt_tensor *lt_zip_tensor(lt_ctx *c, lt_zip *z, const lt_member *m, lt_dtype dtype);

#endif
