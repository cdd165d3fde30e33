/* runtime/image/libraries.h: libturbojpeg, libspng and libwebp, opened when they are first
   needed.

   What we call of them is declared here, so that a build needs neither their headers nor them, and
   a start of the program pays nothing: these interfaces have been stable for years. */
#ifndef LT_IMAGE_LIBRARIES_H
#define LT_IMAGE_LIBRARIES_H

#include "base/ctx.h"

/* turbojpeg.h */
enum { LT_TJ_RGB = 0, LT_TJ_GRAY = 6, LT_TJ_CMYK = 11 };          /* pixel formats */
enum { LT_TJ_SPACE_GRAY = 2, LT_TJ_SPACE_CMYK, LT_TJ_SPACE_YCCK }; /* colour spaces of files */
enum { LT_TJ_444 = 0, LT_TJ_420 = 2, LT_TJ_SAMP_GRAY = 3 };
enum { LT_TJ_LIMIT_SCANS = 32768 }; /* thousands of scans of a small file take minutes */

typedef struct lt_turbojpeg {
  void *(*open_decoder)(void);
  void *(*open_encoder)(void);
  int (*close)(void *);
  int (*read_header)(void *, const unsigned char *, unsigned long, int *width, int *height,
                     int *sampling, int *space);
  int (*decode)(void *, const unsigned char *, unsigned long, unsigned char *out, int width,
                int pitch, int height, int format, int flags);
  int (*encode)(void *, const unsigned char *in, int width, int pitch, int height, int format,
                unsigned char **out, unsigned long *size, int sampling, int quality, int flags);
  void (*free)(unsigned char *);
  char *(*error)(void *);
} lt_turbojpeg;

/* spng.h */
enum { LT_SPNG_RGBA8 = 1, LT_SPNG_RGB8 = 4, LT_SPNG_PNG = 256 };
enum { LT_SPNG_DECODE_TRNS = 1, LT_SPNG_ENCODE_FINALIZE = 2, LT_SPNG_ENCODER = 2 };
enum { LT_SPNG_LEVEL = 2, LT_SPNG_TO_BUFFER = 12 };
enum {
  LT_PNG_GREY = 0, LT_PNG_RGB = 2, LT_PNG_PALETTE = 3, LT_PNG_GREY_ALPHA = 4, LT_PNG_RGBA = 6
};

typedef struct lt_png_header {
  uint32_t width, height;
  uint8_t bit_depth, color_type, compression_method, filter_method, interlace_method;
} lt_png_header;

typedef struct lt_spng {
  void *(*open)(int flags);
  void (*close)(void *);
  int (*set_buffer)(void *, const void *, size_t);
  int (*set_image_limits)(void *, uint32_t width, uint32_t height);
  int (*set_chunk_limits)(void *, size_t chunk, size_t cache);
  int (*set_option)(void *, int option, int value);
  int (*get_header)(void *, lt_png_header *);
  int (*set_header)(void *, lt_png_header *);
  int (*decoded_size)(void *, int format, size_t *);
  int (*decode)(void *, void *out, size_t n, int format, int flags);
  int (*encode)(void *, const void *in, size_t n, int format, int flags);
  void *(*get_buffer)(void *, size_t *n, int *error);
  const char *(*error)(int);
} lt_spng;

/* webp/decode.h */
enum { LT_WEBP_ABI = 0x0208 };

typedef struct lt_webp_features {
  int width, height, has_alpha, has_animation, format;
  uint32_t reserved[5];
} lt_webp_features;

typedef struct lt_webp {
  int (*features)(const uint8_t *, size_t, lt_webp_features *, int abi);
  uint8_t *(*decode_rgb)(const uint8_t *, size_t, uint8_t *out, size_t size, int stride);
  uint8_t *(*decode_rgba)(const uint8_t *, size_t, uint8_t *out, size_t size, int stride);
} lt_webp;

/* NULL, with a failure that says what to install, where the library is not. */
const lt_turbojpeg *lt_turbojpeg_open(lt_ctx *c, const char *op);
const lt_spng *lt_spng_open(lt_ctx *c, const char *op);
const lt_webp *lt_webp_open(lt_ctx *c, const char *op);

#endif
