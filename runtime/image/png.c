/* runtime/image/png.c: PNG files, by libspng.

   libspng checks the file's chunks and their checksums; its limits keep a small file from asking
   for much memory: sides of 65535, and CHUNK_MAX and CACHE_MAX bytes of chunks. All colours come as
   8 bits of R G B (A) and are narrowed here; ids of a palette and 16 bits a channel are read as
   they are, for masks and depth maps. */
#include <stdlib.h>
#include <string.h>

#include "image/format.h"
#include "image/libraries.h"

enum { CHUNK_MAX = 64 << 20, CACHE_MAX = 128 << 20 };

/* A file that ends too early is the usual fault (a download that broke off): it gets words of its
   own, whichever of libspng's errors it was. */
static bool check(lt_ctx *c, const lt_reading *r, const lt_spng *lib, int status) {
  enum { IO_EOF = -1, TOO_SHORT = 62, E_IO = 67, E_OF = 68 }; /* of enum spng_errno */
  if (status == 0) return true;
  if (status == IO_EOF || status == TOO_SHORT || status == E_IO || status == E_OF)
    return lt_image_fail(c, r, "the file is cut off");
  return lt_image_fail(c, r, "PNG: %s", lib->error(status));
}

/* Decodes into fresh memory; *size is its bytes. */
static uint8_t *decode(lt_ctx *c, const lt_reading *r, const lt_spng *lib, void *png, int format,
                       int flags, size_t *size) {
  if (!check(c, r, lib, lib->decoded_size(png, format, size))) return NULL;
  uint8_t *pixels = lt_realloc(c, NULL, 0, *size);
  if (pixels == NULL || check(c, r, lib, lib->decode(png, pixels, *size, format, flags)))
    return pixels;
  lt_free(c, pixels, *size);
  return NULL;
}

/* 8 bits a channel, from what libspng makes R G B A of. libspng makes RGB of grey by repeating it:
   the first of the three is the grey, exactly; colours become grey by their luminance as Pillow
   computes it (lt_luminance). The decoder's memory becomes the picture's where it has the channels
   that were asked for. */
static bool read_colours(lt_ctx *c, const lt_reading *r, const lt_spng *lib, void *png,
                         const lt_png_header *h, lt_picture *out) {
  static const int channels_of[] = {[LT_MODE_RGB] = 3, [LT_MODE_GREY] = 1, [LT_MODE_RGBA] = 4};
  static const int own[] = {1, 0, 3, 0, 2, 0, 4};
  bool as_is = r->mode == LT_MODE_AS_IS;
  bool grey = h->color_type == LT_PNG_GREY || h->color_type == LT_PNG_GREY_ALPHA;
  int channels = as_is ? own[h->color_type] : channels_of[r->mode];
  int format = channels == 3 || channels == 1 ? LT_SPNG_RGB8 : LT_SPNG_RGBA8;
  int step = format == LT_SPNG_RGB8 ? 3 : 4;
  size_t size;
  int flags = r->mode == LT_MODE_RGBA ? LT_SPNG_DECODE_TRNS : 0;
  uint8_t *pixels = decode(c, r, lib, png, format, flags, &size);
  if (pixels == NULL) return false;
  int height = (int)h->height, width = (int)h->width;
  if (channels == step) {
    *out = (lt_picture){LT_DEPTH_U8, channels, height, width, 1, (int64_t)width * step, step,
                        pixels, pixels, size};
    return true;
  }
  bool ok = lt_picture_interleaved(c, out, LT_DEPTH_U8, channels, height, width);
  int64_t n = ok ? (int64_t)height * width : 0;
  uint8_t *to = out->first;
  for (int64_t i = 0; i < n; i++) {
    const uint8_t *from = pixels + i * step;
    to[i * channels] = grey ? from[0] : lt_luminance(from);
    if (channels == 2) to[i * 2 + 1] = from[3];
  }
  lt_free(c, pixels, size);
  return ok;
}

/* Ids of 1, 2, 4 or 8 bits, rows from whole bytes. */
static bool read_ids(lt_ctx *c, const lt_reading *r, const lt_spng *lib, void *png,
                     const lt_png_header *h, lt_picture *out) {
  size_t size;
  uint8_t *packed = decode(c, r, lib, png, LT_SPNG_PNG, 0, &size);
  if (packed == NULL) return false;
  unsigned bits = h->bit_depth, mask = (1u << bits) - 1;
  size_t row = size / h->height;
  bool ok = lt_picture_new(c, out, LT_DEPTH_U8, 1, (int)h->height, (int)h->width);
  uint8_t *to = out->first;
  for (size_t y = 0; y < h->height && ok; y++)
    for (size_t x = 0; x < h->width; x++) {
      size_t at = x * bits;
      unsigned shift = 8 - bits - (unsigned)(at % 8);
      *to++ = (uint8_t)((unsigned)packed[y * row + at / 8] >> shift & mask);
    }
  lt_free(c, packed, size);
  return ok;
}

