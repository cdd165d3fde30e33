/* runtime/io/zip_save.c: members one by one, the directory at the end. Sizes are always written in
   64 bits.

   Members are stored one after the other, each with its sizes known before its header is written,
   so that nothing is patched afterwards; lt_saving's rename makes the file appear at once. All
   sizes are in the ZIP64 field (APPNOTE.TXT, 4.5.3), also small ones: one form to write. */
#include "io/zip_save.h"

#include <string.h>
#include <zlib.h>

enum {
  STORED = 0, DEFLATED = 8,
  VERSION = 45,    /* the first that reads 64 bits */
  NAMES_UTF8 = 1 << 11,
  JANUARY_1980 = 1 << 5 | 1, /* files that hold the same are the same */
  WIDE_FIELD = 1,
  PAD_FIELD = 0x4246, /* as PyTorch pads */
  LOCAL = 30,         /* bytes before the name of a member */
  ALIGN = 64,         /* of bytes that are not deflated: they may be mapped */
};
#define PIECE ((size_t)1 << 30)

static void put(lt_json *out, uint64_t value, int n) {
  for (int i = 0; i < n; i++) lt_json_char(out, (char)(value >> 8 * i));
}

typedef struct member {
  const char *name;
  uint32_t crc;
  int method;
  uint64_t size, packed, at;
} member;

/* What both records of a member have in the middle: from the version to the length of the name. */
static void put_middle(lt_json *out, const member *m) {
  put(out, VERSION, 2);
  put(out, NAMES_UTF8, 2);
  put(out, (uint64_t)m->method, 2);
  put(out, 0, 2);
  put(out, JANUARY_1980, 2);
  put(out, m->crc, 4);
  put(out, UINT32_MAX, 4);
  put(out, UINT32_MAX, 4);
  put(out, strlen(m->name), 2);
}

/* `pad`: bytes of a field without meaning, 4 at least, or 0. */
static void put_local(lt_json *out, const member *m, size_t pad) {
  put(out, 0x04034b50, 4);
  put_middle(out, m);
  put(out, 20 + pad, 2);
  lt_json_raw(out, m->name, strlen(m->name));
  put(out, WIDE_FIELD, 2);
  put(out, 16, 2);
  put(out, m->size, 8);
  put(out, m->packed, 8);
  if (pad == 0) return;
  put(out, PAD_FIELD, 2);
  put(out, pad - 4, 2);
  for (size_t k = 4; k < pad; k++) lt_json_char(out, 0);
}

/* The padding after which the bytes of a member that begins at `at` are aligned to 64, a cache line
   and the widest vector register, for readers that map the file (torch.load with mmap = true, and
   zip.c). A field takes 4 bytes at least. */
static size_t padding(const member *m) {
  uint64_t head = m->at + LOCAL + strlen(m->name) + 20;
  return (size_t)(4 + (ALIGN - (head + 4) % ALIGN) % ALIGN);
}

static void put_entry(lt_json *out, const member *m) {
  put(out, 0x02014b50, 4);
  put(out, VERSION, 2);
  put_middle(out, m);
  put(out, 28, 2);
  put(out, 0, 8); /* no comment, disk 0, no attributes: 10 bytes */
  put(out, 0, 2);
  put(out, UINT32_MAX, 4);
  lt_json_raw(out, m->name, strlen(m->name));
  put(out, WIDE_FIELD, 2);
  put(out, 24, 2);
  put(out, m->size, 8);
  put(out, m->packed, 8);
  put(out, m->at, 8);
}

/* Deflate into `out` without a zlib header. zlib counts 32 bits: input goes in pieces of a
   gigabyte. */
static bool deflate_all(lt_ctx *c, const char *op, lt_json *out, const char *data, size_t n) {
  z_stream z = {0};
  char piece[1 << 14];
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return lt_fail(c, LT_EMEMORY, "%s: out of memory to compress", op);
  int state = Z_OK;
  for (size_t at = 0; state != Z_STREAM_END && lt_ok(c);) {
    size_t take = n - at < PIECE ? n - at : PIECE;
    z.next_in = (Bytef *)(uintptr_t)(data + at);
    z.avail_in = (uInt)take;
    do {
      z.next_out = (Bytef *)piece;
      z.avail_out = sizeof piece;
      state = deflate(&z, at + take == n ? Z_FINISH : Z_NO_FLUSH);
      lt_json_raw(out, piece, sizeof piece - z.avail_out);
    } while (z.avail_out == 0 && lt_ok(c));
    at += take;
  }
  deflateEnd(&z);
  return lt_ok(c);
}

bool lt_zip_saving_open(lt_ctx *c, lt_zip_saving *z, const char *op, const char *path) {
  *z = (lt_zip_saving){.directory = {.c = c}};
  return lt_saving_open(c, &z->file, op, path);
}

bool lt_zip_saving_add(lt_ctx *c, lt_zip_saving *z, const char *name, const void *data, size_t n,
                       bool deflated) {
  if (!lt_ok(c)) return false;
  lt_json packed = {.c = c}, head = {.c = c};
  member m = {.name = name, .size = n, .packed = n, .at = (uint64_t)z->at,
              .crc = (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, n)};
  if (deflated && deflate_all(c, z->file.op, &packed, data, n)) {
    m.method = DEFLATED;
    m.packed = packed.size;
  }
  put_local(&head, &m, deflated ? 0 : padding(&m));
  put_entry(&z->directory, &m);
  if (lt_ok(c)) lt_saving_write(c, &z->file, head.data, head.size);
  if (lt_ok(c)) lt_saving_write(c, &z->file, deflated ? packed.data : data, m.packed);
  z->at += (int64_t)(head.size + m.packed);
  z->count++;
  lt_json_free(&head);
  lt_json_free(&packed);
  return lt_ok(c);
}

bool lt_zip_saving_commit(lt_ctx *c, lt_zip_saving *z) {
  lt_json *end = &z->directory;
  uint64_t size = end->size, count = (uint64_t)z->count, at = (uint64_t)z->at;
  put(end, 0x06064b50, 4);
  put(end, 44, 8);
  put(end, VERSION, 2);
  put(end, VERSION, 2);
  put(end, 0, 8); /* disk 0, twice */
  put(end, count, 8);
  put(end, count, 8);
  put(end, size, 8);
  put(end, at, 8);
  put(end, 0x07064b50, 4);
  put(end, 0, 4);
  put(end, at + size, 8);
  put(end, 1, 4);
  put(end, 0x06054b50, 4);
  put(end, 0, 4);
  put(end, count < UINT16_MAX ? count : UINT16_MAX, 2);
  put(end, count < UINT16_MAX ? count : UINT16_MAX, 2);
  put(end, size < UINT32_MAX ? size : UINT32_MAX, 4);
  put(end, at < UINT32_MAX ? at : UINT32_MAX, 4);
  put(end, 0, 2);
  if (lt_ok(c)) lt_saving_write(c, &z->file, end->data, end->size);
  lt_json_free(end);
  return lt_saving_commit(c, &z->file);
}
