/* runtime/image/bmp.c: BMP files: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits of colours.
   Those that are compressed by runs, of which there are few, are refused.

   Microsoft's BITMAPINFOHEADER and its older and newer forms; rows are padded to four bytes and
   stored from the bottom unless the height is negative. Every size and place is checked against the
   file before pixels are touched; `b->pixels` is trusted over the header's end, as other readers
   do. */
#include <string.h>

#include "image/format.h"

enum { FILE_HEADER = 14, CORE = 12, INFO = 40 }; /* bytes of headers */
enum { PLAIN = 0, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };

typedef struct bmp {
  const uint8_t *data;
  size_t n;
  int64_t width, height;
  bool downwards; /* the first row of the file is the upper one */
  unsigned bits;
  uint32_t mask[4]; /* of red, green, blue, alpha; of more than 8 bits */
  const uint8_t *palette;
  unsigned colours, colour_size;
  size_t pixels, row; /* where rows begin; bytes of one */
} bmp;

static uint32_t get(const uint8_t *p, int n) {
  uint32_t value = 0;
  for (int i = n - 1; i >= 0; i--) value = value << 8 | p[i];
  return value;
}

static bool damaged(lt_ctx *c, const lt_reading *r) {
  return lt_image_fail(c, r, "BMP: its header is damaged");
}

/* The masks, which follow the first 40 bytes, and how many bytes they take beyond the header. */
static bool read_masks(lt_ctx *c, const lt_reading *r, bmp *b, uint32_t header, uint32_t method,
                       size_t *beyond) {
  static const uint32_t of_16[4] = {0x7c00, 0x3e0, 0x1f, 0};
  static const uint32_t of_32[4] = {0xff0000, 0xff00, 0xff, 0};
  memcpy(b->mask, b->bits == 16 ? of_16 : of_32, sizeof b->mask);
  if (method == PLAIN) return true;
  if (b->bits != 16 && b->bits != 32) return damaged(c, r);
  size_t masks = method == ALPHA_BITFIELDS || header >= INFO + 16 ? 4 : 3;
  *beyond = header == INFO ? 4 * masks : 0;
  if (header > INFO && header < INFO + 4 * masks) return damaged(c, r);
  if (b->n < FILE_HEADER + INFO + 4 * masks) return damaged(c, r);
  for (size_t k = 0; k < masks; k++)
    b->mask[k] = get(b->data + FILE_HEADER + INFO + 4 * k, 4);
  return true;
}

/* The core header of OS/2 has sizes of 16 bits and a palette of three bytes a colour; all later
   ones begin like BITMAPINFOHEADER. */
static bool read_header(lt_ctx *c, const lt_reading *r, bmp *b) {
  if (b->n < FILE_HEADER + CORE) return lt_image_fail(c, r, "the file is cut off");
  const uint8_t *h = b->data + FILE_HEADER;
  uint32_t header = get(h, 4), method = PLAIN, used = 0;
  size_t beyond = 0;
  bool core = header == CORE;
  if ((!core && header < INFO) || header > b->n - FILE_HEADER) return damaged(c, r);
  b->width = core ? (int64_t)get(h + 4, 2) : (int32_t)get(h + 4, 4);
  b->height = core ? (int64_t)get(h + 6, 2) : (int32_t)get(h + 8, 4);
  b->bits = get(h + (core ? 10 : 14), 2);
  if (!core) method = get(h + 16, 4), used = get(h + 32, 4);
  b->downwards = b->height < 0;
  if (b->downwards) b->height = -b->height;
  if (!lt_image_fits(c, r, b->width, b->height)) return false;
  if (method == 1 || method == 2)
    return lt_image_fail(c, r, "BMP: compressed by runs, which is not read");
  if (method != PLAIN && method != BITFIELDS && method != ALPHA_BITFIELDS) return damaged(c, r);
  bool paletted = b->bits == 1 || b->bits == 4 || b->bits == 8;
  if (!paletted && b->bits != 16 && b->bits != 24 && b->bits != 32) return damaged(c, r);
  if (!read_masks(c, r, b, header, method, &beyond)) return false;
  b->colour_size = core ? 3 : 4;
  size_t at = FILE_HEADER + header + beyond;
  if (paletted) {
    b->colours = used > 0 && used < 1u << b->bits ? used : 1u << b->bits;
    if (at > b->n || b->colours * (size_t)b->colour_size > b->n - at) return damaged(c, r);
    b->palette = b->data + at;
  }
  b->pixels = get(b->data + 10, 4);
  b->row = ((size_t)b->width * b->bits + 31) / 32 * 4;
  size_t last = ((size_t)b->width * b->bits + 7) / 8; /* which may lack its padding */
  size_t all = b->row * (size_t)(b->height - 1) + last;
  return (b->pixels <= b->n && all <= b->n - b->pixels) ||
         lt_image_fail(c, r, "the file is cut off");
}

/* The part of a pixel under a mask, as 0 to 255: scaled by the mask's largest value, so that 5 bits
   of ones are 255. No mask: opaque. */
static uint8_t under(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 255;
  int shift = __builtin_ctz(mask);
  return (uint8_t)((uint64_t)((pixel & mask) >> shift) * 255 / (mask >> shift));
}

static unsigned id_of(const bmp *b, const uint8_t *row, size_t x) {
  size_t at = x * b->bits;
  return (unsigned)row[at / 8] >> (8 - b->bits - (unsigned)(at % 8)) & ((1u << b->bits) - 1);
}

/* R G B A of a pixel; an id that the palette lacks is black. */
static void colour_of(const bmp *b, const uint8_t *row, size_t x, uint8_t rgba[4]) {
  if (b->bits > 8) {
    uint32_t pixel = get(row + x * (b->bits / 8), (int)b->bits / 8);
    for (int k = 0; k < 4; k++) rgba[k] = under(pixel, b->mask[k]);
    return;
  }
  unsigned id = id_of(b, row, x);
  const uint8_t *colour = id < b->colours ? b->palette + (size_t)id * b->colour_size : NULL;
  for (int k = 0; k < 3; k++) rgba[k] = colour != NULL ? colour[2 - k] : 0;
  rgba[3] = 255;
}

bool lt_bmp_decode(lt_ctx *c, const lt_reading *r, const uint8_t *data, size_t n,
                   lt_picture *out) {
  bmp b = {.data = data, .n = n};
  *out = (lt_picture){0};
  if (!read_header(c, r, &b)) return false;
  bool as_is = r->mode == LT_MODE_AS_IS, ids = as_is && b.bits <= 8;
  bool alpha = r->mode == LT_MODE_RGBA || (as_is && b.bits > 8 && b.mask[3] != 0);
  int channels = ids ? 1 : alpha ? 4 : 3;
  if (!lt_picture_interleaved(c, out, LT_DEPTH_U8, channels, (int)b.height, (int)b.width))
    return false;
  for (int64_t y = 0; y < b.height; y++) {
    const uint8_t *from = data + b.pixels + b.row * (size_t)(b.downwards ? y : b.height - 1 - y);
    uint8_t *to = (uint8_t *)out->first + y * b.width * channels, rgba[4];
    for (int64_t x = 0; x < b.width; x++, to += channels) {
      if (ids)
        rgba[0] = (uint8_t)id_of(&b, from, (size_t)x);
      else
        colour_of(&b, from, (size_t)x, rgba);
      memcpy(to, rgba, (size_t)channels);
    }
  }
  if (lt_picture_channels(c, r->mode, out)) return true;
  lt_picture_free(c, out);
  return false;
}