/* 16 bits a channel, as i32. */
static bool read_wide(lt_ctx *c, const lt_reading *r, const lt_spng *lib, void *png,
                      const lt_png_header *h, lt_picture *out) {
  static const int own[] = {1, 0, 3, 0, 2, 0, 4};
  if (r->mode != LT_MODE_AS_IS)
    return lt_image_fail(c, r, "16 bits a channel: mode = \"as_is\" reads it, as i32");
  size_t size;
  uint8_t *pixels = decode(c, r, lib, png, LT_SPNG_PNG, 0, &size);
  if (pixels == NULL) return false;
  bool ok = lt_picture_interleaved(c, out, LT_DEPTH_I32, own[h->color_type], (int)h->height,
                                   (int)h->width);
  int32_t *to = out->first;
  for (size_t i = 0; i < size / 2 && ok; i++) {
    uint16_t value;
    memcpy(&value, pixels + 2 * i, 2);
    to[i] = value;
  }
  lt_free(c, pixels, size);
  return ok;
}

/* Limits first, then the header, then pixels: nothing is allocated for an image before its size was
   checked. */
static bool read_with(lt_ctx *c, const lt_reading *r, const lt_spng *lib, void *png,
                      const uint8_t *data, size_t n, lt_picture *out) {
  lt_png_header h;
  lib->set_image_limits(png, LT_SIDE_MAX, LT_SIDE_MAX);
  lib->set_chunk_limits(png, CHUNK_MAX, CACHE_MAX);
  if (!check(c, r, lib, lib->set_buffer(png, data, n))) return false;
  if (!check(c, r, lib, lib->get_header(png, &h))) return false;
  if (!lt_image_fits(c, r, h.width, h.height)) return false;
  if (h.bit_depth == 16) return read_wide(c, r, lib, png, &h, out);
  if (h.color_type == LT_PNG_PALETTE && r->mode == LT_MODE_AS_IS)
    return read_ids(c, r, lib, png, &h, out);
  return read_colours(c, r, lib, png, &h, out);
}

bool lt_png_decode(lt_ctx *c, const lt_reading *r, const uint8_t *data, size_t n,
                   lt_picture *out) {
  *out = (lt_picture){0};
  const lt_spng *lib = lt_spng_open(c, r->op);
  void *png = lib != NULL ? lib->open(0) : NULL;
  if (png == NULL) return lt_fail(c, LT_EMEMORY, "%s: out of memory", r->op);
  bool ok = read_with(c, r, lib, png, data, n, out);
  lib->close(png);
  return ok;
}

static void drop(unsigned char *bytes) { free(bytes); } /* libspng's buffer is malloc's */

/* The elements in the order and width of the format. */
static void *lay_out(lt_ctx *c, const lt_picture *p, size_t *size) {
  size_t wide = p->depth == LT_DEPTH_I32 ? 2 : 1, at = 0;
  *size = (size_t)p->channels * (size_t)p->height * (size_t)p->width * wide;
  uint8_t *out = lt_realloc(c, NULL, 0, *size);
  if (out == NULL) return NULL;
  for (int y = 0; y < p->height; y++)
    for (int x = 0; x < p->width; x++)
      for (int ch = 0; ch < p->channels; ch++, at += wide) {
        const void *row = lt_picture_row(p, ch, y);
        if (wide == 1) {
          out[at] = ((const uint8_t *)row)[x * p->stride_x];
        } else {
          uint16_t value = (uint16_t)((const int32_t *)row)[x * p->stride_x];
          memcpy(out + at, &value, 2);
        }
      }
  return out;
}

static int encode_with(const lt_spng *lib, void *png, const lt_picture *p, const void *pixels,
                       size_t size, int level, lt_encoded *out) {
  static const uint8_t types[] = {0, LT_PNG_GREY, LT_PNG_GREY_ALPHA, LT_PNG_RGB, LT_PNG_RGBA};
  lt_png_header h = {.width = (uint32_t)p->width,
                     .height = (uint32_t)p->height,
                     .bit_depth = p->depth == LT_DEPTH_I32 ? 16 : 8,
                     .color_type = types[p->channels]};
  lib->set_option(png, LT_SPNG_TO_BUFFER, 1);
  lib->set_option(png, LT_SPNG_LEVEL, level);
  int status = lib->set_header(png, &h);
  if (status == 0)
    status = lib->encode(png, pixels, size, LT_SPNG_PNG, LT_SPNG_ENCODE_FINALIZE);
  if (status == 0) out->bytes = lib->get_buffer(png, &out->n, &status);
  return status;
}

/* The result is libspng's own buffer, released by `drop`: no copy. */
bool lt_png_encode(lt_ctx *c, const char *op, const lt_picture *p, int level, lt_encoded *out) {
  *out = (lt_encoded){.drop = drop};
  const lt_spng *lib = lt_spng_open(c, op);
  void *png = lib != NULL ? lib->open(LT_SPNG_ENCODER) : NULL;
  if (png == NULL) return lt_fail(c, LT_EMEMORY, "%s: out of memory", op);
  size_t size;
  void *pixels = lay_out(c, p, &size);
  int status = pixels != NULL ? encode_with(lib, png, p, pixels, size, level, out) : 0;
  if (status != 0) lt_fail(c, LT_EIO, "%s: PNG: %s", op, lib->error(status));
  lib->close(png);
  lt_free(c, pixels, size);
  return lt_ok(c);
}
