/* runtime/image/format.c: recognises an image format by the first bytes of a file. */
#include "image/format.h"

#include <string.h>

#include "io/file.h"

enum { FILE_MAX = 1 << 30 };

/* Formats that are distinguished only to refuse them by name. */
static const char *foreign(const uint8_t *d, size_t n) {
  if (n >= 4 && memcmp(d, "GIF8", 4) == 0) return "GIF";
  if (n >= 4 && (memcmp(d, "II*\0", 4) == 0 || memcmp(d, "MM\0*", 4) == 0)) return "TIFF";
  if (n >= 12 && memcmp(d + 4, "ftypavif", 8) == 0) return "AVIF";
  if (n >= 12 && (memcmp(d + 4, "ftypheic", 8) == 0 || memcmp(d + 4, "ftypmif1", 8) == 0))
    return "HEIC";
  if (n >= 3 && d[0] == 'P' && d[1] >= '1' && d[1] <= '7' && d[2] <= ' ') return "PNM";
  return NULL;
}

bool lt_image_decode(lt_ctx *c, const lt_reading *r, const void *data, size_t n, lt_picture *out) {
  static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const uint8_t *d = data;
  *out = (lt_picture){0};
  if (!lt_ok(c)) return false;
  bool is_jpeg = n >= 3 && d[0] == 0xff && d[1] == 0xd8 && d[2] == 0xff;
  if (is_jpeg) return lt_jpeg_decode(c, r, d, n, out);
  if (n >= 8 && memcmp(d, png, 8) == 0) return lt_png_decode(c, r, d, n, out);
  bool is_webp = n >= 12 && memcmp(d, "RIFF", 4) == 0 && memcmp(d + 8, "WEBP", 4) == 0;
  if (is_webp) return lt_webp_decode(c, r, d, n, out);
  if (n >= 2 && memcmp(d, "BM", 2) == 0) return lt_bmp_decode(c, r, d, n, out);
  if (n == 0) return lt_image_fail(c, r, "it is empty");
  const char *name = foreign(d, n);
  if (name != NULL) return lt_image_fail(c, r, "%s is not read: JPEG, PNG, WebP and BMP are", name);
  return lt_image_fail(c, r, "neither JPEG, PNG, WebP nor BMP");
}

bool lt_image_load(lt_ctx *c, const lt_reading *r, lt_picture *out) {
  size_t n;
  *out = (lt_picture){0};
  char *data = lt_file_load(c, r->op, r->where, FILE_MAX, &n);
  if (data == NULL) return false;
  bool ok = lt_image_decode(c, r, data, n, out);
  lt_free(c, data, n + 1);
  return ok;
}
