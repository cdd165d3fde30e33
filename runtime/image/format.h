/* runtime/image/format.h: images in the formats of files: JPEG, PNG, WebP and BMP, recognised by
   their content.

   Readers trust nothing of a file: sides and pixels are bounded before memory is taken, and what
   ends early or contradicts itself fails. `where` is the file (or "the bytes") in messages. */
#ifndef LT_IMAGE_FORMAT_H
#define LT_IMAGE_FORMAT_H

#include "image/picture.h"

typedef enum lt_image_mode {
  LT_MODE_RGB, LT_MODE_GREY, LT_MODE_RGBA,
  LT_MODE_AS_IS, /* the channels of the file; the ids of a palette; 16 bits as i32 */
} lt_image_mode;

typedef struct lt_reading {
  const char *op, *where;
  lt_image_mode mode;
  bool orient; /* turn as EXIF says */
} lt_reading;

/* What the bytes hold; the caller frees *out. Failures of the content are LT_EIO. */
bool lt_image_decode(lt_ctx *c, const lt_reading *r, const void *data, size_t n, lt_picture *out);

/* The same of a file. */
bool lt_image_load(lt_ctx *c, const lt_reading *r, lt_picture *out);

/* Its readers: an interleaved picture of u8 with the channels of the mode. */
bool lt_jpeg_decode(lt_ctx *c, const lt_reading *r, const uint8_t *data, size_t n,
                    lt_picture *out);
bool lt_png_decode(lt_ctx *c, const lt_reading *r, const uint8_t *data, size_t n, lt_picture *out);
bool lt_webp_decode(lt_ctx *c, const lt_reading *r, const uint8_t *data, size_t n,
                    lt_picture *out); /* of 12 bytes at least */
bool lt_bmp_decode(lt_ctx *c, const lt_reading *r, const uint8_t *data, size_t n, lt_picture *out);

/* An interleaved picture of u8, grey (1), R G B or R G B A, in the channels of the mode. */
bool lt_picture_channels(lt_ctx *c, lt_image_mode mode, lt_picture *p);

/* "op: where: reason", LT_EIO; false. */
bool lt_image_fail(lt_ctx *c, const lt_reading *r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether an image may have these sides; fails. */
bool lt_image_fits(lt_ctx *c, const lt_reading *r, int64_t width, int64_t height);

/* Orientation 1 to 8 of the EXIF data of a JPEG file, 1 where it says none. */
int lt_exif_orientation(const uint8_t *data, size_t n);

/* The picture turned so that orientation 1 is right for it: a view. */
void lt_picture_orient(lt_picture *p, int orientation);

/* Luminance of interleaved R G B (step 3 or 4), as PIL's mode L. */
static inline uint8_t lt_luminance(const uint8_t *rgb) {
  return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

/* The bytes of a file of the picture (u8; PNG also i32, 16 bits). They are freed by *drop(bytes).
 */
typedef struct lt_encoded {
  unsigned char *bytes;
  size_t n;
  void (*drop)(unsigned char *);
} lt_encoded;
bool lt_jpeg_encode(lt_ctx *c, const char *op, lt_picture *p, int quality, lt_encoded *out);
bool lt_png_encode(lt_ctx *c, const char *op, const lt_picture *p, int level, lt_encoded *out);

#endif
