/* runtime/io/zip.c: reading zip files of stored members, refusing every damaged one.

   PKWARE's APPNOTE.TXT (6.3) has the records. A zip is read from its end, where the directory
   is. Everything is checked before memory is asked for: counts against the size of the
   directory, places against that of the file, overlaps of members (as in "zip bombs"), and sizes
   after inflation. */
#include "io/zip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "device/device.h"
#include "io/decompression_limit.h"
#include "io/file.h"
#include "io/mapping.h"

/* Bytes of the records, without the names and notes that follow them; their first four bytes. */
enum { ENTRY = 46, LOCAL = 30, END = 22, END64 = 56, LOCATOR64 = 20 };
static const uint32_t ENTRY_MARK = 0x02014b50, LOCAL_MARK = 0x04034b50, END_MARK = 0x06054b50,
                      END64_MARK = 0x06064b50, LOCATOR64_MARK = 0x07064b50;

enum {
  MAX_DIRECTORY = 100000000,
  WIDE_FIELD = 1, /* the note that holds what takes more than 32 bits */
  ENCRYPTED = 1,
  DEFLATED = 8,
  MAPPED_FROM = 65536 /* bytes of a tensor; smaller ones are read */
};

/* A little-endian number of n bytes; at most INT64_MAX, which is more than any file has. */
static int64_t number(const void *bytes, int n) {
  uint64_t value = 0;
  for (int i = n - 1; i >= 0; i--) value = value << 8 | ((const unsigned char *)bytes)[i];
  return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

static bool is_marked(const char *record, uint32_t mark) { return number(record, 4) == mark; }

/* All damage is one kind of error: what a reader of the message can do is the same. */
static bool damaged(lt_ctx *c, const lt_zip *z, const char *reason) {
  return lt_fail(c, LT_EIO, "%s: %s: damaged zip file: %s", z->op, z->path, reason);
}

static bool wrong_member(lt_ctx *c, const lt_zip *z, const lt_member *m, const char *reason) {
  int n = m->name_size < 100 ? (int)m->name_size : 100;
  return lt_fail(c, LT_EIO, "%s: %s: damaged zip file: '%.*s' %s", z->op, z->path, n, m->name,
                 reason);
}

static bool read_at(lt_ctx *c, const lt_zip *z, void *out, size_t n, int64_t at) {
  return lt_file_read_at(c, z->op, z->path, z->fd, out, n, at);
}

/* The directory's place, of which both end records tell the same: where the wide one is, it
   counts. */
typedef struct ending {
  int64_t count, size, begin; /* of the directory, which ends where the first end record begins */
  int64_t end;
} ending;

/* The end record of large files, which is before the one that all have. */
static bool read_wide_ending(lt_ctx *c, const lt_zip *z, ending *e) {
  char locator[LOCATOR64], record[END64];
  int64_t at = z->size - END - LOCATOR64;
  if (at < END64) return true;
  if (!read_at(c, z, locator, sizeof locator, at)) return false;
  if (!is_marked(locator, LOCATOR64_MARK)) return true;
  if (number(locator + 8, 8) != at - END64) return damaged(c, z, "its end records do not meet");
  if (!read_at(c, z, record, sizeof record, at - END64)) return false;
  if (!is_marked(record, END64_MARK)) return damaged(c, z, "its end records do not meet");
  *e = (ending){.count = number(record + 32, 8), .size = number(record + 40, 8),
                .begin = number(record + 48, 8), .end = at - END64};
  return true;
}

/* The record is looked for at the very end only: a comment after it (which zip permits) could hide
   a second directory, and neither PyTorch nor NumPy writes one. The directory must fill the space
   before the record exactly. */
static bool read_ending(lt_ctx *c, const lt_zip *z, ending *e) {
  char record[END];
  if (z->size < END) return damaged(c, z, "it ends too early");
  if (!read_at(c, z, record, sizeof record, z->size - END)) return false;
  if (!is_marked(record, END_MARK) || number(record + 20, 2) != 0)
    return damaged(c, z, "its directory is missing: it was cut off, or something follows it");
  *e = (ending){.count = number(record + 10, 2), .size = number(record + 12, 4),
                .begin = number(record + 16, 4), .end = z->size - END};
  if (!read_wide_ending(c, z, e)) return false;
  if (e->size > MAX_DIRECTORY || e->size > e->end || e->begin != e->end - e->size)
    return damaged(c, z, "its directory is not where it says");
  return e->count <= e->size / ENTRY || damaged(c, z, "its directory is too small for its count");
}

/* What is 2^32 - 1 in an entry has its value in a note, in this order. */
static bool read_wide(const char *notes, int64_t n, int64_t *const *fields, int n_fields) {
  int64_t at = 0;
  while (n - at >= 4 && number(notes + at, 2) != WIDE_FIELD) at += 4 + number(notes + at + 2, 2);
  int64_t end = n - at >= 4 ? at + 4 + number(notes + at + 2, 2) : 0;
  at += 4;
  for (int i = 0; i < n_fields; i++) {
    if (*fields[i] != UINT32_MAX) continue;
    if (end > n || end - at < 8) return false;
    *fields[i] = number(notes + at, 8);
    at += 8;
  }
  return true;
}

/* One entry of the directory, its `begin` that of the header before its bytes; *used: its bytes. */
static bool read_entry(lt_ctx *c, const lt_zip *z, const char *at, int64_t left, lt_member *m,
                       int64_t *used) {
  if (left < ENTRY || !is_marked(at, ENTRY_MARK)) return damaged(c, z, "a directory entry is none");
  int64_t name = number(at + 28, 2), notes = number(at + 30, 2), packed = number(at + 20, 4);
  *used = ENTRY + name + notes + number(at + 32, 2);
  if (*used > left) return damaged(c, z, "a directory entry is too long");
  *m = (lt_member){.name = at + ENTRY, .name_size = (size_t)name, .begin = number(at + 42, 4),
                   .size = number(at + 24, 4), .crc = (uint32_t)number(at + 16, 4)};
  int64_t *const fields[] = {&m->size, &packed, &m->begin};
  if (!read_wide(at + ENTRY + name, notes, fields, 3))
    return wrong_member(c, z, m, "lacks its size");
  if ((number(at + 8, 2) & ENCRYPTED) != 0) return wrong_member(c, z, m, "is encrypted");
  int64_t method = number(at + 10, 2);
  if (method == DEFLATED && z->inflates) {
    m->packed = packed;
    return (m->size > 0 && packed > 0 && m->size / LT_DEFLATE_RATIO <= packed) ||
           wrong_member(c, z, m, "has impossible sizes");
  }
  if (method != 0)
    return wrong_member(c, z, m, z->inflates ? "is compressed in a way that NumPy does not"
                                             : "is compressed: PyTorch stores it");
  return m->size == packed || wrong_member(c, z, m, "has two sizes");
}

/* Its bytes in the file. */
static int64_t stored(const lt_member *m) { return m->packed > 0 ? m->packed : m->size; }

/* From where its header is to where its bytes are. Only the name's length is compared: names are
   the directory's. */
static bool find_bytes(lt_ctx *c, const lt_zip *z, lt_member *m, int64_t end) {
  char record[LOCAL];
  if (m->begin > end - LOCAL) return wrong_member(c, z, m, "is outside of the file");
  if (!read_at(c, z, record, sizeof record, m->begin)) return false;
  if (!is_marked(record, LOCAL_MARK) || number(record + 26, 2) != (int64_t)m->name_size)
    return wrong_member(c, z, m, "is not where the directory says");
  m->begin += LOCAL + number(record + 26, 2) + number(record + 28, 2);
  return (m->begin <= end && stored(m) <= end - m->begin) ||
         wrong_member(c, z, m, "is outside of the file");
}

static int by_place(const void *a, const void *b) {
  const lt_member *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->size < y->size ? -1 : x->size > y->size;
}

static int by_name(const void *a, const void *b) {
  const lt_member *x = a, *y = b;
  if (x->name_size != y->name_size) return x->name_size < y->name_size ? -1 : 1;
  return memcmp(x->name, y->name, x->name_size);
}

/* Of all members together: each may be small. Many members that each keep deflate's ratio could
   fill the memory together: the sum is bounded, before memory is asked for. */
static bool check_inflation(lt_ctx *c, const lt_zip *z) {
  int64_t size = 0;
  for (int64_t i = 0; i < z->count; i++)
    if (z->members[i].packed > 0 && __builtin_add_overflow(size, z->members[i].size, &size))
      size = INT64_MAX;
  return lt_decompression_fits(z->size, size) ||
         lt_fail(c, LT_EIO,
                 "%s: %s has %lld bytes and would become %lld, over %d times as many: store it "
                 "uncompressed (numpy.savez) where it is to be trusted",
                 z->op, z->path, (long long)z->size, (long long)size, LT_DECOMPRESSION_RATIO);
}

/* Sorted twice, O(n log n): by place, so that overlaps are neighbours, then by name, which
   lt_zip_find searches by halving. */
static bool check_members(lt_ctx *c, const lt_zip *z) {
  if (!check_inflation(c, z)) return false;
  if (z->count < 2) return true;
  qsort(z->members, (size_t)z->count, sizeof *z->members, by_place);
  for (int64_t i = 1; i < z->count; i++)
    if (z->members[i].begin < z->members[i - 1].begin + stored(&z->members[i - 1]))
      return wrong_member(c, z, &z->members[i], "overlaps another");
  qsort(z->members, (size_t)z->count, sizeof *z->members, by_name);
  for (int64_t i = 1; i < z->count; i++)
    if (by_name(&z->members[i - 1], &z->members[i]) == 0)
      return wrong_member(c, z, &z->members[i], "is there twice");
  return true;
}

static bool read_members(lt_ctx *c, lt_zip *z, int64_t end) {
  int64_t at = 0, size = (int64_t)z->directory_size, used = 0;
  for (int64_t i = 0; i < z->count; i++, at += used) {
    lt_member *m = &z->members[i];
    if (!read_entry(c, z, z->directory + at, size - at, m, &used) || !find_bytes(c, z, m, end))
      return false;
  }
  return at == size ? check_members(c, z) : damaged(c, z, "its directory has more than its count");
}

/* The order of checks: the end, the directory, each entry, all together. What fails leaves nothing
   open. */
bool lt_zip_open(lt_ctx *c, lt_zip *z, const char *op, const char *path, bool inflates) {
  ending e = {0};
  *z = (lt_zip){.op = op, .path = path, .inflates = inflates};
  z->fd = lt_file_open(c, op, path, &z->size);
  if (z->fd < 0) return false;
  if (read_ending(c, z, &e)) {
    z->count = e.count;
    z->directory_size = (size_t)e.size;
    z->members = lt_alloc(c, (size_t)z->count * sizeof *z->members);
    z->directory = lt_alloc(c, z->directory_size);
    if (z->members != NULL && z->directory != NULL &&
        read_at(c, z, z->directory, z->directory_size, e.begin) && read_members(c, z, e.begin))
      return true;
  }
  lt_zip_close(c, z);
  return false;
}

/* Tensors in the mapped bytes retain the map: they outlive the zip. */
void lt_zip_close(lt_ctx *c, lt_zip *z) {
  lt_file_close(c, z->fd);
  lt_mapping_release(c, z->map);
  if (z->members != NULL) lt_free(c, z->members, (size_t)z->count * sizeof *z->members);
  if (z->directory != NULL) lt_free(c, z->directory, z->directory_size);
  *z = (lt_zip){.fd = -1};
}

const lt_member *lt_zip_find(const lt_zip *z, const char *name, size_t n) {
  lt_member wanted = {.name = name, .name_size = n};
  if (z->count == 0) return NULL;
  return bsearch(&wanted, z->members, (size_t)z->count, sizeof *z->members, by_name);
}

static bool check_crc(lt_ctx *c, const lt_zip *z, const lt_member *m, const void *bytes) {
  /* 0: whoever wrote it has computed none. */
  if (m->crc == 0 || m->size == 0 || z->unchecked) return true;
  uint32_t crc = (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, (size_t)m->size);
  return crc == m->crc || wrong_member(c, z, m, "has other bytes than were written");
}

/* The first `size` bytes of a deflated member, or all of it. -15: raw deflate (RFC 1951) with a
   window of 32 kB, as zip stores it, without zlib's header. The output never exceeds `size`: what
   is longer than the directory says is damage. */
static bool inflate_to(lt_ctx *c, const lt_zip *z, const lt_member *m, char *out, size_t size) {
  z_stream s = {0};
  char piece[1 << 14];
  int state = Z_OK;
  size_t done = 0;
  if (inflateInit2(&s, -15) != Z_OK)
    return lt_fail(c, LT_EMEMORY, "%s: out of memory to unpack %s", z->op, z->path);
  for (int64_t at = 0; state == Z_OK && at < m->packed && lt_ok(c);) {
    int64_t left = m->packed - at;
    size_t n = left < (int64_t)sizeof piece ? (size_t)left : sizeof piece;
    if (!read_at(c, z, piece, n, m->begin + at)) break;
    at += (int64_t)n;
    s.next_in = (Bytef *)piece;
    s.avail_in = (uInt)n;
    while (state == Z_OK && s.avail_in > 0) {
      size_t space = size - done;
      s.next_out = (Bytef *)out + done;
      s.avail_out = space < UINT32_MAX ? (uInt)space : UINT32_MAX;
      uInt before = s.avail_out;
      state = inflate(&s, Z_NO_FLUSH);
      done += before - s.avail_out;
    }
  }
  inflateEnd(&s);
  if (!lt_ok(c)) return false;
  bool ends = state == Z_STREAM_END || size < (size_t)m->size;
  return (ends && done == size) ||
         wrong_member(c, z, m, "is damaged, or has another size when it is unpacked");
}

char *lt_zip_read(lt_ctx *c, const lt_zip *z, const lt_member *m) {
  char *bytes = lt_alloc(c, (size_t)m->size + 1);
  if (bytes == NULL) return NULL;
  bool read = m->packed > 0 ? inflate_to(c, z, m, bytes, (size_t)m->size)
                            : read_at(c, z, bytes, (size_t)m->size, m->begin);
  if (read && check_crc(c, z, m, bytes)) return bytes;
  lt_free(c, bytes, (size_t)m->size + 1);
  return NULL;
}

bool lt_zip_head(lt_ctx *c, const lt_zip *z, const lt_member *m, char *out, size_t n) {
  return m->packed > 0 ? inflate_to(c, z, m, out, n) : read_at(c, z, out, n, m->begin);
}

/* The member in the mapped bytes; NULL, without a failure too, when it has to be read. Below
   MAPPED_FROM a read is cheaper than the faults of its pages; an element that is not aligned in the
   file could not be read in place. */
static lt_tensor *mapped(lt_ctx *c, lt_zip *z, const lt_member *m, lt_dtype dtype, int64_t n) {
  if (m->size < MAPPED_FROM || m->begin % (int64_t)lt_dtype_size(dtype) != 0) return NULL;
  if (z->map == NULL && !z->unmappable) z->map = lt_mapping_new(c, z->fd, (size_t)z->size);
  z->unmappable = z->map == NULL;
  return z->unmappable ? NULL : lt_mapping_tensor(c, z->map, m->begin, dtype, 1, &n);
}

/* A bool byte that is neither 0 nor 1 is undefined behaviour where kernels read it as C's bool, so
   all are read once. */
lt_tensor *lt_zip_tensor(lt_ctx *c, lt_zip *z, const lt_member *m, lt_dtype dtype) {
  int64_t n = m->size / (int64_t)lt_dtype_size(dtype);
  if (m->packed > 0 || m->size % (int64_t)lt_dtype_size(dtype) != 0) {
    wrong_member(c, z, m, "ends within an element");
    return NULL;
  }
  lt_tensor *t = mapped(c, z, m, dtype, n);
  if (t == NULL && lt_ok(c)) {
    t = lt_tensor_empty(c, LT_CPU_DEVICE, dtype, 1, &n);
    if (t != NULL && !read_at(c, z, lt_data(t), (size_t)m->size, m->begin)) return NULL;
  }
  if (t == NULL || !check_crc(c, z, m, lt_data(t))) return NULL;
  const uint8_t *bytes = lt_data(t);
  for (int64_t i = 0; dtype == LT_BOOL && !z->unchecked && i < n; i++)
    if (bytes[i] > 1) {
      wrong_member(c, z, m, "is bool, and has bytes that are neither 0 nor 1");
      return NULL;
    }
  return t;
}
