/* runtime/io/idx.c: reading IDX files, plain and compressed by gzip. The header is checked before
   memory is asked for, and nothing but the tensor is as large as the file.

   The format of MNIST (Y. LeCun, C. Cortes, C. Burges): two zero bytes, a code of the element type,
   the number of dims, sizes of 32 bits, then elements, all big-endian. Files of gzip (RFC 1952) are
   recognised by their first two bytes, and unpacked straight into the tensor. */
#include "io/idx.h"

#include <string.h>
#include <zlib.h>

#include "io/byte_order.h"
#include "io/decompression_limit.h"
#include "io/file.h"

enum { MAX_IDX_DIMS = 4, HEADER_MAX = 4 + 4 * MAX_IDX_DIMS, PIECE = 1 << 16 };

/* An open file that is read from its start. */
typedef struct source {
  const char *op, *path;
  int fd;
  int64_t size, at;
  bool zipped;
  z_stream z;
  unsigned char piece[PIECE]; /* of a compressed file: what is unpacked next */
} source;

static bool damaged(lt_ctx *c, const source *s, const char *reason) {
  return lt_fail(c, LT_EIO, "%s: %s is not an IDX file: %s", s->op, s->path, reason);
}

/* 15 + 16: a window of 32 kB, and gzip's header and checksum instead of zlib's. */
static bool source_open(lt_ctx *c, source *s) {
  unsigned char mark[2] = {0};
  size_t n = s->size < 2 ? (size_t)s->size : 2;
  if (!lt_file_read_at(c, s->op, s->path, s->fd, mark, n, 0)) return false;
  s->zipped = mark[0] == 0x1f && mark[1] == 0x8b;
  if (!s->zipped) return true;
  if (inflateInit2(&s->z, 15 + 16) == Z_OK) return true;
  s->zipped = false;
  return lt_fail(c, LT_EMEMORY, "%s: out of memory to unpack %s", s->op, s->path);
}

/* The next piece of a compressed file, where the one before is used up. */
static bool next_piece(lt_ctx *c, source *s) {
  if (s->z.avail_in > 0 || s->at == s->size) return true;
  size_t n = s->size - s->at < PIECE ? (size_t)(s->size - s->at) : PIECE;
  if (!lt_file_read_at(c, s->op, s->path, s->fd, s->piece, n, s->at)) return false;
  s->at += (int64_t)n;
  s->z.next_in = s->piece;
  s->z.avail_in = (uInt)n;
  return true;
}

/* Up to n bytes; how many there were. SIZE_MAX: the compressed stream is damaged, or reading
   failed. */
static size_t source_read(lt_ctx *c, source *s, void *out, size_t n) {
  if (!s->zipped) {
    size_t take = (int64_t)n < s->size - s->at ? n : (size_t)(s->size - s->at);
    if (!lt_file_read_at(c, s->op, s->path, s->fd, out, take, s->at)) return SIZE_MAX;
    s->at += (int64_t)take;
    return take;
  }
  size_t done = 0;
  while (done < n) {
    if (!next_piece(c, s)) return SIZE_MAX;
    size_t want = n - done;
    s->z.next_out = (Bytef *)out + done;
    s->z.avail_out = want < UINT32_MAX ? (uInt)want : UINT32_MAX;
    uInt before = s->z.avail_out;
    int r = inflate(&s->z, Z_NO_FLUSH);
    done += before - s->z.avail_out;
    if (r == Z_STREAM_END) return done;
    if (r != Z_OK) return SIZE_MAX; /* also Z_BUF_ERROR: the stream ends too early */
  }
  return done;
}

/* Nothing may follow the data; at a stream's end zlib also compares its checksum. */
static bool source_ends(lt_ctx *c, source *s) {
  char more;
  return source_read(c, s, &more, 1) == 0 && s->at == s->size && s->z.avail_in == 0;
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

static bool check_inflation(lt_ctx *c, const source *s, const header *h) {
  return lt_decompression_fits(s->size, h->bytes < INT64_MAX ? (int64_t)h->bytes : INT64_MAX) ||
         lt_fail(c, LT_EIO,
                 "%s: %s has %lld bytes and would become %zu, over %d times as many: unpack it "
                 "first (gunzip) where it is to be trusted",
                 s->op, s->path, (long long)s->size, h->bytes, LT_DECOMPRESSION_RATIO);
}

/* A compressed file cannot say how large it is: its sizes must be possible at deflate's highest
   ratio. */
static bool read_header(lt_ctx *c, source *s, header *h) {
  unsigned char b[HEADER_MAX];
  if (source_read(c, s, b, 4) != 4) return damaged(c, s, "it ends within its header");
  if (b[0] != 0 || b[1] != 0) return damaged(c, s, "it does not begin with two zero bytes");
  if (!known_type(b[2], h)) return damaged(c, s, "its element type is unknown");
  if (b[3] < 1 || b[3] > MAX_IDX_DIMS) return damaged(c, s, "it has not 1 to 4 dimensions");
  h->ndim = b[3];
  size_t rest = 4 * (size_t)h->ndim;
  if (source_read(c, s, b, rest) != rest) return damaged(c, s, "it ends within its header");
  h->bytes = lt_dtype_size(h->dtype);
  for (int i = 0; i < h->ndim; i++) {
    const unsigned char *p = b + 4 * i;
    h->size[i] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    if (__builtin_mul_overflow(h->bytes, (size_t)h->size[i], &h->bytes))
      return damaged(c, s, "its dimensions overflow");
  }
  bool agree = s->zipped ? h->bytes / LT_DEFLATE_RATIO <= (size_t)s->size
                         : h->bytes == (size_t)(s->size - s->at);
  if (!agree) return damaged(c, s, "its size and its dimensions do not agree");
  return !s->zipped || check_inflation(c, s, h);
}

static lt_tensor *read_tensor(lt_ctx *c, source *s) {
  header h;
  if (!source_open(c, s) || !read_header(c, s, &h)) return NULL;
  lt_tensor *t = lt_tensor_empty(c, LT_CPU_DEVICE, h.dtype, h.ndim, h.size);
  if (t == NULL) return NULL;
  bool whole = source_read(c, s, lt_data(t), h.bytes) == h.bytes;
  if (whole) lt_swap_bytes(lt_data(t), t->numel, lt_dtype_size(h.dtype));
  if (whole && source_ends(c, s)) return t;
  if (lt_ok(c))
    damaged(c, s, whole ? "bytes follow its data" : "its data is damaged or ends too early");
  return NULL;
}

lt_tensor *lt_idx_read(lt_ctx *c, const char *op, const char *path) {
  source *s = lt_alloc(c, sizeof *s);
  if (s == NULL) return NULL;
  memset(s, 0, sizeof *s);
  s->op = op;
  s->path = path;
  s->fd = lt_file_open(c, op, path, &s->size);
  lt_tensor *t = s->fd >= 0 ? read_tensor(c, s) : NULL;
  if (s->zipped) inflateEnd(&s->z);
  lt_file_close(c, s->fd);
  lt_free(c, s, sizeof *s);
  return t;
}
