/* runtime/image/libraries.c: finds the libraries of image files. */
#include "image/libraries.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

typedef struct row {
  size_t at;
  const char *name;
} row;

static lt_turbojpeg turbojpeg;
static lt_spng spng;
static lt_webp webp;
static bool has_turbojpeg, has_spng, has_webp;

/* Fills a table of pointers to functions; false when one is not in the library. */
static bool fill(const char *file, void *table, const row *rows, size_t n) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return false;
  for (size_t k = 0; k < n; k++) {
    void *f = dlsym(library, rows[k].name);
    if (f == NULL) return false;
    memcpy((char *)table + rows[k].at, &f, sizeof f);
  }
  return true;
}

static void open_turbojpeg(void) {
  static const row rows[] = {
      {offsetof(lt_turbojpeg, open_decoder), "tjInitDecompress"},
      {offsetof(lt_turbojpeg, open_encoder), "tjInitCompress"},
      {offsetof(lt_turbojpeg, close), "tjDestroy"},
      {offsetof(lt_turbojpeg, read_header), "tjDecompressHeader3"},
      {offsetof(lt_turbojpeg, decode), "tjDecompress2"},
      {offsetof(lt_turbojpeg, encode), "tjCompress2"},
      {offsetof(lt_turbojpeg, free), "tjFree"},
      {offsetof(lt_turbojpeg, error), "tjGetErrorStr2"},
  };
  has_turbojpeg = fill("libturbojpeg.so.0", &turbojpeg, rows, sizeof rows / sizeof *rows);
}

static void open_spng(void) {
  static const row rows[] = {
      {offsetof(lt_spng, open), "spng_ctx_new"},
      {offsetof(lt_spng, close), "spng_ctx_free"},
      {offsetof(lt_spng, set_buffer), "spng_set_png_buffer"},
      {offsetof(lt_spng, set_image_limits), "spng_set_image_limits"},
      {offsetof(lt_spng, set_chunk_limits), "spng_set_chunk_limits"},
      {offsetof(lt_spng, set_option), "spng_set_option"},
      {offsetof(lt_spng, get_header), "spng_get_ihdr"},
      {offsetof(lt_spng, set_header), "spng_set_ihdr"},
      {offsetof(lt_spng, decoded_size), "spng_decoded_image_size"},
      {offsetof(lt_spng, decode), "spng_decode_image"},
      {offsetof(lt_spng, encode), "spng_encode_image"},
      {offsetof(lt_spng, get_buffer), "spng_get_png_buffer"},
      {offsetof(lt_spng, error), "spng_strerror"},
  };
  has_spng = fill("libspng.so.0", &spng, rows, sizeof rows / sizeof *rows);
}

static void open_webp(void) {
  static const row rows[] = {
      {offsetof(lt_webp, features), "WebPGetFeaturesInternal"},
      {offsetof(lt_webp, decode_rgb), "WebPDecodeRGBInto"},
      {offsetof(lt_webp, decode_rgba), "WebPDecodeRGBAInto"},
  };
  has_webp = fill("libwebp.so.7", &webp, rows, sizeof rows / sizeof *rows);
}

const lt_turbojpeg *lt_turbojpeg_open(lt_ctx *c, const char *op) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_turbojpeg);
  if (!has_turbojpeg)
    lt_fail(c, LT_EDEVICE, "%s: JPEG files need libturbojpeg: apt install libturbojpeg0", op);
  return has_turbojpeg ? &turbojpeg : NULL;
}

const lt_spng *lt_spng_open(lt_ctx *c, const char *op) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_spng);
  if (!has_spng) lt_fail(c, LT_EDEVICE, "%s: PNG files need libspng: apt install libspng0", op);
  return has_spng ? &spng : NULL;
}

const lt_webp *lt_webp_open(lt_ctx *c, const char *op) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_webp);
  if (!has_webp) lt_fail(c, LT_EDEVICE, "%s: WebP files need libwebp: apt install libwebp7", op);
  return has_webp ? &webp : NULL;
}
