/* runtime/image/libraries.c: the libraries of image files (libraries.h).

   Opened with the first file of a format, not linked: a program without images needs none of them.
   The names end in the version of the ABI that libraries.h declares: another one could have other
   structs under the same names. */
#include "image/libraries.h"

#include "base/library.h"

static lt_turbojpeg turbojpeg;

static const lt_function turbojpeg_functions[] = {
    {offsetof(lt_turbojpeg, open_decoder), "tjInitDecompress"},
    {offsetof(lt_turbojpeg, open_encoder), "tjInitCompress"},
    {offsetof(lt_turbojpeg, close), "tjDestroy"},
    {offsetof(lt_turbojpeg, read_header), "tjDecompressHeader3"},
    {offsetof(lt_turbojpeg, decode), "tjDecompress2"},
    {offsetof(lt_turbojpeg, encode), "tjCompress2"},
    {offsetof(lt_turbojpeg, free), "tjFree"},
    {offsetof(lt_turbojpeg, error), "tjGetErrorStr2"},
};

static lt_library turbojpeg_library = {
    .names = {"libturbojpeg.so.0"}, .table = &turbojpeg,
    .functions = turbojpeg_functions, .n = sizeof turbojpeg_functions / sizeof *turbojpeg_functions,
    .missing = "JPEG files need libturbojpeg: apt install libturbojpeg0"};

static lt_spng spng;

static const lt_function spng_functions[] = {
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

static lt_library spng_library = {
    .names = {"libspng.so.0"}, .table = &spng,
    .functions = spng_functions, .n = sizeof spng_functions / sizeof *spng_functions,
    .missing = "PNG files need libspng: apt install libspng0"};

static lt_webp webp;

static const lt_function webp_functions[] = {
    {offsetof(lt_webp, features), "WebPGetFeaturesInternal"},
    {offsetof(lt_webp, decode_rgb), "WebPDecodeRGBInto"},
    {offsetof(lt_webp, decode_rgba), "WebPDecodeRGBAInto"},
};

static lt_library webp_library = {
    .names = {"libwebp.so.7"}, .table = &webp,
    .functions = webp_functions, .n = sizeof webp_functions / sizeof *webp_functions,
    .missing = "WebP files need libwebp: apt install libwebp7"};

const lt_turbojpeg *lt_turbojpeg_open(lt_ctx *c, const char *op) {
  return lt_library_open(c, &turbojpeg_library, op) ? &turbojpeg : NULL;
}

const lt_spng *lt_spng_open(lt_ctx *c, const char *op) {
  return lt_library_open(c, &spng_library, op) ? &spng : NULL;
}

const lt_webp *lt_webp_open(lt_ctx *c, const char *op) {
  return lt_library_open(c, &webp_library, op) ? &webp : NULL;
}
