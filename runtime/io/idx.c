/* runtime/io/idx.c: reading IDX files. The header is checked before memory is asked for. */
#include "io/idx.h"

#include <string.h>
#include <zlib.h>

#include "io/byte_order.h"
#include "io/file.h"

/* No stream of deflate yields more than 1032 bytes for one. */
enum { MAX_IDX_DIMS = 4, HEADER_MAX = 4 + 4 * MAX_IDX_DIMS, MAX_RATIO = 1032 };
static const size_t MAX_FILE = (size_t)1 << 36;

/* A file in memory that is read from its start. */
typedef struct source {
  const char *op, *path;
  const unsigned char *data;
  size_t size, at;
  bool zipped;
  z_stream z;
} source;

static bool damaged(lt_ctx *c, const source *s, const char *reason) {
  return lt_fail(c, LT_EIO, "%s: %s is not an IDX file: %s", s->op, s->path, reason);
}

static bool source_open(lt_ctx *c, source *s) {
  s->zipped = s->size >= 2 && s->data[0] == 0x1f && s->data[1] == 0x8b;
  if (!s->zipped) return true;
  if (inflateInit2(&s->z, 15 + 16) != Z_OK)
    return lt_fail(c, LT_EMEMORY, "%s: out of memory to unpack %s", s->op, s->path);
  return true;
}

/* Up to n bytes; how many there were. SIZE_MAX when the compressed stream is damaged. */
static size_t source_read(source *s, void *out, size_t n) {
  if (!s->zipped) {
    size_t take = n < s->size - s->at ? n : s->size - s->at;
    memcpy(out, s->data + s->at, take);
    s->at += take;
    return take;
  }
  size_t done = 0;
  while (done < n) {
    size_t in = s->size - s->at, want = n - done;
    s->z.next_in = (Bytef *)(uintptr_t)(s->data + s->at);
    s->z.avail_in = in < UINT32_MAX ? (uInt)in : UINT32_MAX;
    s->z.next_out = (Bytef *)out + done;
    s->z.avail_out = want < UINT32_MAX ? (uInt)want : UINT32_MAX;
    uInt in_before = s->z.avail_in, out_before = s->z.avail_out;
    int r = inflate(&s->z, Z_NO_FLUSH);
    s->at += in_before - s->z.avail_in;
    done += out_before - s->z.avail_out;
    if (r == Z_STREAM_END) return done;
    if (r != Z_OK) return SIZE_MAX; /* also Z_BUF_ERROR: the stream ends too early */
  }
  return done;
}

/* Nothing may follow the data; at a stream's end zlib also compares its checksum. */
static bool source_ends(source *s) {
  char more;
  return source_read(s, &more, 1) == 0 && s->at == s->size;
}

typedef struct header {
  lt_dtype dtype;
  int ndim;
  int64_t size[MAX_IDX_DIMS];
  size_t bytes;
} header;

/* Rows of tensor/dtype.def have their code. */
static bool known_type(unsigned char code, header *h) {
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    if (code != 0 && lt_dtype_row((lt_dtype)d)->idx == code) {
      *h = (header){.dtype = (lt_dtype)d};
      return true;
    }
  return false;
}

static bool read_header(lt_ctx *c, source *s, header *h) {
  unsigned char b[HEADER_MAX];
  if (source_read(s, b, 4) != 4) return damaged(c, s, "it ends within its header");
  if (b[0] != 0 || b[1] != 0) return damaged(c, s, "it does not begin with two zero bytes");
  if (!known_type(b[2], h)) return damaged(c, s, "its element type is unknown");
  if (b[3] < 1 || b[3] > MAX_IDX_DIMS) return damaged(c, s, "it has not 1 to 4 dimensions");
  h->ndim = b[3];
  size_t rest = 4 * (size_t)h->ndim;
  if (source_read(s, b, rest) != rest) return damaged(c, s, "it ends within its header");
  h->bytes = lt_dtype_size(h->dtype);
  for (int i = 0; i < h->ndim; i++) {
    const unsigned char *p = b + 4 * i;
    h->size[i] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    if (__builtin_mul_overflow(h->bytes, (size_t)h->size[i], &h->bytes))
      return damaged(c, s, "its dimensions overflow");
  }
  size_t most = s->zipped ? MAX_RATIO * s->size : s->size - s->at;
  bool agree = s->zipped ? h->bytes <= most : h->bytes == most;
  return agree || damaged(c, s, "its size and its dimensions do not agree");
}

static lt_tensor *read_tensor(lt_ctx *c, source *s) {
  header h;
  if (!source_open(c, s) || !read_header(c, s, &h)) return NULL;
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, h.dtype, h.ndim, h.size);
  if (t == NULL) return NULL;
  bool whole = source_read(s, lt_data(t), h.bytes) == h.bytes;
  if (whole) lt_swap_bytes(lt_data(t), t->numel, lt_dtype_size(h.dtype));
  if (whole && source_ends(s)) return t;
  damaged(c, s, whole ? "bytes follow its data" : "its data is damaged or ends too early");
  return NULL;
}

lt_tensor *lt_idx_read(lt_ctx *c, const char *op, const char *path) {
  size_t size;
  if (lt_file_kind_of(c, path) == LT_OTHER_FILE) {
    lt_fail(c, LT_EIO, "%s: not a plain file: %s", op, path);
    return NULL;
  }
  char *data = lt_file_load(c, op, path, MAX_FILE, &size);
  if (data == NULL) return NULL;
  source s = {.op = op, .path = path, .data = (const unsigned char *)data, .size = size};
  lt_tensor *t = read_tensor(c, &s);
  if (s.zipped) inflateEnd(&s.z);
  lt_free(c, data, size + 1);
  return t;
}
