/* runtime/image/format.c: which format bytes have, limits, and what EXIF says of a photograph. */
#include "image/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/file.h"

enum { FILE_MAX = 1 << 30 };

bool lt_image_fail(lt_ctx *c, const lt_reading *r, const char *format, ...) {
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return lt_fail(c, LT_EIO, "%s: %s: %s", r->op, r->where, text);
}

bool lt_image_fits(lt_ctx *c, const lt_reading *r, int64_t width, int64_t height) {
  if (width > 0 && height > 0 && width <= LT_SIDE_MAX && height <= LT_SIDE_MAX &&
      width * height <= LT_PIXELS_MAX)
    return true;
  return lt_image_fail(c, r, "an image of %lld x %lld: sides are 1 to %d, pixels at most %lld",
                       (long long)width, (long long)height, LT_SIDE_MAX,
                       (long long)LT_PIXELS_MAX);
}

bool lt_picture_channels(lt_ctx *c, lt_image_mode mode, lt_picture *p) {
  static const int wanted_of[] = {[LT_MODE_RGB] = 3, [LT_MODE_GREY] = 1, [LT_MODE_RGBA] = 4};
  int wanted = mode == LT_MODE_AS_IS ? p->channels : wanted_of[mode], has = p->channels;
  if (wanted == has) return true;
  lt_picture q;
  if (!lt_picture_interleaved(c, &q, LT_DEPTH_U8, wanted, p->height, p->width)) return false;
  const uint8_t *in = p->first;
  uint8_t *out = q.first;
  int64_t n = (int64_t)p->height * p->width;
  for (int64_t i = 0; i < n; i++, in += has, out += wanted) {
    if (wanted == 1)
      out[0] = lt_luminance(in);
    else
      for (int k = 0; k < wanted; k++) out[k] = k == 3 ? 255 : in[has == 1 ? 0 : k];
  }
  lt_picture_replace(c, p, q);
  return true;
}

/* Formats that are told apart only to refuse them by name. */
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

static unsigned word(const uint8_t *p, bool little) {
  return little ? p[0] | (unsigned)p[1] << 8 : p[1] | (unsigned)p[0] << 8;
}

/* The tag 0x0112 of the first folder of a TIFF header. */
static int tiff_orientation(const uint8_t *d, size_t n) {
  if (n < 8 || (d[0] != 'I' && d[0] != 'M')) return 1;
  bool little = d[0] == 'I';
  size_t low = word(d + (little ? 4 : 6), little), high = word(d + (little ? 6 : 4), little);
  size_t at = low | high << 16;
  if (at > n || n - at < 2) return 1;
  unsigned entries = word(d + at, little);
  for (at += 2; entries > 0 && at <= n && n - at >= 12; entries--, at += 12)
    if (word(d + at, little) == 0x0112) {
      unsigned value = word(d + at + 8, little);
      return value >= 1 && value <= 8 ? (int)value : 1;
    }
  return 1;
}

int lt_exif_orientation(const uint8_t *d, size_t n) {
  for (size_t at = 2; at <= n && n - at >= 4 && d[at] == 0xff && d[at + 1] != 0xda;) {
    size_t length = word(d + at + 2, false);
    if (length < 2 || n - at - 2 < length) return 1;
    if (d[at + 1] == 0xe1 && length >= 8 && memcmp(d + at + 4, "Exif\0\0", 6) == 0)
      return tiff_orientation(d + at + 10, length - 8);
    at += 2 + length;
  }
  return 1;
}

void lt_picture_orient(lt_picture *p, int orientation) {
  if (orientation >= 5) lt_picture_transpose(p); /* rows of the file are columns */
  if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7)
    lt_picture_mirror(p, false);
  if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8)
    lt_picture_mirror(p, true);
}
